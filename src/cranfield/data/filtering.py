"""Decision A1: which ratings an experiment is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cranfield._decisions import Decided, decision
from cranfield._errors import SettingError
from cranfield.data import filters as known


def _filters(name: str, value: Any) -> tuple[str, ...]:
    """Return each filter in its standard spelling."""
    texts = (value,) if isinstance(value, str) else tuple(value)
    for text in texts:
        try:
            known.registry.spelling(text)
        except SettingError as error:
            raise SettingError(f"{name}={text!r}: {error}") from error
    return tuple(str(known.registry.spelling(text)) for text in texts)


def _phrase(filters: tuple[str, ...]) -> str | None:
    return ", ".join(f"{spelling} ratings" for spelling in filters) or None


@dataclass(frozen=True)
class Filtering(Decided):
    """Which ratings count: filters as they are spelled, applied in order.

    Examples
    --------
    >>> Filtering(["k_core( k=5 )"]).filters
    ('k_core(k=5)',)
    """

    filters: Any = decision(
        "A1", (), "filters of the ratings, applied in order, as in ['k_core(k=5)']", check=_filters, phrase=_phrase
    )

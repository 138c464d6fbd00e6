"""Functions of the user's own: what they are made of belongs to what an artifact is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from cranfield._code_hash import is_ours, made_of
from cranfield._registry import Registry
from cranfield._spelling import parse
from cranfield.measures import Metric


def own(*functions: Callable[..., Any]) -> list[str]:
    """Return a hash of each function that is not ours; for ours the version stands.

    Examples
    --------
    >>> own(print, own)
    ['...']
    """
    return [made_of(one) for one in functions if not is_ours(one)]


def own_of(registry: Registry[Any], spellings: Iterable[str]) -> list[str]:
    """Return a hash of each spelled function that is not ours."""
    return own(*(registry[parse(one).name] for one in spellings))


def own_metrics(spellings: Iterable[str]) -> list[str]:
    """Return a hash of each metric that is not ours: of its function, and of what it was said to be."""
    definitions = [Metric.of(one).definition for one in spellings]
    return [
        made_of(getattr(definition, one.name))
        for definition in definitions
        if not is_ours(definition.function)
        for one in fields(definition)
    ]

"""`Fact`: numbers and names that a result holds, with the sentence that says them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform

import numpy as np


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Fact:
    """A fact of a result: its fields are numbers, names and other facts, but no sentences.

    Every subclass is a frozen dataclass, without a decorator. ``str`` of a fact is its `sentence`, so facts can stand
    wherever notes are shown.
    """

    _kinds: ClassVar[dict[str, type[Fact]]] = {}

    def __init_subclass__(cls) -> None:
        Fact._kinds[cls.__name__] = dataclass(frozen=True)(cls)

    @property
    def sentence(self) -> str:
        """The fact in words."""
        return self._said()

    def _said(self) -> str:
        raise NotImplementedError

    @property
    def brief(self) -> str:
        """The fact in a few words, where there is little room."""
        return self.sentence

    def as_dict(self) -> dict[str, Any]:
        """Return the kind of the fact and its fields, ready for JSON."""
        named = {field.name: Fact.plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"fact": type(self).__name__, **named}

    @staticmethod
    def plain(value: Any) -> Any:
        """Return facts, also those within tuples and mappings, as `as_dict` writes them; other values stay."""
        if isinstance(value, Fact):
            return value.as_dict()
        if isinstance(value, Mapping):
            return {name: Fact.plain(part) for name, part in value.items()}
        if isinstance(value, tuple | list):
            return [Fact.plain(part) for part in value]
        return value.item() if isinstance(value, np.generic) else value

    @staticmethod
    def read(record: Any) -> Any:
        """Return the facts that `plain` wrote; other values stay as they are, with tuples for lists."""
        if isinstance(record, Mapping):
            values = {name: Fact.read(value) for name, value in record.items()}
            return Fact._kinds[values.pop("fact")](**values) if "fact" in values else values
        return tuple(map(Fact.read, record)) if isinstance(record, list) else record

    def __str__(self) -> str:
        return self.sentence


def sentences(facts: Iterable[Any]) -> list[str]:
    """Return facts in words."""
    return [str(fact) for fact in facts]

"""Values in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def unless(usual: Any, template: str, words: Mapping[Any, str] | None = None) -> Callable[[Any], str | None]:
    """Return how a value reads: not at all if it is the usual one, by its own words, or put into a template.

    Examples
    --------
    >>> said = unless(100, "lists of {}", {"all": "whole lists"})
    >>> said(100), said(10), said("all")
    (None, 'lists of 10', 'whole lists')
    """

    def said(value: Any) -> str | None:
        if value == usual and type(value) is type(usual):
            return None
        if words is not None and value in words:
            return words[value]
        return template.format(value)

    return said

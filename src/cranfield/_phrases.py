"""Values in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def listed(names: Sequence[str]) -> str:
    """Return names joined as in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def few(names: Sequence[Any], most: int) -> str:
    """Return at most so many names joined as in a sentence, with the number of the others.

    Examples
    --------
    >>> few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return listed([*names] if len(names) <= most else [*names[:most], f"{len(names) - most} more"])


def all_systems(n: int) -> str:
    """Return all of n systems in words.

    Examples
    --------
    >>> all_systems(2), all_systems(3)
    ('both systems', 'all 3 systems')
    """
    return "both systems" if n == 2 else f"all {n} systems"


def unless(usual: Any, template: str, words: Mapping[Any, str] | None = None) -> Callable[[Any], str | None]:
    """Return a function that puts a value into words: None for the usual one, its entry in ``words``, or the template.

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

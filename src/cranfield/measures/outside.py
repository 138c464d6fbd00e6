"""Items of lists outside a catalogue: their counts, and notes on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cranfield._numbers import percent_text

EXAMPLES = 3
"""Number of items outside the catalogue that a sentence names as examples."""


class Outside(NamedTuple):
    """The items in the whole lists of a system that are not in the catalogue.

    Parameters
    ----------
    entries, recommended
        The number of entries outside, and of all entries.
    items
        The number of distinct items outside; None for several folds together, whose items are not compared.
    examples
        Some of these items.
    """

    entries: int
    recommended: int
    items: int | None
    examples: tuple[str, ...]


def outside_in_folds(folds: Sequence[Sequence[Outside]]) -> tuple[Outside, ...]:
    """Return the items of each system outside the catalogue in all folds together.

    Examples
    --------
    >>> outside_in_folds([[Outside(1, 10, 1, ("x",))], [Outside(2, 10, 2, ("x", "y"))]])
    (Outside(entries=3, recommended=20, items=None, examples=('x', 'y')),)
    """
    return tuple(
        Outside(
            sum(fold.entries for fold in of_system),
            sum(fold.recommended for fold in of_system),
            None,
            tuple(dict.fromkeys(name for fold in of_system for name in fold.examples))[:EXAMPLES],
        )
        for of_system in zip(*folds)
    )


def catalogue_notes(names: Sequence[str], outside: Sequence[Outside]) -> Iterator[str]:
    """Yield a note for each system that recommends items outside the catalogue."""
    for name, of_system in zip(names, outside):
        if of_system.entries:
            examples = ", ".join(of_system.examples)
            number = "" if of_system.items is None else f"{of_system.items:,} "
            items = "item that is" if of_system.items == 1 else "items that are"
            yield (
                f"{name} recommends {number}{items} not in the catalogue, such as {examples}: "
                f"{of_system.entries:,} of its {of_system.recommended:,} recommendations "
                f"({percent_text(of_system.entries / of_system.recommended)}), counted separately from unjudged ones"
            )

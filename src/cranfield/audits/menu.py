"""The menu in words: the options that an audit crosses, for sentences about shares of them."""

from __future__ import annotations

from collections.abc import Mapping

from cranfield._numbers import listed
from cranfield.audits.conditions import ordered
from cranfield.audits.grid import Grid, Opened

# Of longer lists of numbers, only the ends are shown.
_MOST_NUMBERS = 5


def menu_text(grid: Grid) -> str:
    """Return the opened decisions, chance last, each with its options.

    Examples
    --------
    >>> menu_text(Grid.product([Opened("cutoff", "equivalent", ("5", "10")), Opened("seed", "chance", ("0", "1"))]))
    'cutoff (5, 10), over seed (0, 1)'
    """
    decided = ", ".join(_options_text(grid.opened[place]) for place in grid.decisions)
    chance = listed([_options_text(grid.opened[place]) for place in grid.of_kind("chance")] or [""])
    return f"{decided}, over {chance}" if decided and chance else decided or chance


def _options_text(opened: Opened) -> str:
    weighted = "" if opened.weights is None else ", weighted"
    numbers = ordered(opened)
    if numbers is None or len(opened.options) <= _MOST_NUMBERS:
        return f"{opened.name} ({', '.join(opened.options)}{weighted})"
    name, values = numbers
    span = f"{len(values)} from {min(values):g} to {max(values):g}"
    return f"{opened.name} ({'' if name == opened.name else name + ', '}{span}{weighted})"


def question_text(question: Mapping[str, str] | None) -> str:
    """Return the options of a question: ``"split random(train=0.5)"``; empty for all questions together."""
    return ", ".join(f"{name} {option}" for name, option in question.items()) if question else "all universes"

"""Conditions on decisions: thresholds where options are numbers in one pattern, sets of options otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cranfield._phrases import listed
from cranfield.audits.grid import Grid, Opened

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
# Of more options than these, sets are single options: there would be too many of them.
_MOST_OPTIONS = 5


@dataclass(frozen=True)
class Condition:
    """A condition on one decision.

    Parameters
    ----------
    place
        The number of the decision.
    options
        The numbers of the options for which it holds.
    holds, fails
        How it reads where it holds and where it does not.
    """

    place: int
    options: frozenset[int]
    holds: str
    fails: str

    def of(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell for which cells it holds."""
        return np.isin(cells[:, self.place], sorted(self.options))


def ordered(opened: Opened) -> tuple[str, list[float]] | None:
    """Return what the numbers in the options are called, and the numbers; None if the options differ in more than one.

    Examples
    --------
    >>> ordered(Opened("split", "question", ("random(train=0.5)", "random(train=0.8)")))
    ('train', [0.5, 0.8])
    >>> ordered(Opened("metric", "equivalent", ("P@5", "P@10")))
    ('cut-off', [5.0, 10.0])
    >>> ordered(Opened("metric", "equivalent", ("P@5", "AP@10"))) is None
    True
    """
    found = [list(_NUMBER.finditer(option)) for option in opened.options]
    texts = {_NUMBER.sub("#", option) for option in opened.options}
    if len(texts) > 1 or not found[0]:
        return None
    table = np.array([[float(match[0]) for match in matches] for matches in found])
    varying = np.flatnonzero((table != table[0]).any(axis=0))
    if len(varying) != 1 or len(set(table[:, varying[0]])) < len(table):
        return None
    before = opened.options[0][: found[0][varying[0]].start()]
    parameter = re.search(r"(\w+)=$", before)
    name = parameter[1] if parameter else "cut-off" if before.endswith("@") else opened.name
    return name, table[:, varying[0]].tolist()


def conditions_of(grid: Grid) -> list[Condition]:
    """Return all conditions on what is decided in a grid; chance is not decided."""
    return [condition for place in grid.decisions for condition in _conditions(place, grid.opened[place])]


def _conditions(place: int, opened: Opened) -> Iterator[Condition]:
    numbers = ordered(opened)
    if numbers is not None:
        name, values = numbers
        for value in sorted(values)[1:]:
            above = frozenset(k for k, own in enumerate(values) if own >= value)
            yield Condition(place, above, f"{name} of {value:g} or more", f"{name} below {value:g}")
        return
    n = len(opened.options)
    sizes = range(1, n // 2 + 1) if n <= _MOST_OPTIONS else (1,)
    for size in sizes:
        for inside in combinations(range(n), size):
            outside = [k for k in range(n) if k not in inside]
            # Of two halves one is enough: the condition that fails is the other.
            if 2 * size < n or (2 * size == n and 0 in inside):
                yield Condition(place, frozenset(inside), _among(opened, inside), _among(opened, outside))


def _among(opened: Opened, options: Sequence[int]) -> str:
    names = [opened.options[k] for k in options]
    return f"{opened.name} {names[0]}" if len(names) == 1 else f"{opened.name} one of {listed(names)}"

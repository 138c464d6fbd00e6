"""Conditions on decisions: thresholds on the numbers in options, kinds of options, and sets of options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import listed
from cranfield.audits.grid import Grid, Opened

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_READS = {"train": "train share"}
# The name in front of a number: a parameter, with the comma before it, or the sign of a cut-off.
_NAMED = re.compile(r"(?:,\s*)?\w+=$|@$")
# With more options than this, only single options are used as sets: there would be too many sets.
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
        Its text if it holds and if it does not.
    """

    place: int
    options: frozenset[int]
    holds: str
    fails: str

    def of(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for which cells it holds."""
        return np.isin(cells[:, self.place], sorted(self.options))


def ordered(opened: Opened) -> tuple[str, list[float]] | None:
    """Return the name of the number in the options, and the numbers; None if the options differ in anything else.

    Examples
    --------
    >>> ordered(Opened("split", "question", ("random(train=0.5)", "random(train=0.8)")))
    ('train share', [0.5, 0.8])
    >>> ordered(Opened("metric", "equivalent", ("P@5", "P@10")))
    ('cut-off', [5.0, 10.0])
    >>> ordered(Opened("metric", "equivalent", ("P@5", "AP@10"))) is None
    True
    """
    matches = [list(_NUMBER.finditer(option)) for option in opened.options]
    texts = {_NUMBER.sub("#", option) for option in opened.options}
    if len(texts) > 1 or not matches[0]:
        return None
    table = np.array([[float(match[0]) for match in own] for own in matches])
    varying = np.flatnonzero((table != table[0]).any(axis=0))
    if len(varying) != 1 or len(set(table[:, varying[0]])) < len(table):
        return None
    before = opened.options[0][: matches[0][varying[0]].start()]
    return _name_before(before, opened), table[:, varying[0]].tolist()


def crossed(opened: Opened) -> tuple[str, list[float], list[str]] | None:
    """Return the name of the one number in each option, the numbers, and the options without them.

    None if an option has no number or several, if the numbers have different names, or if nothing is crossed.

    Examples
    --------
    >>> crossed(Opened("metric", "equivalent", ("P@5", "P@10", "AP@10")))
    ('cut-off', [5.0, 10.0, 10.0], ['P', 'P', 'AP'])
    >>> crossed(Opened("split", "question", ("random(train=0.5)", "per_user(train=0.8)")))
    ('train share', [0.5, 0.8], ['random', 'per_user'])
    """
    names, values, families = set(), [], []
    for option in opened.options:
        matches = list(_NUMBER.finditer(option))
        if len(matches) != 1:
            return None
        before, after = option[: matches[0].start()], option[matches[0].end() :]
        names.add(_name_before(before, opened))
        values.append(float(matches[0][0]))
        families.append(re.sub(r"\(\)$", "", _NAMED.sub("", before) + after))
    if len(names) > 1 or len(set(values)) < 2 or len(set(families)) < 2:
        return None
    return names.pop(), values, families


def _name_before(before: str, opened: Opened) -> str:
    """Return the name of the number after some text: its parameter, the cut-off, or the decision."""
    parameter = re.search(r"(\w+)=$", before)
    if parameter:
        return _READS.get(parameter[1], parameter[1])
    return "cut-off" if before.endswith("@") else opened.name


def conditions_of(grid: Grid) -> list[Condition]:
    """Return all conditions on the decisions of a grid, without chance."""
    return [condition for place in grid.decisions for condition in _conditions(place, grid.opened[place])]


def _conditions(place: int, opened: Opened) -> Iterator[Condition]:
    numbers, table = ordered(opened), crossed(opened)
    if numbers is not None:
        yield from _thresholds(place, *numbers)
    elif table is not None:
        name, values, families = table
        yield from _thresholds(place, name, values)
        yield from _sets(place, opened.name, families)
    else:
        yield from _sets(place, opened.name, opened.options)


def _thresholds(place: int, name: str, values: Sequence[float]) -> Iterator[Condition]:
    for value in sorted(set(values))[1:]:
        above = frozenset(k for k, own in enumerate(values) if own >= value)
        yield Condition(place, above, f"{name} of {value:g} or more", f"{name} below {value:g}")


def _sets(place: int, decision: str, labels: Sequence[str]) -> Iterator[Condition]:
    """Yield each division of the labels into two sets once; the options of a label stay together."""
    names = list(dict.fromkeys(labels))
    n = len(names)
    for size in range(1, n // 2 + 1) if n <= _MOST_OPTIONS else (1,):
        for inside in combinations(names, size):
            # One of two equal halves is enough: the other one is where the condition fails.
            if 2 * size == n and names[0] not in inside:
                continue
            options = frozenset(k for k, label in enumerate(labels) if label in inside)
            outside = [name for name in names if name not in inside]
            yield Condition(place, options, _among(decision, inside), _among(decision, outside))


def _among(decision: str, names: Sequence[str]) -> str:
    return f"{decision} {names[0]}" if len(names) == 1 else f"{decision} one of {listed(list(names))}"

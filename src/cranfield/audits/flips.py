"""Where the winner changes: the smallest changes that change it, and the rule for who leads where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import listed
from cranfield.audits.contributions import Leads
from cranfield.audits.grid import Grid, VariedDecision
from cranfield.audits.words import option_label
from cranfield.facts import audit as audit_facts
from cranfield.recommenders import blas_threads

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_READS = {"train": "train share"}
# The name in front of a number: a parameter, with the comma before it, or the sign of a cut-off.
_NAMED = re.compile(r"(?:,\s*)?\w+=$|@$")
_MOST_OPTIONS = 5  # with more options than this, only single options are used as sets: there would be too many sets
_WORTH_A_CONDITION = 0.01  # a condition must improve the accuracy by at least this share of the cells
_EQUAL = 1e-9


def flips_of(grid: Grid, leads: Leads) -> audit_facts.Flips:
    """Return the effects of small changes of the starting point, with its chance options."""
    start = grid.universe[grid.start]
    singles = tuple(_flip(grid, leads, *change) for change in grid.changes())
    pairs: tuple[audit_facts.Flip, ...] = ()
    if not any(flip.turns_winner for flip in singles):
        changed = (_flip(grid, leads, *change) for change in grid.changes(n=2))
        pairs = tuple(flip for flip in changed if flip.turns_winner)
    possible = int(sum(grid.sizes[place] - 1 for place in grid.decisions))
    return audit_facts.Flips(int(leads.lead[start]), bool(leads.significant[start]), singles, possible, pairs)


def _flip(grid: Grid, leads: Leads, changed: tuple[int, ...], cell: int) -> audit_facts.Flip:
    start, universe = grid.universe[[grid.start, cell]]
    swaps = []
    for place in changed:
        decision = grid.varied[place]
        before, after = (decision.options[number] for number in grid.cells[[grid.start, cell], place])
        swaps.append(audit_facts.Swap(decision.name, decision.kind, before, after))
    lead, significant = int(leads.lead[universe]), bool(leads.significant[universe])
    difference, d_z, p = (float(values[universe]) for values in (leads.difference, leads.d_z, leads.p))
    turns = bool(lead * leads.lead[start] < 0), bool(significant != leads.significant[start])
    return audit_facts.Flip(tuple(swaps), cell, lead, difference, d_z, p, significant, *turns)


@dataclass(frozen=True)
class Condition:
    """A condition on the decision at ``place``: the options for which it holds, and its text if it holds or fails."""

    place: int
    options: frozenset[int]
    holds: str
    fails: str
    decision: str = ""  # for a condition on sets of options: the decision, and the label of each option
    labels: tuple[str, ...] = ()

    def of(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for which cells it holds."""
        return np.isin(cells[:, self.place], sorted(self.options))


def ordered(decision: VariedDecision) -> tuple[str, list[float]] | None:
    """Return the name of the number in the options, and the numbers; None if the options differ in anything else.

    ``("train share", [0.5, 0.8])`` for ``random(train=0.5)`` and ``random(train=0.8)``; None for ``P@5`` and ``AP@10``.
    """
    matches = [list(_NUMBER.finditer(option)) for option in decision.options]
    texts = {_NUMBER.sub("#", option) for option in decision.options}
    if len(texts) > 1 or not matches[0]:
        return None
    table = np.array([[float(match[0]) for match in own] for own in matches])
    varying = np.flatnonzero((table != table[0]).any(axis=0))
    if len(varying) != 1 or len(set(table[:, varying[0]])) < len(table):
        return None
    before = decision.options[0][: matches[0][varying[0]].start()]
    return _name_before(before, decision), table[:, varying[0]].tolist()


def crossed(decision: VariedDecision) -> tuple[str, list[float], list[str]] | None:
    """Return the name of the one number in each option, the numbers, and the options without them.

    ``("cut-off", [5, 10, 10], ["P", "P", "AP"])`` for ``P@5``, ``P@10`` and ``AP@10``. None if an option has no number
    or several, if the numbers have different names, or if nothing is crossed.
    """
    names, values, families = set(), [], []
    for option in decision.options:
        matches = list(_NUMBER.finditer(option))
        if len(matches) != 1:
            return None
        before, after = option[: matches[0].start()], option[matches[0].end() :]
        names.add(_name_before(before, decision))
        values.append(float(matches[0][0]))
        families.append(re.sub(r"\(\)$", "", _NAMED.sub("", before) + after))
    if len(names) > 1 or len(set(values)) < 2 or len(set(families)) < 2:
        return None
    return names.pop(), values, families


def _name_before(before: str, decision: VariedDecision) -> str:
    """Return the name of the number after some text: its parameter, the cut-off, or the decision."""
    parameter = re.search(r"(\w+)=$", before)
    if parameter:
        return _READS.get(parameter[1], parameter[1])
    return "cut-off" if before.endswith("@") else decision.name


def conditions_of(grid: Grid) -> Iterator[Condition]:
    """Yield all conditions on the decisions of a grid, without chance."""
    for place in grid.decisions:
        decision = grid.varied[place]
        numbers, table = ordered(decision), crossed(decision)
        if numbers is not None:
            yield from _thresholds(place, *numbers)
        elif table is not None:
            yield from _thresholds(place, *table[:2])
            yield from _sets(place, decision.name, table[2])
        else:
            labels = [option_label(decision.name, option, grid.labels) for option in decision.options]
            yield from _sets(place, decision.name, labels if len({*labels}) == len(labels) else decision.options)


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
            words = _among(decision, inside), _among(decision, outside)
            yield Condition(place, options, *words, decision, tuple(labels))


def _among(decision: str, names: Sequence[str]) -> str:
    return f"{decision} {names[0]}" if len(names) == 1 else f"{decision} one of {listed(list(names))}"


Conditions = tuple[tuple[Condition, bool], ...]  # conditions, and whether each holds

Tree = tuple[tuple[Conditions, int], ...]
"""The leaves of a tree: the way to each, and the sign of the lead that it predicts."""


@dataclass(frozen=True)
class Rule:
    """A tree that predicts which system leads in a cell, by its leaves."""

    tree: Tree
    accuracy: float  # the weighted share of the cells for which it is right; it is never right for equal systems
    majority: float  # the same for always naming the system that leads more often

    @property
    def n_conditions(self) -> int:
        """The number of conditions: each divides a leaf into two."""
        return len(self.tree) - 1

    def paths(self, lead: int) -> list[tuple[str, ...]]:
        """Return the conditions, in words, under which the first system (1) or the second (−1) leads."""
        return [_in_words(path) for path, predicted in self.tree if predicted == lead]


def _in_words(path: Conditions) -> tuple[str, ...]:
    """Return the conditions of a path in words, each decision on whose options there are several only once."""
    said: dict[object, str] = {}
    left: dict[int, set[int]] = {}
    for condition, holds in path:
        if not condition.labels:
            said[condition] = condition.holds if holds else condition.fails
            continue
        every = set(range(len(condition.labels)))
        chosen = condition.options if holds else every - condition.options
        left[condition.place] = left.get(condition.place, every) & chosen
        names = dict.fromkeys(condition.labels[k] for k in sorted(left[condition.place]))
        said[condition.place] = _among(condition.decision, list(names))
    return tuple(said.values())


def rule_of(grid: Grid, lead: NDArray[np.int8]) -> Rule:
    """Return the best tree, by exhaustive search over all trees of at most three conditions.

    A smaller tree is chosen unless a larger one is right for one per cent more of the cells. Cells that differ only by
    chance count together. ``lead`` is the sign of the lead in each cell.
    """
    balance = np.bincount(grid.setups, weights=grid.weights * lead).astype(np.float64)
    decided = float(grid.weights[lead != 0].sum())
    cells = grid.cells[np.unique(grid.setups, return_index=True)[1]]
    with blas_threads(1):
        trees = _Search(list(conditions_of(grid)), cells, balance).best()
    # With b the weight led minus the weight trailed in a leaf, the tree is right for half of (weight without ties +
    # Σ|b|).
    accuracies = [(decided + score) / 2 for score, _ in trees]
    place = next(k for k, own in enumerate(accuracies) if own >= max(accuracies) - _WORTH_A_CONDITION)
    return Rule(trees[place][1], accuracies[place], accuracies[0])


Scored = tuple[float, Tree]


class _Search:
    """A search over all trees: the score of a tree is Σ |b| over its leaves, where b is the balance of leads."""

    def __init__(self, conditions: Sequence[Condition], cells: NDArray[np.int32], balance: NDArray[np.float64]) -> None:
        self.conditions, self.balance = conditions, balance
        self.masks = np.array([condition.of(cells) for condition in conditions]).reshape(-1, len(cells))
        self.columns = self.masks.T.astype(np.float64)

    def best(self) -> list[Scored]:
        """Return the best tree of 0, 1, 2 and 3 conditions; a larger one is never worse."""
        whole = np.ones(len(self.balance), dtype=bool)
        trees = [self._leaf(whole)]
        if not self.conditions:
            return trees
        trees.append(self._fork(whole, *self._single(whole)))
        for larger in (self._two(whole), self._three()):
            trees.append(larger if larger[0] > trees[-1][0] + _EQUAL else trees[-1])
        return trees

    def _leaf(self, region: NDArray[np.bool_]) -> Scored:
        total = float(self.balance[region].sum())
        return abs(total), (((), -1 if total < 0 else 1),)

    def _scores(self, regions: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return regions × conditions: the score of a single fork in each region."""
        weighted = regions * self.balance
        inside = weighted @ self.columns
        return np.abs(inside) + np.abs(weighted.sum(axis=1)[:, None] - inside)

    def _single(self, region: NDArray[np.bool_]) -> tuple[int, Scored, Scored]:
        place = _first_best(self._scores(region[None])[0])
        return place, self._leaf(region & self.masks[place]), self._leaf(region & ~self.masks[place])

    def _fork(self, region: NDArray[np.bool_], place: int, holds: Scored, fails: Scored) -> Scored:
        score, leaf, condition = holds[0] + fails[0], self._leaf(region), self.conditions[place]
        if score <= leaf[0] + _EQUAL:
            return leaf
        sides = ((True, holds[1]), (False, fails[1]))
        return score, tuple((((condition, side), *path), lead) for side, tree in sides for path, lead in tree)

    def _sides(self, region: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return the part of the region on each side of each condition, and its balance."""
        parts = np.stack([self.masks & region, ~self.masks & region])
        return parts, parts @ self.balance

    def _two_scores(self, region: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return sides × conditions: the best score of a condition with another fork on that side."""
        parts, totals = self._sides(region)
        scores = np.stack([self._scores(side).max(axis=1) for side in parts])
        return scores + np.abs(totals[::-1])

    def _two(self, region: NDArray[np.bool_]) -> Scored:
        side, place = divmod(_first_best(self._two_scores(region).ravel()), len(self.conditions))
        parts = region & self.masks[place], region & ~self.masks[place]
        trees = [self._leaf(part) for part in parts]
        trees[side] = self._fork(parts[side], *self._single(parts[side]))
        return self._fork(region, place, trees[0], trees[1])

    def _three(self) -> Scored:
        whole = np.ones(len(self.balance), dtype=bool)
        parts, totals = self._sides(whole)
        both = self._scores(parts[0]).max(axis=1) + self._scores(parts[1]).max(axis=1)
        chains = np.array([[self._two_scores(part).max() for part in side] for side in parts]) + np.abs(totals[::-1])
        if chains.max() <= both.max() + _EQUAL:
            place = _first_best(both)
            forks = [self._fork(part, *self._single(part)) for part in (parts[0, place], parts[1, place])]
            return self._fork(whole, place, forks[0], forks[1])
        side, place = divmod(_first_best(chains.ravel()), len(self.conditions))
        trees = [self._leaf(parts[0, place]), self._leaf(parts[1, place])]
        trees[side] = self._two(parts[side, place])
        return self._fork(whole, place, trees[0], trees[1])


def _first_best(scores: NDArray[np.float64]) -> int:
    """Return the first index whose score is the best, up to rounding."""
    return int(np.flatnonzero(scores >= scores.max() - _EQUAL)[0])

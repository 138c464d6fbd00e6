"""When the other system wins: the tree of at most three conditions that predicts it best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.conditions import Condition, conditions_of
from cranfield.audits.grid import Grid
from cranfield.recommenders import blas_threads

MOST_CONDITIONS = 3

# A condition must improve the accuracy by at least this share of the cells.
_WORTH_A_CONDITION = 0.01
_EQUAL = 1e-9


@dataclass(frozen=True)
class Leaf:
    """A leaf of the tree: the sign of the lead that it predicts."""

    lead: int


@dataclass(frozen=True)
class Fork:
    """A condition, and the trees for where it holds and where it fails."""

    condition: Condition
    holds: Tree
    fails: Tree


Tree = Leaf | Fork


@dataclass(frozen=True)
class Rule:
    """A tree that predicts which system leads in a cell.

    Parameters
    ----------
    tree
        The tree.
    accuracy
        The weighted share of the cells for which the prediction is right; it is never right for equal systems.
    majority
        The same for always naming the system that leads more often.
    """

    tree: Tree
    accuracy: float
    majority: float

    @property
    def n_conditions(self) -> int:
        """The number of conditions."""
        return _size(self.tree)

    def paths(self, lead: int) -> list[tuple[str, ...]]:
        """Return the conditions, in words, under which the first system (1) or the second (−1) leads."""
        return [words for words, leaf in _leaves(self.tree) if leaf.lead == lead]

    def leads(self, cells: NDArray[np.int32]) -> NDArray[np.int8]:
        """Return the predicted leader of each cell."""
        return _predicted(self.tree, cells)


def rule_of(grid: Grid, lead: NDArray[np.int8]) -> Rule:
    """Return the best tree, by exhaustive search over all trees of at most three conditions.

    A smaller tree is chosen unless a larger one is right for one per cent more of the cells. Cells that differ only by
    chance count together.

    Parameters
    ----------
    grid
        The cells.
    lead
        For each cell, the sign of the lead.
    """
    balance = np.bincount(grid.setups, weights=grid.weights * lead).astype(np.float64)
    decided = float(grid.weights[lead != 0].sum())
    cells = grid.cells[np.unique(grid.setups, return_index=True)[1]]
    with blas_threads(1):
        trees = _Search(conditions_of(grid), cells, balance).best()
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
        for n in range(2, MOST_CONDITIONS + 1):
            larger = self._two(whole) if n == 2 else self._three()
            trees.append(larger if larger[0] > trees[-1][0] + _EQUAL else trees[-1])
        return trees

    def _leaf(self, region: NDArray[np.bool_]) -> Scored:
        total = float(self.balance[region].sum())
        return abs(total), Leaf(-1 if total < 0 else 1)

    def _scores(self, regions: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return regions × conditions: the score of a single fork in each region."""
        weighted = regions * self.balance
        inside = weighted @ self.columns
        scores: NDArray[np.float64] = np.abs(inside) + np.abs(weighted.sum(axis=1)[:, None] - inside)
        return scores

    def _single(self, region: NDArray[np.bool_]) -> tuple[int, Scored, Scored]:
        place = _first_best(self._scores(region[None])[0])
        return place, self._leaf(region & self.masks[place]), self._leaf(region & ~self.masks[place])

    def _fork(self, region: NDArray[np.bool_], place: int, holds: Scored, fails: Scored) -> Scored:
        score, tree = holds[0] + fails[0], Fork(self.conditions[place], holds[1], fails[1])
        leaf = self._leaf(region)
        return (score, tree) if score > leaf[0] + _EQUAL else leaf

    def _sides(self, region: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return the part of the region on each side of each condition, and its balance."""
        parts = np.stack([self.masks & region, ~self.masks & region])
        return parts, parts @ self.balance

    def _two_scores(self, region: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return sides × conditions: the best score of a condition with another fork on that side."""
        parts, totals = self._sides(region)
        scores = np.stack([self._scores(side).max(axis=1) for side in parts])
        best: NDArray[np.float64] = scores + np.abs(totals[::-1])
        return best

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


def _size(tree: Tree) -> int:
    return 0 if isinstance(tree, Leaf) else 1 + _size(tree.holds) + _size(tree.fails)


def _leaves(tree: Tree, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    if isinstance(tree, Leaf):
        yield words, tree
        return
    yield from _leaves(tree.holds, (*words, tree.condition.holds))
    yield from _leaves(tree.fails, (*words, tree.condition.fails))


def _predicted(tree: Tree, cells: NDArray[np.int32]) -> NDArray[np.int8]:
    if isinstance(tree, Leaf):
        return np.full(len(cells), tree.lead, dtype=np.int8)
    holds = tree.condition.of(cells)
    return np.where(holds, _predicted(tree.holds, cells), _predicted(tree.fails, cells)).astype(np.int8)

"""`Grid`: the decisions that an audit opens, and the cells that their options span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError

OptionKind = Literal["equivalent", "question", "chance"]
"""What a change of a decision means: another way to ask the same question, another question, or only another draw."""

KINDS: tuple[OptionKind, ...] = get_args(OptionKind)

Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Opened:
    """A decision that an audit opens.

    Parameters
    ----------
    name
        The decision: ``"split"``.
    kind
        ``"equivalent"``, ``"question"`` or ``"chance"`` (`Kind`).
    options
        Its options as text: ``("random(train=0.5)", "random(train=0.8)")``.
    weights
        The weight of each option in shares; equal by default. Their sum does not matter.

    Examples
    --------
    >>> Opened("cutoff", "equivalent", ("5", "10"), (1.0, 3.0)).shares.tolist()
    [0.25, 0.75]
    """

    name: str
    kind: OptionKind
    options: tuple[str, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _checks.one_of("kind", self.kind, KINDS)
        if not self.options or len(set(self.options)) < len(self.options):
            raise SettingError(
                f"the options of {self.name} must differ, and there must be at least one; give each once"
            )
        if self.weights is None:
            return
        if len(self.weights) != len(self.options):
            raise SettingError(
                f"{self.name} has {len(self.options)} options and {len(self.weights)} weights; give one per option"
            )
        if not all(np.isfinite(weight) and weight > 0 for weight in self.weights):
            raise SettingError(f"the weights of {self.name} must be numbers above 0; leave an option out instead of 0")

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weight of each option; they sum to 1."""
        weights = np.ones(len(self.options)) if self.weights is None else np.array(self.weights, dtype=np.float64)
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares


class Change(NamedTuple):
    """A cell that differs from another one in a few decisions: their indices, and the cell."""

    decisions: tuple[int, ...]
    cell: int


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of an audit; each has one option of every opened decision.

    Parameters
    ----------
    opened
        The decisions.
    cells
        Cells × decisions: the index of the option. All cells are valid and distinct.
    universe
        For each cell, the index of its universe, from 0 without gaps. Cells with the same values and weights share a
        universe, which is computed once.
    start
        The cell of the starting point: the experiment as its file states it.
    complete
        Whether all valid cells are included; False for a sample of them.
    invalid
        The combinations that cannot be computed, as option indices, each with the reason.

    Examples
    --------
    >>> grid = Grid.product([Opened("cutoff", "equivalent", ("5", "10")), Opened("seed", "chance", ("0", "1"))])
    >>> grid.cells.tolist(), grid.n_universes, grid.is_product
    ([[0, 0], [0, 1], [1, 0], [1, 1]], 4, True)
    >>> grid.words(2)
    {'cutoff': '10', 'seed': '0'}
    """

    opened: tuple[Opened, ...]
    cells: NDArray[np.int32]
    universe: Integers
    start: int = 0
    complete: bool = True
    invalid: tuple[tuple[tuple[int, ...], str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "opened", tuple(self.opened))
        object.__setattr__(self, "cells", np.ascontiguousarray(self.cells, dtype=np.int32))
        object.__setattr__(self, "universe", np.asarray(self.universe, dtype=np.int64))
        if not self.opened:
            raise SettingError("an audit needs at least one opened decision; name one under [audit.vary]")
        names = [decision.name for decision in self.opened]
        if len(set(names)) < len(names):
            raise SettingError(f"a decision is opened twice in {', '.join(names)}; list all of its options once")
        if self.cells.ndim != 2 or self.cells.shape[1] != len(self.opened) or not len(self.cells):
            raise SettingError(f"cells must be a table of {len(self.opened)} columns with at least one row")
        if (self.cells < 0).any() or (self.cells >= self.sizes).any():
            raise SettingError("a cell has an option number that its decision does not have; count options from 0")
        if len(np.unique(self.cells, axis=0)) < len(self.cells):
            raise SettingError("two cells have the same options; give each cell once")
        used = np.unique(self.universe)
        if self.universe.shape != (len(self.cells),) or not np.array_equal(used, np.arange(len(used))):
            raise SettingError("universe must number the universe of each cell, from 0 without gaps")
        if not 0 <= self.start < len(self.cells):
            raise SettingError(f"start={self.start} is not one of the {len(self.cells)} cells")

    @classmethod
    def product(cls, opened: Sequence[Opened], start: int = 0) -> Grid:
        """Return all combinations of the options, each a separate universe; the last decision varies fastest."""
        sizes = [len(decision.options) for decision in opened]
        cells = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1).T
        return cls(tuple(opened), cells, np.arange(len(cells)), start)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of options of each decision."""
        return np.array([len(decision.options) for decision in self.opened], dtype=np.int64)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cells)

    @cached_property
    def n_universes(self) -> int:
        """The number of distinct universes."""
        return int(self.universe.max()) + 1

    @property
    def is_product(self) -> bool:
        """Whether the cells are all combinations of the options."""
        return self.n_cells == prod(int(size) for size in self.sizes)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each cell: the product of its options' weights; they sum to 1."""
        weights = np.ones(self.n_cells)
        for place, decision in enumerate(self.opened):
            weights *= decision.shares[self.cells[:, place]]
        normalised: NDArray[np.float64] = weights / weights.sum()
        return normalised

    def universe_weights(self, mask: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return, for each universe, the weight of its cells (of those in ``mask``); the weights sum to 1."""
        kept = np.ones(self.n_cells, dtype=bool) if mask is None else mask
        weights = np.bincount(self.universe[kept], weights=self.weights[kept], minlength=self.n_universes)
        normalised: NDArray[np.float64] = weights / weights.sum()
        return normalised

    def of_kind(self, *kinds: OptionKind) -> list[int]:
        """Return the indices of the decisions of some kinds."""
        return [place for place, decision in enumerate(self.opened) if decision.kind in kinds]

    @property
    def decisions(self) -> list[int]:
        """The indices of what people decide: everything that is opened except chance."""
        return self.of_kind("equivalent", "question")

    def alike(self, places: Sequence[int], cell: int | None = None) -> NDArray[np.bool_]:
        """Return which cells have the same options as a cell (by default the starting point) in the given decisions."""
        own = self.cells[self.start if cell is None else cell]
        same: NDArray[np.bool_] = (self.cells[:, list(places)] == own[list(places)]).all(axis=1)
        return same

    def with_chance_of(self, cell: int | None = None) -> NDArray[np.bool_]:
        """Return which cells have the same chance options as a cell (by default the starting point)."""
        return self.alike(self.of_kind("chance"), cell)

    def groups(self, places: Sequence[int]) -> NDArray[np.int64]:
        """Return the group of each cell: cells with the same options in some decisions form a group."""
        columns = self.cells[:, list(places)]
        if not columns.shape[1]:
            return np.zeros(self.n_cells, dtype=np.int64)
        code = np.ravel_multi_index(tuple(columns.T), tuple(int(size) for size in self.sizes[list(places)]))
        return np.unique(code, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def setups(self) -> NDArray[np.int64]:
        """The set-up of each cell: the options of all decisions. Cells of one set-up differ only by chance."""
        return self.groups(self.decisions)

    @cached_property
    def questions(self) -> NDArray[np.int64]:
        """The question of each cell: the options of all decisions that change the question."""
        return self.groups(self.of_kind("question"))

    def changes(self, cell: int | None = None, n: int = 1) -> list[Change]:
        """Return the cells that differ from a cell (the starting point) in ``n`` decisions, not in chance."""
        own = self.cells[self.start if cell is None else cell]
        differs = (self.cells != own)[:, self.decisions]
        wanted = self.with_chance_of(cell) & (differs.sum(axis=1) == n)
        numbers = np.array(self.decisions)
        return [
            Change(tuple(int(place) for place in numbers[differs[index]]), int(index))
            for index in np.flatnonzero(wanted)
        ]

    def words(self, cell: int) -> dict[str, str]:
        """Return the options of a cell by decision."""
        return {
            decision.name: decision.options[number] for decision, number in zip(self.opened, self.cells[cell].tolist())
        }

    def pairs_by_chance(self) -> list[tuple[int, int, int]]:
        """Return all pairs of cells that differ only in one chance option: the index of the decision and both cells."""
        pairs = []
        for place in self.of_kind("chance"):
            others = [number for number in range(len(self.opened)) if number != place]
            group = self.groups(others)
            order = np.argsort(group, kind="stable")
            for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
                pairs += [(place, int(first), int(second)) for first, second in combinations(members, 2)]
        return pairs

    def __repr__(self) -> str:
        sampled = "" if self.complete else ", a sample"
        return f"Grid({len(self.opened)} decisions, {self.n_cells:,} cells, {self.n_universes:,} universes{sampled})"

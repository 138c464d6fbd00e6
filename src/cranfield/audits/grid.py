"""`Grid`: the decisions that an audit varies, and the cells that their options span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._numbers import count_text

Floats = NDArray[np.float64]

OptionKind = Literal["equivalent", "question", "chance"]
"""What a change of a decision means: another way to ask the same question, another question, or only another draw."""

KINDS: tuple[OptionKind, ...] = get_args(OptionKind)


@dataclass(frozen=True)
class VariedDecision:
    """A decision that an audit varies."""

    name: str  # the decision: ``"split"``
    kind: OptionKind  # ``"equivalent"``, ``"question"`` or ``"chance"`` (`OptionKind`)
    options: tuple[str, ...]  # its options as text: ``("random(train=0.5)", "random(train=0.8)")``
    # The weight of each option in shares; equal by default. Their sum does not matter.
    weights: tuple[float, ...] | None = None
    # The options as values, and the index of the experiment's own one; not known for an audit that was read.
    values: tuple[Any, ...] = ()
    start: int = 0
    # Options that the experiment file declares invalid, each with the reason; they are not among the options.
    invalid: Mapping[str, str] = field(default_factory=dict)

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
    def shares(self) -> Floats:
        """The weight of each option; they sum to 1."""
        weights = np.array(self.weights or [1.0] * len(self.options), dtype=np.float64)
        return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of an audit; each has one option of every varied decision.

    Examples
    --------
    >>> cutoff, seed = VariedDecision("cutoff", "equivalent", ("5", "10")), VariedDecision("seed", "chance", ("0", "1"))
    >>> grid = Grid.product([cutoff, seed])
    >>> grid.cells.tolist(), grid.n_universes, grid.is_product
    ([[0, 0], [0, 1], [1, 0], [1, 1]], 4, True)
    >>> grid.words(2)
    {'cutoff': '10', 'seed': '0'}
    """

    varied: tuple[VariedDecision, ...]
    cells: NDArray[np.int32]  # cells × decisions: the index of the option. All cells are valid and distinct
    # For each cell, the index of its universe, from 0 without gaps. Cells with the same values and weights share a
    # universe, which is computed once.
    universe: NDArray[np.integer[Any]]
    start: int = 0  # the cell of the starting point: the experiment as its file states it
    complete: bool = True  # whether all valid cells are included; False for a sample of them
    # The combinations that cannot be computed, as option indices, each with the reason.
    invalid: tuple[tuple[tuple[int, ...], str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # names of options for people, by spelling

    def __post_init__(self) -> None:
        object.__setattr__(self, "varied", tuple(self.varied))
        object.__setattr__(self, "cells", np.ascontiguousarray(self.cells, dtype=np.int32))
        object.__setattr__(self, "universe", np.asarray(self.universe, dtype=np.int64))
        if not self.varied:
            raise SettingError("an audit needs at least one opened decision; name one under [audit.vary]")
        names = [decision.name for decision in self.varied]
        if len(set(names)) < len(names):
            raise SettingError(f"a decision is opened twice in {', '.join(names)}; list all of its options once")
        if self.cells.ndim != 2 or self.cells.shape[1] != len(self.varied) or not len(self.cells):
            raise SettingError(f"cells must be a table of {len(self.varied)} columns with at least one row")
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
    def product(cls, varied: Sequence[VariedDecision], start: int = 0) -> Grid:
        """Return all combinations of the options, each a separate universe; the last decision varies fastest."""
        cells = all_cells([len(decision.options) for decision in varied])
        return cls(tuple(varied), cells, np.arange(len(cells)), start)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of options of each decision."""
        return np.array([len(decision.options) for decision in self.varied], dtype=np.int64)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cells)

    @property
    def counted(self) -> str:
        """How many cells there are, and how many of them are distinct."""
        distinct = f", {self.n_universes:,} of them distinct" if self.n_universes < self.n_cells else ""
        return count_text(self.n_cells, "set-up") + distinct

    @cached_property
    def n_universes(self) -> int:
        """The number of distinct universes."""
        return int(self.universe.max()) + 1

    @property
    def cell_of(self) -> NDArray[np.int64]:
        """The first cell of each universe."""
        return np.unique(self.universe, return_index=True)[1]

    @property
    def is_product(self) -> bool:
        """Whether the cells are all combinations of the options."""
        return self.n_cells == prod(int(size) for size in self.sizes)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each cell: the product of its options' weights; they sum to 1."""
        weights = np.ones(self.n_cells)
        for place, decision in enumerate(self.varied):
            weights *= decision.shares[self.cells[:, place]]
        return weights / weights.sum()

    def universe_weights(self, mask: NDArray[np.bool_]) -> Floats:
        """Return, for each universe, the weight of its cells in ``mask``; the weights sum to 1."""
        weights = np.bincount(self.universe[mask], weights=self.weights[mask], minlength=self.n_universes)
        return weights / weights.sum()

    def of_kind(self, *kinds: OptionKind) -> list[int]:
        """Return the indices of the decisions of some kinds."""
        return [place for place, decision in enumerate(self.varied) if decision.kind in kinds]

    @property
    def decisions(self) -> list[int]:
        """The indices of what people decide: everything that is varied except chance."""
        return self.of_kind("equivalent", "question")

    @property
    def has_chance(self) -> bool:
        """Whether a seed is varied."""
        return bool(self.of_kind("chance"))

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

    def changes(self, n: int = 1) -> list[tuple[tuple[int, ...], int]]:
        """Return the cells that differ from the start in ``n`` decisions and not in chance, each with the decisions."""
        differs = self.cells != self.cells[self.start]
        by_choice = differs[:, self.decisions]
        wanted = (by_choice.sum(axis=1) == n) & ~differs[:, self.of_kind("chance")].any(axis=1)
        numbers = np.array(self.decisions)
        return [(tuple(numbers[by_choice[cell]].tolist()), int(cell)) for cell in np.flatnonzero(wanted)]

    def words(self, cell: int) -> dict[str, str]:
        """Return the options of a cell by decision."""
        return {
            decision.name: decision.options[number] for decision, number in zip(self.varied, self.cells[cell].tolist())
        }

    def by_option(self) -> Iterator[tuple[VariedDecision, str, NDArray[np.bool_]]]:
        """Yield every option of every decision, with its cells."""
        for place, decision in enumerate(self.varied):
            for number, option in enumerate(decision.options):
                yield decision, option, self.cells[:, place] == number

    def pairs_by_chance(self, place: int) -> list[tuple[int, int]]:
        """Return all pairs of cells that differ only in the decision at ``place``."""
        group = self.groups([number for number in range(len(self.varied)) if number != place])
        order = np.argsort(group, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        return [pair for members in parts for pair in combinations(members.tolist(), 2)]

    def __repr__(self) -> str:
        sampled = "" if self.complete else ", a sample"
        return f"Grid({len(self.varied)} decisions, {self.n_cells:,} cells, {self.n_universes:,} universes{sampled})"


def all_cells(sizes: Sequence[int]) -> NDArray[np.int32]:
    """Return cells × decisions: all combinations of the options, the last decision varying fastest."""
    return np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1).T


def number_or_none(value: float) -> float | None:
    """Return a number for a row of a table; None for NaN."""
    return None if np.isnan(value) else float(value)

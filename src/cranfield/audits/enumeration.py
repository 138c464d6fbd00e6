"""Which universes there are: all combinations of the options of the varied decisions, or a balanced sample of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, SettingError
from cranfield._streams import stream
from cranfield.audits.grid import Grid, all_cells
from cranfield.audits.parsing import AuditSettings
from cranfield.audits.universes import (
    AVERAGED,
    MEASURED,
    Setup,
    Universe,
    averaging_of,
    measurement_of,
    of_setup,
    setup_of,
)

Cells = NDArray[np.int32]
IsValid = Callable[[Cells], NDArray[np.bool_]]  # returns which cells are possible
Reasons = tuple[tuple[tuple[int, ...], str], ...]  # combinations that are not possible, each with the reason

# With more cells or set-ups than this, a sample is drawn without enumerating all of them.
_MOST_CELLS, _MOST_SETUPS = 2_000_000, 5_000
_TRIED = 500  # maximum number of combinations that are tried for an option that seems to be impossible
_PASSES = 60
_TRIES, _ROUNDS = 40, 5
_PATIENCE, _SETTLED = 8, 0.99  # stop when this many passes leave the cost above this share of it


@dataclass(frozen=True, eq=False)
class Enumeration:
    """The cells of an audit, as option numbers, before anything is computed."""

    settings: AuditSettings
    cells: Cells
    universes: tuple[Universe, ...]  # those that are stated differently
    universe: NDArray[np.int64]  # of each cell
    setups: tuple[Setup, ...]  # to which universes refer
    start: int  # the cell of the starting point
    complete: bool  # whether every valid cell is included
    invalid: Reasons  # the combinations that contradict themselves
    imbalance: float = 0.0  # of a sample: see `imbalance_of`

    def grid(self, digests: Sequence[str | None], reasons: Mapping[int, str]) -> tuple[Grid, list[str | None]]:
        """Return the grid of computed cells, with equal universes merged, and their digests, None if they failed."""
        failed = np.array([digest is None for digest in digests])[self.universe]
        if failed[self.start]:
            reason = f"{reasons[int(self.universe[self.start])]}; start with another metric or threshold"
            raise CranfieldError(f"the starting point cannot be computed: {reason}")
        kept = np.flatnonzero(~failed)
        number: dict[str | None, int] = {}
        universe = [number.setdefault(digests[own], len(number)) for own in self.universe[kept].tolist()]
        late = zip(self.cells[failed].tolist(), self.universe[failed].tolist())
        start = int(np.searchsorted(kept, self.start))
        invalid = (*self.invalid, *((tuple(cell), reasons[own]) for cell, own in late))
        grid = Grid(
            self.settings.varied,
            self.cells[kept],
            np.array(universe),
            start,
            self.complete,
            invalid,
            self.settings.experiment.labels,
        )
        return grid, list(number)


class _Layer:
    """What some of the decisions define together: an object per combination of options, or a reason, made if needed."""

    def __init__(
        self, settings: AuditSettings, names: Sequence[str], make: Callable[[AuditSettings, Mapping[str, Any]], Any]
    ) -> None:
        self.columns = [place for place, name in enumerate(settings.names) if name in names]
        self.varied = [settings.varied[place] for place in self.columns]
        self.sizes = tuple(len(decision.options) for decision in self.varied)
        self._settings, self._make = settings, make
        self._things: dict[int, Any] = {}

    def numbers(self, cells: Cells) -> NDArray[np.int64]:
        """Return, for each cell, the index of its combination of options."""
        if not self.columns:
            return np.zeros(len(cells), dtype=np.int64)
        return np.ravel_multi_index(tuple(cells[:, self.columns].T), self.sizes).astype(np.int64)

    def thing(self, number: int) -> Any:
        """Return the object of a combination, or the reason why there is none."""
        if number not in self._things:
            options = np.unravel_index(number, self.sizes) if self.sizes else ()
            values = {decision.name: decision.values[option] for decision, option in zip(self.varied, options)}
            try:
                self._things[number] = self._make(self._settings, values)
            except SettingError as error:
                self._things[number] = str(error)
        return self._things[number]

    def at(self, options: Sequence[int]) -> Any:
        """Return the object of a cell, or the reason why there is none."""
        return self.thing(int(self.numbers(np.array([options], dtype=np.int32))[0]))

    def valid(self, cells: Cells) -> NDArray[np.bool_]:
        """Return which cells are possible."""
        numbers, place = np.unique(self.numbers(cells), return_inverse=True)
        return np.array([not isinstance(self.thing(number), str) for number in numbers.tolist()])[place]

    def check_options(self) -> None:
        """Raise an error for an option that is impossible in every combination, or in all of many that are tried."""
        for axis, decision in enumerate(self.varied):
            for option, text in enumerate(decision.options):
                reasons = [thing for thing in self._with_option(axis, option) if isinstance(thing, str)]
                if len(reasons) == min(_TRIED, prod(self.sizes) // self.sizes[axis]):
                    raise SettingError(
                        f"audit.vary: {decision.name}={text} is not possible in any combination: {reasons[0]}"
                    )
            if not self._matters(axis):
                raise SettingError(
                    f"audit.vary: {decision.name} changes nothing in any combination of the other options; leave it out"
                )

    def _matters(self, axis: int) -> bool:
        """Return whether two options of a decision ever give different objects; of many combinations, 500 are tried."""
        others = [size if place != axis else 1 for place, size in enumerate(self.sizes)]
        for steps in islice(np.ndindex(*others), _TRIED):
            options = np.repeat(np.array([steps]), self.sizes[axis], axis=0)
            options[:, axis] = np.arange(self.sizes[axis])
            numbers = np.ravel_multi_index(tuple(options.T), self.sizes).tolist()
            things = [thing for thing in map(self.thing, numbers) if not isinstance(thing, str)]
            if len({thing.key if isinstance(thing, Setup) else thing for thing in things}) > 1:
                return True
        return False

    def _with_option(self, axis: int, option: int) -> Iterator[Any]:
        """Yield objects with an option until one is possible: with the starting point first, then with others."""
        others = [size if place != axis else 1 for place, size in enumerate(self.sizes)]
        starts = [decision.start for decision in self.varied]
        for steps in islice(np.ndindex(*others[::-1]), _TRIED):
            options = [(start + step) % size for start, step, size in zip(starts, steps[::-1], self.sizes)]
            options[axis] = option
            thing = self.thing(int(np.ravel_multi_index(options, self.sizes)))
            yield thing
            if not isinstance(thing, str):
                return


def enumerate_universes(settings: AuditSettings) -> Enumeration:
    """Combine all options: every valid cell if they fit the budget, otherwise a balanced sample; numbered in order."""
    layers = check_options(settings)
    cells, invalid, complete, imbalance = _cells(settings, layers)
    start = int(np.flatnonzero((cells == np.array(settings.start)).all(axis=1))[0])
    setups: dict[str, tuple[int, Setup]] = {}
    universes: dict[Universe, int] = {}
    universe = np.empty(len(cells), dtype=np.int64)
    for cell, numbers in enumerate(np.stack([layer.numbers(cells) for layer in layers], axis=1).tolist()):
        setup, measurement, averaging = (layer.thing(number) for layer, number in zip(layers, numbers))
        place, _ = setups.setdefault(setup.key, (len(setups), setup))
        universe[cell] = universes.setdefault(Universe(place, measurement, averaging), len(universes))
    distinct = tuple(setup for _, setup in setups.values())
    return Enumeration(settings, cells, tuple(universes), universe, distinct, start, complete, invalid, imbalance)


def check_options(settings: AuditSettings) -> tuple[_Layer, ...]:
    """Return set-ups, measurements and averages; raise an error for a start or an option that is never possible."""
    layers: tuple[_Layer, ...] = (
        _Layer(settings, of_setup(settings), setup_of),
        _Layer(settings, MEASURED, measurement_of),
        _Layer(settings, AVERAGED, averaging_of),
    )
    for layer in layers:
        if isinstance(reason := layer.at(settings.start), str):
            raise SettingError(f"the starting point contradicts itself: {reason}")
        layer.check_options()
    return layers


def _cells(settings: AuditSettings, layers: Sequence[_Layer]) -> tuple[Cells, Reasons, bool, float]:
    """Return the cells, those that are invalid, whether the cells are complete, and how uneven a sample is."""
    sizes, start = [len(decision.options) for decision in settings.varied], settings.start
    invalid: Reasons = ()

    def is_valid(cells: Cells) -> NDArray[np.bool_]:
        return np.logical_and.reduce([layer.valid(cells) for layer in layers])

    def reason(cell: list[int]) -> str:
        return next(thing for layer in layers if isinstance(thing := layer.at(cell), str))

    if prod(sizes) <= _MOST_CELLS and prod(layers[0].sizes) <= _MOST_SETUPS:
        everything = all_cells(sizes)
        valid = is_valid(everything)
        invalid = tuple((tuple(cell), reason(cell)) for cell in everything[~valid].tolist())
        if np.count_nonzero(valid) <= settings.budget:
            return everything[valid], invalid, True, 0.0
    # Cells that differ from the start in one decision: changes of the winner are sought among them.
    single_changes = [
        [*start[:place], option, *start[place + 1 :]]
        for place, decision in enumerate(settings.varied)
        if decision.kind != "chance"
        for option in range(sizes[place])
        if option != decision.start
    ]
    seed = settings.experiment.seed
    cells, imbalance = balanced_sample(sizes, settings.budget, start, is_valid, beside=single_changes, seed=seed)
    return cells, invalid, False, imbalance


def balanced_sample(
    sizes: Sequence[int],
    size: int,
    start: Sequence[int],
    is_valid: IsValid = lambda cells: np.ones(len(cells), dtype=np.bool_),
    *,
    beside: Sequence[Sequence[int]] = (),
    seed: int = 0,
) -> tuple[Cells, float]:
    """Draw cells of a product so that options, and pairs of options, are about equally frequent.

    Every column starts as a balanced list in random order: the counts of its options differ by at most 1. Swapping two
    entries of a column does not change these counts. Swaps first remove repeated and invalid cells, then make the
    counts of pairs of options of two decisions more equal. A cell that no swap can fix is left out, and the counts may
    then differ by more. ``sizes`` are the numbers of options, and ``size`` is the number of cells to draw, at least
    that of any decision. The sample begins with ``start`` and with the cells ``beside`` it, unless these would prevent
    options from being equally frequent. Returns the cells, and how uneven the pairs are (`imbalance_of`).
    """
    rng = stream(seed, "audit", "sample")
    fixed = _fixed(sizes, size, start, beside, is_valid)
    cells = _mended(_columns(sizes, size, fixed, rng), sizes, is_valid, rng, len(fixed))
    cost = _cost(cells, sizes)
    costs = [cost]
    while len(costs) < _PASSES and not (len(costs) > _PATIENCE and cost > _SETTLED * costs[-_PATIENCE]):
        for column in range(len(sizes)):
            changed = _swapped(cells, column, sizes, is_valid, rng, len(fixed))
            if (changed_cost := _cost(changed, sizes)) < cost:
                cells, cost = changed, changed_cost
        costs.append(cost)
    if len(cells) < max(sizes):
        raise SettingError(f"only {len(cells)} of {size} drawn combinations are possible; raise the budget")
    return cells, imbalance_of(cells, sizes)


def imbalance_of(cells: Cells, sizes: Sequence[int]) -> float:
    """Return how uneven the pairs of options are: the root of the mean of (n_ij / e_ij − 1)²; 0 if all are equal.

    The mean is over all pairs of options of two decisions; e_ij is the count n_ij if all were equal.
    """
    squares = [
        np.square(_pairs(cells, a, b, sizes) * (sizes[a] * sizes[b] / len(cells)) - 1.0).ravel()
        for a, b in combinations(range(len(sizes)), 2)
    ]
    return float(np.sqrt(np.concatenate(squares).mean())) if squares else 0.0


def _fixed(
    sizes: Sequence[int], size: int, start: Sequence[int], beside: Sequence[Sequence[int]], is_valid: IsValid
) -> Cells:
    """Return the first cells of the sample: the start, and those in ``beside`` if no option becomes too frequent."""
    cells = np.array([start, *beside], dtype=np.int32)
    cells = cells[is_valid(cells)]
    fits = all(np.bincount(column).max() <= size // options for column, options in zip(cells.T, sizes))
    return cells if fits else cells[:1]


def _columns(sizes: Sequence[int], size: int, fixed: Cells, rng: np.random.Generator) -> Cells:
    """Return balanced columns in random order, whose first entries are those of the fixed cells."""
    cells = np.empty((size, len(sizes)), dtype=np.int32)
    cells[: len(fixed)] = fixed
    for column, options in enumerate(sizes):
        # Which options occur once more than others is random too.
        order = np.argsort(rng.random(options), kind="stable")
        counts = np.bincount(order[np.arange(size) % options], minlength=options)
        taken = np.bincount(fixed[:, column], minlength=options)
        values = np.repeat(np.arange(options), counts - taken)
        cells[len(fixed) :, column] = values[np.argsort(rng.random(len(values)), kind="stable")]
    return cells


def _pairs(cells: Cells, a: int, b: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    counts = np.bincount(cells[:, a].astype(np.int64) * sizes[b] + cells[:, b], minlength=sizes[a] * sizes[b])
    return counts.reshape(sizes[a], sizes[b])


def _codes(cells: Cells, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return one number for each cell; NumPy raises an error if they need more than 64 bits."""
    return np.ravel_multi_index(tuple(cells.T), tuple(sizes)).astype(np.int64)


def _cost(cells: Cells, sizes: Sequence[int]) -> float:
    """Return how uneven the pairs of options are."""
    return sum(
        float(np.square(_pairs(cells, a, b, sizes) - len(cells) / (sizes[a] * sizes[b])).sum())
        for a, b in combinations(range(len(sizes)), 2)
    )


def _mended(cells: Cells, sizes: Sequence[int], is_valid: IsValid, rng: np.random.Generator, fixed: int) -> Cells:
    """Return the cells with repeated and invalid ones fixed by swaps; those that cannot be fixed are left out."""
    codes, valid = _codes(cells, sizes), is_valid(cells)
    counts = Counter(codes.tolist())
    tries = np.arange(_TRIES)

    def mend(row: int) -> None:
        """Swap an option of a cell with another cell so that both are possible and new, in place, if possible."""
        columns = (rng.random(_TRIES) * len(sizes)).astype(int)
        others = fixed + (rng.random(_TRIES) * (len(cells) - fixed)).astype(int)
        mine, theirs = np.repeat(cells[[row]], _TRIES, axis=0), cells[others]
        mine[tries, columns], theirs[tries, columns] = theirs[tries, columns], mine[tries, columns]
        new = np.stack([_codes(mine, sizes), _codes(theirs, sizes)], axis=1)
        possible = is_valid(mine) & (is_valid(theirs) | ~valid[others]) & (new[:, 0] != new[:, 1]) & (others != row)
        for place in np.flatnonzero(possible).tolist():
            if not (counts[int(new[place, 0])] or counts[int(new[place, 1])]):
                both = [row, int(others[place])]
                counts.subtract(codes[both].tolist())
                cells[both] = mine[place], theirs[place]
                codes[both], valid[both] = new[place], is_valid(cells[both])
                counts.update(codes[both].tolist())
                return

    for _ in range(_ROUNDS):
        for row in range(fixed, len(cells)):
            # Repeated cells are changed until only one is left.
            if not valid[row] or counts[int(codes[row])] > 1:
                mend(row)
    first = np.zeros(len(cells), dtype=np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    return cells[first & valid]


def _swapped(
    cells: Cells, column: int, sizes: Sequence[int], is_valid: IsValid, rng: np.random.Generator, fixed: int
) -> Cells:
    """Return the cells after some swaps of two entries of a column, each of which would make the pairs more even."""
    rows = np.argsort(rng.random(len(cells) - fixed), kind="stable") + fixed
    half = len(rows) // 2
    first, second = rows[:half], rows[half : 2 * half]
    mine, theirs = cells[first], cells[second]
    options = mine[:, column].copy(), theirs[:, column].copy()
    gain = np.zeros(half)
    for other in range(len(sizes)):
        if other == column:
            continue
        counts = _pairs(cells, column, other, sizes)
        a, b = mine[:, other], theirs[:, other]
        # Swapping takes one from (mine, a) and (theirs, b) and adds one to (theirs, a) and (mine, b).
        change = counts[options[1], a] + counts[options[0], b] - counts[options[0], a] - counts[options[1], b] + 2
        gain -= np.where(a != b, change, 0)
    mine[:, column], theirs[:, column] = options[1], options[0]
    # Simultaneous swaps interfere with each other, so only some of the helpful ones are made.
    chosen = (gain > 0) & (options[0] != options[1]) & (rng.random(half) < 0.2)
    chosen[chosen] = is_valid(mine[chosen]) & is_valid(theirs[chosen])
    new = np.stack([_codes(mine, sizes), _codes(theirs, sizes)], axis=1)
    chosen &= ~np.isin(new, _codes(cells, sizes)).any(axis=1)
    repeated = np.ones(new.size, dtype=np.bool_)
    repeated[np.unique(new, return_index=True)[1]] = False
    chosen &= ~repeated.reshape(new.shape).any(axis=1)
    changed = cells.copy()
    changed[first[chosen]], changed[second[chosen]] = mine[chosen], theirs[chosen]
    return changed

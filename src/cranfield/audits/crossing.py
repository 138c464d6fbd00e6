"""Crossing the options of all opened decisions: the cells of the grid, and the universe of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, SettingError
from cranfield.audits.asking import Menu, text_of
from cranfield.audits.grid import Grid
from cranfield.audits.sampling import balanced_sample
from cranfield.audits.setups import (
    AVERAGED,
    MEASURED,
    Measurement,
    Setup,
    averaging_of,
    measurement_of,
    of_setup,
    setup_of,
)
from cranfield.measures import Averaging

Cells = NDArray[np.int32]
T = TypeVar("T")

# With more cells or set-ups than this, a sample is drawn without enumerating all of them.
_MOST_CELLS, _MOST_SETUPS = 2_000_000, 5_000
# Maximum number of combinations that are tried for an option that seems to be impossible.
_TRIED = 500


class Universe(NamedTuple):
    """One way to evaluate: the indices of its set-up and measurement, and how values are averaged."""

    setup: int
    measurement: Measurement
    averaging: Averaging


@dataclass(frozen=True, eq=False)
class Crossing:
    """The cells of an audit before anything is computed.

    Parameters
    ----------
    menu
        What is opened.
    cells
        Cells × decisions: option numbers.
    universes, universe
        The universes that are stated differently, and the universe of each cell.
    setups
        The distinct set-ups, to which universes refer.
    start
        The cell of the starting point.
    complete
        Whether every valid cell is included.
    invalid
        The combinations that contradict themselves, with the reason.
    imbalance
        For a sample, how far the counts of pairs of options are from equal (`balanced_sample`); 0 for a product.
    """

    menu: Menu
    cells: Cells
    universes: tuple[Universe, ...]
    universe: NDArray[np.int64]
    setups: tuple[Setup, ...]
    start: int
    complete: bool
    invalid: tuple[tuple[tuple[int, ...], str], ...]
    imbalance: float = 0.0

    def grid(self, values: Sequence[str | None], reasons: Mapping[int, str]) -> tuple[Grid, NDArray[np.int64]]:
        """Return the grid of the computed cells, and for each of its universes one universe of this crossing.

        Parameters
        ----------
        values
            For each universe, a hash of its values and weights; universes with the same hash are merged. None if it
            failed.
        reasons
            Why universes failed, by number.
        """
        failed = np.array([value is None for value in values])[self.universe]
        if failed[self.start]:
            reason = reasons[int(self.universe[self.start])]
            raise CranfieldError(
                f"the starting point cannot be computed: {reason}; start with another metric or threshold"
            )
        kept = np.flatnonzero(~failed)
        number: dict[str, int] = {}
        representative: list[int] = []
        universe = np.empty(len(kept), dtype=np.int64)
        for place, own in enumerate(self.universe[kept].tolist()):
            value = str(values[own])
            if value not in number:
                number[value] = len(number)
                representative.append(own)
            universe[place] = number[value]
        late = tuple(
            (tuple(self.cells[cell].tolist()), reasons[int(self.universe[cell])]) for cell in np.flatnonzero(failed)
        )
        grid = Grid(
            tuple(opening.opened for opening in self.menu.openings),
            self.cells[kept],
            universe,
            int(np.searchsorted(kept, self.start)),
            self.complete,
            (*self.invalid, *late),
        )
        return grid, np.array(representative, dtype=np.int64)


class _Layer(Generic[T]):
    """What some of the decisions define together: one object for each combination of their options, or a reason.

    Objects are made when they are needed: there may be very many combinations.
    """

    def __init__(self, menu: Menu, names: Sequence[str], make: Callable[[Menu, Mapping[str, Any]], T]) -> None:
        self.columns = [place for place, name in enumerate(menu.names) if name in names]
        self.openings = [menu.openings[place] for place in self.columns]
        self.sizes = tuple(len(opening.values) for opening in self.openings)
        self._menu, self._make = menu, make
        self._things: dict[int, T | str] = {}

    @property
    def size(self) -> int:
        """The number of combinations."""
        return prod(self.sizes)

    def numbers(self, cells: Cells) -> NDArray[np.int64]:
        """Return, for each cell, the index of its combination of options."""
        if not self.columns:
            return np.zeros(len(cells), dtype=np.int64)
        return np.ravel_multi_index(tuple(cells[:, self.columns].T), self.sizes).astype(np.int64)

    def thing(self, number: int) -> T | str:
        """Return the object of a combination, or the reason why there is none."""
        if number not in self._things:
            options = np.unravel_index(number, self.sizes) if self.sizes else ()
            values = {opening.name: opening.values[option] for opening, option in zip(self.openings, options)}
            try:
                self._things[number] = self._make(self._menu, values)
            except SettingError as error:
                self._things[number] = str(error)
        return self._things[number]

    def possible(self, number: int) -> T:
        """Return the object of a combination that is known to be possible."""
        thing = self.thing(number)
        assert not isinstance(thing, str)
        return thing

    def at(self, options: Sequence[int]) -> T | str:
        """Return the object of a cell, or the reason why there is none."""
        return self.thing(int(self.numbers(np.array([options], dtype=np.int32))[0]))

    def valid(self, cells: Cells) -> NDArray[np.bool_]:
        """Return which cells are possible."""
        numbers, place = np.unique(self.numbers(cells), return_inverse=True)
        return np.array([not isinstance(self.thing(number), str) for number in numbers.tolist()])[place]

    def check_options(self) -> None:
        """Raise an error for an option that is impossible in every combination, or in all of many that are tried."""
        for axis, opening in enumerate(self.openings):
            for option in range(len(opening.values)):
                reasons = [thing for thing in self._with_option(axis, option) if isinstance(thing, str)]
                if len(reasons) == min(_TRIED, self.size // self.sizes[axis]):
                    raise SettingError(
                        f"audit.vary: {opening.name}={text_of(opening.values[option])} is not possible in any "
                        f"combination: {reasons[0]}"
                    )
            if not self._matters(axis):
                raise SettingError(
                    f"audit.vary: {opening.name} changes nothing in any combination of the other options; leave it out"
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

    def _with_option(self, axis: int, option: int) -> Iterator[T | str]:
        """Yield objects with an option until one is possible: with the starting point first, then with others."""
        others = [len(opening.values) if place != axis else 1 for place, opening in enumerate(self.openings)]
        starts = [opening.start for opening in self.openings]
        for steps in islice(np.ndindex(*others[::-1]), _TRIED):
            options = [(start + step) % size for start, step, size in zip(starts, steps[::-1], self.sizes)]
            options[axis] = option
            thing = self.thing(int(np.ravel_multi_index(options, self.sizes)))
            yield thing
            if not isinstance(thing, str):
                return


def cross(menu: Menu) -> Crossing:
    """Cross all options: every valid cell if they fit the budget, otherwise a balanced sample of them.

    Examples
    --------
    >>> from cranfield.audits.asking import menu_of
    >>> from cranfield.experiments import Experiment
    >>> vary = {"metrics": ["P", "nDCG"], "cutoff": [5, 10], "gain": ["rating", "exp"]}
    >>> crossing = cross(menu_of(Experiment(audit={"vary": vary})))
    >>> len(crossing.cells), len(crossing.universes), len(crossing.setups)
    (8, 6, 1)
    """
    layers = check_options(menu)
    start = [opening.start for opening in menu.openings]
    cells, invalid, complete, imbalance = _cells(menu, layers)
    place = int(np.flatnonzero((cells == np.array(start)).all(axis=1))[0])
    return _crossing(menu, layers, cells, place, complete, invalid, imbalance)


def check_options(menu: Menu) -> tuple[_Layer[Any], ...]:
    """Raise an error for a contradictory starting point, and for options that are possible in no combination.

    Returns what the decisions define together: set-ups, measurements and averages.
    """
    layers: tuple[_Layer[Any], ...] = (
        _Layer(menu, of_setup(menu), setup_of),
        _Layer(menu, MEASURED, measurement_of),
        _Layer(menu, AVERAGED, averaging_of),
    )
    start = [opening.start for opening in menu.openings]
    for layer in layers:
        if isinstance(reason := layer.at(start), str):
            raise SettingError(f"the starting point contradicts itself: {reason}")
        layer.check_options()
    return layers


def _cells(
    menu: Menu, layers: Sequence[_Layer[Any]]
) -> tuple[Cells, tuple[tuple[tuple[int, ...], str], ...], bool, float]:
    sizes = [len(opening.values) for opening in menu.openings]
    invalid: tuple[tuple[tuple[int, ...], str], ...] = ()

    def is_valid(cells: Cells) -> NDArray[np.bool_]:
        return np.logical_and.reduce([layer.valid(cells) for layer in layers])

    if prod(sizes) <= _MOST_CELLS and layers[0].size <= _MOST_SETUPS:
        everything = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1).T
        valid = is_valid(everything)
        invalid = tuple((tuple(cell.tolist()), _reason(layers, cell)) for cell in everything[~valid])
        if np.count_nonzero(valid) <= menu.budget:
            return everything[valid], invalid, True, 0.0
    start = [opening.start for opening in menu.openings]
    cells, imbalance = balanced_sample(
        sizes, menu.budget, start, is_valid, beside=_single_changes(menu, start), seed=menu.experiment.seed
    )
    return cells, invalid, False, imbalance


def _single_changes(menu: Menu, start: Sequence[int]) -> list[list[int]]:
    """Return the cells that differ from the start in one decision: changes of the winner are sought among them."""
    return [
        [*start[:place], option, *start[place + 1 :]]
        for place, opening in enumerate(menu.openings)
        if opening.kind != "chance"
        for option in range(len(opening.values))
        if option != opening.start
    ]


def _reason(layers: Sequence[_Layer[Any]], cell: NDArray[np.int32]) -> str:
    return next(thing for layer in layers if isinstance(thing := layer.at(cell.tolist()), str))


def _crossing(
    menu: Menu,
    layers: Sequence[_Layer[Any]],
    cells: Cells,
    start: int,
    complete: bool,
    invalid: tuple[tuple[tuple[int, ...], str], ...],
    imbalance: float,
) -> Crossing:
    """Number the distinct set-ups and universes in the order of the cells."""
    setups: dict[str, int] = {}
    kept: list[Setup] = []
    universes: dict[Universe, int] = {}
    universe = np.empty(len(cells), dtype=np.int64)
    numbers = np.stack([layer.numbers(cells) for layer in layers], axis=1)
    for place, (first, second, third) in enumerate(numbers.tolist()):
        setup = layers[0].possible(first)
        if setup.key not in setups:
            setups[setup.key] = len(kept)
            kept.append(setup)
        own = Universe(setups[setup.key], layers[1].possible(second), layers[2].possible(third))
        universe[place] = universes.setdefault(own, len(universes))
    return Crossing(menu, cells, tuple(universes), universe, tuple(kept), start, complete, invalid, imbalance)

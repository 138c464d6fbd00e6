"""Computes every universe of a crossing, set-up by set-up, so that the lists of only one set-up are in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, SettingError
from cranfield._registry import parse
from cranfield._terminal import progress
from cranfield.audits.answers import Audit
from cranfield.audits.crossing import Crossing, Universe
from cranfield.audits.grid import Grid
from cranfield.audits.terms import Terms
from cranfield.audits.universes import Averaged, SetupLists
from cranfield.recommenders import one_ahead

Floats = NDArray[np.float64]

# Marks the lists' own threshold.
_OWN = float("-inf")


@dataclass(frozen=True, eq=False)
class Computed:
    """The computed universes of an audit.

    Parameters
    ----------
    grid
        The cells; failed ones are among the invalid ones, with the reason.
    systems
        Their names.
    averages
        Systems × universes, as reported.
    lower_is_better
        For each universe, whether a smaller average is better.
    terms
        The terms of each user.
    users
        The users, in the order of the terms: the name of the set of ratings, and the id.
    """

    grid: Grid
    systems: tuple[str, ...]
    averages: Floats
    lower_is_better: NDArray[np.bool_]
    terms: Terms
    users: tuple[tuple[str, Hashable], ...]

    def audit(self, **options: Any) -> Audit:
        """Return the audit; the options are those of `Audit.of`."""
        return Audit.of(
            self.grid, self.systems, self.averages, self.terms, lower_is_better=self.lower_is_better, **options
        )


@dataclass(eq=False)
class UserPlaces:
    """Numbers the users of all set-ups; a user is identified by the set of ratings and the id."""

    _places: dict[tuple[str, Hashable], int] = field(default_factory=dict)

    def of(self, data: str, ids: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return the numbers of users; new ones come last."""
        places = self._places
        return np.array([places.setdefault((data, user), len(places)) for user in ids], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def users(self) -> tuple[tuple[str, Hashable], ...]:
        """The users in the order of their numbers."""
        return tuple(self._places)


def compute(
    crossing: Crossing,
    systems: tuple[str, ...],
    lists_of: Callable[[int, UserPlaces], SetupLists],
    advance: Callable[[], None] = lambda: None,
) -> Computed:
    """Compute every universe; one that fails is recorded as invalid, with the reason.

    Parameters
    ----------
    crossing
        The universes.
    systems
        The names of the systems.
    lists_of
        A function that returns the judged lists of a set-up by its number, or raises an error with the reason.
    advance
        A function that is called after each set-up.
    """
    places, reasons = UserPlaces(), dict[int, str]()
    digests: list[str | None] = [None] * len(crossing.universes)
    distinct: dict[str, Averaged] = {}
    by_setup = _by_setup(crossing)

    def lists_or_reason(setup: int) -> SetupLists | str:
        try:
            return lists_of(setup, places)
        except CranfieldError as error:
            return str(error)

    # The lists of the next set-up are read while these are measured.
    for numbers, lists in zip(by_setup.values(), one_ahead(lists_or_reason, list(by_setup))):
        if isinstance(lists, str):
            reasons |= dict.fromkeys(numbers, lists)
        else:
            universes = [(number, crossing.universes[number]) for number in numbers]
            _compute_setup(lists, universes, digests, distinct, reasons)
        advance()
    grid, representative = crossing.grid(digests, reasons)
    kept = [distinct[str(digests[number])] for number in representative.tolist()]
    averages = np.stack([universe.averages for universe in kept], axis=1)
    lower = np.array([universe.lower_is_better for universe in kept])
    return Computed(grid, systems, averages, lower, _terms(kept, len(systems), len(places)), places.users)


def audit_crossing(
    crossing: Crossing, systems: tuple[str, ...], lists_of: Callable[[int, UserPlaces], SetupLists], **options: Any
) -> Audit:
    """Compute every universe and return the audit; the options are those of `Audit.of`.

    For each set-up, progress counts one step per system that is measured, two per pair that is compared and two per
    further test of a pair, since these take about twice as long.
    """
    setups, n = len(_by_setup(crossing)), len(systems)
    of_pair = 2 + 2 * len({testing.significance for testing in options.get("testings", ())})
    steps = setups * (n + of_pair * n * (n - 1) // 2)
    with progress("Measuring and comparing", total=steps, unit="steps") as bar:
        computed = compute(crossing, systems, lists_of, lambda: bar.advance(n))
        return computed.audit(advance=lambda: bar.advance(2 * setups), **options)


def _by_setup(crossing: Crossing) -> dict[int, list[int]]:
    """Return the numbers of the universes of each set-up, in order."""
    numbers: dict[int, list[int]] = {}
    for number, universe in enumerate(crossing.universes):
        numbers.setdefault(universe.setup, []).append(number)
    return dict(sorted(numbers.items()))


def _compute_setup(
    lists: SetupLists,
    universes: list[tuple[int, Universe]],
    digests: list[str | None],
    distinct: dict[str, Averaged],
    reasons: dict[int, str],
) -> None:
    """Measure the lists of a set-up, one threshold at a time to save memory, and average the values."""

    def order(entry: tuple[int, Universe]) -> tuple[float, int, str, str]:
        measurement = entry[1].measurement
        cutoff = parse(measurement.metric).cutoff or 0
        return (_threshold(entry[1]), cutoff, measurement.metric, measurement.unjudged)

    ordered = sorted(universes, key=order)
    for threshold, at_threshold in groupby(ordered, key=lambda entry: _threshold(entry[1])):
        view = lists if threshold == _OWN else lists.at(threshold)
        for measurement, group in groupby(at_threshold, key=lambda entry: entry[1].measurement):
            members = list(group)
            try:
                measured = view.measured(measurement)
            except SettingError as error:
                reasons |= dict.fromkeys((number for number, _ in members), str(error))
                continue
            for number, universe in members:
                try:
                    result = measured.averaged(universe.averaging)
                except SettingError as error:
                    reasons[number] = str(error)
                    continue
                digests[number] = result.digest
                distinct.setdefault(result.digest, result)


def _threshold(universe: Universe) -> float:
    threshold = universe.measurement.threshold
    return _OWN if threshold is None else float(threshold)


def _terms(universes: list[Averaged], systems: int, users: int) -> Terms:
    values = np.zeros((systems, len(universes), users), dtype=np.float32)
    for number, universe in enumerate(universes):
        values[:, number, universe.places] = universe.terms
    return Terms(
        values,
        np.array([universe.users for universe in universes]),
        np.array([universe.linear for universe in universes]),
        np.array([universe.even for universe in universes]),
    )

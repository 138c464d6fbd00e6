"""The ways in which a test set can be incomplete: what is removed first (Valcarce et al. 2020, section 4.2).

A scenario is a *unit* (ratings, items or users) and an order in which units are removed. A smaller test set is a mask
over the judgments, so lists are never joined again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._numbers import nearest_count
from cranfield._registry import Registry
from cranfield._streams import stream
from cranfield.judgments import Judgments

DrawnUnit = Literal["ratings", "items", "users"]
Sizes = str | Sequence[float]


@dataclass(frozen=True)
class Scenario:
    """A way to make a test set smaller."""

    name: str
    unit: DrawnUnit  # what is removed: individual ratings, all ratings of an item, or all ratings of a user
    # Whether the units with the most test ratings are removed first; otherwise they are removed at random.
    largest_first: bool
    title: str  # its title in figures and tables

    def __str__(self) -> str:
        return self.name

    def n_samples(self, samples: int) -> int:
        """Return the number of samples of a size: one if nothing is random."""
        return 1 if self.largest_first else samples

    def mask(self, judgments: Judgments, size: float, sample: int = 0, seed: int = 0) -> NDArray[np.bool_]:
        """Return which judgments remain if a share ``size`` of the units remains.

        Of n units, ⌊size · n + ½⌋ remain, at least one. Random scenarios draw a key for each unit, from a separate
        random stream for each size and sample, and the units with the smallest keys remain. If the largest are removed
        first, the seed fixes the order of units of equal size. It is the same at every size, so smaller test sets are
        parts of larger ones.
        """
        if self.unit == "ratings":
            unit: NDArray[np.integer] = np.arange(len(judgments))
        else:
            unit = judgments.items if self.unit == "items" else judgments.users[judgments.lists]
        sizes = np.bincount(unit)
        present = np.flatnonzero(sizes)
        keep = max(1, int(nearest_count(size, len(present))))
        if keep >= len(present):
            return np.ones(len(judgments), dtype=np.bool_)
        if self.largest_first:
            keys = stream(seed, "assess", self.name).random(len(present))
            remains = np.zeros(len(present), dtype=np.bool_)
            remains[np.lexsort((keys, sizes[present]))[:keep]] = True
        else:
            remains = _smallest(stream(seed, "assess", self.name, f"{size:.9g}", sample).random(len(present)), keep)
        if self.unit == "ratings":
            return remains
        of_unit = np.zeros(len(sizes), dtype=np.bool_)
        of_unit[present] = remains
        return of_unit[unit]


def _smallest(keys: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    """Return a mask of the ``count`` smallest keys; of equal keys, the earlier one counts as smaller."""
    chosen: NDArray[np.bool_] = keys <= np.partition(keys, count - 1)[count - 1]
    if np.count_nonzero(chosen) > count:
        chosen[np.argsort(keys, kind="stable")[count:]] = False
    return chosen


SCENARIOS: Registry[Scenario] = Registry("scenario")
"""The scenarios by name: the five of Valcarce et al. (2020), and any that are registered."""

for _scenario in (
    Scenario("ratings", "ratings", False, "ratings missing at random"),
    Scenario("items", "items", False, "items missing at random"),
    Scenario("popular", "items", True, "most popular items missing"),
    Scenario("users", "users", False, "users missing at random"),
    Scenario("large", "users", True, "users with the largest profiles missing"),
):
    SCENARIOS.add(_scenario.name, _scenario)


def scenario(name: str | Scenario) -> Scenario:
    """Return a scenario by its name."""
    if isinstance(name, Scenario):
        return name
    return SCENARIOS.find(name).thing


SIZES: Mapping[str, tuple[float, ...]] = {
    name: tuple(percent / 100 for percent in percents)
    for name, percents in (("fives", range(100, 0, -5)), ("ones", range(100, 0, -1)), ("top", range(100, 79, -1)))
}
"""Grids of sizes: 100 to 5 % in steps of 5, 100 to 1 %, and 100 to 80 % in steps of 1."""

PAPERS = "papers"
"""The grids of Valcarce et al. (2018): ``top`` if the most popular items are removed, otherwise ``fives``."""


def sizes_of(sizes: Sizes, scenario: str = "") -> tuple[float, ...]:
    """Return a grid of sizes by name (``fives``, ``ones``, ``top``), or check one that is given; largest first."""
    if isinstance(sizes, str) and scenario and sizes == PAPERS:
        return SIZES["top" if scenario == "popular" else "fives"]
    if isinstance(sizes, str):
        return SIZES[_checks.one_of("sizes", sizes, (*SIZES, PAPERS) if scenario else SIZES)]
    given = sizes if isinstance(sizes, Iterable) else [sizes]
    checked = sorted({1.0 if size == 1.0 else _checks.share("sizes", size) for size in given}, reverse=True)
    if not checked:
        raise SettingError("sizes is empty; give shares of the test set, such as sizes=[1, 0.5, 0.1]")
    return tuple(checked)


def grids_of(scenarios: Sequence[Scenario], sizes: Sizes | Mapping[str, Sizes]) -> dict[str, tuple[float, ...]]:
    """Return the sizes of each scenario: the same for all, or by name, with those of the papers if not named."""
    names = [scenario.name for scenario in scenarios]
    if not isinstance(sizes, Mapping):
        return {name: sizes_of(sizes, name) for name in names}
    for name in sizes:
        _checks.one_of("sizes", name, names)
    return {name: sizes_of(sizes.get(name, PAPERS), name) for name in names}

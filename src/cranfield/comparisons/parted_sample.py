"""`PartedSample`: a sample whose users are stored in parts, represented by sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.comparisons.sample import MOST_BLOCKS, Floats, Totals


@dataclass(frozen=True, eq=False)
class PartedSample:
    """What a comparison needs to know about one metric, without the values of individual users.

    Parameters
    ----------
    metric, systems, first, second, lower_is_better, geometric, shift
        As in `Sample`.
    n_users
        The number of users, whether they count or not.
    n
        The number of users that each pair is compared over.
    totals
        Totals over all users.
    least
        The lowest value of each system.
    outcomes
        For each pair: n, the standard deviation of the users' influences, and the numbers of users for whom the first
        and the second system have the larger value.
    values_of_blocks
        systems × blocks: the sums of weighted values over blocks of users; and 1 × blocks: those of the weights.
    influences_of_blocks
        systems × blocks: the sums of centred influences, over other blocks.
    """

    metric: str
    systems: tuple[str, ...]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    lower_is_better: bool
    geometric: bool
    shift: float
    weighted: bool
    n_users: int
    n: NDArray[np.int64]
    totals: Totals
    least: Floats
    outcomes: tuple[Floats, Floats, Floats, Floats]
    values_of_blocks: tuple[Floats, Floats]
    influences_of_blocks: Floats

    cells = None

    @property
    def n_pairs(self) -> int:
        """The number of pairs of systems."""
        return len(self.first)

    @property
    def n_blocks(self) -> int:
        """The number of blocks in which users are drawn or flipped."""
        return min(self.n_users, MOST_BLOCKS)

    def system_averages(self) -> Floats:
        """Return the average of each system over the users that count."""
        return self.totals.averages

    def averages(self, pairs: slice) -> tuple[Floats, Floats]:
        """Return the average of the first and of the second system of each pair; NaN if no user is in both."""
        compared = self.n[pairs] > 0
        a, b = (self.totals.averages[places[pairs]] for places in (self.first, self.second))
        return np.where(compared, a, np.nan), np.where(compared, b, np.nan)

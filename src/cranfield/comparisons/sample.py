"""`Sample`: the data of a paired test, the values of one metric for every system and user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import MOST_BLOCKS, Keys, user_blocks

Floats = NDArray[np.float64]

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a metric's value: a few units in its last place."""
# Two values of one user that differ by less than this share of the larger one are the same value.
_SAME = 4 * ROUNDING
# A difference below this share of the pair's largest value may be left over from cancellation (1 − similarity), so it
# counts as 0.
_CANCELLED = ROUNDING / 2
# Pairs are processed in blocks of about this many differences, which fit in the processor's cache.
_BLOCK = 1 << 17


def log_in_units(size: Floats, b: Floats, shift: float) -> Floats:
    """Return logarithms of ratios to a geometric mean b as differences from it: (b + shift)(exp(x) − 1)."""
    return np.asarray((b + shift) * np.expm1(size))


def slices_of_users(n_users: int) -> Iterator[slice]:
    """Return slices of users, each small enough to process at once; at least one."""
    for start in range(0, max(1, n_users), _BLOCK):
        yield slice(start, min(start + _BLOCK, n_users))


class Differences(NamedTuple):
    """The differences of some pairs on the scale of the test, and the rounding errors of their sums."""

    d: Floats  # pairs × users; 0 where values differ by rounding only, and for a user that does not count
    noise: Floats  # pairs × users: how far rounding of the two values may have moved each; 0 where the difference is 0
    hidden: Floats  # the sum of absolute differences set to 0 only because the pair's largest value is much larger

    @property
    def slack(self) -> Floats:
        """How far rounding may move the sum of any of a pair's differences: sums within it are equal."""
        return np.asarray(self.noise.sum(axis=1) + self.hidden)

    @property
    def smallest(self) -> Floats:
        """The smallest absolute difference of each pair that is not 0."""
        return np.asarray(np.where(self.d == 0, np.inf, np.abs(self.d)).min(axis=1, initial=np.inf))

    @property
    def vague(self) -> NDArray[np.bool_]:
        """Whether a pair has differences that are lost in the rounding errors of the others."""
        return vague(self.smallest, self.slack, self.hidden)


def vague(smallest: Floats, slack: Floats, hidden: Floats) -> NDArray[np.bool_]:
    """Return whether the smallest difference is lost in rounding errors, so that sums treated as equal may differ."""
    return np.asarray((smallest <= 4 * slack) | (hidden > 0), dtype=bool)


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of one metric for every system and user, and the pairs of systems to compare."""

    metric: str
    systems: tuple[str, ...]
    values: Floats  # systems × users; NaN where the user does not count for the system
    first: NDArray[np.intp]  # the indices of the two systems of each pair
    second: NDArray[np.intp]
    weights: Floats | None = None  # the weight of each user in the average, or None
    geometric: bool = False  # whether averages are geometric means, exp(mean(log(max(x, floor) + shift))) − shift
    floor: float = 1e-5  # they keep the logarithm of a zero finite
    shift: float = 0.0
    lower_is_better: bool = False  # whether a smaller value is the better one
    # Systems × users × repetitions: the values of each repetition, whose means are in ``values``; NaN where a user
    # has no value. None if there are no repetitions.
    cells: Floats | None = None
    # A number for each user derived from the user's id, if there are many users; see `blocks_of_users`.
    keys: Keys | None = None
    largest: float = np.inf  # the largest possible difference of two averages

    @property
    def n_pairs(self) -> int:
        """The number of pairs of systems."""
        return len(self.first)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Systems × users: whether the user counts for the system."""
        return np.asarray(~np.isnan(self.values))

    @cached_property
    def same_users(self) -> bool:
        """Whether every system is compared over the same users."""
        return bool((self.counted == self.counted[:1]).all())

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """The number of users that each pair is compared over."""
        if self.same_users:
            return np.full(self.n_pairs, np.count_nonzero(self.counted[0]))
        both = np.zeros((len(self.systems),) * 2)
        for part in slices_of_users(self.n_users):
            counted = self.counted[:, part].astype(np.float64)
            both += counted @ counted.T
        return np.rint(both[self.first, self.second]).astype(np.int64)

    @property
    def tested(self) -> Floats:
        """Systems × users: the values on the scale of the test, whose mean difference is the test's statistic.

        The value itself; under weights w the value times w_u / mean(w); for a geometric mean
        log(max(x, floor) + shift). Users that do not count are NaN.
        """
        if self.geometric or self.weights is not None:
            return self._transformed if self.n_users <= _BLOCK else self._on_scale(self.values)
        return self.values

    @cached_property
    def _transformed(self) -> Floats:
        return self._on_scale(self.values)

    def _on_scale(self, values: Floats, users: slice = slice(None)) -> Floats:
        """Return values of some users on the scale of the test."""
        if self.geometric:
            return np.log(np.maximum(values, self.floor) + self.shift)
        return values if self.weights is None else values * self.relative_weights[users]

    def tested_row(self, system: int) -> Floats:
        """Return one row of `tested`, without computing the others if there are many users."""
        return self.tested[system] if self.n_users <= _BLOCK else self._on_scale(self.values[system])

    def _taken(self, systems: NDArray[np.intp], users: slice, *, tested: bool) -> Floats:
        """Return a copy of the values of some systems and users, on the scale of the test or on their own."""
        if not tested or self.n_users <= _BLOCK:
            return (self.tested if tested else self.values)[systems, users]
        return self._on_scale(self.values[systems, users], users)

    @cached_property
    def relative_weights(self) -> Floats:
        """w_u / mean(w) of each user, 1 without weights; 0 if all weights are 0."""
        if self.weights is None:
            return np.ones(self.values.shape[1])
        return self.weights / (self.weights.mean() or 1.0)

    @property
    def n_users(self) -> int:
        """The number of users, whether they count or not."""
        return self.values.shape[1]

    @property
    def least(self) -> Floats:
        """The lowest value of each system."""
        return np.fmin.reduce(self.values, axis=1, initial=np.inf)

    @property
    def n_blocks(self) -> int:
        """The number of blocks in which users are drawn or flipped; see `blocks_of_users`."""
        return min(self.n_users, MOST_BLOCKS)

    def blocks_of_users(self, seed: int, name: str) -> NDArray[np.intp]:
        """Return the block of each user: each user is a block unless there are many, and then a hash assigns blocks."""
        if self.n_users == self.n_blocks:
            return np.arange(self.n_users)
        keys = np.arange(self.n_users, dtype=np.uint64) if self.keys is None else self.keys
        return user_blocks(keys, self.n_blocks, seed, "compare", name)

    def blocks(self) -> Iterator[slice]:
        """Return slices of pairs, each small enough to process at once."""
        repetitions = 1 if self.cells is None else self.cells.shape[2]
        size = max(1, _BLOCK // max(1, repetitions * self.values.shape[1]))
        for start in range(0, self.n_pairs, size):
            yield slice(start, min(start + size, self.n_pairs))

    def differences(self, pairs: slice) -> Floats:
        """Pairs × users: differences on the scale of the test, NaN for a user that does not count.

        Differences that are only rounding are exactly zero: those below 32 ε of the larger of the user's two values, or
        4 ε of the largest value of the pair, with ε = 2.2e-16.
        """
        return self._difference(pairs, tested=True)[0]

    def raw_differences(self, pairs: slice) -> Floats:
        """Pairs × users: differences of the values themselves, NaN for a user that does not count."""
        return self._difference(pairs, tested=False)[0]

    def rounded_differences(self, pairs: slice) -> Differences:
        """Return differences on the scale of the test, and the rounding errors of their sums."""
        d, noise, hidden = self._difference(pairs, tested=True)
        if self.geometric:  # log(x (1 + ε)) = log x + ε
            noise += ROUNDING
        np.nan_to_num(d, copy=False)
        noise[d == 0] = 0.0
        return Differences(d, noise, hidden)

    def _difference(self, pairs: slice, *, tested: bool) -> tuple[Floats, Floats, Floats]:
        """Return differences, how far rounding may have moved each, and the sum of those that are hidden."""
        first, second = self.first[pairs], self.second[pairs]
        d, noise = np.empty((len(first), self.n_users)), np.empty((len(first), self.n_users))
        largest, hidden = np.zeros(len(first)), np.zeros(len(first))
        for users in slices_of_users(self.n_users):
            a, b = (self._taken(systems, users, tested=tested) for systems in (first, second))
            np.subtract(a, b, out=d[:, users])
            larger = np.maximum(np.abs(a, out=a), np.abs(b, out=b), out=noise[:, users])
            if not self.same_users:
                larger[np.isnan(larger)] = 0.0
            largest = np.fmax(largest, np.fmax.reduce(larger, axis=1, initial=0.0))
            larger *= ROUNDING
        for users in slices_of_users(self.n_users):
            size, same = np.abs(d[:, users]), _SAME / ROUNDING * noise[:, users]
            zero = size <= np.maximum(same, _CANCELLED * largest[:, None])
            d[:, users][zero] = 0.0
            zero &= size > same
            if zero.any():
                hidden += np.where(zero, size, 0.0).sum(axis=1)
        return d, noise, hidden

    @cached_property
    def system_averages(self) -> Floats:
        """The average of each system over its own users."""
        return self._average(np.arange(len(self.systems)), self.counted)

    def averages(self, pairs: slice) -> tuple[Floats, Floats]:
        """Return the average of the first and of the second system of each pair, over the users of the pair."""
        if self.same_users:
            return self.system_averages[self.first[pairs]], self.system_averages[self.second[pairs]]
        both = self.counted[self.first[pairs]] & self.counted[self.second[pairs]]
        return self._average(self.first[pairs], both), self._average(self.second[pairs], both)

    def _average(self, systems: NDArray[np.intp], both: NDArray[np.bool_]) -> Floats:
        totals, sums = np.zeros(len(systems)), np.zeros(len(systems))
        for place, counted in enumerate(both):
            for users in slices_of_users(self.n_users):
                values = self._taken(systems[[place]], users, tested=self.geometric)[0]
                values[~counted[users]] = 0.0
                if self.weights is not None:
                    values *= self.weights[users]
                sums[place] += values.sum()
                weights = counted[users] if self.weights is None else counted[users] * self.weights[users]
                totals[place] += weights.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(totals > 0, sums / totals, np.nan)
        return np.exp(mean) - self.shift if self.geometric else mean

    def tested_difference(self, a: Floats, b: Floats) -> Floats:
        """Return differences of averages on the scale of the test, which `in_units` shows.

        a − b, and for geometric means the logarithm of their ratio, log((a + shift) / (b + shift)).
        """
        if not self.geometric:
            return a - b
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a == b, 0.0, np.log((a + self.shift) / (b + self.shift)))

    def in_units(self, size: Floats, b: Floats) -> Floats:
        """Return sizes on the scale of the test in the metric's unit: for geometric means (b + shift)(exp(x) − 1)."""
        return log_in_units(size, b, self.shift) if self.geometric else size

    def influences(self, pairs: slice) -> Floats:
        """Pairs × users: values whose mean is the `tested_difference` and whose spread gives its error.

        For a mean they are the plain differences; for a weighted mean D with weights w, D + (w_u / mean(w)) (d_u − D);
        for geometric means the differences of the logarithms. NaN for a user that does not count.
        """
        d = self._difference(pairs, tested=self.geometric)[0]
        if self.geometric or self.weights is None:
            return d
        a, b = self.averages(pairs)
        centre = (a - b)[:, None]
        mean_weight = self._mean_weights(~np.isnan(d))
        with np.errstate(invalid="ignore", divide="ignore"):
            pulled: Floats = centre + self.weights / mean_weight[:, None] * (d - centre)
        return pulled

    def _mean_weights(self, counted: NDArray[np.bool_]) -> Floats:
        """Return the mean weight of the users that count in each row."""
        assert self.weights is not None
        total: Floats = np.where(counted, self.weights, 0.0).sum(axis=1)
        return total / np.maximum(counted.sum(axis=1), 1)

    def cell_influences(self, pairs: slice) -> Floats:
        """Pairs × users × repetitions: `influences` by repetition; their mean over repetitions is the influence.

        A cell is the user's influence, plus the deviation of the user's value in the repetition from the mean, times
        the derivative of the influence. NaN where a user has no value.
        """
        away = self._away
        first, second = self.first[pairs], self.second[pairs]
        return self.influences(pairs)[:, :, None] + away[first] - away[second]

    def system_cells(self) -> Floats:
        """Systems × users × repetitions: `system_influences` by repetition; NaN where a user has no value."""
        return self.system_influences()[:, :, None] + self._away

    @cached_property
    def _away(self) -> Floats:
        """Systems × users × repetitions: how much a repetition changes a user's influence on an average."""
        assert self.cells is not None
        counts = np.maximum((~np.isnan(self.cells)).sum(axis=2, keepdims=True), 1)
        away = self.cells - np.nansum(self.cells, axis=2, keepdims=True) / counts
        return self._slopes[:, :, None] * away

    @cached_property
    def _slopes(self) -> Floats:
        """Systems × users: the derivative of a user's influence on the average with respect to the user's value."""
        if self.geometric:
            within = self.values > self.floor
            return np.where(within, 1 / np.where(within, self.values + self.shift, 1.0), 0.0)
        return np.broadcast_to(self.relative_weights, self.values.shape)

    def system_influences(self) -> Floats:
        """Systems × users: the users' influences on each average, centred; 0 for a user that does not count.

        For geometric means they are influences on the logarithm. If all systems have the same users, the `influences`
        of a pair are those of its first system minus those of its second, plus the `tested_difference`.
        """
        return np.stack([self.system_influence(system) for system in range(len(self.systems))])

    def system_influence(self, system: int, users: slice = slice(None)) -> Floats:
        """Return one row of `system_influences`, of all users or some."""
        mean = self.system_averages[system]
        if self.geometric:
            centred = self.tested_row(system)[users] - np.log(mean + self.shift)
        else:
            centred = self.values[system, users] - mean
        if self.weights is not None and not self.geometric:
            with np.errstate(invalid="ignore", divide="ignore"):
                centred *= self.weights[users] / self._mean_weights(self.counted[[system]])
        return np.nan_to_num(centred, copy=False)

    def covariance(self) -> tuple[Floats, Floats, Floats]:
        """Return, for each pair, the variance of both averages over users and their covariance, v_a, v_ab and v_b.

        v_ab = Σ_u x_ua x_ub / (n (n − 1)), with x the influences of `system_influences`. NaN for pairs with less than
        two users.
        """
        if not self.same_users:
            return self._covariance_of_each()
        n, total = self.n.astype(np.float64), np.zeros((len(self.systems),) * 2)
        for users in slices_of_users(self.n_users):
            rows = np.stack([self.system_influence(system, users) for system in range(len(self.systems))])
            total += rows @ rows.T
        a, b = self.first, self.second
        with np.errstate(invalid="ignore", divide="ignore"):
            of_a, of_both, of_b = (
                total[places] / np.where(n > 1, n * (n - 1), np.nan) for places in ((a, a), (a, b), (b, b))
            )
        return of_a, of_both, of_b

    def _covariance_of_each(self) -> tuple[Floats, Floats, Floats]:
        """Return `covariance` of pairs over different users, one after the other."""
        parts, place = [], np.zeros(1, dtype=np.intp)
        for pair in zip(self.first, self.second):
            values = np.where(self.counted[list(pair)].all(axis=0), self.values[list(pair)], np.nan)
            names = tuple(self.systems[system] for system in pair)
            alone = replace(self, systems=names, values=values, first=place, second=place + 1, cells=None)
            parts.append(alone.covariance())
        of_a, of_both, of_b = (np.concatenate(column) for column in zip(*parts))
        return of_a, of_both, of_b

    def of_common_users(self) -> Sample:
        """Return the sample with only the users that count for every system, ignoring systems without any users."""
        if self.same_users:
            return self
        measured = self.counted[self.counted.any(axis=1)]
        return replace(self, values=np.where(measured.all(axis=0), self.values, np.nan))

    def restrict(self, users: NDArray[np.intp]) -> Sample:
        """Return the sample restricted to some of the users."""
        weights = None if self.weights is None else self.weights[users]
        cells = None if self.cells is None else self.cells[:, users]
        return replace(self, values=self.values[:, users], weights=weights, cells=cells)

"""Relative differences between averages, with bootstrap intervals of the ratio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._random import stream
from cranfield.comparisons.sample import Floats, Sample

_RESAMPLES = 1000
_PAIRS_AT_ONCE, _DRAWN_AT_ONCE = 256, 1 << 18
# With more pairs, ratios have no intervals: for 200 systems they would take minutes, and nobody reads them.
_MOST_PAIRS = 5_000
# An interval that reaches this many times the other average is meaningless.
_MOST_TIMES = 100.0


@dataclass(frozen=True, eq=False)
class Relative:
    """(mean_a − mean_b) / mean_b of every pair of a sample, and its interval.

    NaN if it is meaningless: if the second average is 0 or a value is negative. The interval is also NaN if it reaches
    a hundred times the second average.
    """

    difference: Floats
    lower: Floats
    upper: Floats

    def widened(self, times: Floats) -> Relative:
        """Return a copy with intervals ``times`` as wide, on the scale of the logarithm of the ratio."""
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.log1p(self.difference)
            lower, upper = (
                np.where(times == 1, end, np.expm1(middle + times * (np.log1p(end) - middle)))
                for end in (self.lower, self.upper)
            )
        # With only two repetitions, an interval may become too wide to be meaningful.
        says = np.isfinite(lower) & np.isfinite(upper) & (upper < _MOST_TIMES)
        return Relative(self.difference, *(np.where(says, end, np.nan) for end in (lower, upper)))

    def beside(self, lower: Floats, upper: Floats) -> Relative:
        """Return a copy with intervals that include 0 if and only if the given intervals of the differences do.

        The ratio is above 1 if and only if the difference is above 0, so an end on the wrong side of 0 is set to 0. NaN
        for pairs whose difference has no interval.
        """
        with np.errstate(invalid="ignore"):
            below = np.where(lower > 0, np.maximum(self.lower, 0.0), np.minimum(self.lower, 0.0))
            above = np.where(upper < 0, np.minimum(self.upper, 0.0), np.maximum(self.upper, 0.0))
        known = ~np.isnan(lower) & ~np.isnan(upper)
        return Relative(self.difference, np.where(known, below, np.nan), np.where(known, above, np.nan))


def relative_differences(data: Sequence[Sample], alpha: float, seed: int) -> list[Relative]:
    """Return the relative differences of every pair, with percentile intervals of the ratio.

    Users are drawn with replacement 1,000 times, both averages are recomputed each time, and the interval covers the
    middle 1 − α of the ratios. All pairs and metrics use the same draws. Metrics with more than 5,000 pairs have no
    intervals.
    """
    # If groups count equally, the users that count may differ between metrics.
    draws: dict[int, _Draws] = {}
    intervals = []
    for sample in data:
        if sample.n_users not in draws:
            draws[sample.n_users] = _draws(sample, seed)
        intervals.append(_relative(sample, draws[sample.n_users], alpha))
    return intervals


@dataclass(frozen=True, eq=False)
class _Draws:
    """How often each block of users is drawn, resamples × blocks, and the block of each user."""

    counts: NDArray[np.uint16]
    block: NDArray[np.intp]

    def sums(self, rows: Iterable[Floats]) -> Floats:
        """Return, rows × resamples, the sums over the users that were drawn."""
        blocks = self.counts.shape[1]
        summed = np.stack([row if len(row) == blocks else np.bincount(self.block, row, blocks) for row in rows])
        at_once = max(1, _DRAWN_AT_ONCE // max(1, blocks))
        parts = (self.counts[start : start + at_once] for start in range(0, _RESAMPLES, at_once))
        return np.concatenate([summed @ part.astype(np.float64).T for part in parts], axis=1)


def _draws(sample: Sample, seed: int) -> _Draws:
    random, blocks = stream(seed, "compare", "relative"), sample.n_blocks
    counts = np.empty((_RESAMPLES, blocks), dtype=np.uint16)
    at_once = max(1, _DRAWN_AT_ONCE // max(1, blocks))
    for start in range(0, _RESAMPLES, at_once):
        rows = counts[start : start + at_once]
        drawn = (random.random(rows.shape) * blocks).astype(np.intp) + blocks * np.arange(len(rows))[:, None]
        rows[:] = np.bincount(drawn.reshape(-1), minlength=rows.size).reshape(rows.shape)
    return _Draws(counts, sample.blocks_of_users(seed, "relative"))


def _relative(sample: Sample, draws: _Draws, alpha: float) -> Relative:
    a, b = sample.averages(slice(0, sample.n_pairs))
    least = sample.least
    says = (b > 0) & (least[sample.first] >= 0) & (least[sample.second] >= 0)
    ends = np.full((2, sample.n_pairs), np.nan)
    # A base so small that the ratio overflows has no relative difference, like a base of 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = np.where(says, (a - b) / b, np.nan)
        for pairs, ratio in _ratios(sample, draws) if sample.n_pairs <= _MOST_PAIRS else ():
            # There is no ratio if a resample has no user of a pair, or if both averages are 0.
            known = says[pairs] & ~np.isnan(ratio).any(axis=1)
            if known.any():
                ends[:, pairs[known]] = np.quantile(ratio[known], [alpha / 2, 1 - alpha / 2], axis=1) - 1
    difference[~np.isfinite(difference)] = np.nan
    ends[~np.isfinite(ends)] = np.nan
    return Relative(difference, ends[0], ends[1])


def _ratios(sample: Sample, draws: _Draws) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield blocks of pairs with the ratio of their averages in every resample, pairs × resamples."""
    if not sample.same_users:
        for pair, (a, b) in enumerate(zip(sample.first, sample.second)):
            first, second = _means(sample, np.array([a, b]), sample.counted[a] & sample.counted[b], draws)
            yield np.array([pair]), (first / second)[None]
        return
    means = _means(sample, np.arange(len(sample.systems)), sample.counted[0], draws)
    for start in range(0, sample.n_pairs, _PAIRS_AT_ONCE):
        pairs = np.arange(start, min(start + _PAIRS_AT_ONCE, sample.n_pairs))
        yield pairs, means[sample.first[pairs]] / means[sample.second[pairs]]


def _means(sample: Sample, systems: NDArray[np.intp], counted: NDArray[np.bool_], draws: _Draws) -> Floats:
    """Return systems × resamples: the averages over the users that count, in each resample."""
    weights = counted.astype(np.float64) if sample.weights is None else counted * sample.weights
    rows = (sample.tested_row(system) if sample.geometric else sample.values[system] for system in systems)
    totals = draws.sums(np.where(counted, row, 0.0) * weights for row in rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = totals / draws.sums(weights[None])
    return np.exp(means) - sample.shift if sample.geometric else means

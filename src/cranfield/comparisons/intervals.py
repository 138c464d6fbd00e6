"""Intervals of many pairs: of relative differences by the bootstrap, and simultaneous ones by the max-|t| method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.comparisons.errors import moments
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


_FLIPS = 5000
# Maximum number of signs (users × flips), and of statistics (pairs × flips), per block.
_BLOCK = 1 << 22
_LARGE = 1e9
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class LargestStatistics:
    """The largest |t| over all pairs when the users' differences are flipped at random (`largest_statistics`).

    Intervals and corrected p-values both follow from these, so they agree: a p-value is below α if and only if the
    interval at level 1 − α does not include 0.
    """

    values: Floats  # the largest |t| of each flip, ascending
    degrees: int  # of freedom of each pair
    pairs: int

    def level(self, alpha: float) -> float:
        """Return the level of each pair's interval at which all of them hold simultaneously with probability 1 − α.

        With c the largest |t| that no more than a share α of the flips exceed, the intervals difference ± c · standard
        error hold for all pairs at once. The result is the level of a t interval of that width. It lies between α /
        pairs (Bonferroni) and α (a single pair).
        """
        from scipy.special import stdtr

        if self.pairs < 2:
            return alpha
        beyond = int(np.ceil(alpha * (len(self.values) + 1) - 1))
        critical = float(self.values[-beyond]) if beyond > 0 else np.inf
        return float(np.clip(2 * float(stdtr(self.degrees, -critical)), alpha / self.pairs, alpha))

    def corrected(self, p: Floats, p_of_t: Floats) -> Floats:
        """Return corrected p-values of pairs: the share of flips whose largest |t| reaches that of the pair.

        ``p_of_t`` are the p-values of difference / standard error, from which |t| follows. The observed data count as
        one more flip: (1 + reached) / (1 + flips). The result lies between the p-value of the single pair and
        Bonferroni's; for both, ``p`` of the chosen test is used if it is larger.
        """
        from scipy.special import stdtrit

        if self.pairs < 2:
            return p.copy()
        known = np.where(np.isnan(p_of_t), p, p_of_t)
        with np.errstate(invalid="ignore"):
            t = np.round(-stdtrit(self.degrees, known / 2), _DIGITS)
        reached = len(self.values) - np.searchsorted(self.values, t, side="left")
        share = np.maximum((1 + reached) / (1 + len(self.values)), known)
        either = np.maximum(known, p)
        corrected: Floats = np.minimum(np.maximum(np.minimum(share, self.pairs * either), p), 1.0)
        return np.where(np.isnan(p), np.nan, corrected)


def largest_statistics(sample: Sample, sd: Floats, seed: int) -> LargestStatistics:
    """Return the largest |t| over the pairs of a sample, whose influences have the deviations ``sd``, in 5,000 flips.

    The max-|t| method (Westfall and Young 1993; Romano and Wolf 2005). The users' influences on the difference of each
    pair (`Sample.influences`) are centred and flipped by random sign patterns, which are the same for all pairs. Each
    pattern gives a |t| for every pair, of which the largest is kept. The result does not depend on the number of
    threads. With repetitions, flips of users do not show how the pairs depend on each other, and there are too few
    repetitions to flip: every flip then counts as larger, which makes level and p-values Bonferroni's.
    """
    largest = np.zeros(_FLIPS)
    if sample.cells is not None:
        largest[:] = np.inf
    elif sample.n_pairs > 1:
        for largest_of_pairs in _largest(sample, sd, seed):
            np.maximum(largest, largest_of_pairs, out=largest)
    np.minimum(largest, _LARGE, out=largest)  # with few users a flip may leave no spread, and |t| is infinite
    # Matrix products on several threads may differ in their last digits.
    ascending = np.sort(np.round(largest, _DIGITS))
    return LargestStatistics(ascending, max(int(sample.n.max(initial=0)) - 1, 1), sample.n_pairs)


def _largest(sample: Sample, sd: Floats, seed: int) -> Iterator[Floats]:
    """Yield, for each block of pairs, the largest |t| of each flip."""
    signs = Signs(sample.n_blocks, seed, sample.blocks_of_users(seed, "simultaneous"))
    if sample.same_users:
        rows = signs.over_blocks(sample.system_influence(system) for system in range(len(sample.systems)))
        yield _statistics(signs, rows, (sample.first, sample.second), sd, sample.n)
        return
    for start in range(0, sample.n_pairs, _PAIRS_AT_ONCE):
        pairs = slice(start, min(start + _PAIRS_AT_ONCE, sample.n_pairs))
        influences = sample.influences(pairs)
        n, mean, _ = moments(influences)
        rows = signs.over_blocks(np.nan_to_num(influences - mean[:, None]))
        yield _statistics(signs, rows, (np.arange(len(rows)),), sd[pairs], n)


def _statistics(
    signs: Signs, rows: Floats, places: tuple[NDArray[np.intp], ...], sd: Floats, n: NDArray[Any]
) -> Floats:
    """Return the largest |t| of each flip over pairs with ``n`` users whose influences have the deviations ``sd``.

    ``rows`` are centred influences of systems, summed over blocks of users, with two row indices per pair, or of pairs,
    with one index each. With S = Σ ± w_u and Q = Σ w_u², t² = (n − 1) S² / (n Q − S²): a flip changes only S.
    """
    usable = (sd > 0) & (n > 1)
    if not usable.any():
        return np.zeros(_FLIPS)
    places, n = tuple(place[usable] for place in places), n[usable].astype(np.float64)
    unit = sd[usable] * np.sqrt(n - 1)
    largest = np.zeros(_FLIPS)
    for flips, sums in signs.sums(rows):
        step = max(1, _BLOCK // len(sums))
        for start in range(0, len(n), step):
            pairs = slice(start, start + step)
            total, *other = (sums[:, place[pairs]] for place in places)
            total = total - other[0] if other else total
            ratio = (total / unit[pairs]) ** 2
            with np.errstate(divide="ignore"):
                t = np.sqrt((n[pairs] - 1) * ratio / np.maximum(n[pairs] - ratio, 0.0))
            np.maximum(largest[flips], t.max(axis=1), out=largest[flips])
    return largest


class Signs:
    """The sign patterns of blocks of users, shared by all pairs and metrics; ``block`` is the block of each user."""

    def __init__(self, blocks: int, seed: int, block: NDArray[np.intp] | None = None) -> None:
        random = stream(seed, "compare", "simultaneous")
        self._n = blocks
        self._block = None if block is None or len(block) == blocks else block
        self._words = (self._n + 63) // 64
        self._bits = np.asarray(random.bit_generator.random_raw(_FLIPS * self._words), dtype="<u8").view(np.uint8)

    def over_blocks(self, rows: Iterable[Floats]) -> Floats:
        """Return rows of users as rows × blocks, adding up the users of each block one row at a time."""
        return np.stack([row if self._block is None else np.bincount(self._block, row, self._n) for row in rows])

    def sums(self, rows: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of flips with their sums of each row of blocks, flips × rows."""
        columns, totals = np.ascontiguousarray(rows.T), rows.sum(axis=1)
        bits = self._bits.reshape(_FLIPS, self._words * 8)
        count = max(1, _BLOCK // max(1, self._n))
        for start in range(0, _FLIPS, count):
            flips = slice(start, min(start + count, _FLIPS))
            heads = np.unpackbits(bits[flips], axis=1, count=self._n).astype(np.float64)
            yield flips, 2 * (heads @ columns) - totals

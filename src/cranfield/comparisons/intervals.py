"""Intervals of many pairs: of relative differences by Fieller's method, and simultaneous ones by the max-|t| method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.comparisons.errors import moments
from cranfield.comparisons.sample import Floats, Sample

_PAIRS_AT_ONCE = 256
# An interval that reaches this many times the other average is meaningless.
_MOST_TIMES = 100.0


@dataclass(frozen=True, eq=False)
class Relative:
    """(mean_a − mean_b) / mean_b of every pair of a sample, and its interval (`relative_differences`)."""

    difference: Floats
    lower: Floats
    upper: Floats


def relative_differences(sample: Sample, lower: Floats, upper: Floats, users_error: Floats) -> Relative:
    """Return the relative differences of every pair, with Fieller's intervals (1954) beside those of the differences.

    With averages a and b, the ratio ρ is in the interval if a − ρ b does not differ from 0: |a − ρ b| ≤ c √v(ρ), where
    v(ρ) = v_a − 2 ρ v_ab + ρ² v_b is the variance of a − ρ b over users, from their influences on both averages
    (`Sample.covariance`), and c is half the width of the given interval of a − b, divided by the error over users. So
    the interval includes 0 if that of the difference does; an end on the other side of 0, which only an asymmetric
    interval or rounding can cause, is set to 0. For geometric means the given intervals are those of the logarithm of
    the ratio of mean + shift, so theirs are exp(l) − 1.

    NaN if it is meaningless: if the second average is 0 or a value is negative. The interval is also NaN if the
    difference has none, if b itself does not differ from 0 (it then has no end), or if it reaches a hundred times b.
    """
    a, b = sample.averages(slice(0, sample.n_pairs))
    says = (b > 0) & (sample.least[sample.first] >= 0) & (sample.least[sample.second] >= 0)
    # A base so small that the ratio overflows has no relative difference, like a base of 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if sample.geometric:
            logs = (sample.tested_difference(a, b), lower, upper)
            return Relative(*(np.where(says & (size < np.log(_MOST_TIMES)), np.expm1(size), np.nan) for size in logs))
        difference = np.where(says, (a - b) / b, np.nan)
        squared = np.where(upper == lower, 0.0, ((upper - lower) / (2 * users_error)) ** 2)
        of_a, of_both, of_b = (squared * variance for variance in sample.covariance())
        divisor, middle = b**2 - of_b, a * b - of_both
        root = np.sqrt(middle**2 - divisor * (a**2 - of_a))
        ends = [np.where(says & (divisor > 0), (middle + side * root) / divisor - 1, np.nan) for side in (-1, 1)]
        ends[0] = np.where(lower > 0, np.maximum(ends[0], 0.0), np.minimum(ends[0], 0.0))
        ends[1] = np.where(upper < 0, np.minimum(ends[1], 0.0), np.maximum(ends[1], 0.0))
        has_ends = np.isfinite(ends[0]) & (ends[1] < _MOST_TIMES) & ~np.isnan(lower) & ~np.isnan(upper)
    difference[~np.isfinite(difference)] = np.nan
    return Relative(difference, *(np.where(has_ends, end, np.nan) for end in ends))


_FLIPS = 5000
# Maximum number of signs (users × flips), and of statistics (pairs × flips), per block.
_BLOCK = 1 << 22
_LARGE = 1e9
_LOWEST_LEVEL = 1e-12  # of an interval, if there are too few resamples for a critical value, or none differs from 0
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class LargestStatistics:
    """The largest |t| over all pairs when the users' differences are flipped at random, or in the resamples of a test.

    Intervals and corrected p-values both follow from these, so they agree: a p-value is below α if and only if the
    interval at level 1 − α does not include 0. See `largest_statistics`.
    """

    values: Floats  # the largest |t| of each flip or resample, ascending
    degrees: int  # of freedom of each pair
    pairs: int
    resampled: bool = False  # then Student's t bounds nothing, and a single pair has values of its own

    def level(self, alpha: float) -> float:
        """Return the level of each pair's interval at which all of them hold simultaneously with probability 1 − α.

        With c the largest |t| that no more than a share α of the flips exceed, the intervals difference ± c · standard
        error hold for all pairs at once. The result is the level of a t interval of that width. For flips it lies
        between α / pairs (Bonferroni) and α (a single pair).
        """
        from scipy.special import stdtr

        if self.pairs < 2 and not self.resampled:
            return alpha
        beyond = int(np.ceil(alpha * (len(self.values) + 1) - 1))
        critical = float(self.values[-beyond]) if beyond > 0 else np.inf
        bounds = (_LOWEST_LEVEL, 1 - _LOWEST_LEVEL) if self.resampled else (alpha / self.pairs, alpha)
        return float(np.clip(2 * float(stdtr(self.degrees, -critical)), *bounds))

    def corrected(self, p: Floats, p_of_t: Floats) -> Floats:
        """Return corrected p-values of pairs: the share of flips whose largest |t| reaches that of the pair.

        ``p_of_t`` are the p-values of difference / standard error, from which |t| follows. The observed data count as
        one more flip: (1 + reached) / (1 + flips). For flips the result lies between the p-value of the single pair and
        Bonferroni's; for both, ``p`` of the chosen test is used if it is larger.
        """
        from scipy.special import stdtrit

        if self.pairs < 2 and not self.resampled:
            return p.copy()
        known = np.where(np.isnan(p_of_t), p, p_of_t)
        with np.errstate(invalid="ignore"):
            t = np.round(-stdtrit(self.degrees, known / 2), _DIGITS)
        reached = len(self.values) - np.searchsorted(self.values, t, side="left")
        share = (1 + reached) / (1 + len(self.values))
        if self.resampled:
            return np.where(np.isnan(p), np.nan, np.maximum(share, p))
        share, either = np.maximum(share, known), np.maximum(known, p)
        corrected: Floats = np.minimum(np.maximum(np.minimum(share, self.pairs * either), p), 1.0)
        return np.where(np.isnan(p), np.nan, corrected)


def largest_statistics(sample: Sample, sd: Floats, seed: int, resampled: Floats | None = None) -> LargestStatistics:
    """Return the largest |t| over the pairs of a sample, whose influences have the deviations ``sd``, in 5,000 flips.

    If the test has ``resampled`` them, those of its resamples are taken instead.

    The max-|t| method (Westfall and Young 1993; Romano and Wolf 2005). The users' influences on the difference of each
    pair (`Sample.influences`) are centred and flipped by random sign patterns, which are the same for all pairs. Each
    pattern gives a |t| for every pair, of which the largest is kept. The result does not depend on the number of
    threads. With repetitions, flips of users do not show how the pairs depend on each other, and there are too few
    repetitions to flip: every flip then counts as larger, which makes level and p-values Bonferroni's.
    """
    largest = np.zeros(_FLIPS) if resampled is None else resampled
    if sample.cells is not None:
        largest[:] = np.inf
    elif sample.n_pairs > 1 and resampled is None:
        for largest_of_pairs in _largest(sample, sd, seed):
            np.maximum(largest, largest_of_pairs, out=largest)
    largest = np.minimum(largest, _LARGE)  # with few users a flip may leave no spread, and |t| is infinite
    # Matrix products on several threads may differ in their last digits.
    ascending = np.sort(np.round(largest, _DIGITS))
    degrees = max(int(sample.n.max(initial=0)) - 1, 1)
    return LargestStatistics(ascending, degrees, sample.n_pairs, resampled is not None)


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

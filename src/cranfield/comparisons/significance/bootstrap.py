"""Sakai's paired bootstrap test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons.errors import moments, unit_of
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, Resamples, TestResult
from cranfield.comparisons.sample import Floats, Sample

# Maximum number of draws (resamples × users) per block.
_BLOCK = 1 << 21


@SIGNIFICANCE_TESTS.register
def bootstrap(
    data: Sequence[Sample], resamples: Resamples = 1000, plus_one: bool = True, seed: int = 0, alpha: float = 0.05
) -> list[TestResult]:
    """Sakai's (2006) paired bootstrap test, with percentile intervals.

    With z_u the differences, t₀ = |mean(z)| / (sd(z)/√n) and w = z − mean(z), B resamples w* of the users are drawn;
    ASL = #{t(w*) ≥ t₀} / B, or (1 + #) / (1 + B) with ``plus_one``. The interval covers the middle 1 − α of the
    resampled mean differences. A single user gives p = 1. All pairs and metrics use the same resamples.
    More than 10,000 users are drawn in 10,000 blocks (`Sample.blocks_of_users`).
    """
    plus_one = _checks.flag("plus_one", plus_one)
    return [
        _verdict(sample, result, resamples, plus_one, alpha)
        for sample, result in zip(data, resampled(data, resamples, seed))
    ]


def _verdict(sample: Sample, result: ResampledSums, n_samples: int, plus_one: bool, alpha: float) -> TestResult:
    """Return the verdict from resampled means and statistics."""
    shift, t, observed, mean = result
    low, high = np.quantile(shift, [alpha / 2, 1 - alpha / 2], axis=0) + mean
    exceeded = (t >= observed * (1 - 1e-12)).sum(axis=0).astype(np.float64)
    in_blocks = sample.n_blocks < sample.n_users
    method = f"bootstrap, {sample.n_blocks:,} blocks of users" if in_blocks else "bootstrap"
    verdict = TestResult.by_sampling(exceeded, n_samples, plus_one, method, sample, lower=low, upper=high)
    verdict.p[cannot_differ(sample, observed)] = 1.0
    return verdict


def cannot_differ(sample: Sample, observed: Floats) -> NDArray[np.bool_]:
    """Return whether a pair cannot differ in any resample: its means are equal, or it has a single user."""
    return (observed == 0) | (sample.n == 1)


ResampledSums = tuple[Floats, Floats, Floats, Floats]
"""mean(w*) and t(w*), resamples × pairs; and t₀ and mean(z), one per pair."""


def resampled(data: Sequence[Sample], n_samples: int, seed: int) -> Iterator[ResampledSums]:
    """Return for each sample, resamples × pairs, mean(w*) and t(w*); and for each pair t₀ and mean(z).

    The resamples are drawn again for each sample: that is cheaper than keeping the differences of all samples.
    """
    with progress("Resampling", total=n_samples * len(data), unit="samples") as bar:
        for sample in data:
            table = _Resampled(sample, seed)
            for counts in _counts(sample.n_blocks, n_samples, seed):
                table.add(counts)
                bar.advance(len(counts))
            yield table.result()


def _counts(n_blocks: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """Return how often each block of users is in each resample, some resamples at a time."""
    draws = stream(seed, "compare", "bootstrap")
    rows = max(1, _BLOCK // max(1, n_blocks))
    for start in range(0, n_samples, rows):
        size = min(rows, n_samples - start)
        drawn = (draws.random((size, n_blocks)) * n_blocks).astype(np.int64)
        drawn += n_blocks * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n_blocks).reshape(size, n_blocks).astype(np.float64)


class _Resampled:
    """The resampled means and t statistics of the pairs of one sample."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self._block, self._n = sample.blocks_of_users(seed, "bootstrap"), sample.n_blocks
        pairs = [self._of_pairs(sample.influences(block)) for block in sample.blocks()]
        columns = list(zip(*pairs))
        self.unit, self.mean, self.observed = (np.concatenate(column) for column in columns[:3])
        self.sums, self.squares, self.users = (np.concatenate(column, axis=1) for column in columns[3:])
        self.shifts: list[Floats] = []
        self.ts: list[Floats] = []

    def _of_pairs(self, z: Floats) -> tuple[Floats, ...]:
        """Return unit, mean(z) and t₀ of some pairs; and blocks × pairs: Σ w, Σ w² and the number of users."""
        # Values are scaled, since squares of very small or very large differences would be 0 or infinite.
        unit = unit_of(z)
        z = z / unit[:, None]
        n, mean, sd = moments(z)
        # Means and deviations that are only rounding are set to 0; otherwise t would be large because there is no
        # spread.
        rounding = 1e-12 * np.nanmax(np.abs(z), axis=1, initial=0.0)
        mean[np.abs(mean) <= rounding] = 0.0
        w = z - mean[:, None]
        w[np.abs(w) <= rounding[:, None]] = 0.0
        # A user that does not count adds nothing to either sum, nor to the number of users.
        counted = ~np.isnan(z)
        w = np.nan_to_num(w, copy=False)
        return unit, mean, _t(mean, sd, n), self._by_block(w), self._by_block(w**2), self._by_block(counted)

    def _by_block(self, rows: NDArray[Any]) -> Floats:
        """Return blocks × rows: the sums over the users of each block."""
        return np.stack([np.bincount(self._block, row, self._n) for row in rows], axis=1)

    def add(self, counts: Floats) -> None:
        """Add a block of resamples."""
        n = counts @ self.users
        mean, t = _statistics_of(counts @ self.sums, counts @ self.squares, n)
        self.shifts.append(mean)
        self.ts.append(t)

    def result(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mean(w*), t(w*), t₀ and mean(z)."""
        return np.concatenate(self.shifts) * self.unit, np.concatenate(self.ts), self.observed, self.mean * self.unit


def _statistics_of(sums: Floats, squares: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the mean and t of resampled values, from their number, sum and sum of squares."""
    mean = sums / np.maximum(n, 1)
    variance = np.maximum(squares - n * mean**2, 0) / np.maximum(n - 1, 1)
    return mean, _t(mean, np.sqrt(variance), n)


def _t(mean: Floats, sd: Floats, n: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Floats = np.where(mean == 0, 0.0, np.abs(mean) * np.sqrt(n) / sd)
    return t

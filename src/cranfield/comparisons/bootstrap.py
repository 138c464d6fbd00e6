"""Sakai's paired bootstrap test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._hashing import poisson_weights
from cranfield._progress import progress
from cranfield._random import stream
from cranfield.comparisons.parted_sample import PartedSample
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments, unit_of
from cranfield.comparisons.verdict import Verdict, significance_tests

# Maximum number of draws (resamples × users) per block.
_BLOCK = 1 << 21

BootstrapWeights = Literal["multinomial", "poisson"]


@significance_tests.register
def bootstrap(
    data: Sequence[Sample],
    resamples: int = 1000,
    plus_one: bool = True,
    weights: BootstrapWeights = "multinomial",
    seed: int = 0,
    alpha: float = 0.05,
) -> list[Verdict]:
    """Sakai's (2006) paired bootstrap test, with percentile intervals.

    With z_u the differences, t₀ = |mean(z)| / (sd(z)/√n) and w = z − mean(z), B resamples w* of the users are drawn;
    ASL = #{t(w*) ≥ t₀} / B, or (1 + #) / (1 + B) with ``plus_one``. The interval covers the middle 1 − α of the
    resampled mean differences. A single user gives p = 1. All pairs and metrics use the same resamples.

    With ``weights="poisson"`` the number of times each user is drawn is Poisson distributed with mean 1, instead of n
    draws with replacement. It depends only on a hash of the seed, the resample and the user's id, so it can be computed
    for parts of the users (`poisson_weights`).
    """
    n_samples, plus_one = _checks.whole("resamples", resamples), _checks.flag("plus_one", plus_one)
    _checks.one_of("weights", weights, get_args(BootstrapWeights))
    return [
        bootstrap_verdict(sample, result, n_samples, plus_one, alpha, weights)
        for sample, result in zip(data, resampled(data, n_samples, seed, weights))
    ]


def bootstrap_verdict(
    sample: Sample | PartedSample,
    result: ResampledSums,
    n_samples: int,
    plus_one: bool,
    alpha: float,
    weights: BootstrapWeights,
) -> Verdict:
    """Return the verdict from resampled means and statistics."""
    shift, t, observed, mean = result
    low, high = np.quantile(shift, [alpha / 2, 1 - alpha / 2], axis=0) + mean
    exceeded = (t >= observed * (1 - 1e-12)).sum(axis=0).astype(np.float64)
    method = "bootstrap" if weights == "multinomial" else "bootstrap, Poisson weights"
    verdict = Verdict.by_sampling(exceeded, n_samples, plus_one, method, sample, lower=low, upper=high)
    verdict.p[cannot_differ(sample, observed)] = 1.0
    return verdict


def cannot_differ(sample: Sample | PartedSample, observed: Floats) -> NDArray[np.bool_]:
    """Return whether a pair cannot differ in any resample: its means are equal, or it has a single user."""
    return (observed == 0) | (sample.n == 1)


ResampledSums = tuple[Floats, Floats, Floats, Floats]
"""mean(w*) and t(w*), resamples × pairs; and t₀ and mean(z), one per pair."""


def resampled(
    data: Sequence[Sample], n_samples: int, seed: int, weights: BootstrapWeights = "multinomial"
) -> Iterator[ResampledSums]:
    """Return for each sample, resamples × pairs, mean(w*) and t(w*); and for each pair t₀ and mean(z).

    The resamples are drawn again for each sample: that is cheaper than keeping the differences of all samples.
    """
    with progress("Resampling", total=n_samples * len(data), unit="samples") as bar:
        for sample in data:
            table = _Resampled(sample)
            counting = _counts(sample.n_users, n_samples, seed)
            if weights == "poisson":
                counting = _poisson_counts(sample, n_samples, seed)
            for counts in counting:
                table.add(counts)
                bar.advance(len(counts))
            yield table.result()


def _counts(n_users: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """Return how often each user is in each resample, block by block."""
    draws = stream(seed, "compare", "bootstrap")
    rows = max(1, _BLOCK // max(1, n_users))
    for start in range(0, n_samples, rows):
        size = min(rows, n_samples - start)
        drawn = (draws.random((size, n_users)) * n_users).astype(np.int64)
        drawn += n_users * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n_users).reshape(size, n_users).astype(np.float64)


def _poisson_counts(sample: Sample, n_samples: int, seed: int) -> Iterator[Floats]:
    """Return how often each user is in each resample if users are drawn independently of each other."""
    keys = np.arange(sample.n_users, dtype=np.uint64) if sample.keys is None else sample.keys
    rows = max(4, _BLOCK // max(1, sample.n_users) // 4 * 4)
    for start in range(0, n_samples, rows):
        yield poisson_weights(keys, seed, min(start + rows, n_samples), start).T.astype(np.float64)


class _Resampled:
    """The resampled means and t statistics of the pairs of one sample."""

    def __init__(self, sample: Sample) -> None:
        z = sample.influences(slice(0, sample.n_pairs))
        # Values are scaled, since squares of very small or very large differences would be 0 or infinite.
        self.unit = unit_of(z)
        z = z / self.unit[:, None]
        n, self.mean, sd = moments(z)
        # Means and deviations that are only rounding are set to 0; otherwise t would be large because there is no
        # spread.
        rounding = 1e-12 * np.nanmax(np.abs(z), axis=1, initial=0.0)
        self.mean[np.abs(self.mean) <= rounding] = 0.0
        self.observed = _t(self.mean, sd, n)
        w = z - self.mean[:, None]
        w[np.abs(w) <= rounding[:, None]] = 0.0
        # A user that does not count adds nothing to either sum, nor to the number of users.
        self.counted = None if sample.same_users and not np.isnan(z).any() else (~np.isnan(z)).astype(np.float64).T
        w = np.nan_to_num(w, copy=False).T
        self.w_and_squares = np.ascontiguousarray(np.concatenate([w, w**2], axis=1))
        self.shifts: list[Floats] = []
        self.ts: list[Floats] = []

    def add(self, counts: Floats) -> None:
        """Add a block of resamples."""
        n = counts.sum(axis=1, keepdims=True) if self.counted is None else counts @ self.counted
        sums, squares = np.split(counts @ self.w_and_squares, 2, axis=1)
        mean, t = statistics_of(sums, squares, np.broadcast_to(n, sums.shape))
        self.shifts.append(mean)
        self.ts.append(t)

    def result(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mean(w*), t(w*), t₀ and mean(z)."""
        return np.concatenate(self.shifts) * self.unit, np.concatenate(self.ts), self.observed, self.mean * self.unit


def statistics_of(sums: Floats, squares: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the mean and t of resampled values, from their number, sum and sum of squares."""
    mean = sums / np.maximum(n, 1)
    variance = np.maximum(squares - n * mean**2, 0) / np.maximum(n - 1, 1)
    return mean, _t(mean, np.sqrt(variance), n)


def _t(mean: Floats, sd: Floats, n: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Floats = np.where(mean == 0, 0.0, np.abs(mean) * np.sqrt(n) / sd)
    return t

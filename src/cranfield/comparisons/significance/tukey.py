"""Randomised Tukey HSD: all systems at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, Resamples, TestResult
from cranfield.comparisons.sample import ROUNDING, Floats, Sample


@SIGNIFICANCE_TESTS.register
def tukey(
    data: Sequence[Sample], resamples: Resamples = 5000, plus_one: bool = True, seed: int = 0, alpha: float = 0.05
) -> list[TestResult]:
    """Randomised Tukey HSD (Carterette 2012).

    In each of B rounds, every user's values are assigned to the systems in random order; d* is the largest minus the
    smallest mean. p(i, j) = #{d* ≥ |mean_i − mean_j|} / B, or (1 + #) / (1 + B) with ``plus_one``. Comparing with the
    largest difference of all systems keeps the family-wise error at α without further correction; the intervals, mean_i
    − mean_j ± the 1 − α quantile of d*, hold simultaneously with probability 1 − α. With two systems this is the
    permutation test. Users that do not count for every system are left out.
    """
    plus_one = _checks.flag("plus_one", plus_one)
    tables = [_table(sample) for sample in data]
    ranges = _ranges(tables, resamples, seed)
    return [
        _verdict(sample, table, spread, resamples, plus_one, alpha)
        for sample, table, spread in zip(data, tables, ranges)
    ]


def _table(sample: Sample) -> Floats:
    """Return users × systems, with the averages to compare as column means and 0 for users that do not count."""
    counted = sample.counted.all(axis=0)
    scale = counted.size / (float(sample.relative_weights[counted].sum()) or 1.0)
    return np.ascontiguousarray(np.where(counted, sample.tested, 0.0).T) * scale


def _ranges(tables: Sequence[Floats], n_samples: int, seed: int) -> list[Floats]:
    """Return the range of the column means after each shuffle of the rows."""
    n_users, n_systems = tables[0].shape
    draws = stream(seed, "compare", "tukey")
    spreads = [np.empty(n_samples) for _ in tables]
    with progress("Shuffling", total=n_samples, unit="samples") as bar:
        for k in range(n_samples):
            shuffled = _shuffled(draws, n_users, n_systems)
            for table, spread in zip(tables, spreads):
                means = table.ravel()[shuffled].mean(axis=0)
                spread[k] = means.max() - means.min()
            bar.advance()
    return spreads


def _shuffled(draws: np.random.Generator, n_users: int, n_systems: int) -> NDArray[np.int64]:
    """Return flat indices into a users × systems table, with each row in random order.

    The lowest bits of each random key hold its column, so sorting the keys is enough.
    """
    bits = int(n_systems).bit_length()
    keys = (draws.random((n_users, n_systems)) * 2**52).astype(np.int64)
    keys = ((keys >> bits) << bits) | np.arange(n_systems)
    keys.sort(axis=1)
    keys &= (1 << bits) - 1
    keys += n_systems * np.arange(n_users)[:, None]
    return keys


def _verdict(sample: Sample, table: Floats, spread: Floats, n_samples: int, plus_one: bool, alpha: float) -> TestResult:
    means = table.mean(axis=0)
    difference = means[sample.first] - means[sample.second]
    # Averages that differ only by rounding are equal.
    enough = np.abs(difference) - 2 * ROUNDING * np.abs(table).max(axis=1).mean()
    exceeded = n_samples - np.searchsorted(np.sort(spread), enough, side="left").astype(np.float64)
    reach = np.quantile(spread, 1 - alpha)
    interval = {} if sample.geometric else {"lower": difference - reach, "upper": difference + reach}
    return TestResult.by_sampling(exceeded, n_samples, plus_one, "tukey", sample, **interval)

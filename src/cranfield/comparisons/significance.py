"""The significance tests: permutation, Student's, Wilcoxon's, the sign test, the bootstrap, and Tukey's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons.errors import moments, p_of_t, refuse_weights, unit_of
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, Resamples, TestResult, sampling_error
from cranfield.comparisons.permutations.exact import exact
from cranfield.comparisons.permutations.monte_carlo import monte_carlo
from cranfield.comparisons.sample import ROUNDING, Floats, Sample

# Patterns of more signs than this (users × resamples) take more than a few seconds, and are not drawn unless asked for.
_MOST_SIGNS = 1 << 31


@SIGNIFICANCE_TESTS.register(aliases=("fisher",))
def permutation(
    data: Sequence[Sample],
    method: str = "exact",
    resamples: Resamples = 100_000,
    plus_one: bool = True,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> list[TestResult]:
    """Fisher's randomisation test with the mean difference.

    If the two systems were alike, each user's difference d_u could just as well have had the opposite sign. The
    p-value is the share of the 2^n sign patterns whose sum is at least as far from 0 as the observed one: p = P(|Σ
    ±d_u| ≥ |Σ d_u|), including ties. Zero differences change nothing and are dropped. If the exact p is not known to
    within ``tolerance`` and ``resamples`` random patterns are more accurate, these are used, unless there are so many
    users with different values that drawing the patterns would take too long.
    """
    method = _checks.one_of("method", method, ("exact", "monte-carlo"))
    plus_one = _checks.flag("plus_one", plus_one)
    tolerance = _checks.number("tolerance", tolerance)
    if method == "monte-carlo":
        return monte_carlo(data, resamples, seed, plus_one)
    test_results = []
    for sample in data:
        test_result, unsettled = exact(sample, tolerance)
        unsettled = unsettled[test_result.error[unsettled] > sampling_error(test_result.p[unsettled], resamples)]
        if len(unsettled):
            part = replace(sample, first=sample.first[unsettled], second=sample.second[unsettled])
            drawn = monte_carlo([part], resamples, seed, plus_one, _MOST_SIGNS)[0]
            nearer = drawn.error < test_result.error[unsettled]
            for name in ("p", "error", "method"):
                np.put(getattr(test_result, name), unsettled[nearer], getattr(drawn, name)[nearer])
        test_results.append(test_result)
    return test_results


@SIGNIFICANCE_TESTS.register(aliases=("t",))
def student(data: Sequence[Sample]) -> list[TestResult]:
    """Student's paired t-test: t = mean(d) / (sd(d) / √n), with n − 1 degrees of freedom.

    With weights, the mean is Σ w d / Σ w and its standard error is that of a ratio (`Sample.influences`). Without any
    spread, p is 1 if the mean is 0 and 0 otherwise; a single user gives p = 1.
    """
    return [_student(sample) for sample in data]


@SIGNIFICANCE_TESTS.register(aliases=("log_t",))
def log_student(data: Sequence[Sample], epsilon: float = 1e-5) -> list[TestResult]:
    """Student's paired t-test on log(x + ε), which compares geometric means."""
    if not _checks.number("epsilon", epsilon) > 0:
        raise SettingError(f"epsilon={epsilon} must be above 0, since the logarithm of 0 is infinite; give a small one")
    return [_student(replace(sample, geometric=True, weights=None, floor=0.0, shift=epsilon)) for sample in data]


def _student(sample: Sample) -> TestResult:
    weighted = sample.weights is not None
    blocks = [moments(sample.influences(pairs) if weighted else sample.differences(pairs)) for pairs in sample.blocks()]
    n, mean, sd = (np.concatenate(parts) for parts in zip(*blocks))
    return TestResult.by_formula(p_of_t(mean, sd / np.sqrt(np.maximum(n, 1)), n), "student", sample)


@SIGNIFICANCE_TESTS.register
def wilcoxon(data: Sequence[Sample], zeros: str = "wilcox", continuity: bool = False) -> list[TestResult]:
    """Wilcoxon's signed rank test, as in `scipy.stats.wilcoxon`.

    Zero differences are dropped (``zeros="wilcox"``), ranked and then dropped (``"pratt"``), or ranked and split
    between the signs (``"zsplit"``); equal differences share their mean rank. The p-value is exact for up to 50
    differences without ties or zeros and, in newer versions of SciPy, for up to 13 with them; otherwise it is the
    normal approximation with correction for ties. If no user has a difference, p = 1.
    """
    _checks.one_of("zeros", zeros, ("wilcox", "pratt", "zsplit"))
    continuity = _checks.flag("continuity", continuity)
    test_results = []
    for sample in data:
        refuse_weights(sample, "wilcoxon")
        blocks = [_p_values(sample, pairs, zeros, continuity) for pairs in sample.blocks()]
        p, direction = (np.concatenate(parts) for parts in zip(*blocks))
        test_results.append(TestResult.by_formula(p, "wilcoxon", sample, direction))
    return test_results


def _p_values(sample: Sample, pairs: slice, zeros: str, continuity: bool) -> tuple[Floats, Floats]:
    """Return the p-value of each pair, and the sum of its signed ranks."""
    from scipy import stats

    differences = sample.rounded_differences(pairs)
    p, direction = np.ones(len(differences.d)), np.zeros(len(differences.d))
    for row, (first, second) in enumerate(zip(sample.first[pairs], sample.second[pairs])):
        counted = sample.counted[first] & sample.counted[second]
        d = _levels(differences.d[row, counted], differences.noise[row, counted])
        if d.any():
            p[row] = stats.wilcoxon(d, zero_method=zeros, correction=continuity).pvalue
            counts = np.bincount(np.abs(d).astype(np.intp))
            direction[row] = np.sign(d) @ (np.cumsum(counts) - (counts - 1) / 2)[np.abs(d).astype(np.intp)]
    return p, direction


def _levels(d: Floats, noise: Floats) -> Floats:
    """Return differences with the same signs and order, in which those that differ only by rounding are equal.

    0.3 - 0.2 and 0.2 - 0.1 are equal differences.
    """
    size = np.abs(d)
    order = np.argsort(size)
    apart = np.diff(size[order], prepend=0.0) > 4 * np.minimum(noise[order], np.append(0.0, noise[order][:-1]))
    level = np.empty(len(d))
    level[order] = np.cumsum(apart)
    return np.sign(d) * level


@SIGNIFICANCE_TESTS.register
def sign(data: Sequence[Sample], ties: str = "drop") -> list[TestResult]:
    """Sign test: the two-sided binomial test of whether each system is equally likely to be better.

    p = min(1, 2 P(B ≤ min(n₊, n₋))) with B binomial(n₊ + n₋, 1/2). Users with equal values are dropped, or split
    equally between the systems (``ties="split"``). If no user has a difference, p = 1.
    """
    _checks.one_of("ties", ties, ("drop", "split"))
    return [_sign(refuse_weights(sample, "sign"), ties) for sample in data]


def _sign(sample: Sample, ties: str) -> TestResult:
    from scipy import stats

    counts = []
    for pairs in sample.blocks():
        d = sample.raw_differences(pairs)
        counts.append([(d > 0).sum(axis=1), (d < 0).sum(axis=1), (d == 0).sum(axis=1)])
    plus, minus, equal = np.concatenate(counts, axis=1)
    if ties == "split":
        plus, minus = plus + equal // 2, minus + equal // 2
    fewer, n = np.minimum(plus, minus), plus + minus
    p = np.where(n > 0, np.minimum(1.0, 2 * stats.binom.cdf(fewer, n, 0.5)), 1.0)
    return TestResult.by_formula(p, "sign", sample, (plus - minus).astype(np.float64))


# Maximum number of draws (resamples × users) per block.
_BLOCK = 1 << 21


@SIGNIFICANCE_TESTS.register
def bootstrap(
    data: Sequence[Sample], resamples: Resamples = 1000, plus_one: bool = True, seed: int = 0, alpha: float = 0.05
) -> list[TestResult]:
    """Sakai's (2006) paired bootstrap test, with percentile intervals.

    With z_u the differences, t₀ = |mean(z)| / (sd(z)/√n) and w = z − mean(z), B resamples w* of the users are drawn;
    ASL = #{t(w*) ≥ t₀} / B, or (1 + #) / (1 + B) with ``plus_one``. The interval covers the middle 1 − α of the
    resampled mean differences. A single user gives p = 1. All pairs and metrics use the same resamples, so the largest
    t(w*) of each over all pairs gives the p-values and intervals that `max_t` corrects (Romano and Wolf 2005). Unlike
    flipped signs, resamples are as skewed as the users' differences are.
    More than 10,000 users are drawn in 10,000 blocks (`Sample.blocks_of_users`).
    """
    plus_one = _checks.flag("plus_one", plus_one)
    return [
        _bootstrapped(sample, result, resamples, plus_one, alpha)
        for sample, result in zip(data, resampled(data, resamples, seed))
    ]


def _bootstrapped(sample: Sample, result: ResampledSums, n_samples: int, plus_one: bool, alpha: float) -> TestResult:
    """Return the result from resampled means and statistics."""
    shift, t, observed, mean = result
    low, high = np.quantile(shift, [alpha / 2, 1 - alpha / 2], axis=0) + mean
    exceeded = (t >= observed * (1 - 1e-12)).sum(axis=0).astype(np.float64)
    in_blocks = sample.n_blocks < sample.n_users
    method = f"bootstrap, {sample.n_blocks:,} blocks of users" if in_blocks else "bootstrap"
    largest = t.max(axis=1, initial=0.0)
    ends = {"lower": low, "upper": high, "largest": largest}
    test_result = TestResult.by_sampling(exceeded, n_samples, plus_one, method, sample, **ends)
    test_result.p[cannot_differ(sample, observed)] = 1.0
    return test_result


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
            block = sample.blocks_of_users(seed, "bootstrap")
            pairs = [_centred(sample.influences(part), block, sample.n_blocks) for part in sample.blocks()]
            columns = list(zip(*pairs))
            unit, mean, observed = (np.concatenate(column) for column in columns[:3])
            sums, squares, users = (np.concatenate(column, axis=1) for column in columns[3:])
            parts = []
            for counts in _counts(sample.n_blocks, n_samples, seed):
                n, total = counts @ users, counts @ sums
                shift = total / np.maximum(n, 1)
                variance = np.maximum(counts @ squares - n * shift**2, 0) / np.maximum(n - 1, 1)
                parts.append((shift, _t(shift, np.sqrt(variance), n)))
                bar.advance(len(counts))
            shifts, ts = (np.concatenate(column) for column in zip(*parts))
            yield shifts * unit, ts, observed, mean * unit


def _counts(n_blocks: int, n_samples: int, seed: int) -> Iterator[Floats]:
    """Return how often each block of users is in each resample, some resamples at a time."""
    draws = stream(seed, "compare", "bootstrap")
    rows = max(1, _BLOCK // max(1, n_blocks))
    for start in range(0, n_samples, rows):
        size = min(rows, n_samples - start)
        drawn = (draws.random((size, n_blocks)) * n_blocks).astype(np.int64)
        drawn += n_blocks * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n_blocks).reshape(size, n_blocks).astype(np.float64)


def _centred(z: Floats, block: NDArray[np.intp], n_blocks: int) -> tuple[Floats, ...]:
    """Return unit, mean(z) and t₀ of some pairs; and blocks × pairs: Σ w, Σ w² and the number of users."""
    # Values are scaled, since squares of very small or very large differences would be 0 or infinite.
    unit = unit_of(z)
    z = z / unit[:, None]
    n, mean, sd = moments(z)
    # Means and deviations that are only rounding are set to 0; otherwise t would be large because there is no spread.
    rounding = 1e-12 * np.nanmax(np.abs(z), axis=1, initial=0.0)
    mean[np.abs(mean) <= rounding] = 0.0
    w = z - mean[:, None]
    w[np.abs(w) <= rounding[:, None]] = 0.0
    # A user that does not count adds nothing to either sum, nor to the number of users.
    counted = ~np.isnan(z)
    w = np.nan_to_num(w, copy=False)

    def by_block(rows: NDArray[Any]) -> Floats:
        return np.stack([np.bincount(block, row, n_blocks) for row in rows], axis=1)

    return unit, mean, _t(mean, sd, n), by_block(w), by_block(w**2), by_block(counted)


def _t(mean: Floats, sd: Floats, n: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Floats = np.where(mean == 0, 0.0, np.abs(mean) * np.sqrt(n) / sd)
    return t


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
    tables = [_user_table(sample) for sample in data]
    ranges = _ranges(tables, resamples, seed)
    return [
        _tukey(sample, table, spread, resamples, plus_one, alpha) for sample, table, spread in zip(data, tables, ranges)
    ]


def _user_table(sample: Sample) -> Floats:
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


def _tukey(sample: Sample, table: Floats, spread: Floats, n_samples: int, plus_one: bool, alpha: float) -> TestResult:
    means = table.mean(axis=0)
    difference: Floats = means[sample.first] - means[sample.second]
    # Averages that differ only by rounding are equal.
    enough = np.abs(difference) - 2 * ROUNDING * np.abs(table).max(axis=1).mean()
    exceeded = n_samples - np.searchsorted(np.sort(spread), enough, side="left").astype(np.float64)
    reach = np.quantile(spread, 1 - alpha)
    ends = {"lower": difference - reach, "upper": difference + reach}
    return TestResult.by_sampling(exceeded, n_samples, plus_one, "tukey", sample, **ends)

"""Tests of ranks and signs: Wilcoxon's signed rank test, and the sign test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cranfield import _checks
from cranfield.comparisons.errors import refuse_weights
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, TestResult
from cranfield.comparisons.sample import Floats, Sample


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
    verdicts = []
    for sample in data:
        refuse_weights(sample, "wilcoxon")
        blocks = [_p_values(sample, pairs, zeros, continuity) for pairs in sample.blocks()]
        p, direction = (np.concatenate(parts) for parts in zip(*blocks))
        verdicts.append(TestResult.by_formula(p, "wilcoxon", sample, direction))
    return verdicts


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

    Examples
    --------
    >>> _levels(np.array([0.3 - 0.2, 0.1 - 0.2, 0.0, 1e13]), np.array([1e-15, 1e-15, 0.0, 1e-2])).tolist()
    [1.0, -1.0, 0.0, 2.0]
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

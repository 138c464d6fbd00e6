"""The sign test: for how many users each system is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks
from cranfield.comparisons.sample import Sample
from cranfield.comparisons.verdict import SIGNIFICANCE_TESTS, Verdict
from cranfield.comparisons.wilcoxon import refuse_weights


@SIGNIFICANCE_TESTS.register
def sign(data: Sequence[Sample], ties: str = "drop") -> list[Verdict]:
    """Sign test: the two-sided binomial test of whether each system is equally likely to be better.

    p = min(1, 2 P(B ≤ min(n₊, n₋))) with B binomial(n₊ + n₋, 1/2). Users with equal values are dropped, or split
    equally between the systems (``ties="split"``). If no user has a difference, p = 1.
    """
    _checks.one_of("ties", ties, ("drop", "split"))
    return [_sign(refuse_weights(sample, "sign"), ties) for sample in data]


def _sign(sample: Sample, ties: str) -> Verdict:
    counts = []
    for pairs in sample.blocks():
        d = sample.raw_differences(pairs)
        counts.append([(d > 0).sum(axis=1), (d < 0).sum(axis=1), (d == 0).sum(axis=1)])
    plus, minus, equal = np.concatenate(counts, axis=1)
    return sign_verdict(plus, minus, equal, ties, sample)


def sign_verdict(plus: NDArray[Any], minus: NDArray[Any], equal: NDArray[Any], ties: str, sample: Sample) -> Verdict:
    """Return the verdict from the numbers of users with a positive, a negative and no difference in each pair."""
    from scipy import stats

    if ties == "split":
        plus, minus = plus + equal // 2, minus + equal // 2
    fewer, n = np.minimum(plus, minus), plus + minus
    p = np.where(n > 0, np.minimum(1.0, 2 * stats.binom.cdf(fewer, n, 0.5)), 1.0)
    return Verdict.by_formula(p, "sign", sample, (plus - minus).astype(np.float64))

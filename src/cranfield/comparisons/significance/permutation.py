"""The permutation test of the mean difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield import _checks
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, Resamples, TestResult, sampling_error
from cranfield.comparisons.permutations.exact import exact
from cranfield.comparisons.permutations.monte_carlo import monte_carlo
from cranfield.comparisons.sample import Sample

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
    verdicts = []
    for sample in data:
        verdict, unsettled = exact(sample, tolerance)
        unsettled = unsettled[verdict.error[unsettled] > sampling_error(verdict.p[unsettled], resamples)]
        if len(unsettled):
            part = replace(sample, first=sample.first[unsettled], second=sample.second[unsettled])
            drawn = monte_carlo([part], resamples, seed, plus_one, _MOST_SIGNS)[0]
            nearer = drawn.error < verdict.error[unsettled]
            for name in ("p", "error", "method"):
                np.put(getattr(verdict, name), unsettled[nearer], getattr(drawn, name)[nearer])
        verdicts.append(verdict)
    return verdicts

"""Wilcoxon's signed rank test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.verdict import Verdict, significance_tests


@significance_tests.register
def wilcoxon(data: Sequence[Sample], zeros: str = "wilcox", continuity: bool = False) -> list[Verdict]:
    """Wilcoxon's signed rank test, as `scipy.stats.wilcoxon` does it.

    Zero differences are dropped (``zeros="wilcox"``), ranked and then dropped (``"pratt"``), or ranked and shared out
    (``"zsplit"``); equal differences share their mean rank. Exact up to 50 differences without ties or zeros, and in
    newer versions of SciPy up to 13 with them; else the normal approximation with correction for ties. No difference
    at all gives p = 1.
    """
    _checks.one_of("zeros", zeros, ("wilcox", "pratt", "zsplit"))
    continuity = _checks.flag("continuity", continuity)
    verdicts = []
    for sample in data:
        refuse_weights(sample, "wilcoxon")
        blocks = [_p_values(sample.differences(pairs), zeros, continuity) for pairs in sample.blocks()]
        p, direction = (np.concatenate(parts) for parts in zip(*blocks))
        verdicts.append(Verdict.by_formula(p, "wilcoxon", sample, direction))
    return verdicts


def _p_values(differences: Floats, zeros: str, continuity: bool) -> tuple[Floats, Floats]:
    """Return the p-value of each row, and the sum of its signed ranks."""
    from scipy import stats

    p, direction = np.ones(len(differences)), np.zeros(len(differences))
    for row, d in enumerate(differences):
        d = d[~np.isnan(d)]
        if d.any():
            # 0.3 - 0.2 and 0.2 - 0.1 are equal differences that rounding has parted.
            d = np.round(d / np.abs(d).max(), 12)
            p[row] = stats.wilcoxon(d, zero_method=zeros, correction=continuity).pvalue
            direction[row] = np.sign(d) @ stats.rankdata(np.abs(d))
    return p, direction


def refuse_weights(sample: Sample, test: str) -> Sample:
    """Return the sample, or say that a test which looks at ranks or signs only has no weighted form."""
    if sample.weights is not None:
        raise SettingError(f"the {test} test has no weighted form; use average='mean', or test='permutation'")
    return sample

"""Wilcoxon's signed rank test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.verdict import SIGNIFICANCE_TESTS, Verdict


@SIGNIFICANCE_TESTS.register
def wilcoxon(data: Sequence[Sample], zeros: str = "wilcox", continuity: bool = False) -> list[Verdict]:
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
        verdicts.append(Verdict.by_formula(p, "wilcoxon", sample, direction))
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


def refuse_weights(sample: Sample, test: str) -> Sample:
    """Return the sample; raise an error if it has weights, because tests of ranks or signs have no weighted form."""
    if sample.weights is not None:
        raise SettingError(f"the {test} test has no weighted form; use average='mean', or significance='permutation'")
    return sample

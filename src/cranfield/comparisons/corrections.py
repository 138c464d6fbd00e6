"""Corrections of p-values for the number of comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cranfield._registry import Registry
from cranfield.comparisons.sample import Floats

CORRECTIONS: Registry[Callable[[Floats], Floats]] = Registry("correction")
"""The corrections by name; each takes the p-values of a family and returns corrected ones. NaN stays NaN."""


@CORRECTIONS.register
def none(p: Floats) -> Floats:
    """Return the p-values as they are."""
    return p.copy()


@CORRECTIONS.register
def bonferroni(p: Floats) -> Floats:
    """Multiply by the number of comparisons: controls the chance of any false finding.

    Examples
    --------
    >>> bonferroni(np.array([0.01, 0.5])).tolist()
    [0.02, 1.0]
    """
    return np.minimum(p * np.count_nonzero(~np.isnan(p)), 1.0)


@CORRECTIONS.register
def holm(p: Floats) -> Floats:
    """Holm's step-down procedure (1979): the same control as Bonferroni's, and never less power.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order, m = _ascending(p)
    steps = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    return _in_place(p, order, np.minimum(steps, 1.0))


@CORRECTIONS.register
def max_t(p: Floats) -> Floats:
    """Westfall and Young's single-step max-|t| procedure (1993): the same control, with intervals that agree.

    `compare` has the users' values and so knows how the pairs depend on each other: see `LargestStatistics.corrected`.
    p-values alone do not show that, so this function applies Bonferroni's correction, which is the upper bound.

    Examples
    --------
    >>> max_t(np.array([0.01, 0.5])).tolist()
    [0.02, 1.0]
    """
    return bonferroni(p)


@CORRECTIONS.register
def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's step-up procedure (1995): controls the share of false findings.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    order, m = _ascending(p)
    steps = p[order] * m / np.arange(1, m + 1)
    return _in_place(p, order, np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0))


def _ascending(p: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], int]:
    order = np.argsort(p, kind="stable")  # NaN last
    m = int(np.count_nonzero(~np.isnan(p)))
    return order[:m], m


def _in_place(p: Floats, order: np.ndarray[tuple[int], np.dtype[np.intp]], corrected: Floats) -> Floats:
    result = np.full(p.shape, np.nan)
    result[order] = corrected
    return result

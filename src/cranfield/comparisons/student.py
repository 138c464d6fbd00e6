"""Student's paired t-test, on the values or on their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.comparisons.sample import Floats, Sample, slices_of_users
from cranfield.comparisons.verdict import SIGNIFICANCE_TESTS, Verdict

# Sums of squares below this may have lost digits, since the squares are near the smallest floats.
_SMALLEST_SQUARE = 1e-280


@SIGNIFICANCE_TESTS.register(aliases=("t",))
def student(data: Sequence[Sample]) -> list[Verdict]:
    """Student's paired t-test: t = mean(d) / (sd(d) / √n), with n − 1 degrees of freedom.

    With weights, the mean is Σ w d / Σ w and its standard error is that of a ratio (`Sample.influences`). Without any
    spread, p is 1 if the mean is 0 and 0 otherwise; a single user gives p = 1.
    """
    return [_student(sample) for sample in data]


@SIGNIFICANCE_TESTS.register(aliases=("log_t",))
def log_student(data: Sequence[Sample], epsilon: float = 1e-5) -> list[Verdict]:
    """Student's paired t-test on log(x + ε), which compares geometric means."""
    if not _checks.number("epsilon", epsilon) > 0:
        raise SettingError(f"epsilon={epsilon} must be above 0, since the logarithm of 0 is infinite; give a small one")
    return [_student(replace(sample, geometric=True, weights=None, floor=0.0, shift=epsilon)) for sample in data]


def _student(sample: Sample) -> Verdict:
    weighted = sample.weights is not None
    blocks = [moments(sample.influences(pairs) if weighted else sample.differences(pairs)) for pairs in sample.blocks()]
    n, mean, sd = (np.concatenate(parts) for parts in zip(*blocks))
    return Verdict.by_formula(p_of_t(mean, sd / np.sqrt(np.maximum(n, 1)), n), "student", sample)


def moments(d: Floats) -> tuple[Floats, Floats, Floats]:
    """Return n, the mean and the standard deviation (n − 1) of each row, ignoring NaN; spread from rounding is 0.

    Examples
    --------
    >>> [part.tolist() for part in moments(np.array([[1.0, 3.0, np.nan]]))]
    [[2.0], [2.0], [1.4142135623730951]]
    """
    n, total, squares = (np.zeros(len(d)) for _ in range(3))
    for users in slices_of_users(d.shape[1]):
        counted = ~np.isnan(d[:, users])
        n += counted.sum(axis=1)
        total += np.where(counted, d[:, users], 0.0).sum(axis=1)
    mean = np.where(n > 0, total / np.maximum(n, 1), np.nan)
    for users in slices_of_users(d.shape[1]):
        centred = _centred(d[:, users], mean)
        squares += np.einsum("pu,pu->p", centred, centred)
    sd = np.sqrt(squares / np.maximum(n - 1, 1))
    extreme = (squares < _SMALLEST_SQUARE) | ~np.isfinite(squares)
    if extreme.any():
        centred = _centred(d[extreme], mean[extreme])
        unit = unit_of(centred)
        scaled = centred / unit[:, None]
        sd[extreme] = unit * np.sqrt(np.einsum("pu,pu->p", scaled, scaled) / np.maximum(n[extreme] - 1, 1))
    return n, mean, zero_if_rounding(sd, mean)


def _centred(d: Floats, mean: Floats) -> Floats:
    """Return the distances from the mean of each row; 0 for NaN."""
    centred = d - mean[:, None]
    centred[np.isnan(centred)] = 0.0
    return centred


def zero_if_rounding(sd: Floats, mean: Floats) -> Floats:
    """Return standard deviations, with 0 for those that are only rounding."""
    with np.errstate(invalid="ignore"):
        return np.where(sd <= 1e-12 * np.abs(mean), 0.0, sd)


def unit_of(d: Floats) -> Floats:
    """Return a power of 2 near the largest absolute value of each row, or 1: dividing by it is exact.

    Examples
    --------
    >>> unit_of(np.array([[3.0, -5.0, np.nan], [0.0, 0.0, 0.0]])).tolist()
    [4.0, 1.0]
    """
    largest = np.fmax.reduce(np.abs(d), axis=1, initial=0.0)
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def p_of_t(mean: Floats, standard_error: Floats, n: Floats) -> Floats:
    """Return the two-sided p-value of t = mean / standard error with n − 1 degrees of freedom."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / standard_error)
    p: Floats = np.where(n > 1, 2 * stdtr(np.maximum(n - 1, 1), -t), 1.0)
    return p

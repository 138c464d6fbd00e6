"""Moments and standard errors of differences: over users, or over users crossed with repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from cranfield._errors import SettingError
from cranfield._registry import parse
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, TestResult
from cranfield.comparisons.sample import Floats, Sample, slices_of_users
from cranfield.measures import Errors

_OF_AVERAGES = ("permutation", "student", "log_student", "bootstrap")
# Sums of squares below this may have lost digits, since the squares are near the smallest floats.
_SMALLEST_SQUARE = 1e-280


def moments(d: Floats) -> tuple[Floats, Floats, Floats]:
    """Return n, the mean and the standard deviation (n − 1) of each row, ignoring NaN; spread from rounding is 0."""
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
    """Return a power of 2 near the largest absolute value of each row, or 1: dividing by it is exact."""
    largest = np.fmax.reduce(np.abs(d), axis=1, initial=0.0)
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def p_of_t(mean: Floats, standard_error: Floats, n: Floats) -> Floats:
    """Return the two-sided p-value of t = mean / standard error with n − 1 degrees of freedom."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / standard_error)
    return np.where(n > 1, 2 * stdtr(np.maximum(n - 1, 1), -t), 1.0)


def standard_errors(sample: Sample, n: Floats | None = None, sd: Floats | None = None) -> Errors:
    """Return the standard error of every pair's difference.

    It is sd / √n of the users' influences, with n − 1 degrees of freedom. If users were measured in several
    repetitions, it is that of `Errors.crossed`, which includes the spread between repetitions.
    """
    if sample.cells is not None:
        return Errors.together([Errors.crossed(sample.cell_influences(pairs)) for pairs in sample.blocks()])
    if n is None or sd is None:  # the caller has not computed them
        blocks = [moments(sample.influences(pairs)) for pairs in sample.blocks()]
        n, _, sd = (np.concatenate(part) for part in zip(*blocks))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(n > 1, sd / np.sqrt(n), np.nan)
    return Errors.over_users(error, n)


def check_repeated(significance: str) -> None:
    """Raise an error if a test cannot include the spread between repetitions."""
    if parse(significance).name not in (*_OF_AVERAGES, "sign"):
        raise SettingError(
            f"significance='{significance}' is over users alone and cannot include the spread between repetitions; set "
            f"significance to one of {', '.join(_OF_AVERAGES)} or sign, or do without repetitions"
        )


def chosen_test(
    data: Sequence[Sample], significance: str, alpha: float, seed: int
) -> Callable[[Sequence[Sample]], list[TestResult]]:
    """Return the chosen test or, with repetitions, the test over users crossed with repetitions."""
    if data[0].cells is None:
        return partial(SIGNIFICANCE_TESTS.call, significance, seed=seed, alpha=alpha)
    check_repeated(significance)
    return crossed_sign_test if parse(significance).name == "sign" else crossed_test


def crossed_test(data: Sequence[Sample]) -> list[TestResult]:
    """Return the test of every pair over users crossed with repetitions (`Errors.p`)."""
    results = []
    for sample in data:
        a, b = sample.averages(slice(0, sample.n_pairs))
        results.append(_crossed(sample.tested_difference(a, b), standard_errors(sample), sample))
    return results


def crossed_sign_test(data: Sequence[Sample]) -> list[TestResult]:
    """Return the sign test of every pair over users crossed with repetitions: `crossed_test` of the signs.

    A user's value in a repetition is 1 if the first system is better there, −1 if the second one is, and 0 if they tie.
    With one repetition, it is the normal approximation of the sign test, up to the estimate of the variance.
    """
    results = []
    for sample in data:
        assert sample.cells is not None
        refuse_weights(sample, "sign")
        cells = replace(sample, values=sample.cells.reshape(len(sample.systems), -1), cells=None)
        means, errors = [], []
        for pairs in sample.blocks():
            signs = np.sign(cells.raw_differences(pairs)).reshape(-1, *sample.cells.shape[1:])
            times = np.count_nonzero(~np.isnan(signs), axis=2)
            of_users = np.nansum(signs, axis=2) / np.maximum(times, 1)
            means.append(of_users.sum(axis=1) / np.maximum(np.count_nonzero(times, axis=1), 1))
            errors.append(Errors.crossed(signs))
        mean = np.concatenate(means)
        results.append(replace(_crossed(mean, Errors.together(errors), sample), direction=mean))
    return results


def _crossed(mean: Floats, errors: Errors, sample: Sample) -> TestResult:
    p = np.where(sample.n > 1, errors.p(mean), 1.0)
    return TestResult.by_formula(p, "crossed", sample)


def refuse_weights(sample: Sample, test: str) -> Sample:
    """Return the sample; raise an error if it has weights, because tests of ranks or signs have no weighted form."""
    if sample.weights is not None:
        raise SettingError(f"the {test} test has no weighted form; use average='mean', or significance='permutation'")
    return sample

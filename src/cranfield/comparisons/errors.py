"""Standard errors of the differences: over users, or over users crossed with repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cranfield._errors import SettingError
from cranfield._spelling import parse
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments
from cranfield.comparisons.verdict import SIGNIFICANCE_TESTS, Verdict
from cranfield.comparisons.wilcoxon import refuse_weights
from cranfield.measures import Crossed, crossed

_OF_AVERAGES = ("permutation", "student", "log_student", "bootstrap")


@dataclass(frozen=True, eq=False)
class Errors:
    """The uncertainty of the difference of every pair.

    Parameters
    ----------
    error, degrees
        The standard error and its degrees of freedom.
    users_error
        The standard error over users alone; equal to ``error`` without repetitions.
    spread
        The standard deviation of the difference between repetitions; None without repetitions.
    """

    error: Floats
    degrees: Floats
    users_error: Floats
    spread: Floats | None = None


def standard_errors(sample: Sample, n: Floats | None = None, sd: Floats | None = None) -> Errors:
    """Return the standard error of every pair's difference.

    It is sd / √n of the users' influences, with n − 1 degrees of freedom. If users were measured in several
    repetitions, it is that of `crossed`, which includes the spread between repetitions.
    """
    if sample.cells is not None:
        return _together([crossed(sample.cell_influences(pairs)) for pairs in sample.blocks()])
    if n is None or sd is None:  # the caller has not computed them
        blocks = [moments(sample.influences(pairs)) for pairs in sample.blocks()]
        n, _, sd = (np.concatenate(part) for part in zip(*blocks))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(n > 1, sd / np.sqrt(n), np.nan)
    return Errors(error, np.maximum(n - 1, 1.0), error)


def check_repeated(significance: str) -> None:
    """Raise an error if a test cannot include the spread between repetitions.

    Examples
    --------
    >>> check_repeated("sign")
    """
    if parse(significance).name not in (*_OF_AVERAGES, "sign"):
        raise SettingError(
            f"significance='{significance}' is over users alone and cannot include the spread between repetitions; set "
            f"significance to one of {', '.join(_OF_AVERAGES)} or sign, or do without repetitions"
        )


def chosen_test(
    data: Sequence[Sample], significance: str, alpha: float, seed: int
) -> Callable[[Sequence[Sample]], list[Verdict]]:
    """Return the chosen test or, with repetitions, the test over users crossed with repetitions."""
    if data[0].cells is None:
        return partial(SIGNIFICANCE_TESTS.call, significance, seed=seed, alpha=alpha)
    check_repeated(significance)
    return crossed_sign_test if parse(significance).name == "sign" else crossed_test


def crossed_test(data: Sequence[Sample]) -> list[Verdict]:
    """Return t = difference / standard error of every pair, over users crossed with repetitions (`crossed`)."""
    return [_crossed(sample) for sample in data]


def _crossed(sample: Sample) -> Verdict:
    a, b = sample.averages(slice(0, sample.n_pairs))
    return _by_t(np.where(a == b, 0.0, a - b), standard_errors(sample), sample)


def crossed_sign_test(data: Sequence[Sample]) -> list[Verdict]:
    """Return the sign test of every pair over users crossed with repetitions: `crossed_test` of the signs.

    A user's value in a repetition is 1 if the first system is better there, −1 if the second one is, and 0 if they tie.
    With one repetition, t equals that of the normal approximation of the sign test, up to the estimate of the variance.
    """
    return [_crossed_signs(sample) for sample in data]


def _crossed_signs(sample: Sample) -> Verdict:
    assert sample.cells is not None
    refuse_weights(sample, "sign")
    cells = replace(sample, values=sample.cells.reshape(len(sample.systems), -1), cells=None)
    blocks = []
    for pairs in sample.blocks():
        signs = np.sign(cells.raw_differences(pairs)).reshape(-1, *sample.cells.shape[1:])
        times = np.count_nonzero(~np.isnan(signs), axis=2)
        of_users = np.nansum(signs, axis=2) / np.maximum(times, 1)
        blocks.append((of_users.sum(axis=1) / np.maximum(np.count_nonzero(times, axis=1), 1), crossed(signs)))
    mean = np.concatenate([mean for mean, _ in blocks])
    return replace(_by_t(mean, _together([errors for _, errors in blocks]), sample), direction=mean)


def _by_t(mean: Floats, errors: Errors, sample: Sample) -> Verdict:
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / errors.error)
    p = np.where(sample.n > 1, 2 * stdtr(errors.degrees, -t), 1.0)
    return Verdict.by_formula(p, "crossed", sample)


def _together(parts: Sequence[Crossed]) -> Errors:
    """Concatenate the errors of several blocks of pairs."""
    return Errors(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("error", "degrees", "users_error", "spread")
        )
    )

"""Standard errors of the differences: over users, or over users crossed with repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cranfield._errors import SettingError
from cranfield._spelling import parse
from cranfield.comparisons.parted_sample import PartedSample
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments
from cranfield.comparisons.verdict import Verdict, significance_tests
from cranfield.comparisons.wilcoxon import refuse_weights
from cranfield.measures.crossed import Crossed, crossed

_OF_AVERAGES = ("permutation", "student", "log_student", "bootstrap")


@dataclass(frozen=True, eq=False)
class Errors:
    """How sure the difference of every pair is.

    Parameters
    ----------
    error, degrees
        The standard error and its degrees of freedom.
    users_error
        The standard error over users alone; the same where there are no repetitions.
    spread
        The standard deviation of the difference between repetitions; None where there are none.
    """

    error: Floats
    degrees: Floats
    users_error: Floats
    spread: Floats | None = None


def standard_errors(sample: Sample | PartedSample, n: Floats | None = None, sd: Floats | None = None) -> Errors:
    """Return the standard error of every pair's difference.

    sd / √n of the users' influences on it, with n − 1 degrees of freedom; where users were measured in several
    repetitions that of `crossed`, which has the spread between repetitions in it.
    """
    if isinstance(sample, Sample) and sample.cells is not None:
        return _together([crossed(sample.cell_influences(pairs)) for pairs in sample.blocks()])
    if n is None or sd is None:  # the influences have not been looked at yet
        assert isinstance(sample, Sample)
        blocks = [moments(sample.influences(pairs)) for pairs in sample.blocks()]
        n, _, sd = (np.concatenate(part) for part in zip(*blocks))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(n > 1, sd / np.sqrt(n), np.nan)
    return Errors(error, np.maximum(n - 1, 1.0), error)


def check_repeated(significance: str) -> None:
    """Refuse a test that cannot include the spread between repetitions.

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
    """Return the test of samples: the chosen one, or that over users crossed with repetitions where there are some."""
    if data[0].cells is None:
        return partial(significance_tests.call, significance, seed=seed, alpha=alpha)
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
    With one repetition t is that of the normal approximation of the sign test, up to the estimate of the variance.
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
    """Return the errors of several blocks of pairs."""
    return Errors(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("error", "degrees", "users_error", "spread")
        )
    )

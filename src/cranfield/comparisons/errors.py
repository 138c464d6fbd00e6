"""Standard errors of the differences: over users, or over users crossed with repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cranfield._spelling import parse
from cranfield.comparisons.parted_sample import PartedSample
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments
from cranfield.comparisons.verdict import Verdict, significance_tests
from cranfield.measures.crossed import crossed

OF_AVERAGES = ("student", "log_student", "permutation", "bootstrap")
"""The tests of averages, whose place the t-test over users crossed with repetitions takes."""


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
        parts = [crossed(sample.cell_influences(pairs)) for pairs in sample.blocks()]
        error, degrees, users_error, spread = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("error", "degrees", "users_error", "spread")
        )
        return Errors(error, degrees, users_error, spread)
    if n is None or sd is None:  # the influences have not been looked at yet
        assert isinstance(sample, Sample)
        blocks = [moments(sample.influences(pairs)) for pairs in sample.blocks()]
        n, _, sd = (np.concatenate(part) for part in zip(*blocks))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(n > 1, sd / np.sqrt(n), np.nan)
    return Errors(error, np.maximum(n - 1, 1.0), error)


def chosen_test(
    data: Sequence[Sample], significance: str, alpha: float, seed: int
) -> Callable[[Sequence[Sample]], list[Verdict]]:
    """Return the test of samples: the chosen one, or that over users crossed with repetitions where there are some."""
    if data[0].cells is not None and parse(significance).name in OF_AVERAGES:
        return crossed_test
    return partial(significance_tests.call, significance, seed=seed, alpha=alpha)


def crossed_test(data: Sequence[Sample]) -> list[Verdict]:
    """Return t = difference / standard error of every pair, over users crossed with repetitions (`crossed`)."""
    return [_crossed(sample) for sample in data]


def _crossed(sample: Sample) -> Verdict:
    from scipy.special import stdtr

    a, b = sample.averages(slice(0, sample.n_pairs))
    errors = standard_errors(sample)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(a == b, 0.0, np.abs(a - b) / errors.error)
    p = np.where(sample.n > 1, 2 * stdtr(errors.degrees, -t), 1.0)
    return Verdict.by_formula(p, "crossed", sample)

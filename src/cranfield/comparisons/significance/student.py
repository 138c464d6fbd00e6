"""Student's paired t-test, on the values or on their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.comparisons.errors import moments, p_of_t
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS, TestResult
from cranfield.comparisons.sample import Sample


@SIGNIFICANCE_TESTS.register(aliases=("t",))
def student(data: Sequence[Sample]) -> list[TestResult]:
    """Student's paired t-test: t = mean(d) / (sd(d) / √n), with n − 1 degrees of freedom.

    With weights, the mean is Σ w d / Σ w and its standard error is that of a ratio (`Sample.influences`). Without any
    spread, p is 1 if the mean is 0 and 0 otherwise; a single user gives p = 1.
    """
    return [_student(sample) for sample in data]


@SIGNIFICANCE_TESTS.register(aliases=("log_t",))
def log_student(data: Sequence[Sample], epsilon: float = 1e-5) -> list[TestResult]:
    """Student's paired t-test on log(x + ε), which compares geometric means."""
    if not _checks.number("epsilon", epsilon) > 0:
        raise SettingError(f"epsilon={epsilon} must be above 0, since the logarithm of 0 is infinite; give a small one")
    return [_student(replace(sample, geometric=True, weights=None, floor=0.0, shift=epsilon)) for sample in data]


def _student(sample: Sample) -> TestResult:
    weighted = sample.weights is not None
    blocks = [moments(sample.influences(pairs) if weighted else sample.differences(pairs)) for pairs in sample.blocks()]
    n, mean, sd = (np.concatenate(parts) for parts in zip(*blocks))
    return TestResult.by_formula(p_of_t(mean, sd / np.sqrt(np.maximum(n, 1)), n), "student", sample)

"""The result of a significance test; the tests and corrections by name; letters of systems that do not differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import MOST_DRAWS, Limits
from cranfield._errors import SettingError
from cranfield._registry import Registry, parse
from cranfield.comparisons.sample import Floats, Sample

SIGNIFICANCE_TESTS: Registry[Callable[..., list[TestResult]]] = Registry("significance test")
"""The paired tests by name. A new one is a function from samples (one per metric) to results, with
``@SIGNIFICANCE_TESTS.register`` above it."""


Resamples = Annotated[int, Limits(low=1, high=MOST_DRAWS)]
"""How often a test draws."""


def spelled_test(test: str, method: str | None = None, resamples: int | None = None) -> str:
    """Return a test's spelling with its method and number of resamples, which are separate options."""
    spelling = parse(test)
    parameters = dict(spelling.parameters)
    for key, value in (("method", method), ("resamples", resamples)):
        if value is not None:
            if key in parameters and parameters[key] != value:
                raise SettingError(f"{test!r} and {key}={value!r} contradict each other; give one of them")
            parameters[key] = value
    return str(SIGNIFICANCE_TESTS.spelling(str(replace(spelling, parameters=tuple(parameters.items())))))


@dataclass(frozen=True, eq=False)
class TestResult:
    """The p-value of every pair of a `Sample`, and how it was computed."""

    p: Floats  # two-sided p-values; NaN for a pair without users
    method: NDArray[np.object_]  # how each was computed
    # How far each may be from the exact p-value of the test: 0 for closed forms, a bound for numerical methods, four
    # standard errors for sampling.
    error: Floats
    lower: Floats | None = None  # an interval of `Sample.tested_difference`, from tests that compute one
    upper: Floats | None = None
    # From tests that do not compare averages: above 0 if the first system has the larger values.
    direction: Floats | None = None
    # From tests that resample a studentised statistic: the largest |t| over the pairs in each resample.
    largest: Floats | None = None

    @classmethod
    def by_formula(cls, p: Floats, method: str, sample: Sample, direction: Floats | None = None) -> TestResult:
        """Return the result of a test with a closed form; a pair without users has no p-value."""
        p = np.where(sample.n > 0, np.clip(p, 0.0, 1.0), np.nan)
        methods = np.full(sample.n_pairs, method, dtype=object)
        return cls(p, methods, np.zeros(sample.n_pairs), direction=direction)

    @classmethod
    def by_sampling(
        cls, exceeded: Floats, samples: int, plus_one: bool, method: str, sample: Sample, **more: Floats
    ) -> TestResult:
        """Return the result of a sampled test, from how often the statistic reached the observed one."""
        p = (exceeded + 1) / (samples + 1) if plus_one else exceeded / samples
        error = sampling_error(p, samples)
        p = np.where(sample.n > 0, p, np.nan)
        return cls(p, np.full(sample.n_pairs, method, dtype=object), error, **more)


def sampling_error(p: Floats, samples: int) -> Floats:
    """Return four standard errors of a p-value estimated from samples, for a count of at least one."""
    error: Floats = 4 * np.sqrt(np.maximum(p * (1 - p), 1 / samples) / samples)
    return error


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


def compact_letters(differ: NDArray[np.bool_], order: Sequence[int]) -> list[str]:
    """Return the letters of each system, by the insert-and-absorb algorithm (Piepho 2004).

    ``differ`` is symmetric: whether two systems differ significantly. The best system, first in the ``order``, gets an
    "a"; after "z" comes "a1".
    """
    groups = [frozenset(order)]
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if differ[i, j]:
                parts = [(group - {i}, group - {j}) if {i, j} <= group else (group,) for group in groups]
                groups = _absorb([part for several in parts for part in several])
    groups.sort(key=lambda group: sorted(order.index(system) for system in group))
    letters = [f"{chr(ord('a') + place % 26)}{place // 26 or ''}" for place in range(len(groups))]
    return [
        "".join(letter for letter, group in zip(letters, groups) if system in group) for system in range(len(order))
    ]


def _absorb(groups: list[frozenset[int]]) -> list[frozenset[int]]:
    """Remove every group that is contained in another one."""
    kept: list[frozenset[int]] = []
    for group in sorted(groups, key=len, reverse=True):
        if not any(group <= other for other in kept):
            kept.append(group)
    return kept

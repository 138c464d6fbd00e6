"""Corrections for many comparisons, against their definitions and under a simulated null."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.comparisons import compare
from cranfield.comparisons.comparing import usual_correction
from cranfield.comparisons.gate import _holm_levels
from cranfield.comparisons.p_values import (
    CORRECTIONS,
    benjamini_hochberg,
    bonferroni,
    holm,
    none,
    sampling_error,
    spelled_test,
)

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=15).map(np.array)


@given(p_values, st.floats(0.01, 0.3))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, alpha):
    rejected, m = np.zeros(len(p), dtype=bool), len(p)
    for k, place in enumerate(np.argsort(p, kind="stable")):
        if not p[place] * (m - k) < alpha:
            break
        rejected[place] = True
    assert (holm(p) < alpha).tolist() == rejected.tolist()


@given(p_values)
def test_benjamini_hochberg_is_scipys(p):
    from scipy.stats import false_discovery_control

    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))


@given(p_values)
def test_corrected_values_are_ordered_and_never_smaller(p):
    assert np.all(none(p) == p)
    assert np.all(benjamini_hochberg(p) >= p - 1e-15)
    assert np.all(holm(p) >= benjamini_hochberg(p) - 1e-12)
    assert np.all(bonferroni(p) >= holm(p) - 1e-12)
    assert np.all(bonferroni(p) <= 1)


@pytest.mark.parametrize("name", list(CORRECTIONS))
def test_a_pair_without_a_p_value_stays_without_one_and_does_not_count(name):
    corrected = CORRECTIONS.call(name, np.array([0.01, np.nan, 0.02]))
    assert np.isnan(corrected[1])
    assert corrected[[0, 2]] == pytest.approx(CORRECTIONS.call(name, np.array([0.01, 0.02])))


@pytest.mark.parametrize("worlds", [25, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("test", "correction"),
    [("permutation", "holm"), ("t", "bonferroni"), ("t", "max_t"), ("tukey(resamples=199)", None)],
)
def test_the_family_wise_error_stays_at_alpha_under_the_null(test, correction, worlds):
    rng, false = np.random.default_rng(8), 0
    for _ in range(worlds):
        user = rng.exponential(size=100)
        values = {name: user * rng.exponential(size=100) for name in "abcd"}
        false += compare(values, significance=test, correction=correction).frame(detail=True)["significant"].any()
    assert false / worlds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)


def test_the_usual_correction_depends_on_the_test():
    tests = ("permutation", "wilcoxon(zeros=pratt)", "tukey")
    assert [usual_correction(test) for test in tests] == ["max_t", "holm", "none"]


def test_the_method_and_the_resamples_of_a_test_are_part_of_its_spelling():
    spelled = spelled_test("fisher", method="monte-carlo", resamples=1000)
    assert spelled == "permutation(method=monte-carlo, resamples=1000)"


def test_the_error_of_sampling_is_four_standard_errors_of_at_least_one_count():
    assert sampling_error(np.array([0.5, 0.0]), 10_000).tolist() == [0.02, 0.0004]


def test_after_the_first_failure_the_level_of_holms_method_stays_the_same():
    assert _holm_levels(np.array([0.2, 0.001, 0.04]), 0.06).round(3).tolist() == [0.03, 0.02, 0.03]

"""The paired tests against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cranfield.comparisons import compare


def p_of(a, b, test):
    return compare({"a": a, "b": b}, significance=test).frame(detail=True)["p"].item()


pairs = st.integers(0, 10_000).map(
    lambda seed: np.random.default_rng(seed).exponential(size=(2, 5 + seed % 70)) * np.random.default_rng(seed).random()
)


@given(pairs)
def test_student_is_scipys_paired_t_test(values):
    assert p_of(*values, "student") == pytest.approx(stats.ttest_rel(*values).pvalue, rel=1e-9)


@given(pairs, st.sampled_from(["wilcox", "pratt", "zsplit"]), st.booleans())
def test_wilcoxon_is_scipys(values, zeros, lattice):
    a, b = np.round(values, 1) if lattice else values
    d = np.round(np.round(a - b, 12) / max(np.abs(a - b).max(), 1e-300), 12)
    expected = stats.wilcoxon(d, zero_method=zeros).pvalue if d.any() else 1.0
    assert p_of(a, b, f"wilcoxon(zeros={zeros})") == pytest.approx(expected, rel=1e-9)


@given(pairs)
def test_sign_is_scipys_binomial_test(values):
    a, b = np.round(values, 1)
    plus, minus = int((a > b).sum()), int((a < b).sum())
    expected = stats.binomtest(plus, plus + minus).pvalue if plus + minus else 1.0
    assert p_of(a, b, "sign") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [6, 10])
def test_permutation_is_scipys_exact_permutation_test(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        a, b = rng.random((2, n))
        expected = stats.permutation_test(
            (a, b),
            lambda x, y, axis: (x - y).mean(axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
            vectorized=True,
        ).pvalue
        assert p_of(a, b, "permutation") == pytest.approx(expected, abs=1e-10)


def test_permutation_agrees_with_scipys_sampled_one():
    rng = np.random.default_rng(3)
    a, b = rng.exponential(size=(2, 120))
    sampled = stats.permutation_test(
        (a, b),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=rng,
    ).pvalue
    p = p_of(a, b, "permutation")
    assert abs(p - sampled) <= 4 * np.sqrt(p * (1 - p) / 20_000) + 1e-4

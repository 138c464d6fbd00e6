from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cranfield.assessments.verdicts import verdicts


@pytest.mark.parametrize("users", [2, 7, 300])
def test_the_verdicts_are_those_of_scipys_paired_t_test(users):
    rng = np.random.default_rng(users)
    values = rng.random((8, users)).round(1) * np.linspace(0.8, 1.0, 8)[:, None]
    expected = []
    for a in range(8):
        for b in range(a + 1, 8):
            found = stats.ttest_rel(values[a], values[b])
            expected.append(int(np.sign(found.statistic)) if found.pvalue < 0.05 else 0)
    assert verdicts(values, 0.05).tolist() == expected
    assert users < 10 or 0 < np.count_nonzero(expected) < len(expected)


def test_equal_systems_a_constant_difference_one_user_and_missing_values():
    assert verdicts(np.full((2, 5), 0.1), 0.05).tolist() == [0]
    assert verdicts(np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]]), 0.05).tolist() == [-1]
    assert verdicts(np.array([[0.1], [0.9]]), 0.05).tolist() == [0]
    some = np.array([[0.9, 0.8, np.nan, 0.9, 0.7], [0.1, 0.2, 0.9, 0.3, 0.1]])
    assert verdicts(some, 0.05).tolist() == [1]


@pytest.mark.parametrize("exponent", [-900, -600, 600, 900])
def test_very_small_and_very_large_values_have_the_verdicts_of_ordinary_ones(exponent):
    values = np.random.default_rng(0).random((8, 30)) * np.linspace(0.6, 1.0, 8)[:, None]
    found = verdicts(values, 0.05)
    assert 0 < np.count_nonzero(found) < len(found)
    assert verdicts(np.ldexp(values, exponent), 0.05).tolist() == found.tolist()

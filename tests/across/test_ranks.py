"""Ranks over datasets, against Demšar's example, SciPy, and enumeration."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from cranfield.across.effects import effects_of_means
from cranfield.across.ranks import critical_quantile, dataset_ranks, exact_p, rank_tests, ranks_of, wilcoxon_p
from cranfield.comparisons import pairs_of

# Demšar (2006), table 6: C4.5, +m, +cf, +m+cf. On voting the two last print as equal and are ranked 2 and 3.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
).T
D = np.array(
    [
        [0.137, 0.111, 0.117, 0.163],
        [0.307, 0.279, 0.374, 0.194],
        [0.135, 0.121, 0.106, 0.103],
        [0.094, 0.106, 0.079, 0.136],
        [0.033, 0.073, 0.035, 0.032],
    ]
).T


def test_the_example_of_demsar_has_his_ranks_and_with_ties_the_chi_squared_of_scipy():
    ranks = ranks_of(DEMSAR)
    assert ranks.mean(axis=1) == pytest.approx([3.142857, 2, 2.892857, 1.964286], abs=1e-6)
    chi2, p, f, _, _, critical = rank_tests(ranks)
    assert (chi2, f, critical) == pytest.approx((10.228346, 4.185130, 1.253559), abs=1e-6)
    assert (chi2, p) == pytest.approx(tuple(stats.friedmanchisquare(*DEMSAR)))
    assert rank_tests(ranks, 0.1)[-1] == pytest.approx(1.118060, abs=1e-6)


def test_four_systems_on_five_datasets_have_the_reference_values():
    chi2, p, f, p_f, exact, critical = rank_tests(ranks_of(D))
    assert (chi2, p, f, p_f) == pytest.approx((0.6, 0.896432, 0.166667, 0.916794), abs=1e-6)
    # The critical difference is also that of scikit-posthocs 0.17 and, to four digits, of autorank 1.3.
    assert (exact, critical) == pytest.approx((0.943848, 2.097606), abs=1e-6)


def test_quantiles_are_those_of_the_tables():
    expected = [1.959964, 2.343701, 2.569032, 2.727774, 2.849705, 2.948320, 3.030878, 3.101730, 3.163684]
    assert [critical_quantile(m) for m in range(2, 11)] == pytest.approx(expected, abs=1e-6)


def test_three_datasets_that_agree_have_an_infinite_f_and_an_exact_p():
    chi2, _, f, p_f, exact, _ = rank_tests(np.array([[1.0, 1, 1], [2, 2, 2], [3, 3, 3]]))
    assert (chi2, f, p_f) == (6, np.inf, 0)
    assert exact == pytest.approx(1 / 36)


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_p_is_the_share_of_all_permutations(seed):
    draws = np.random.default_rng(seed)
    table = ranks_of(draws.integers(0, 4, (3, 4)).astype(float))
    observed = (table.sum(axis=1) ** 2).sum()
    orders = [list(permutations(column)) for column in table.T]
    totals = [(np.sum(chosen, axis=0) ** 2).sum() for chosen in product(*orders)]
    assert exact_p(table) == pytest.approx(np.mean(np.array(totals) >= observed - 1e-9))


def test_large_tables_have_no_exact_p():
    assert np.isnan(exact_p(ranks_of(np.random.default_rng(0).random((6, 5)))))
    assert np.isnan(exact_p(ranks_of(np.random.default_rng(0).random((5, 40)))))


def test_systems_that_are_always_level_do_not_differ():
    chi2, p, *_ = rank_tests(ranks_of(np.ones((3, 4))))
    assert (chi2, p) == (0, 1)


def test_bars_join_the_longest_runs_of_neighbours_below_the_critical_difference():
    systems = ("A", "B", "C", "D")
    table = effects_of_means("P@5", systems, tuple("vwxyz"), D, pairs_of(systems, None))
    assert dataset_ranks(table).bars == [systems]
    ordered = np.tile(np.arange(5.0)[::-1, None], (1, 20))
    far = effects_of_means(
        "P@5", tuple("abcde"), tuple(map(str, range(20))), ordered + 1, pairs_of(tuple("abcde"), None)
    )
    assert dataset_ranks(far).bars == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]


def test_ranks_are_over_the_datasets_that_all_systems_have():
    means = D.copy()
    means[0, 0] = np.nan
    table = effects_of_means("P@5", tuple("ABCD"), tuple("vwxyz"), means, pairs_of(tuple("ABCD"), None))
    assert dataset_ranks(table).datasets == tuple("wxyz")


def test_if_lower_is_better_the_lowest_value_is_first():
    assert ranks_of(np.array([[0.9], [1.1]]), lower_is_better=True).tolist() == [[1], [2]]


def test_pairs_have_exact_wilcoxon_tests_of_their_effects():
    table = effects_of_means("P@5", tuple("ABCD"), tuple("vwxyz"), D, pairs_of(tuple("ABCD"), None))
    p, corrected = wilcoxon_p(table)
    assert p.tolist() == pytest.approx([stats.wilcoxon(row).pvalue for row in table.effects])
    assert p.min() >= 0.0625  # five datasets allow nothing smaller
    assert (corrected >= p).all()

"""The tests other than the permutation test: definitions, weights, edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.comparisons import compare
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS
from cranfield.comparisons.sample import Sample
from cranfield.comparisons.significance import bootstrap, permutation, resampled, student, tukey


def sample_of(values, weights=None):
    values = np.asarray(values, dtype=float)
    first, second = np.triu_indices(len(values), 1)
    names = tuple("abcdefgh"[: len(values)])
    return Sample("m", names, values, first, second, weights)


def _values(systems=3, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * rng.exponential(np.linspace(1, 1.4, systems)[:, None], (systems, n))


def test_bootstrap_is_sakais_definition():
    values = _values()
    shift, t, observed, _ = next(resampled([sample_of(values)], 50, seed=3))
    from cranfield._streams import stream

    draws = (stream(3, "compare", "bootstrap").random((50, 60)) * 60).astype(int)
    z = values[0] - values[2]
    w = z - z.mean()
    for b in range(50):
        resample = w[draws[b]]
        assert shift[b, 1] == pytest.approx(resample.mean(), abs=1e-12)
        assert t[b, 1] == pytest.approx(abs(resample.mean()) / (resample.std(ddof=1) / np.sqrt(60)))
    assert observed[1] == pytest.approx(abs(z.mean()) / (z.std(ddof=1) / np.sqrt(60)))
    share = bootstrap([sample_of(values)], resamples=50, seed=3, plus_one=False)[0].p[1]
    assert share == np.mean(t[:, 1] >= observed[1])


@pytest.mark.parametrize(("tenths", "asl"), [([-1, 0, 0, 1], 1.0), ([-5, -1, 2, 2, 2], 1.0), ([-2, -1, 0], 8 / 27)])
def test_bootstrap_is_not_led_astray_by_rounding(tenths, asl):
    # 8 of the 27 resamples of -0.1, 0, 0.1 reach the observed t; the one with three zeros has no t.
    b = np.array([0.6, 0.3, 0.1, 0.7, 0.9])[: len(tenths)]
    p = (
        compare({"a": b + np.array(tenths) / 10, "b": b}, significance="bootstrap", resamples=4000)
        .frame(detail=True)["p"]
        .item()
    )
    assert p == pytest.approx(asl, abs=0.03)


def test_bootstrap_intervals_are_percentiles_of_the_resampled_differences():
    values = _values()
    shift, _, _, mean = next(resampled([sample_of(values)], 400, seed=0))
    verdict = bootstrap([sample_of(values)], resamples=400)[0]
    assert verdict.lower == pytest.approx(np.quantile(shift + mean, 0.025, axis=0))
    assert verdict.upper == pytest.approx(np.quantile(shift + mean, 0.975, axis=0))


def test_bootstrap_of_users_that_count_for_some_pairs_only():
    values = _values()
    values[2, :20] = np.nan
    with_holes = bootstrap([sample_of(values)], resamples=4000)[0]
    without = bootstrap([sample_of(values[[0, 2]][:, 20:])], resamples=4000)[0]
    assert with_holes.p[1] == pytest.approx(without.p[0], abs=0.05)
    assert with_holes.p[0] == bootstrap([sample_of(values[:2])], resamples=4000)[0].p[0]


def test_tukey_with_two_systems_is_the_permutation_test():
    sample = sample_of(_values(2))
    verdict = tukey([sample], resamples=20_000)[0]
    assert abs(verdict.p[0] - permutation([sample])[0].p[0]) <= verdict.error[0]


def test_tukey_is_its_definition_by_enumeration():
    import itertools

    values = np.array([[0.1, 0.5, 0.2], [0.4, 0.1, 0.9], [0.3, 0.7, 0.8]])
    orders = list(itertools.permutations(range(3)))
    ranges = []
    for choice in itertools.product(orders, repeat=3):
        means = np.stack([values[list(order), user] for user, order in enumerate(choice)], axis=1).mean(axis=1)
        ranges.append(means.max() - means.min())
    observed = abs(values[0].mean() - values[2].mean())
    verdict = tukey([sample_of(values)], resamples=20_000)[0]
    assert abs(verdict.p[1] - np.mean(np.array(ranges) >= observed - 1e-12)) <= verdict.error[1]


def test_tukey_is_more_careful_than_pairs_by_themselves():
    sample = sample_of(_values(5))
    assert np.all(tukey([sample], resamples=2000)[0].p >= permutation([sample])[0].p - 0.03)


def test_equal_weights_change_nothing():
    values = _values()
    for test in (student, permutation):
        plain, weighted = test([sample_of(values)])[0].p, test([sample_of(values, np.full(60, 7.0))])[0].p
        assert weighted == pytest.approx(plain, abs=1e-9)


def test_whole_weights_have_the_mean_of_repeated_users():
    rng = np.random.default_rng(2)
    values, weights = _values(), rng.integers(1, 5, 60)
    sample = sample_of(values, weights.astype(float))
    repeated = np.repeat(values, weights, axis=1)
    mean_a, mean_b = sample.averages(slice(0, 3))
    assert mean_a == pytest.approx(repeated.mean(axis=1)[sample.first])
    assert mean_b == pytest.approx(repeated.mean(axis=1)[sample.second])
    assert sample.influences(slice(0, 3)).mean(axis=1) == pytest.approx(mean_a - mean_b)


def test_the_weighted_permutation_test_flips_weighted_differences():
    values, weights = _values(2, 12), np.random.default_rng(1).integers(1, 9, 12).astype(float)
    weighted = permutation([sample_of(values, weights)])[0].p
    assert weighted == pytest.approx(permutation([sample_of(values * weights)])[0].p, abs=1e-12)


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_tests_of_ranks_and_signs_have_no_weights(test):
    with pytest.raises(SettingError, match=r"no weighted form; use average='mean', or significance='permutation'$"):
        compare({"a": [0.1, 0.2], "b": [0.3, 0.1]}, significance=test, average="weighted(by=judged)")


@pytest.mark.parametrize("test", list(SIGNIFICANCE_TESTS))
def test_systems_that_are_alike_for_every_user_have_p_1(test):
    values = {"a": [0.5, 0.2, 0.0, 1.0], "b": [0.5, 0.2, 0.0, 1.0]}
    row = compare(values, significance=test).frame(detail=True).row(0, named=True)
    assert (row["p"], row["difference"], row["effect"], row["significant"]) == (1.0, 0.0, 0.0, False)


@pytest.mark.parametrize("test", list(SIGNIFICANCE_TESTS))
def test_a_constant_metric_has_p_1(test):
    assert (
        compare({"a": [0.0] * 5, "b": [0.0] * 5, "c": [0.0] * 5}, significance=test).frame(detail=True)["p"].to_list()
        == [1.0] * 3
    )


@pytest.mark.parametrize("test", list(SIGNIFICANCE_TESTS))
def test_one_user_proves_nothing(test):
    row = compare({"a": [0.9], "b": [0.1]}, significance=test).frame(detail=True).row(0, named=True)
    assert row["p"] == pytest.approx(1.0)
    assert row["n"] == 1


@pytest.mark.parametrize("test", list(SIGNIFICANCE_TESTS))
def test_p_values_lie_between_0_and_1_and_the_seed_fixes_them(test):
    values = dict(zip("abc", _values()))
    first, second = (compare(values, significance=test, seed=5).frame(detail=True)["p"].to_list() for _ in range(2))
    assert first == second
    assert all(0 <= p <= 1 for p in first)


def test_a_constant_difference_without_spread_is_certain_for_student():
    assert (
        compare({"a": [0.5, 0.6, 0.7], "b": [0.25, 0.35, 0.45]}, significance="t").frame(detail=True)["p"].item() == 0.0
    )


def test_log_student_is_student_on_the_logarithms_and_shows_geometric_means():
    from scipy.stats import ttest_rel

    a, b = _values(2)
    row = compare({"a": a, "b": b}, significance="log_student(epsilon=0.01)").frame(detail=True).row(0, named=True)
    assert row["p"] == pytest.approx(ttest_rel(np.log(a + 0.01), np.log(b + 0.01)).pvalue)
    assert row["mean_a"] == pytest.approx(np.exp(np.log(a + 0.01).mean()) - 0.01)


def test_the_better_system_of_a_sign_test_is_the_one_with_more_wins():
    a = np.array([0.2] * 30 + [0.0])
    b = np.array([0.1] * 30 + [9.0])
    row = compare({"a": a, "b": b}, significance="sign").frame(detail=True).row(0, named=True)
    assert row["difference"] < 0
    assert (row["better"], row["wins"], row["losses"]) == ("a", 30, 1)


def test_splitting_ties_makes_the_sign_test_more_careful():
    values = {"a": [1.0] * 8 + [0.5] * 20, "b": [0.0] * 8 + [0.5] * 20}
    dropped, split = (
        compare(values, significance=f"sign(ties={ties})").frame(detail=True)["p"].item() for ties in ("drop", "split")
    )
    assert dropped < split


@pytest.mark.parametrize("exponent", [-900, 600])
# log_student is left out because its ε is a fixed value, which does not scale with the others.
@pytest.mark.parametrize("test", sorted(set(SIGNIFICANCE_TESTS) - {"log_student"}))
def test_very_small_and_very_large_values_give_the_p_values_of_ordinary_ones(test, exponent):
    ordinary = dict(zip("abc", _values(n=12)))
    scaled = {name: np.ldexp(values, exponent) for name, values in ordinary.items()}
    expected, frame = (compare(values, significance=test).frame(detail=True) for values in (ordinary, scaled))
    for column in ("p", "effect", "effect_lower", "wins", "ties"):
        np.testing.assert_allclose(frame[column], expected[column], rtol=1e-9)
    for column in ("standard_error", "lower", "upper", "difference"):
        np.testing.assert_allclose(np.ldexp(frame[column], -exponent), expected[column], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_ranks_and_signs_see_small_differences_beside_a_huge_one(test):
    frame = compare({"a": [1e14, 4, 3, 2, 1, 5], "b": [0.0] * 6}, significance=test).frame(detail=True)
    assert frame["p"].item() == 2 / 2**6


def test_wilcoxon_takes_differences_that_rounding_has_parted_for_equal():
    parted = compare({"a": [0.3, 0.2, 0.9, 0.1], "b": [0.2, 0.1, 0.2, 0.2]}, significance="wilcoxon").frame(detail=True)
    whole = compare({"a": [3, 2, 9, 1], "b": [2, 1, 2, 2]}, significance="wilcoxon").frame(detail=True)
    assert parted["p"].item() == whole["p"].item()

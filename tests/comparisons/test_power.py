"""Power and equivalence, against their definitions and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from cranfield._errors import SettingError
from cranfield._roots import enclosed
from cranfield.comparisons import compare
from cranfield.comparisons.effects import (
    chance_above,
    noncentralities,
    power,
    power_of_shift,
    smallest_shift,
    two_one_sided,
    users_needed,
)


@pytest.mark.parametrize(
    # Sample sizes from Cohen's tables for the two-sided paired t-test.
    ("effect", "alpha", "wanted", "n"),
    [(0.5, 0.05, 0.8, 34), (0.2, 0.05, 0.8, 199), (0.8, 0.05, 0.8, 15), (0.5, 0.05, 0.9, 44), (0.3, 0.01, 0.8, 134)],
)
def test_the_users_needed_are_those_of_the_tables(effect, alpha, wanted, n):
    assert abs(users_needed(effect, alpha, wanted).item() - n) <= 1


def test_power_is_how_often_the_test_rejects():
    from scipy.stats import ttest_1samp

    d = np.random.default_rng(0).normal(0.3, 1, (20_000, 50))
    assert float(power(50, 0.3)) == pytest.approx((ttest_1samp(d, 0, axis=1).pvalue < 0.05).mean(), abs=0.015)


def test_power_without_an_effect_is_alpha():
    assert power([10, 6040], [0.0, 0.0], 0.05) == pytest.approx([0.05, 0.05], abs=1e-6)


@pytest.mark.parametrize("n", [5, 50, 6040, 33_388])
def test_the_smallest_shift_has_just_the_wanted_power(n):
    assert float(power(n, smallest_shift([n - 1]).item() / np.sqrt(n))) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(("n", "effect", "alpha"), [(2, 30.0, 0.01), (2, 100.0, 0.001), (3, 28.0, 0.001)])
def test_power_of_a_great_effect_on_very_few_users_is_not_certain(n, effect, alpha):
    from scipy.integrate import quad
    from scipy.stats import chi, norm, t

    critical, shift, freedom = t.ppf(1 - alpha / 2, n - 1), np.sqrt(n) * effect, n - 1
    # P(|Z + shift| > critical sqrt(chi2 / freedom)), straight from the definition of the non-central t distribution.
    rejects = quad(lambda x: norm.sf(critical * x / np.sqrt(freedom) - shift) * chi.pdf(x, freedom), 0, 20)[0]
    assert float(power(n, effect, alpha)) == pytest.approx(rejects, abs=1e-7)
    assert float(power(n, smallest_shift([n - 1], alpha).item() / np.sqrt(n), alpha)) == pytest.approx(0.8, abs=1e-6)
    assert users_needed([effect], alpha).item() > n or rejects >= 0.8


def test_users_needed_is_the_smallest_number_with_the_wanted_power():
    n = users_needed([0.37, 0.05]).astype(int)
    assert np.all(power(n, [0.37, 0.05]) >= 0.8)
    assert np.all(power(n - 1, [0.37, 0.05]) < 0.8)


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0, 3.0, 1000.0])
@pytest.mark.parametrize(("alpha", "wanted"), [(0.05, 0.8), (0.01, 0.99), (0.5, 0.01), (0.3, 0.2)])
def test_users_needed_are_found_by_trying_one_number_after_the_other(effect, alpha, wanted):
    first = next(n for n in range(1, 1000) if power(n, effect, alpha) >= wanted)
    assert users_needed([effect], alpha, wanted).item() == first


def test_a_hopeless_effect_needs_a_great_many_users_and_no_effect_infinitely_many():
    assert users_needed([1e-5]).item() == pytest.approx((1.959964 + 0.841621) ** 2 * 1e10, rel=1e-3)
    assert users_needed([0.0]).item() == np.inf


def _two(n=400, shift=0.01):
    rng = np.random.default_rng(1)
    a = rng.random(n)
    return {"a": a, "b": a + rng.normal(shift, 0.1, n)}


def test_a_comparison_says_what_its_users_can_see():
    result = compare(_two())
    row = result.power(0.02).row(0, named=True)
    assert row["difference"] == 0.02
    assert row["smallest_difference"] == pytest.approx(smallest_shift([399]).item() / 20 * row["sd"])
    assert row["power"] == pytest.approx(float(power(400, 0.02 / row["sd"])))
    assert row["users_needed"] == users_needed([0.02 / row["sd"]]).item()
    assert result.power().row(0, named=True)["difference"] == pytest.approx(
        abs(result.frame(detail=True)["difference"].item())
    )


def test_equivalence_is_two_one_sided_t_tests():
    from scipy.stats import ttest_1samp

    values = _two()
    d = values["a"] - values["b"]
    row = compare(values).equivalence(0.02).row(0, named=True)
    above = ttest_1samp(d, -0.02, alternative="greater").pvalue
    below = ttest_1samp(d, 0.02, alternative="less").pvalue
    assert row["p_equivalent"] == pytest.approx(max(above, below))
    assert row["p_no_worse"] == pytest.approx(above)


def test_systems_are_equivalent_exactly_when_the_90_percent_interval_lies_inside_the_margin():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = {"a": rng.random(50), "b": rng.random(50)}
        row = compare(values).equivalence(0.1).row(0, named=True)
        assert row["equivalent"] == (row["lower"] > -0.1 and row["upper"] < 0.1)


def test_a_p_value_of_alpha_itself_shows_neither_equivalence_nor_being_no_worse():
    row = compare(_two()).equivalence(0.02).row(0, named=True)
    for name, p in (("equivalent", row["p_equivalent"]), ("no_worse", row["p_no_worse"])):
        at, above = (compare(_two(), alpha=alpha).equivalence(0.02)[name].item() for alpha in (p, np.nextafter(p, 1)))
        assert (at, above) == (False, True)


def test_a_relative_margin_is_a_share_of_the_second_mean():
    result = compare(_two())
    assert result.equivalence(0.05, relative=True)["margin"].item() == pytest.approx(
        0.05 * result.frame(detail=True)["mean_b"].item()
    )


def test_identical_systems_are_equivalent_for_certain():
    row = compare({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3]}).equivalence(0.01).row(0, named=True)
    assert (row["p_equivalent"], row["equivalent"]) == (0.0, True)


def test_outside_the_margin_nothing_is_equivalent():
    assert two_one_sided(0.5, 0.0, 10, 0.1).equivalent == 1.0
    assert two_one_sided(0.1, 0.0, 10, 0.1).equivalent == 1.0


def test_a_margin_must_be_above_zero():
    for margin in (0, "0.1", float("nan")):
        with pytest.raises(SettingError, match=f"margin={margin!r}"):
            compare(_two()).equivalence(margin)


@pytest.mark.parametrize("degrees", [1, 5, 200, 1_000, 30_000, 1_000_000])
@pytest.mark.parametrize("t", [41.0, 100.0, 600.0])
def test_the_noncentral_t_far_from_0_is_the_integral_over_its_denominator(degrees, t):
    from scipy import stats
    from scipy.special import ndtr

    shift = t + np.array([-3, -1, 0, 2]) * np.sqrt(1 + t**2 / (2 * degrees))
    shift = shift[shift > 40]
    chi, nodes = stats.chi(degrees), np.polynomial.legendre.leggauss(100)
    ends = np.linspace(chi.ppf(1e-15), chi.isf(1e-15), 200)
    middle, half = (ends[1:, None] + ends[:-1, None]) / 2, np.diff(ends)[:, None] / 2
    places, weights = (middle + half * nodes[0]).ravel(), (half * nodes[1]).ravel()
    expected = (weights * chi.pdf(places) * ndtr(shift[:, None] - t * places / np.sqrt(degrees))).sum(axis=1)
    found = chance_above(np.full(len(shift), t), shift, np.full(len(shift), float(degrees)))
    assert found == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize(("t", "degrees"), [(0.0, 4.0), (2.5, 1.0), (-3.0, 30.0), (60.0, 9.0), (-500.0, 1e6)])
def test_an_interval_of_the_noncentrality_holds_as_often_as_it_says(t, degrees):
    rng = np.random.default_rng(1)
    lower, upper = (float(end[0]) for end in noncentralities(np.array([t]), np.array([degrees]), 0.1))
    z, c = rng.normal(size=100_000), np.sqrt(rng.chisquare(degrees, 100_000) / degrees)
    assert ((lower + z) / c >= t).mean() == pytest.approx(0.05, abs=0.003)
    assert ((upper + z) / c <= t).mean() == pytest.approx(0.05, abs=0.003)


def test_the_power_of_a_shift_is_alpha_without_one():
    assert power_of_shift([0.0, 3.0], 100.0).round(3).tolist() == [0.05, 0.844]


def test_a_root_is_enclosed():
    ends = enclosed(lambda x: 2 - x**2, np.array([0.0]), np.array([4.0]), np.array([2.0]), np.array([-14.0]), 1e-6)
    assert [float(end[0].round(5)) for end in ends] == [1.41421, 1.41421]


@pytest.mark.parametrize("correction", ["max_t", "holm", "bonferroni", "none"])
def test_the_smallest_difference_is_for_the_corrected_test_of_a_single_pair(correction):
    rng = np.random.default_rng(4)
    result = compare({f"s{k}": rng.normal(size=120) for k in range(4)}, significance="student", correction=correction)
    row, power = (frame.row(0, named=True) for frame in (result.frame(detail=True), result.power()))
    level = {"none": 0.05, "max_t": row["level"]}.get(correction, 0.05 / 6)
    assert row["level"] == level
    assert 0.05 / 6 <= level <= 0.05
    assert power["smallest_difference"] == pytest.approx(smallest_shift(119, level)[0] * row["standard_error"])
    if correction in ("max_t", "none"):  # the interval of the pair has the same level
        assert row["upper"] - row["difference"] == pytest.approx(stdtrit(119, 1 - level / 2) * row["standard_error"])


def test_tukeys_test_has_the_level_of_its_intervals():
    rng = np.random.default_rng(5)
    result = compare({f"s{k}": rng.normal(size=80) for k in range(4)}, significance="tukey")
    for row in result.frame(detail=True).iter_rows(named=True):
        reach = stdtrit(79, 1 - row["level"] / 2) * row["standard_error"]
        assert row["upper"] - row["difference"] == pytest.approx(reach)

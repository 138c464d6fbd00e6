"""Averages over datasets, against reference values, statsmodels, SciPy and brute force."""

import numpy as np
import pytest
from scipy import stats

from cranfield.across.pooling import pooled, shrunken, without_each

Y = np.array([[0.12, 0.05, -0.02, 0.20, 0.09]])
S = np.array([[0.02, 0.03, 0.025, 0.05, 0.01]])


def values(pools, *names):
    return [float(getattr(pools, name)[0]) for name in names]


def test_five_datasets_have_the_reference_values():
    pools = pooled(Y, S, margin=np.log(1.02))
    assert values(pools, "mean", "error", "users_error") == pytest.approx([0.088, 0.036524, 0.013454], abs=1e-6)
    assert values(pools, "lower", "upper", "p") == pytest.approx([-0.013407, 0.189407, 0.073604], abs=1e-6)
    assert values(pools, "these_lower", "these_upper") == pytest.approx([0.061631, 0.114369], abs=1e-6)
    assert values(pools, "tau", "tau_lower", "tau_upper") == pytest.approx([0.072464, 0.033856, 0.231462], abs=1e-6)
    assert values(pools, "q", "i2") == pytest.approx([27.568569, 0.854907], abs=1e-6)
    assert values(pools, "new_lower", "new_upper", "chance") == pytest.approx([-0.17025, 0.34625, 0.82123], abs=1e-6)
    margins = values(pools, "new_better", "new_equal", "new_worse")
    assert margins == pytest.approx([0.768809, 0.093171, 0.138020], abs=1e-6)


def test_weights_by_precision_give_the_values_of_statsmodels():
    # combine_effects(y, s², method_re="pm", use_t=True) of statsmodels 0.15: mean_effect_re, sd_eff_w_re_hksj, its
    # interval, tau2, q and i2.
    pools = pooled(Y, S, weights="precision")
    expected = [0.08306857895664281, 0.03480269861215258, -0.0135592, 0.17969636]
    assert values(pools, "mean", "error", "lower", "upper") == pytest.approx(expected, abs=1e-8)
    assert values(pools, "p") == pytest.approx([0.075426], abs=1e-6)
    assert values(pools, "tau", "q", "i2") == pytest.approx([0.0724641262816746, 27.56856939501779, 0.8549072335714714])


def test_without_the_third_dataset_the_answer_changes():
    left = without_each(Y, S)[2]
    assert values(left, "mean", "lower", "upper", "p") == pytest.approx([0.115, 0.013944, 0.216056, 0.036208], abs=1e-6)


def test_nearly_equal_effects_are_no_surer_than_their_users_allow():
    pools = pooled(np.array([[0.05, 0.052, 0.049, 0.051]]), np.array([[0.02, 0.03, 0.02, 0.04]]))
    assert values(pools, "error", "users_error") == pytest.approx([0.014361, 0.014361], abs=1e-6)
    assert pools.spread[0] / 2 == pytest.approx(0.000645, abs=1e-6)
    assert values(pools, "lower", "upper", "p") == pytest.approx([0.004796, 0.096204, 0.039019], abs=1e-6)
    assert values(pools, "tau", "tau_lower", "tau_upper") == [0, 0, 0]
    assert values(pools, "new_lower", "new_upper", "chance") == pytest.approx([-0.011292, 0.112292, 5 / 6], abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_heterogeneity_solves_its_equations(seed):
    draws = np.random.default_rng(seed)
    k = int(draws.integers(2, 12))
    y, s = draws.normal(0, 0.2, (1, k)), draws.uniform(0.01, 0.1, (1, k))
    pools = pooled(y, s)

    def q(tau):
        w = 1 / (s**2 + tau**2)
        return float((w * (y - (w * y).sum() / w.sum()) ** 2).sum())

    for name, target in (
        ("tau", k - 1),
        ("tau_lower", stats.chi2.isf(0.025, k - 1)),
        ("tau_upper", stats.chi2.ppf(0.025, k - 1)),
    ):
        (tau,) = values(pools, name)
        assert q(tau) == pytest.approx(target, rel=1e-6) if tau > 0 else q(0.0) <= target
    if k > 2:
        expected = stats.ttest_1samp(y[0], 0)
        if pools.spread[0] / np.sqrt(k) > pools.users_error[0]:
            assert values(pools, "p") == pytest.approx([expected.pvalue])


def test_what_few_datasets_do_not_tell_is_nan():
    told = {
        k: {name for name in ("these_lower", "lower", "p", "tau", "new_lower", "chance") if not np.isnan(value[name])}
        for k in range(6)
        for value in [{name: part[0] for name, part in vars(pooled(Y[:, :k], S[:, :k])).items()}]
    }
    assert told[0] == set()
    assert told[1] == {"these_lower"}
    assert told[2] == {"these_lower", "tau"}
    assert told[3] == told[2] | {"lower", "p", "chance"}
    assert told[4] == told[5] == told[3] | {"new_lower"}


def test_pairs_with_missing_cells_have_the_values_of_their_own_datasets():
    both = pooled(np.vstack([Y, np.where(np.arange(5) == 2, np.nan, Y)]), np.vstack([S, S]))
    alone = pooled(np.delete(Y, 2, axis=1), np.delete(S, 2, axis=1))
    for name in ("k", "mean", "error", "p", "tau", "q", "new_lower", "chance"):
        assert getattr(both, name)[1] == pytest.approx(getattr(alone, name)[0]), name


def test_without_users_errors_the_spread_of_a_measured_effect_is_given():
    pools = pooled(Y, np.full(Y.shape, np.nan))
    sd = Y.std(ddof=1)
    reach = stats.t.ppf(0.975, 4) * sd * np.sqrt(1 + 1 / 5)
    assert values(pools, "new_lower", "new_upper") == pytest.approx([0.088 - reach, 0.088 + reach])
    assert np.isnan(values(pools, "tau", "i2", "these_lower", "chance")).all()
    assert values(pools, "p") == pytest.approx([stats.ttest_1samp(Y[0], 0).pvalue])


def test_users_without_any_error_are_legal():
    pools = pooled(np.array([[0.1, 0.1, 0.1], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]]), np.zeros((3, 3)))
    assert pools.tau[[0, 2]].tolist() == [0, 0]
    assert pools.tau[1] == pytest.approx(0.1)
    assert pools.p.tolist() == pytest.approx([0.0, stats.ttest_1samp([0.1, 0.2, 0.3], 0).pvalue, 1.0])
    assert pools.i2.tolist() == [0, 1, 0]


def test_a_shrunken_effect_lies_between_its_dataset_and_the_average():
    pools = pooled(Y, S)
    drawn = shrunken(Y, S, pools)
    tau2 = pools.tau[0] ** 2
    assert drawn == pytest.approx((tau2 * Y + S**2 * 0.088) / (tau2 + S**2))

"""Effect sizes and p-values of each universe."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cranfield._errors import SettingError
from cranfield.audits import UserContributions
from cranfield.audits.contributions import critical_z, effect_of, leads_of, p_of, z_of


@pytest.fixture
def x():
    return np.random.default_rng(1).exponential(size=(4, 30)).astype(np.float32) - 0.8


def _leads(values, lower=False, **options):
    averages = values.mean(axis=2)
    terms = UserContributions(-values if lower else values)
    return leads_of(terms.between(0, 1), terms, averages, np.full(values.shape[1], lower), **options)


def test_p_values_are_those_of_the_paired_t_test():
    values = np.random.default_rng(0).random((2, 3, 25))
    leads = _leads(values)
    assert leads.p == pytest.approx(stats.ttest_rel(values[0], values[1], axis=1).pvalue, rel=1e-4)
    d = values[0] - values[1]
    assert leads.d_z == pytest.approx(d.mean(axis=1) / d.std(axis=1, ddof=1), rel=1e-4)
    assert leads.relative == pytest.approx(d.mean(axis=1) / values[1].mean(axis=1))


def test_the_system_with_the_smaller_error_leads_where_lower_is_better():
    values = np.array([[[0.1, 0.2, 0.2]], [[0.3, 0.5, 0.4]]])
    leads = _leads(values, lower=True)
    assert leads.lead.tolist() == [1]
    assert leads.difference[0] < 0 < leads.d_z[0]


def test_users_out_of_a_universe_do_not_count(x):
    padded = np.concatenate([x, np.zeros((4, 70), dtype=np.float32)], axis=1)
    own = stats.ttest_1samp(x, 0, axis=1).pvalue
    assert p_of(effect_of(z_of(padded), np.full(4, 30)), np.full(4, 30)) == pytest.approx(own, rel=1e-4)


def test_the_critical_z_divides_significant_from_other_universes(x):
    users = np.full(4, 30)
    for alpha in (0.001, 0.05, 0.5):
        significant = p_of(effect_of(z_of(x), users), users) < alpha
        assert (np.abs(z_of(x)) > critical_z(users, alpha)).tolist() == significant.tolist()


def test_equal_systems_and_single_users_are_never_significant():
    leads = _leads(np.zeros((2, 1, 5)))
    assert (leads.lead[0], leads.d_z[0], leads.p[0], leads.significant[0]) == (0, 0, 1, False)
    assert np.isnan(leads.relative[0])
    single = _leads(np.array([[[1.0]], [[0.5]]]))
    assert (single.lead[0], single.d_z[0], single.p[0]) == (1, 0, 1)


def test_a_difference_without_spread_is_large_and_finite():
    leads = _leads(np.array([[[1.0] * 5], [[0.5] * 5]]))
    assert leads.d_z[0] == pytest.approx(1000)
    assert leads.significant[0]


def test_a_difference_of_rounding_alone_is_not_a_lead():
    terms = UserContributions(np.ones((2, 1, 3)))
    averages = np.array([[0.1 + 0.2], [0.3]])
    assert averages[0] != averages[1]
    assert leads_of(terms.between(0, 1), terms, averages, np.array([False])).lead.tolist() == [0]


def test_a_leader_whom_the_test_is_against_is_not_significantly_better():
    # The first system leads by the median, but its mean difference is significantly below 0.
    values = np.zeros((2, 1, 40))
    values[0, 0, :20], values[1, 0, 20:] = 0.1, 5.0
    terms = UserContributions(values)
    for averages, significant in (([[0.1], [0.0]], False), ([[0.0], [0.1]], True)):
        leads = leads_of(terms.between(0, 1), terms, np.array(averages), np.zeros(1, dtype=bool))
        assert leads.p[0] < 0.001
        assert leads.significant.tolist() == [significant]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros((2, 3)), {}, "systems × universes × users"),
        (np.full((2, 1, 1), np.nan), {}, "finite"),
        (np.zeros((2, 3, 4)), {"users": np.array([4])}, "each of the 3 universes"),
    ],
)
def test_terms_that_cannot_be_summed_are_refused(values, options, message):
    with pytest.raises(SettingError, match=message):
        UserContributions(values, **options)

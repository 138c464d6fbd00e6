from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cranfield import SettingError
from cranfield.measures import Scores, risk, standardise
from cranfield.measures.risks import georisk, trisk, urisk
from cranfield.tables import Vocabulary


def _scores(values, lower=False):
    values = np.asarray(values, dtype=float)[:, None, :]
    systems, _, lists = values.shape
    return Scores(
        systems=tuple("abcdefgh"[:systems]),
        metrics=("m",),
        values=values,
        covered=np.ones((systems, lists), dtype=bool),
        users=np.arange(lists, dtype=np.int32),
        user_ids=Vocabulary.of(range(lists)),
        judged=np.ones(lists, dtype=np.int64),
        relevant=np.ones(lists, dtype=np.int64),
        lower_is_better=(lower,),
    )


def test_urisk_counts_losses_more():
    assert urisk(np.array([0.5, -0.25]), alpha=0.0) == pytest.approx(0.125)
    assert urisk(np.array([0.5, -0.25]), alpha=1.0) == pytest.approx(0.0)


def test_trisk_without_aversion_is_the_paired_t_statistic():
    differences = np.random.default_rng(0).normal(size=50)
    assert trisk(differences, 0.0) == pytest.approx(stats.ttest_1samp(differences, 0).statistic)


def test_trisk_does_not_depend_on_the_unit_of_the_metric():
    differences = np.random.default_rng(0).normal(size=50)
    for unit in (1e-30, 1e30):
        assert trisk(unit * differences, 1.0) == pytest.approx(trisk(differences, 1.0))


def test_georisk_follows_its_definition():
    x, alpha = np.random.default_rng(1).random((3, 5)), 5.0
    expected = []
    for i in range(3):
        zrisk = 0.0
        for j in range(5):
            e = x[i].sum() * x[:, j].sum() / x.sum()
            z = (x[i, j] - e) / np.sqrt(e)
            zrisk += z if z > 0 else (1 + alpha) * z
        expected.append(np.sqrt(x[i].sum() / 5 * stats.norm.cdf(zrisk / 5)))
    assert georisk(x, alpha) == pytest.approx(np.array(expected))


def test_a_baseline_has_no_risk_against_itself():
    frame = risk(_scores([[0.1, 0.9], [0.4, 0.2]]), "a")
    own = frame.row(0, named=True)
    assert own["urisk"] == 0.0
    assert np.isnan(own["trisk"])


def test_an_error_that_grows_is_a_loss():
    frame = risk(_scores([[1.0, 1.0], [2.0, 1.0]], lower=True), "a", alpha=1.0)
    assert frame["urisk"].to_list() == [0.0, -1.0]
    assert frame["georisk"].is_nan().all()


def test_equal_differences_have_no_trisk_whatever_their_rounded_spread():
    assert np.isnan([trisk(np.full(n, 0.1), 1.0) for n in range(2, 30)]).all()


def test_georisk_is_left_out_where_a_value_is_negative():
    assert risk(_scores([[0.9, -0.2], [0.3, 0.4]]), "a")["georisk"].is_nan().all()


def test_an_unknown_baseline_or_a_negative_aversion_is_refused():
    with pytest.raises(SettingError, match="no system None"):
        risk(_scores([[0.1], [0.2]]), None)
    with pytest.raises(SettingError, match="finite"):
        risk(_scores([[0.1], [0.2]]), "a", alpha=float("inf"))
    with pytest.raises(SettingError, match="no system 'x'"):
        risk(_scores([[0.1], [0.2]]), "x")
    with pytest.raises(SettingError, match="negative"):
        risk(_scores([[0.1], [0.2]]), "a", alpha=-1)


def test_standardised_scores_follow_their_definitions():
    x = np.random.default_rng(2).random((4, 6))
    scores = _scores(x)
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    assert standardise(scores, form="z").values[:, 0] == pytest.approx(z)
    assert standardise(scores).values[:, 0] == pytest.approx(stats.norm.cdf(z))
    assert standardise(scores, form="linear").values[:, 0] == pytest.approx(np.clip(0.15 * z + 0.5, 0, 1))
    ecdf = np.array([[(x[:, j] <= x[i, j]).mean() for j in range(6)] for i in range(4)])
    assert standardise(scores, form="empirical").values[:, 0] == pytest.approx(ecdf)


def test_standardising_keeps_undefined_values_and_survives_equal_systems():
    scores = _scores([[0.5, np.nan], [0.5, 0.1]])
    values = standardise(scores, form="z").values[:, 0]
    assert values[:, 0].tolist() == [0.0, 0.0]
    assert np.isnan(values[0, 1])


def test_systems_that_are_equal_beside_rounding_have_no_standing():
    scores = _scores([[0.1, 0.3], [0.1, 0.1 + 0.2], [0.1, 0.3]])
    assert standardise(scores, form="z").values.tolist() == [[[0.0, 0.0]]] * 3


def test_standardising_needs_a_reference():
    with pytest.raises(SettingError, match="at least two"):
        standardise(_scores([[0.5], [0.4]]), reference=["a"])
    with pytest.raises(SettingError, match="not known"):
        standardise(_scores([[0.5], [0.4]]), form="odd")


def test_lists_without_a_standing_are_left_out_of_the_average():
    standing = standardise(_scores([[0.8, np.nan, 0.4], [0.4, np.nan, 0.8]]), form="linear")
    assert standing.average() == pytest.approx(np.array([[0.5], [0.5]]))


def test_an_undefined_error_is_left_out_of_the_risk_and_not_the_best_there_is():
    scores = _scores([[1.0, 1.0, 1.0], [np.nan, 1.5, 1.0]], lower=True)
    found = risk(scores, "a", alpha=1.0).row(1, named=True)
    assert found["urisk"] == pytest.approx(-0.5)  # (2 * -0.5 + 0) / 2


def test_an_undefined_gain_counts_nothing_in_the_risk():
    found = risk(_scores([[1.0, 1.0], [np.nan, 1.0]]), "a", alpha=1.0).row(1, named=True)
    assert found["urisk"] == pytest.approx(-1.0)


def test_a_metric_without_values_by_list_has_no_risk():
    found = risk(_scores([[np.nan], [np.nan]], lower=True), "a").row(1, named=True)
    assert all(np.isnan(found[name]) for name in ("urisk", "trisk", "georisk"))


def test_georisk_with_zeros_follows_its_definition():
    # A list for which every system has 0, a system without any gain, and single zeros.
    x = np.array([[0.0, 0.5, 0.0, 0.25], [0.0, 1.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    expected, alpha = [], 2.0
    for i in range(3):
        zrisk = 0.0
        for j in range(4):
            e = x[i].sum() * x[:, j].sum() / x.sum()
            z = (x[i, j] - e) / np.sqrt(e) if e > 0 else 0.0
            zrisk += z if z > 0 else (1 + alpha) * z
        expected.append(np.sqrt(x[i].sum() / 4 * stats.norm.cdf(zrisk / 4)))
    assert georisk(x, alpha) == pytest.approx(expected)
    assert risk(_scores(x), "a", alpha)["georisk"].to_list() == pytest.approx(expected)
    assert georisk(np.zeros((2, 3)), alpha).tolist() == [0.0, 0.0]

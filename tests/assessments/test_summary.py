"""Agreement between metrics, and metrics at several cut-offs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from cranfield import SettingError
from cranfield.assessments import assess
from cranfield.assessments.assessing import PAPER_CUTOFFS, at_cutoffs
from cranfield.assessments.summary import correlation_frame, family_of, groups, mean_and_spread
from cranfield.metrics import Metric

NAMES, METRICS = ("mean", "median"), ("a", "b", "c")


@pytest.fixture
def averages():
    return np.random.default_rng(1).integers(0, 8, (3, 2, 3, 9)) / 8


def test_correlations_are_scipys_averaged_over_folds_with_their_spread(averages):
    frame = correlation_frame(averages, NAMES, METRICS)
    for row in frame.iter_rows(named=True):
        first = NAMES.index(row["average_a"]), METRICS.index(row["metric_a"])
        second = NAMES.index(row["average_b"]), METRICS.index(row["metric_b"])
        each = [stats.kendalltau(fold[first], fold[second]).statistic for fold in averages]
        assert row["tau"] == pytest.approx(np.mean(each), abs=1e-12)
        assert row["fold_sd"] == pytest.approx(np.std(each, ddof=1), abs=1e-12)


def test_every_pair_of_metrics_and_every_metric_with_its_other_averages_is_there(averages):
    frame = correlation_frame(averages, NAMES, METRICS)
    assert frame.height == 2 * 9 + 3 * 2
    across = frame.filter(pl.col("average_a") != pl.col("average_b"))
    assert (across["metric_a"] == across["metric_b"]).all()
    tau = _matrix(frame, "median")
    np.testing.assert_allclose(tau, tau.T)
    np.testing.assert_allclose(np.diag(tau), 1.0)


def _matrix(frame, average):
    return frame.filter(average_a=average, average_b=average)["tau"].to_numpy().reshape(3, 3)


def test_tau_ap_is_taken_both_ways_so_the_matrix_is_symmetric(averages):
    tau = _matrix(correlation_frame(averages, NAMES, METRICS, "tau-ap"), "mean")
    np.testing.assert_allclose(tau, tau.T)


def test_means_leave_undefined_values_out():
    mean, spread = mean_and_spread(np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan]]))
    np.testing.assert_array_equal(mean, [2.0, 2.0, np.nan])
    np.testing.assert_allclose(spread, [np.sqrt(2.0), np.nan, np.nan])


def test_groups_join_what_agrees_and_keep_apart_what_does_not():
    tau = np.full((5, 5), 0.3)
    tau[:2, :2] = tau[2:4, 2:4] = 0.95
    tau[4] = tau[:, 4] = np.nan
    np.fill_diagonal(tau, 1.0)
    group, order = groups(tau)
    assert group.tolist() == [1, 1, 2, 2, 3]
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert {abs(int(np.flatnonzero(order == a)[0] - np.flatnonzero(order == b)[0])) for a, b in ((0, 1), (2, 3))} == {1}
    assert groups(np.ones((1, 1)))[0].tolist() == [1]


def test_metrics_are_taken_at_every_cutoff_once():
    metrics = at_cutoffs([Metric.of("nDCG(gain=exp)@10"), Metric.of("RR")], PAPER_CUTOFFS)
    names = [str(one) for one in metrics]
    assert len(names) == len(set(names)) == 20 + 21
    assert "nDCG(gain=exp)@100" in names


def test_a_cutoff_that_is_none_is_refused():
    with pytest.raises(SettingError, match="cutoffs"):
        at_cutoffs([Metric.of("P@10")], [0])


def test_the_study_of_cutoffs_has_the_evidence_at_each(world):
    runs, test = world
    found = assess(
        runs, test, ["nDCG@20", "P@20", "Rprec"], threshold=4, scenarios=["ratings", "popular"], sizes=[0.5, 0.2],
        samples=4, cutoffs=[1, 5],
    )  # fmt: skip
    frame = found.frame("cutoffs")
    assert frame.select("family", "cutoff").rows() == [
        ("P", 1), ("P", 5), ("P", 20), ("nDCG", 1), ("nDCG", 5), ("nDCG", 20),
    ]  # fmt: skip
    robust = found.frame("robustness").filter((pl.col("metric") == "P@5") & (pl.col("scenario") == "ratings"))
    row = frame.filter((pl.col("family") == "P") & (pl.col("cutoff") == 5)).row(0, named=True)
    assert row["ratings"] == pytest.approx(robust["tau"].mean())
    power = found.frame("power").filter(pl.col("metric") == "P@5").row(0, named=True)
    assert row["significant"] == pytest.approx(power["significant"])
    assert found.of_family("nDCG") == ["nDCG@1", "nDCG@5", "nDCG@20"]
    with pytest.raises(SettingError, match="did you mean 'nDCG'"):
        found.of_family("nDGC")


def test_a_family_is_a_name_without_its_cut_off():
    names = ["nDCG(gain=exp)@100", "Rprec", "@5", "a@b@7"]
    assert [family_of(name) for name in names] == ["nDCG(gain=exp)", "Rprec", "@5", "a@b"]

"""What a universe gives is what the public functions give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.audits.measured_lists import Measurement, SetupLists
from cranfield.measures.averaging import Averaging

METRICS = ["P@5", "nDCG(gain=exp)@10", "AP@10", "RR", "Recall@5"]
AVERAGES = [
    "mean",
    "weighted(by=judged)",
    "weighted(by=relevant)",
    "weighted(by=train)",
    "geometric",
    "geometric(form=adjusted)",
    "median",
    "standardised",
    "standardised(form=linear)",
    "urisk(baseline=popularity)",
    "georisk",
]


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(80, 40, 1200).ratings, train=0.6)


@pytest.fixture(scope="module")
def judged(split):
    """The judged lists of two systems, one of which serves only some of the users."""
    runs = cf.recommend(split, ["popularity", "knn(k=3, overlap=8)"], length=12)
    return [cf.judge(run, split.test, threshold=4, train=split.train) for run in runs]


@pytest.fixture(scope="module")
def lists(judged):
    return SetupLists([judged], [judged[0].judgments.users.astype(np.int64)])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("threshold", [3.0, 4.0])
def test_averages_are_those_of_measure(lists, judged, metric, threshold):
    measured = lists.at(threshold).measured(Measurement(metric, threshold))
    scores = cf.measure(judged, metrics=metric, threshold=threshold)
    for average in AVERAGES:
        for coverage in ("full", "reduced"):
            for undefined in ("zero", "leave out"):
                averaging = Averaging(average=average, coverage=coverage, undefined=undefined)
                expected = scores.average(averaging)[:, 0]
                assert measured.averaged(averaging).averages == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_the_trisk_of_the_baseline_is_zero_and_that_of_others_as_measured(lists, judged):
    averaging = Averaging(average="trisk(baseline=popularity)")
    found = lists.at(4.0).measured(Measurement("P@5", 4.0)).averaged(averaging)
    assert found.averages[0] == 0
    assert found.averages[1] == pytest.approx(cf.measure(judged, metrics="P@5").average(averaging)[1, 0])


def test_of_averages_of_all_systems_only_the_standardised_is_a_sum_over_users(lists):
    measured = lists.at(4.0).measured(Measurement("P@5", 4.0))
    kinds = ("standardised", "urisk(baseline=popularity)", "trisk(baseline=popularity)", "georisk")
    found = [measured.averaged(Averaging(average=kind)) for kind in kinds]
    assert [universe.linear for universe in found] == [True, False, False, False]
    standing, risk = found[:2]
    for universe in (standing, risk):
        assert universe.terms.sum(axis=1) / universe.users == pytest.approx(universe.averages, rel=1e-5, abs=1e-7)


def test_a_standardised_error_stays_one_of_which_less_is_better(split):
    runs = cf.recommend(split, ["average", "average(damping=5)"], length="all")
    with_errors = [cf.judge(run, split.test, threshold=4) for run in runs]
    lists = SetupLists([with_errors], [with_errors[0].judgments.users.astype(np.int64)])
    measured = lists.measured(Measurement("RMSE", 4.0))
    assert measured.averaged(Averaging(average="standardised", undefined="leave out")).lower_is_better
    with pytest.raises(SettingError, match="georisk is undefined for"):
        measured.averaged(Averaging(average="georisk", undefined="leave out"))


def test_a_reduced_average_of_groups_is_over_the_lists_that_all_systems_cover(split, judged):
    groups = (np.arange(judged[0].judgments.n_lists) % 3).astype(np.int16)
    scores = replace(cf.measure(judged, metrics="P@5"), groups=groups, group_names=("a", "b", "c"))
    lists = SetupLists([judged], [judged[0].judgments.users.astype(np.int64)])
    lists.__dict__["groups"] = groups
    for average in ("mean", "weighted(by=judged)"):
        averaging = Averaging(average=average, coverage="reduced", groups="equal")
        found = lists.measured(Measurement("P@5", 4.0)).averaged(averaging)
        assert found.averages == pytest.approx(scores.average(averaging)[:, 0], rel=1e-12)
        assert found.averages == pytest.approx(cf.compare(scores, **averaging.as_dict()).averages[:, 0], rel=1e-12)


def test_terms_sum_to_the_difference_of_averages(lists):
    measured = lists.at(4.0).measured(Measurement("P@5", 4.0))
    mean = measured.averaged(Averaging())
    weighted = measured.averaged(Averaging(average="weighted"))
    assert mean.terms.sum(axis=1) / mean.users == pytest.approx(mean.averages, rel=1e-5)
    assert weighted.terms.sum(axis=1) / measured.judged.sum() == pytest.approx(weighted.averages, rel=1e-5)


def test_terms_of_a_geometric_mean_are_logarithms(lists):
    found = lists.at(4.0).measured(Measurement("P@5", 4.0)).averaged(Averaging(average="geometric(form=adjusted)"))
    logs = np.log(found.averages + 1e-5)
    assert found.terms.sum(axis=1, dtype=np.float64) / found.users == pytest.approx(logs, rel=1e-5)


def test_a_smaller_value_that_is_better_has_the_larger_term(split):
    runs = cf.recommend(split, ["average", "average(damping=5)"], length="all")
    with_errors = [cf.judge(run, split.test, threshold=4) for run in runs]
    lists = SetupLists([with_errors], [with_errors[0].judgments.users.astype(np.int64)])
    found = lists.measured(Measurement("RMSE", 4.0)).averaged(Averaging(undefined="leave out"))
    assert found.lower_is_better
    assert (found.terms.sum(axis=1) < 0).all()


def test_a_reduced_average_over_the_same_users_is_the_full_one(judged):
    lists = SetupLists([judged[:1]], [judged[0].judgments.users.astype(np.int64)])
    measured = lists.at(4.0).measured(Measurement("P@5", 4.0))
    full, reduced = (measured.averaged(Averaging(coverage=coverage)) for coverage in ("full", "reduced"))
    assert full.digest == reduced.digest


def test_different_averages_of_the_same_values_are_different_universes(lists):
    measured = lists.at(4.0).measured(Measurement("P@5", 4.0))
    digests = {measured.averaged(Averaging(average=average)).digest for average in AVERAGES}
    assert len(digests) == len(AVERAGES)


def test_what_unjudged_items_count_changes_values(lists):
    plain, hopeful = (
        lists.at(4.0).measured(Measurement("P@5", 4.0, unjudged)).averaged(Averaging()).averages
        for unjudged in ("not relevant", "relevant")
    )
    assert (hopeful > plain).all()


def test_a_metric_without_a_cut_off_sees_lists_of_the_starting_length(judged, lists):
    short = replace(lists, length=3)
    found = short.at(4.0).measured(Measurement("AP", 4.0)).averaged(Averaging()).averages
    assert found == pytest.approx(cf.measure(judged, metrics="AP@3", threshold=4).average()[:, 0])


def test_lists_of_several_folds_are_averaged_by_user(split):
    folds = cf.splits.k_fold(cf.simulate.world(40, 30, 600).ratings, k=2)
    parts = [
        [cf.judge(run, fold.test, threshold=4) for run in cf.recommend(fold, ["popularity", "random"])]
        for fold in folds
    ]
    lists = SetupLists(parts, [part[0].judgments.users.astype(np.int64) for part in parts])
    found = lists.at(4.0).measured(Measurement("P@5", 4.0)).averaged(Averaging())
    scores = [cf.measure(part, metrics="P@5").values[0, 0] for part in parts]
    users = np.concatenate([part[0].judgments.users for part in parts])
    values = np.nan_to_num(np.concatenate(scores))
    expected = np.mean([values[users == user].mean() for user in np.unique(users)])
    assert found.averages[0] == pytest.approx(expected)


def test_nothing_relevant_is_a_reason_and_not_a_zero(lists):
    with pytest.raises(SettingError, match="undefined for every user"):
        lists.at(9.0).measured(Measurement("P@5", 9.0)).averaged(Averaging())

"""Which judgments settle a comparison soonest, and what becomes of those that come back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.comparisons.suggestions import Contest
from cranfield.comparisons.tipping import TwoSystems
from cranfield.metrics import Metric


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(users=80, items=60, ratings=1_500, seed=3, times=False)


@pytest.fixture(scope="module")
def runs_and_test(world):
    split = cf.splits.random(world.ratings, seed=1)
    return cf.recommend(split, {"a": "knn(k=10)", "b": "popularity"}, length=20), split.test


@pytest.mark.parametrize("metric", ["P@5", "DCG@5", "DCG(gain=exp)@5", "RBP(p=0.9)@5"])
def test_a_contest_is_the_measured_difference_whatever_the_answers(runs_and_test, metric):
    runs, test = runs_and_test
    systems, wanted = TwoSystems(runs[0], runs[1], test, 4.0), Metric.of(metric)
    contest = Contest.of(systems, wanted)
    liked = np.random.default_rng(1).random(len(contest.pairs)) < 0.3
    measured = systems.difference(wanted, [contest.pairs.only(liked)])
    assert contest.answered(np.flatnonzero(liked), liked[liked]).difference == pytest.approx(measured)


def test_bounds_are_reached_by_the_worst_and_the_best_answers(runs_and_test):
    runs, test = runs_and_test
    systems, wanted = TwoSystems(runs[0], runs[1], test, 4.0), Metric.of("P@5")
    contest = Contest.of(systems, wanted)
    worst = systems.difference(wanted, [contest.pairs.only(contest.effects < 0)])
    best = systems.difference(wanted, [contest.pairs.only(contest.effects > 0)])
    assert contest.bounds == pytest.approx((worst, best))


def test_settled_means_that_no_answer_changes_the_sign():
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 5, 5])
    lists = {"a": {"ann": ["x", "y"], "bob": ["x"]}, "b": {"ann": ["x", "z"], "bob": ["x"]}}
    open_one = cf.suggest_judgments(lists, test, "P@2", threshold=4)
    assert not open_one.settled
    assert open_one.ask.select("user", "item").rows() == [("ann", "z")]
    settled = cf.suggest_judgments(
        lists, cf.add_judgments(test, open_one.ask.with_columns(rating=pl.lit(1.0))), "P@2", threshold=4
    )
    assert settled.settled
    assert settled.probability == 1
    assert settled.ask.height == 0
    assert settled.state.sentence.startswith("P@2: settled. a is ahead of b for these users, whatever the answers")


def test_systems_that_no_judgment_can_tell_apart_are_level():
    test = cf.Ratings.of(["ann", "ann"], ["x", "y"], [5, 5])
    labelling = cf.suggest_judgments({"a": {"ann": ["x", "y"]}, "b": {"ann": ["y", "x"]}}, test, "P@2", threshold=4)
    assert labelling.settled
    assert "are level for these users" in labelling.state.sentence


def test_a_rating_at_the_threshold_counts_as_liked_in_the_guess_about_an_item():
    test = cf.Ratings.of([1, 2, 3, 4, 5], ["p", "p", "q", "q", "x"], [4, 4, 1, 1, 5])
    lists = {"a": {1: ["p"], 5: ["p"], 3: ["q"]}, "b": {1: ["p"], 5: ["q"], 3: ["q"]}}
    runs = [cf.read_run(lists[name], name=name) for name in "ab"]
    contest = Contest.of(TwoSystems(*runs, test, 4.0), Metric.of("P@1"))
    liked = dict(zip(contest.pairs.items.tolist(), contest.likely.tolist()))
    assert len(liked) == 2
    assert liked[0] > 3 / 5 > liked[1]


def test_an_open_comparison_states_its_probability(runs_and_test):
    runs, test = runs_and_test
    labelling = cf.suggest_judgments(runs, test, "P@5", threshold=4)
    assert 0.5 <= labelling.probability < 1
    assert f"with probability {labelling.probability:.3f}" in labelling.state.sentence


def test_a_guess_against_the_judged_items_is_said_to_be_one():
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 5, 2])
    lists = {"a": {"ann": ["x", "y"], "bob": ["p", "x"]}, "b": {"ann": ["x", "z"], "bob": ["q", "r"]}}
    labelling = cf.suggest_judgments(lists, test, "P@2", threshold=4)
    assert "b is ahead of a with probability" in labelling.state.sentence
    assert labelling.state.sentence.endswith("By the judged items alone a is ahead.")


def test_the_probability_is_that_of_simulated_answers(runs_and_test):
    runs, test = runs_and_test
    contest = cf.suggest_judgments(runs, test, "P@5", threshold=4).contest
    liked = np.random.default_rng(1).random((4_000, len(contest.pairs))) < contest.likely
    differences = contest.difference + liked @ contest.effects
    ahead = (differences > 0) if contest.ahead == 0 else (differences < 0)
    assert contest.probability == pytest.approx(ahead.mean(), abs=0.03)


def test_no_more_pairs_are_named_than_the_budget_and_each_is_in_one_list_alone(runs_and_test):
    runs, test = runs_and_test
    ask = cf.suggest_judgments(runs, test, "P@5", budget=7, threshold=4).ask
    assert ask.height == 7
    assert ask["rating"].null_count() == 7
    held = [set(run.frame().filter(pl.col("rank") <= 5).select("user", "item").rows()) for run in runs]
    for user, item, listed_by in ask.select("user", "item", "listed_by").rows():
        inside = [(user, item) in lists for lists in held]
        assert inside == [listed_by == "a", listed_by == "b"]


def test_both_caveats_stand_below_the_pairs(runs_and_test):
    runs, test = runs_and_test
    text = str(cf.suggest_judgments(runs, test, "P@5", threshold=4))
    assert "Only the users themselves can judge" in text
    assert "unfair to it" in text


def test_chosen_judgments_settle_a_comparison_with_fewer_than_random_ones(world, runs_and_test):
    runs, test = runs_and_test
    curve = cf.comparisons.labelling_curve(runs, test, world.truth(), "P@5", threshold=4, step=10)
    last = {row["strategy"]: row for row in curve.group_by("strategy").last().iter_rows(named=True)}
    assert last["chosen"]["settled"]
    assert last["random"]["settled"]
    assert last["chosen"]["judgments"] < last["random"]["judgments"]
    assert last["chosen"]["ahead"] == last["random"]["ahead"]


def test_a_truth_that_lacks_pairs_of_the_lists_is_refused(runs_and_test):
    runs, test = runs_and_test
    with pytest.raises(InputError, match="the truth has no rating of"):
        cf.comparisons.labelling_curve(runs, test, test, "P@5", threshold=4)


@pytest.mark.parametrize(
    ("metric", "why"), [("nDCG@5", "depends on the others"), ("P", "has no cut-off"), ("AntiP@5", "more is better")]
)
def test_metrics_without_a_worth_of_one_judgment_are_refused(runs_and_test, metric, why):
    runs, test = runs_and_test
    with pytest.raises(SettingError, match=why):
        cf.suggest_judgments(runs, test, metric)


def test_one_system_alone_is_refused(runs_and_test):
    runs, test = runs_and_test
    with pytest.raises(SettingError, match="to compare two systems, and 1"):
        cf.suggest_judgments(runs[:1], test)


# reading judgments back

TEST = cf.Ratings.of([1, 2], [10, 10], [5, 3])


def test_rows_without_a_rating_are_left_out_and_ids_are_those_of_the_test_file(tmp_path):
    (tmp_path / "back.csv").write_text("user,item,rating,listed_by\n1,20,4,a\n1,30,,b\n2,20, 2 ,b\n")
    joined = cf.add_judgments(TEST, tmp_path / "back.csv")
    assert joined.frame().rows() == [(1, 10, 5.0), (1, 20, 4.0), (2, 10, 3.0), (2, 20, 2.0)]


def test_a_judgment_that_repeats_the_test_set_is_one_and_one_that_contradicts_it_an_error(tmp_path):
    (tmp_path / "same.csv").write_text("user,item,rating\n1,10,5\n")
    assert cf.add_judgments(TEST, tmp_path / "same.csv").frame().equals(TEST.frame())
    (tmp_path / "other.csv").write_text("user,item,rating\n1,10,2\n")
    with pytest.raises(InputError, match="the judgment of item 10 by user 1 is 2, and the test set has 5"):
        cf.add_judgments(TEST, tmp_path / "other.csv")


def test_a_pair_that_is_judged_in_two_ways_is_an_error_and_twice_the_same_is_not(tmp_path):
    (tmp_path / "twice.csv").write_text("user,item,rating\n1,20,4\n1,20,4\n")
    assert len(cf.add_judgments(TEST, tmp_path / "twice.csv")) == 3
    (tmp_path / "both.csv").write_text("user,item,rating\n1,20,4\n1,20,2\n")
    with pytest.raises(InputError, match="has two different judgments"):
        cf.add_judgments(TEST, tmp_path / "both.csv")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("user,item,rating\n1,20,\n", "no row has a rating"),
        ("user,item\n1,20\n", "no column 'rating'"),
        ("", "no column"),
    ],
)
def test_a_file_without_answers_is_refused(tmp_path, content, why):
    (tmp_path / "back.csv").write_text(content)
    with pytest.raises(InputError, match=why):
        cf.add_judgments(TEST, tmp_path / "back.csv")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        cf.add_judgments(TEST, tmp_path / "nothing.csv")

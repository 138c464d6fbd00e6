"""What unjudged items would have to be for the order of two systems to turn round."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield._figures import definition
from cranfield.comparisons import tipping
from cranfield.comparisons.tipping import DASH, TwoSystems
from cranfield.metrics import Metric


@pytest.fixture(scope="module")
def runs_and_test():
    world = cf.simulate.world(users=80, items=60, ratings=1_500, seed=3, times=False)
    split = cf.splits.random(world.ratings, seed=1)
    return cf.recommend(split, {"a": "knn(k=10)", "b": "popularity", "c": "random"}, length=20), split.test


def _liked(systems, metric, loser, count):
    """Return the difference once so many of the loser's own unjudged items are liked."""
    own = systems.unjudged(metric)[loser]
    mask = np.zeros(len(own), dtype=bool)
    mask[:count] = True
    return systems.difference(metric, [own.only(mask)])


def test_precision_turns_round_at_the_tipping_point_and_not_one_item_before(runs_and_test):
    runs, test = runs_and_test
    point = cf.tipping_points(runs[:2], test, "P@5", threshold=4).points[0]
    systems, metric = TwoSystems(runs[0], runs[1], test, 4.0), Metric.of("P@5")
    loser = [run.name for run in runs[:2]].index(point.loser)
    sign = -1.0 if loser == 0 else 1.0
    assert sign * _liked(systems, metric, loser, point.items) <= 1e-12
    assert sign * _liked(systems, metric, loser, point.items - 1) > 0


def test_items_that_both_lists_hold_do_not_count_in_precision():
    test = cf.Ratings.of(["ann", "ann"], ["x", "y"], [5, 1])
    lists = {"a": {"ann": ["x", "p", "q"]}, "b": {"ann": ["y", "p", "q"]}}
    point = cf.tipping_points(lists, test, "P@3", threshold=4).points[0]
    assert (point.unjudged_winner, point.unjudged_loser, point.unjudged_both) == (0, 0, 2)
    assert point.share is None
    assert point.sentence == (
        "P@3: even if all unjudged items of b and none of a's were liked, a would stay ahead."
    )  # fmt: skip


def test_a_sentence_says_how_many_more_of_the_losers_items(runs_and_test):
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 5, 5])
    lists = {"a": {"ann": ["x", "y"], "bob": ["p", "x"]}, "b": {"ann": ["x", "z"], "bob": ["q", "r"]}}
    point = cf.tipping_points(lists, test, "P@2", threshold=4).points[0]
    assert point.sentence == (
        "P@2: if 66.7 % more of b's unjudged items than of a's are liked, the order is reversed: 2 of the 3 that only "
        "b lists."
    )


def test_a_lead_that_all_unjudged_items_of_the_loser_would_not_make_up_has_no_tipping_point():
    test = cf.Ratings.of(["ann", "ann", "ann", "bob"], ["x", "y", "n", "n"], [5, 5, 1, 1])
    lists = {"a": {"ann": ["x", "y"], "bob": ["n"]}, "b": {"ann": ["p", "n"], "bob": ["n"]}}
    points = cf.tipping_points(lists, test, "P@2", threshold=4)
    assert (points.points[0].share, points.table().rows[0][4]) == (None, DASH)
    lists["b"]["bob"] = ["q", "r"]
    points = cf.tipping_points(lists, test, "P@2", threshold=4)
    assert (points.points[0].share, points.table().rows[0][4]) == (pytest.approx(2 / 3), "66.7 %")


def test_the_loser_cannot_have_more_liked_items_than_there_are_beside_the_base():
    test = cf.Ratings.of(["ann"] * 3, ["x", "y", "n"], [5, 5, 1])
    lists = {"a": {"ann": ["x", "y", "p", "n"]}, "b": {"ann": ["q", "r", "n"]}}
    for base, share in ((0, 1.0), (0.2, None)):
        (point,) = cf.tipping_points(lists, test, "P@4", threshold=4, base=base).points
        assert point.share == share


def test_systems_that_are_level_need_one_item():
    test = cf.Ratings.of(["ann"], ["x"], [5])
    lists = {"a": {"ann": ["x", "p"]}, "b": {"ann": ["x", "q"]}}
    assert "are level" in cf.tipping_points(lists, test, "P@2", threshold=4).verdict[0]


def test_liked_items_of_the_winner_move_the_tipping_point_where_the_lists_hold_different_numbers():
    test = cf.Ratings.of(["ann", "ann", "ann"], ["x", "y", "n"], [5, 5, 1])
    lists = {"a": {"ann": ["x", "y", "p", "n"]}, "b": {"ann": ["q", "r", "s", "n"]}}
    plain, warm = (cf.tipping_points(lists, test, "P@4", threshold=4, base=base).points[0] for base in (0, 0.2))
    assert plain.share == pytest.approx(2 / 3)
    assert warm.share == pytest.approx((2 + 0.2 * (1 - 3)) / 3)


@pytest.mark.parametrize("metric", ["DCG@5", "RBP@5"])
def test_a_sum_over_ranks_is_level_at_the_tipping_point_in_expectation(runs_and_test, metric):
    runs, test = runs_and_test
    point = cf.tipping_points(runs[:2], test, metric, threshold=4).points[0]
    systems, wanted = TwoSystems(runs[0], runs[1], test, 4.0), Metric.of(metric)
    kinds = systems.unjudged(wanted)
    loser = [run.name for run in runs[:2]].index(point.loser)
    lead = systems.difference(wanted)
    moved = lead + point.share * (systems.difference(wanted, [kinds[loser]]) - lead)
    moved += point.share / 2 * (systems.difference(wanted, [kinds[2]]) - lead)
    assert moved == pytest.approx(0, abs=1e-9)


def test_where_the_ideal_grows_the_share_is_simulated_with_its_error(runs_and_test):
    runs, test = runs_and_test
    point = cf.tipping_points(runs[::2], test, "Recall@5", threshold=4, draws=3).points[0]
    assert 0 < point.share < 1
    assert point.error > 0
    assert "±" in point.sentence


def test_a_simulated_tipping_point_of_a_sum_is_the_exact_one(runs_and_test, monkeypatch):
    runs, test = runs_and_test
    exact = cf.tipping_points(runs[::2], test, "P@5", threshold=4).points[0]
    monkeypatch.setattr(tipping, "LINEAR", ())
    simulated = cf.tipping_points(runs[::2], test, "P@5", threshold=4, draws=8).points[0]
    assert simulated.share == pytest.approx(exact.share, abs=4 * simulated.error + 0.01)


def test_every_pair_or_every_system_with_the_baseline(runs_and_test):
    runs, test = runs_and_test
    assert cf.tipping_points(runs, test, "P@5", threshold=4).frame().height == 3
    with_baseline = cf.tipping_points(runs, test, "P@5", threshold=4, baseline="c").frame()
    assert with_baseline.height == 2
    assert all("c" in row for row in with_baseline.select("winner", "loser").rows())


def test_the_curve_has_every_group_and_falls_where_the_losers_items_are_liked(runs_and_test):
    runs, test = runs_and_test
    points = cf.tipping_points(runs[:2], test, "P@5", threshold=4)
    curve = points.curves
    assert curve["group"].unique().sort().to_list() == ["all", "middle", "popular", "rare"]
    of_loser = curve.filter(pl.col("system") == pl.col("loser"), group="all").sort("assumed")["difference"]
    assert of_loser.is_sorted(descending=True)
    whole = definition(points.plot())
    assert whole["facet"]["column"]["sort"] == ["all", "popular", "middle", "rare"]


@pytest.mark.parametrize(
    ("metric", "why"), [("AntiP@5", "in which more is better"), ("RMSE", "no tipping point"), ("Tau@5", "no tipping")]
)
def test_metrics_that_liked_items_do_not_raise_are_refused(runs_and_test, metric, why):
    runs, test = runs_and_test
    with pytest.raises(SettingError, match=why):
        cf.tipping_points(runs[:2], test, metric)


def test_one_run_an_unknown_baseline_and_a_base_of_one_are_refused(runs_and_test):
    runs, test = runs_and_test
    with pytest.raises(SettingError, match="give at least two"):
        cf.tipping_points(runs[0], test)
    with pytest.raises(SettingError, match="no system 'd'"):
        cf.tipping_points(runs, test, baseline="d")
    with pytest.raises(SettingError, match="not a share below 1"):
        cf.tipping_points(runs, test, base=1)


def test_averaged_ties_have_no_ranks_to_count():
    lists = {"a": {"ann": {"x": 1.0, "y": 1.0}}, "b": {"ann": {"x": 2.0, "y": 1.0}}}
    runs = cf.read_runs(lists, ties="average")
    with pytest.raises(SettingError, match="are averaged"):
        cf.tipping_points(runs, cf.Ratings.of(["ann"], ["x"], [5]))


@pytest.mark.parametrize("metric", ["P@2", "AP", "nDCG@2"])
def test_nothing_relevant_has_no_tipping_point(runs_and_test, metric):
    runs, test = runs_and_test
    with pytest.raises(SettingError, match="nothing can be measured: no test rating is 9 or more; the highest is 5"):
        cf.tipping_points(runs, test, metric, threshold=9)

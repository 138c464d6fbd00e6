"""`Scores`: which lists an average is made of, and the shares that stand beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import cranfield as cf
from cranfield.measures import Scores
from cranfield.tables import Vocabulary


def _scores(values, covered, **more):
    values = np.asarray(values, dtype=float)
    systems, metrics, lists = values.shape
    return Scores(
        systems=tuple("abc"[:systems]),
        metrics=tuple(f"m{number}" for number in range(metrics)),
        values=values,
        covered=np.asarray(covered, dtype=bool),
        users=np.arange(lists, dtype=np.int32),
        user_ids=Vocabulary.of(range(lists)),
        judged=np.ones(lists, dtype=np.int64),
        relevant=np.ones(lists, dtype=np.int64),
        lower_is_better=(False,) * metrics,
        **more,
    )


@pytest.mark.parametrize(
    ("coverage", "undefined", "lists", "missing", "mean"),
    [
        ("full", "zero", 5, 3, 1.0 / 5),
        ("reduced", "zero", 3, 1, 1.0 / 3),
        ("full", "leave out", 2, 3, 1.0 / 2),
        ("reduced", "leave out", 2, 1, 1.0 / 2),
    ],
)
def test_undefined_lists_are_counted_among_those_that_the_average_is_over(coverage, undefined, lists, missing, mean):
    scores = _scores([[[1.0, 0.0, np.nan, np.nan, np.nan]]], [[True, True, True, False, False]])
    row = scores.frame(coverage=coverage, undefined=undefined).row(0, named=True)
    assert (row["lists"], row["undefined"], row["mean"]) == (lists, missing, pytest.approx(mean))


def test_the_shares_beside_averages_are_those_of_the_deepest_cut_off():
    scores = _scores(
        np.zeros((2, 3, 4)),
        np.ones((2, 4)),
        filled=np.array([[0.9, 0.5, 0.7], [0.8, 0.6, 0.3]]),
        unjudged=np.array([[0.1, 0.4, 0.2], [0.15, 0.25, 0.35]]),
        item_coverage=np.array([0.05, 0.06]),
    )
    for last, depth, filled, unjudged in (
        ("RR@10", "@20", ("50.0%", "60.0%"), ("40.0%", "25.0%")),
        ("RR", " in the whole list", ("70.0%", "30.0%"), ("20.0%", "35.0%")),
    ):
        table = replace(scores, metrics=("P@5", "P@20", last)).table(services=True)
        columns = dict(zip(table.header, zip(*([cell.text for cell in row] for row in table.rows))))
        assert columns[f"places{depth}"] == filled
        assert columns[f"unjudged{depth}"] == unjudged
        assert columns["items in test and lists"] == ("5.0%", "6.0%")


def test_the_table_has_the_best_system_first_and_says_what_its_columns_hold():
    scores = cf.measure(
        {"worse": {"u": ["c"], "v": ["a"]}, "better": {"u": ["a"], "v": ["a"]}},
        cf.Ratings.of(["u", "v"], ["a", "c"], [5, 5]),
        ["P@1", "RR@5"],
        threshold=4,
    )
    table = scores.table()
    assert [row[0].text for row in table.rows] == ["better", "worse"]
    assert "users: share of the users who get a list; unjudged@5: share of the recommended items" in table.notes[-1]
    assert "places" not in table.notes[-1]
    assert "places@5: share of the places" in scores.table(services=True).notes[-1]


def test_users_are_called_users_where_each_has_one_list():
    scores = _scores([[[0.1, 0.2]], [[0.3, 0.1]]], [[True, True], [True, False]])
    assert scores.table().caption.startswith("2 users; full lists")
    assert (
        replace(scores, users=np.zeros(2, dtype=np.int32)).table().caption.startswith("1 user with 2 lists; full lists")
    )
    assert "users without a list count as 0" in scores.table().caption
    assert "over the 1 of 2 users that both systems serve" in scores.table(coverage="reduced").caption


def test_the_caption_names_the_metrics_that_leave_users_out_although_others_count_0():
    test = cf.Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [5, 1, 5])
    runs = {"mine": {"ann": ["x"], "bob": ["y", "x"]}}
    table = cf.measure(runs, test, ["P@1", "AntiRR", "Fallout@1"], threshold=4).table()
    assert "undefined count as 0, but are left out by AntiRR, Fallout@1" in table.caption
    alone = cf.measure(runs, test, ["AntiRR"], threshold=4).table()
    assert "users for whom a metric is undefined are left out" in alone.caption
    assert "count as 0, but" not in cf.measure(runs, test, ["P@1"], threshold=4).table().caption


def _reference(users):
    """Return the values of two systems of the design note: a on a lattice of tenths, b near it."""
    u = np.arange(users)
    a = ((17 * u + u // 11) % 11) / 10
    return a, np.clip(a + ((u**2 % 7) - 2.7) / 40, 0, 1)


def test_a_bootstrap_of_few_users_draws_users():
    from cranfield.comparisons.samples import as_scores

    a, b = _reference(400)
    row = as_scores({"a": a, "b": b}).frame(interval="bootstrap").row(0, named=True)
    assert (row["lower"], row["upper"]) == (pytest.approx(0.473), pytest.approx(0.534))
    assert row["interval"] == "95% bootstrap percentile"


@pytest.mark.parametrize("average", ["mean", "median", "weighted(by=judged)"])
def test_a_bootstrap_of_many_users_draws_blocks_and_agrees_with_the_analytic_interval(average):
    from cranfield.comparisons.samples import as_scores

    scores = as_scores({"b": _reference(12_000)[1]})
    by_blocks, analytic = (
        scores.frame(average, interval=kind).row(0, named=True) for kind in ("bootstrap", "analytic")
    )
    assert "10,000 blocks of users" in by_blocks["interval"]
    for end in ("lower", "upper"):
        assert by_blocks[end] == pytest.approx(analytic[end], abs=0.002)
    mixed = scores.of_lists(np.ones(scores.n_lists, dtype=bool))
    assert mixed.frame(average, interval="bootstrap").row(0, named=True) == by_blocks


TWO_USERS = {"mine": {"ann": ["x"], "bob": ["y"]}, "other": {"ann": ["x"], "bob": ["z", "x"]}}


@pytest.mark.parametrize("average", ["mean", "weighted(by=relevant)"])
def test_the_interval_of_two_users_does_not_leave_the_range_of_the_metric(average):
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    scores = cf.measure(TWO_USERS, test, ["RR", "DCG", "Tau"])
    frame = scores.frame(average).filter(pl.col("system") == "mine")
    assert frame["mean"].to_list()[:2] == [0.5, 0.5]
    ends = frame.select("lower", "upper").rows()
    half = stats.t.ppf(0.975, 1) / 2
    assert ends[0] == (0.0, 1.0)  # Student's t reaches from -5.9 to 6.9
    assert ends[1] == pytest.approx((0.0, 0.5 + half))
    assert "0.5000 ±0.5000" in str(scores)


def test_the_range_of_a_metric_does_not_limit_standings_nor_values_outside_of_it():
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    scores = cf.measure(TWO_USERS, test, "RR")
    assert scores.frame("standardised(form=z)")["lower"].min() < -1
    beyond = replace(scores, values=scores.values * 3)
    assert beyond.frame().filter(pl.col("system") == "mine")["upper"].item() > 3


def test_the_interval_of_a_difference_stays_among_possible_differences():
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    row = cf.compare(cf.measure(TWO_USERS, test, ["RR", "DCG"])).frame(detail=True).select("lower", "upper").rows()
    assert row[0] == (-1.0, 1.0)
    assert row[1][0] < -3


def test_joining_does_not_merge_users_whose_ids_are_large_whole_numbers():
    large = 2**53
    parts = [
        cf.measure({"mine": {user: ["x"] for user in users}}, cf.Ratings.of(users, ["x"] * len(users)), "RR")
        for users in ([5.0], [large, large + 1])
    ]
    joined = cf.Scores.join(parts)
    assert joined.per_user()["user"].to_list() == [5, large, large + 1]

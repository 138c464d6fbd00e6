"""One run under every dialect."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import SettingError
from cranfield.measures.other_tools import compare_tools, dialects_table
from cranfield.metrics.dialects import TOOLS

TEST = cf.Ratings.of(["ann", "ann", "bob", "cid", "dan"], ["x", "y", "y", "x", "x"], [5, 4, 4, 5, 2])
RUN = {"mine": {"ann": ["z", "x"], "bob": ["w", "z", "v", "u", "y"], "dan": ["y", "x"], "eve": ["x"]}}


def _values(frame, *columns):
    """Return the columns of each spelling: a tuple of them, or the one."""
    rows = frame.select("spelling", *columns).iter_rows()
    return {row[0]: row[1] if len(columns) == 1 else row[1:] for row in rows}


def _one_world():
    """Many users with many relevant items, as in a dense data set, whose lists are better than chance."""
    rng = np.random.default_rng(0)
    rows, run = [], {}
    for user in range(80):
        items = rng.permutation(400)[: rng.integers(20, 80)]
        rows += [(user, int(item), 5) for item in items]
        noise = rng.random(400) - 0.4 * np.isin(np.arange(400), items)
        run[user] = np.argsort(noise)[:100].tolist()
    return cf.Ratings.of(*zip(*rows)), {"run": run}


def test_one_run_has_three_answers():
    test, run = _one_world()
    ndcg = _values(compare_tools(run, test, "nDCG@100"), "value")
    assert ndcg["nDCG(dialect=replay)@100"] == pytest.approx(ndcg["nDCG(dialect=recommenders)@100"])
    assert len({round(ndcg[f"nDCG(dialect={name})@100"], 4) for name in ("lenskit", "replay", "rectools")}) == 3
    assert ndcg["nDCG(dialect=rectools)@100"] < 0.9 * ndcg["nDCG(dialect=replay)@100"]
    recall = _values(compare_tools(run, test, "Recall@10"), "value")
    assert recall["Recall(dialect=lenskit)@10"] > 2 * recall["Recall(dialect=rectools)@10"]
    assert recall["Recall(dialect=rectools)@10"] == recall["Recall(dialect=replay)@10"]
    precision = _values(compare_tools(run, test, "AP@10"), "value")
    assert precision["AP(dialect=replay)@10"] > 2 * precision["AP(dialect=rectools)@10"]


def test_each_tool_averages_over_its_own_users():
    users = _values(compare_tools(RUN, TEST, "P@5", threshold=4), "users")
    assert users == {
        "P@5": 4,
        "P(dialect=elliot)@5": 2,  # ann, bob
        "P(dialect=implicit)@5": 3,  # also cid, who has no list
        "P(dialect=lenskit)@5": 4,  # ann, bob, dan without relevant items, eve without test ratings
        "P(dialect=ranx)@5": 4,
        "P(dialect=recbole)@5": 3,
        "P(dialect=recommenders)@5": 2,
        "P(dialect=rectools)@5": 3,
        "P(dialect=rectools, r_precision=true)@5": 3,
        "P(dialect=replay)@5": 3,
        "P(dialect=trec_eval)@5": 3,  # ann, bob, dan
    }


def test_recommenders_averages_ndcg_over_other_users_than_precision():
    frame = compare_tools(RUN, TEST, ["nDCG@5", "P@5"], threshold=4).filter(pl.col("tool") == "recommenders")
    assert _values(frame, "users")["nDCG(dialect=recommenders)@5"] == 3
    assert _values(frame, "users")["P(dialect=recommenders)@5"] == 2


def test_the_difference_is_from_ours_and_every_row_says_how_it_comes():
    frame = compare_tools(RUN, TEST, "P@5", threshold=4)
    values = _values(frame, "value", "difference")
    for value, difference in values.values():
        assert difference == value - values["P@5"][0]
    assert values["P@5"][0] == cf.measure(RUN, TEST, "P@5", threshold=4).average()[0, 0]
    how = _values(frame, "how")
    assert "a list shorter than n is divided by its length" in how["P(dialect=lenskit)@5"]
    assert "pooled recall" in how["P(dialect=implicit)@5"]


def test_tools_that_need_a_cutoff_are_left_out_without_one():
    assert set(compare_tools(RUN, TEST, "AP")["tool"]) == {"cranfield", "lenskit", "ranx", "trec_eval"}


def test_rel_and_condensed_are_handed_on():
    frame = compare_tools(RUN, TEST, "P(rel=5, condensed=true)@5")
    assert "P(dialect=lenskit, rel=5, condensed=true)@5" in set(frame["spelling"])
    values = _values(frame, "value")
    assert values["P(dialect=recommenders, rel=5, condensed=true)@5"] == 0.2  # ann's x, alone at rank 1


def test_a_dialect_is_measured_like_any_metric_and_leaves_out_whom_the_tool_does():
    scores = cf.measure(RUN, TEST, ["MAP(dialect=elliot)@2", "P(dialect=replay)@5"], threshold=4)
    assert scores.metrics == ("AP(dialect=elliot)@2", "P(dialect=replay)@5")
    np.testing.assert_allclose(scores.values[0, 0], [0.25, 0.0, np.nan, np.nan])
    np.testing.assert_allclose(scores.values[0, 1], [0.2, 0.2, 0.0, np.nan])


def test_a_published_number_is_found_by_its_printed_digits():
    frame = compare_tools(RUN, TEST, "P@5", threshold=4, published="0.133")
    found = set(frame.filter("agrees")["tool"])
    assert found == {"recbole", "rectools", "replay", "trec_eval"}
    assert "The published number matches" in dialects_table(frame).text()
    nothing = compare_tools(RUN, TEST, "P@5", threshold=4, published=0.987)
    assert not nothing["agrees"].any()
    assert "No dialect gives the published number." in dialects_table(nothing).text()


def test_a_run_whose_only_list_is_of_a_stranger_has_no_value_where_no_user_counts():
    frame = compare_tools({"run": {"zoe": ["x"], "ann": []}}, TEST, "P@5", threshold=4)
    values = _values(frame, "value", "users")
    assert np.isnan(values["P(dialect=elliot)@5"][0])
    assert values["P(dialect=elliot)@5"][1] == 0
    assert values["P(dialect=lenskit)@5"] == (0.0, 1)
    assert "–" in dialects_table(frame).text()


def test_ties_are_averaged_in_expectation_where_ours_are():
    run = {"tied": pl.DataFrame({"user": ["ann"] * 3, "item": ["x", "z", "w"], "score": [1.0] * 3})}
    values = _values(compare_tools(run, TEST, ["AP@2", "nDCG@2"], threshold=4, ties="average"), "value")
    assert values["AP(dialect=replay)@2"] == pytest.approx((1 + 0.5) / 3 / 2 / 3)
    # Whichever of three ranks x has, the sum of the first two discounts is the ideal of two relevant items.
    assert values["nDCG(dialect=replay)@2"] == pytest.approx(1 / 3 / 3)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("nDCG(dialect=lensket)@5", "there is no dialect 'lensket'; did you mean 'lenskit'?"),
        ("F1(dialect=lenskit)@5", "LensKit has no F1; dialect=lenskit is known for AP, HitRate, P, RR, Recall, nDCG"),
        ("nDCG(dialect=rectools)", "needs a cut-off; write nDCG(dialect=rectools)@10"),
        ("nDCG(dialect=rectools, gain=exp)@5", "nDCG(dialect=rectools) has no parameter 'gain'"),
        ("nDCG(dialect=rectools, achievable=2)@5", "achievable=2 of nDCG(dialect=rectools) is neither true nor false"),
        ("nDCG(dialect=ranx, gain=exq)@5", "gain=exq of nDCG(dialect=ranx) is not one of binary, rating, exp; did you"),
        ("AUC(dialect=implicit, items=1)@5", "items=1 of AUC(dialect=implicit) must be a number from 2"),
    ],
)
def test_a_dialect_that_cannot_be_measured_says_why(spelling, message):
    with pytest.raises(SettingError) as error:
        cf.measure(RUN, TEST, spelling)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ("nDCG(dialect=lenskit)@5", {}, "is a dialect already; write nDCG@5"),
        ("ERR@5", {}, "no dialect of ERR is known; dialects are known for AP, AUC, F1"),
        ("P@5", {"published": "about 0.2"}, "the published number 'about 0.2' is not a number"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(metric, options, message):
    with pytest.raises(SettingError, match=message.replace("(", r"\(")):
        compare_tools(RUN, TEST, metric, **options)


def test_every_tool_has_the_metrics_that_are_compared_most():
    for one in TOOLS.values():
        assert {"nDCG", "P", "AP"} <= set(one.dialects), one.name

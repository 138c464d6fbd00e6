"""Levels of relevance: every metric from 1, 3 and 4 of 5, in one call, against test sets made by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError
from cranfield.data import RatingScale
from cranfield.judgments import Judgments, judge
from cranfield.measures import measure
from cranfield.metrics import Metric
from cranfield.metrics.spellings import (
    at_levels,
    average_phrase,
    averaging_phrases,
    deepest,
    legend,
    levels_of,
    metric_phrase,
    relevant_items,
    spelled_metric,
    undefined_phrase,
)
from cranfield.rankings import read_run

TEST = Ratings.of(["ann"] * 5 + ["bob"] * 2, [*"abcde", *"ab"], [5, 4, 3, 2, 1, 2, 1])
RUN = pl.DataFrame(
    {"user": ["ann"] * 5 + ["bob"] * 2, "item": [*"edcba", *"ab"], "score": [5.0, 4.5, 3.5, 2.5, 1.5, 3.0, 2.0]}
)


def test_each_metric_is_measured_as_it_is_and_at_three_levels():
    scores = measure({"mine": RUN}, TEST, ["P@2", "nDCG@2", "SDCSE", "ItemCoverage"], threshold=4, levels="all")
    spelled = [
        f"{name}({level}){end}" for name, end in (("P", "@2"), ("nDCG", "@2"), ("SDCSE", "")) for level in LEVELS
    ]
    plain = ["P@2", "nDCG@2", "SDCSE", "ItemCoverage"]
    assert set(scores.metrics) == {*plain, *spelled}
    assert scores.metrics[:4] == ("P@2", "P(rel=1)@2", "P(rel=3)@2", "P(rel=4)@2")
    assert "levels of relevance: Low-High from 1, Medium-High from 3, High from 4" in map(str, scores.notes)
    assert scores.step.settings["levels"] == "all"


LEVELS = ["rel=1", "rel=3", "rel=4"]


def test_the_scale_is_that_of_test_and_training_ratings():
    train = Ratings.of(["ann", "ann"], ["q", "r"], [1, 10])
    scores = measure({"mine": RUN}, TEST, ["P@2"], threshold=4, levels="all", train=train)
    assert scores.metrics == ("P@2", "P(rel=1)@2", "P(rel=5.5)@2", "P(rel=7.75)@2")
    assert at_levels(["P@5", "Recall(rel=2)@5", "my:own@3"], RatingScale(0, 0)) == (
        "P@5", "P(rel=0)@5", "Recall(rel=2)@5", "my:own@3", "my:own(rel=0)@3",
    )  # fmt: skip


@given(data=st.data(), level=st.integers(0, 5), n=st.integers(1, 6))
def test_a_level_is_the_threshold_the_items_or_the_gains(data, level, n, worlds, judged_of, ratings_of, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, threshold=3)
    # Binary metrics: the threshold.
    same(Metric.of(f"AP(rel={level})@{n}")(judged), Metric.of(f"AP@{n}")(judged.at(level)))
    # Graded metrics: lower ratings become 0, which has no gain.
    lowered = {user: {i: r if r >= level else 0 for i, r in profile.items()} for user, profile in test.items()}
    by_hand = judge(judged.run, Judgments.of(ratings_of(lowered), float(level)))
    for metric in ("nDCG@{}", "nDCG({}gain=exp)@{}", "DCG@{}", "ERR({}rmax=5)@{}"):
        left, _, right = metric.partition("({}") if "({}" in metric else metric.partition("@")
        spelling = f"{left}(rel={level}, {right.format(n)}" if "({}" in metric else f"{left}(rel={level})@{n}"
        plain = f"{left}({right.format(n)}" if "({}" in metric else f"{left}@{n}"
        same(Metric.of(spelling)(judged), Metric.of(plain)(by_hand), spelling)
    # Errors and agreement: only items of the level, and a cut-off counts these.
    kept = {user: {i: r for i, r in profile.items() if r >= level} for user, profile in test.items()}
    users = [user for user in sorted(test) if kept[user]]
    for metric in ("SDCSE", "RMSE", "Tau"):
        values = Metric.of(f"{metric}(rel={level})@{n}")(judged)
        of_users = dict(zip(sorted(test), values))
        assert all(np.isnan(of_users[user]) for user in test if user not in users)
        if users:
            smaller = judged_of(run, {user: kept[user] for user in users})
            same([of_users[user] for user in users], Metric.of(f"{metric}@{n}")(smaller), metric)


def test_a_gain_of_ones_own_is_0_below_the_level():
    cf.gain("plus-one", replace=True)(lambda ratings: ratings + 1.0)
    judged = judge(read_run(RUN, name="r"), TEST)
    # ann's list is e d c b a: only b and a gain anything, 5 and 6 at ranks 4 and 5.
    gained = 5 / np.log2(5) + 6 / np.log2(6)
    assert Metric.of("DCG(gain=plus-one, rel=4)")(judged)[0] == pytest.approx(gained)


def test_a_level_of_rating_errors_and_unrated_items_exclude_each_other():
    with pytest.raises(SettingError, match="rel looks only at items rated 4 or more; leave out rel or unrated"):
        measure({"mine": RUN}, TEST, ["SDCSE(rel=4, unrated=0)"])


def test_samples_of_the_test_set_are_measured_at_the_same_levels():
    from cranfield.assessments.fold import Sampling, measured
    from cranfield.assessments.subset_scores import MaskedScores
    from cranfield.measures.averages import Average

    runs = [judge(read_run(RUN, name=name), TEST, threshold=4) for name in "ab"]
    metrics = [
        Metric.of(name) for name in ("nDCG(rel=4)@3", "P(rel=4)@3", "SDCSE(rel=3)", "nDCG(gain=binary, rel=4)@3")
    ]
    mask = np.array([True, False, True, True, True, True, False])
    means = measured(MaskedScores(runs, metrics), mask, Sampling((Average.of("mean"),))).averages[0]
    smaller = runs[0].only(mask)
    for metric, mean in zip(metrics, means):
        values = metric(smaller)
        expected = np.nan_to_num(values).mean() if metric.zero_if_undefined else np.nanmean(values)
        assert mean.tolist() == pytest.approx([expected] * 2)


def test_metrics_are_spelled_in_one_way_and_own_code_is_not_imported():
    assert spelled_metric("ndcg@ 10") == "nDCG@10"
    assert spelled_metric("mine:hits@ 10") == "mine:hits@10"


def test_the_deepest_metric_and_its_depth_in_words():
    assert deepest(["P@10", "nDCG@100"]) == ("nDCG@100", "@100")
    assert deepest(["P@10", "AP"]) == ("AP", " in the whole list")


def test_levels_follow_the_metric_that_uses_ratings():
    spelled = ("nDCG@10", "nDCG(rel=1)@10", "nDCG(rel=3)@10", "nDCG(rel=4)@10", "ILD@10")
    assert at_levels(["nDCG@10", "ILD@10"], RatingScale(1, 5)) == spelled
    said = "levels of relevance: Low-High from 1, Medium-High from 5.5, High from 7.75"
    assert str(levels_of(RatingScale(1, 10))) == said


def test_metrics_and_averages_have_words_if_there_are_any():
    assert metric_phrase("nDCG(gain=exp)@10") == "nDCG@10 with exponential gain"
    assert metric_phrase("RBP(p=0.8)") == "RBP(p=0.8)"
    assert average_phrase("mean") == "plain mean"
    assert average_phrase("trimmed(share=0.1)") == "trimmed(share=0.1)"
    said = ["average: mean", "users without a list count as 0"]
    assert averaging_phrases({"average": "mean", "coverage": "full"}) == said
    assert legend(["system", "P@10", "users"]) == "users: share of the users who get a list"


def test_users_without_a_value_count_as_0_unless_that_is_a_result():
    assert undefined_phrase("zero", ["P@10", "AntiRR@10"]) == "count as 0, but are left out by AntiRR@10"
    assert undefined_phrase("zero", ["AntiRR@10"]) == "are left out"


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["P@10", "nDCG@10", "nDCG@100", "AP@100"], "relevant from 4 (P, AP); nDCG: gain = rating"),
        (["P@10", "nDCG(gain=binary)@10"], "relevant from 4"),
        (["nDCG(gain=exp)@10"], "nDCG(gain=exp): gain = 2^rating − 1"),
    ],
)
def test_what_gives_an_item_its_value(metrics, said):
    assert str(relevant_items(metrics, 4.0)) == said

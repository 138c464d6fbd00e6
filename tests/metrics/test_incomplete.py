"""Metrics for incomplete judgments against loops written from their definitions."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.measures import measure
from cranfield.metrics import Metric, bounds

THRESHOLD, EPSILON = 3, 1e-5


def _bpref(items, profile):
    relevant = sum(rating >= THRESHOLD for rating in profile.values())
    others = len(profile) - relevant
    total, above = 0.0, 0
    for item in items:
        if item in profile and profile[item] >= THRESHOLD:
            total += 1 - min(above, relevant) / min(others, relevant) if above else 1
        elif item in profile:
            above += 1
    return total / relevant


def _inferred(items, profile, pool):
    total, good, bad = 0.0, 0, 0
    for k, item in enumerate(items, 1):
        if profile.get(item, -1) >= THRESHOLD:
            pooled = k - 1 if pool == "all" else good + bad
            total += 1 if k == 1 else 1 / k + pooled / k * (good + EPSILON) / (good + bad + 2 * EPSILON)
            good += 1
        elif item in profile:
            bad += 1
    return total / sum(rating >= THRESHOLD for rating in profile.values())


@given(data=st.data(), n=st.integers(1, 14))
def test_bpref_and_inferred_precision_equal_their_definitions(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    definitions = {
        f"bpref@{n}": _bpref,
        f"infAP@{n}": lambda items, profile: _inferred(items, profile, "all"),
        f"infAP(pool=judged)@{n}": lambda items, profile: _inferred(items, profile, "judged"),
    }
    for spelling, definition in definitions.items():
        expected = [
            definition(ranked(run.get(user, {}))[:n], test[user]) if max(test[user].values()) >= THRESHOLD else math.nan
            for user in sorted(test)
        ]
        same(Metric.of(spelling)(judged), expected, spelling)


def test_an_unknown_pool_is_an_error(judged_of):
    with pytest.raises(SettingError, match="pool=some"):
        Metric.of("infAP(pool=some)")(judged_of({1: {7: 2.0}}, {1: {7: 5}}))


THRESHOLD = 3
NAMES = ["P", "Recall", "F1", "HitRate", "RR", "AP", "AUC", "nDCG", "nDCG(gain=exp)", "ERR", "RBP", "bpref", "infAP"]


@given(data=st.data(), n=st.one_of(st.none(), st.integers(1, 14)), ties=st.sampled_from(["trec_eval", "average"]))
def test_both_ends_equal_the_metric_with_the_judgments_filled_in(data, n, ties, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, ties)
    top = max(THRESHOLD, max(rating for profile in test.values() for rating in profile.values()))
    filled = []
    for grade in (0, top):
        full = {}
        for user, profile in test.items():
            scores = run.get(user, {})
            last = scores[ranked(scores)[:n][-1]] if scores else 0.0
            reached = ranked(scores)[:n] if ties == "trec_eval" else [i for i in scores if scores[i] >= last]
            full[user] = dict.fromkeys(reached, grade) | profile
        filled.append(judged_of(run, full, THRESHOLD, ties))
    for name in NAMES:
        spelling = name if n is None else f"{name}@{n}"
        low, high = bounds(spelling, judged)
        ends = [Metric.of(spelling)(one) for one in filled]
        if name == "ERR" and top > judged.judgments.top_grade:
            continue  # the highest rating of the test set is another
        defined = ~np.isnan(ends[0]) & ~np.isnan(ends[1])
        same(low, np.where(defined, np.minimum(*ends), ends[0]), spelling)
        same(high, np.where(defined, np.maximum(*ends), ends[1]), spelling)


@given(data=st.data(), n=st.integers(1, 14))
def test_the_lower_end_is_the_metric_itself_where_unjudged_counts_as_not_relevant(data, n, worlds, judged_of, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    for name in ("P", "Recall", "RR", "nDCG(gain=binary)", "RBP", "HitRate"):
        metric = Metric.of(f"{name}@{n}")
        low, high = bounds(metric, judged)
        if not name.startswith("nDCG"):
            same(low, metric(judged), name)
        assert (low <= high + 1e-12)[~np.isnan(low)].all(), name


@given(data=st.data(), n=st.integers(1, 14))
def test_the_width_of_rbp_is_its_residual_without_the_tail(data, n, worlds, judged_of, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    low, high = bounds(f"RBP(p=0.8)@{n}", judged)
    tail = 0.8 ** judged.cut(n).lengths.astype(float)
    same(high - low, Metric.of(f"RBPresidual(p=0.8)@{n}")(judged) - tail)


def test_a_threshold_of_the_metric_holds_for_both_ends(judged_of):
    judged = judged_of({1: {1: 3.0, 2: 2.0, 3: 1.0}}, {1: {1: 3, 3: 5}})
    assert [end.tolist() for end in bounds("P(rel=4)@3", judged)] == [[1 / 3], [2 / 3]]


def test_a_rating_of_zero_that_is_relevant_does_not_count_for_the_lower_end(judged_of):
    judged = judged_of({1: {1: 3.0, 2: 2.0}}, {1: {1: 0}}, threshold=0)
    assert [end.tolist() for end in bounds("P@2", judged)] == [[0.5], [1.0]]


def test_condensed_lists_have_no_uncertainty(judged_of):
    judged = judged_of({1: {1: 3.0, 2: 2.0, 3: 1.0}}, {1: {1: 3, 3: 5}}, threshold=4)
    for lists, spelling in ((judged, "P(condensed=true)@2"), (judged.condensed(), "P@2")):
        assert [end.tolist() for end in bounds(spelling, lists)] == [[0.5], [0.5]]


def test_other_metrics_have_no_bounds(judged_of):
    judged = judged_of({1: {1: 3.0}}, {1: {1: 3}})
    for name in ("MAE", "Gini", "Tau"):
        with pytest.raises(SettingError, match="has no bounds from missing judgments"):
            bounds(name, judged)


def test_errors_of_predictions_have_no_bounds():
    test = Ratings.of(["u", "u"], ["a", "b"], [5, 3])
    run = pl.DataFrame({"user": ["u", "u"], "item": ["a", "c"], "prediction": [4.0, 2.0]})
    frame = measure({"s": run}, test, ["P@2", "MAE"], bounds=True, threshold=4).frame()
    assert frame.select("metric", "least", "most").rows() == [("P@2", 0.5, 1.0), ("MAE", None, None)]

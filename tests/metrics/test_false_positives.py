"""False-positive metrics against loops written from their definitions."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield.metrics import Metric

THRESHOLD = 3


def _loss(rating, kind):
    if rating >= THRESHOLD:
        return 0.0
    return {"linear": THRESHOLD - rating, "binary": 1.0, "exp": 2.0 ** (THRESHOLD - rating) - 1.0}[kind]


def _discounted(losses):
    return sum(loss / math.log2(k + 1) for k, loss in enumerate(losses, 1))


def _ndcl(items, profile, n, kind):
    lost = _discounted(_loss(profile[item], kind) if item in profile else 0.0 for item in items)
    return lost / _discounted(sorted((_loss(rating, kind) for rating in profile.values()), reverse=True)[:n])


@given(data=st.data(), n=st.integers(1, 14))
def test_false_positive_metrics_equal_their_definitions(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    expected = {name: [] for name in ("AntiP", "Fallout", "AntiRR", "NDCL", "NDCL(loss=binary)", "NDCL(loss=exp)")}
    for user in sorted(test):
        profile, items = test[user], ranked(run.get(user, {}))[:n]
        disliked = [item for item, rating in profile.items() if rating < THRESHOLD]
        ranks = [k for k, item in enumerate(items, 1) if item in disliked]
        expected["AntiP"].append(len(ranks) / n)
        expected["Fallout"].append(len(ranks) / len(disliked) if disliked else math.nan)
        expected["AntiRR"].append((1 / ranks[0] if ranks else 0.0) if disliked else math.nan)
        for kind in ("linear", "binary", "exp"):
            name = "NDCL" if kind == "linear" else f"NDCL(loss={kind})"
            expected[name].append(_ndcl(items, profile, n, kind) if disliked else math.nan)
    for name, values in expected.items():
        same(Metric.of(f"{name}@{n}")(judged), values, name)


def test_lower_is_better_and_users_without_disliked_items_are_left_out():
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 1, 5])
    runs = {"likes": {"ann": ["x", "y"], "bob": ["x"]}, "dislikes": {"ann": ["y", "x"], "bob": ["x"]}}
    scores = cf.measure(runs, test, ["AntiRR", "Fallout@1"], threshold=4)
    assert scores.lower_is_better == (True, True)
    assert scores.frame().select("mean", "lists").rows() == [(0.5, 1), (0.0, 1), (1.0, 1), (1.0, 1)]


def test_missing_judgments_bound_them(same):
    test = cf.Ratings.of(["ann", "ann"], ["x", "y"], [5, 1])
    judged = cf.judge({"run": {"ann": ["z", "y", "w", "x"]}}, test, threshold=4)
    judged = judged[0] if isinstance(judged, list) else judged
    assert [end.tolist() for end in cf.metrics.bounds("AntiP@4", judged)] == [[0.25], [0.75]]
    assert [end.tolist() for end in cf.metrics.bounds("AntiRR", judged)] == [[0.5], [1.0]]

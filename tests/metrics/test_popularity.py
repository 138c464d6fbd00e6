"""Popularity-aware metrics against loops written from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError
from cranfield.measures import by_popularity
from cranfield.metrics import Metric
from cranfield.metrics.popularity import calibrated

THRESHOLD = 3
TRAIN = {100 + user: {item: 1 + (user + item) % 5 for item in range(0, 13, 1 + user % 4)} for user in range(12)}


def _counts(positive):
    counts = {}
    for profile in TRAIN.values():
        for item, rating in profile.items():
            counts[item] = counts.get(item, 0) + (rating >= THRESHOLD or not positive)
    return counts


def _relevant(profile):
    return [item for item, rating in profile.items() if rating >= THRESHOLD]


@given(data=st.data(), n=st.integers(1, 13), gamma=st.sampled_from([0.0, 1.0, 3.0, math.inf]))
def test_stratified_recall_equals_its_definition(data, n, gamma, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, train=TRAIN)
    beta = 1.0 if math.isinf(gamma) else gamma / (gamma + 1)
    for count in ("positive", "all"):
        counts = _counts(count == "positive")
        found, whole = [], []
        for user in sorted(test):
            weights = {item: counts[item] ** -beta for item in _relevant(test[user]) if counts.get(item)}
            found.append(sum(weights.get(item, 0) for item in ranked(run.get(user, {}))[:n]))
            whole.append(sum(weights.values()))
        text = f"StratRecall(gamma={gamma}, count={count}"
        expected = [a / b if b else math.nan for a, b in zip(found, whole)]
        same(Metric.of(f"{text})@{n}")(judged), expected)
        overall = np.mean(Metric.of(f"{text}, weights=global)@{n}")(judged))
        same(overall, sum(found) / sum(whole) if sum(whole) else math.nan)


def _chances(counts, gamma, test):
    """Probabilities that sum to the number of test ratings over the unseen pairs of test users with known items."""
    weights = {item: count ** ((gamma + 1) / 2) for item, count in counts.items() if count}
    # The training users are not the test users, so every pair is unseen.
    total, low, high = sum(map(len, test.values())), 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        expected = sum(len(test) * min(1.0, middle * weight) for weight in weights.values())
        low, high = (middle, high) if expected < total else (low, middle)
    return {item: min(1.0, high * weight) for item, weight in weights.items()}


def _utility(name, rank, items):
    return {"recall": 1.0, "dcg": 1 / math.log2(rank + 1), "auc": 1 - rank / items}[name]


@given(data=st.data(), n=st.integers(1, 13), gamma=st.sampled_from([-1.0, 0.0, 1.5]))
def test_propensity_estimators_equal_their_definitions(data, n, gamma, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, train=TRAIN)
    counts = _counts(positive=False)
    items = len(set(counts) | {item for profile in test.values() for item in profile})
    chance = _chances(counts, gamma, test)
    for utility in ("recall", "dcg", "auc"):
        plain, ips, snips = [], [], []
        for user in sorted(test):
            order, relevant = ranked(run.get(user, {}))[:n], _relevant(test[user])
            worth = {item: _utility(utility, k, items) for k, item in enumerate(order, 1) if item in relevant}
            inverse = {item: 1 / chance[item] for item in relevant if counts.get(item)}
            corrected = sum(worth.get(item, 0) * value for item, value in inverse.items())
            plain.append(sum(worth.values()) / len(relevant) if relevant else math.nan)
            ips.append(corrected / items if inverse else math.nan)
            snips.append(corrected / sum(inverse.values()) if inverse else math.nan)
        same(Metric.of(f"AOA(utility={utility})@{n}")(judged), plain)
        same(Metric.of(f"IPS(utility={utility}, gamma={gamma})@{n}")(judged), ips)
        same(Metric.of(f"SNIPS(utility={utility}, gamma={gamma})@{n}")(judged), snips)


@given(data=st.data(), n=st.integers(1, 13), half_life=st.sampled_from([1.5, 2.0, 5.0]))
def test_the_half_life_score_equals_its_definition(data, n, half_life, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, train=TRAIN)
    counts = _counts(positive=False)
    for popularity in ("none", "inverse"):
        gained, best = [], []
        for user in sorted(test):
            worth = {item: 1.0 if popularity == "none" else 1 / counts[item] for item in _relevant(test[user])
                     if popularity == "none" or counts.get(item)}  # fmt: skip
            discount = [2.0 ** (-k / (half_life - 1)) for k in range(n)]
            gained.append(sum(worth.get(item, 0) * d for item, d in zip(ranked(run.get(user, {})), discount)))
            best.append(sum(w * d for w, d in zip(sorted(worth.values(), reverse=True), discount)))
        spelling = f"RScore(half_life={half_life}, popularity={popularity}"
        same(Metric.of(f"{spelling})@{n}")(judged), [a / b if b else math.nan for a, b in zip(gained, best)])
        values = Metric.of(f"{spelling}, weights=global)@{n}")(judged)
        known = [bool(_relevant(test[user])) for user in sorted(test)]
        if sum(best):
            same(np.nansum(values), sum(gained) / (sum(best) / len(best)))
            assert (~np.isnan(values)).tolist() == known


def test_special_cases_are_what_they_should_be(judged_of, same):
    run = {1: {item: -float(item) for item in range(8)}, 2: {item: float(item) for item in range(4)}}
    judged = judged_of(run, {1: {0: 5, 3: 5, 9: 5}, 2: {1: 5, 7: 3}}, THRESHOLD, train=TRAIN)
    same(Metric.of("StratRecall(gamma=0, count=all, smooth=1)@5")(judged), Metric.of("Recall@5")(judged))
    same(Metric.of("SNIPS(gamma=-1, smooth=1)@5")(judged), Metric.of("Recall@5")(judged))
    same(Metric.of("SNIPS(gamma=0)@5")(judged), Metric.of("StratRecall(gamma=1, count=all)@5")(judged))
    same(Metric.of("IPS(clip=1)@5")(judged), Metric.of("Recall@5")(judged) * judged.n_relevant / 13)
    # The exponent of Yang et al. (2018).
    for name in ("IPS", "SNIPS"):
        same(Metric.of(f"{name}@5")(judged), Metric.of(f"{name}(gamma=1.5)@5")(judged))


def test_an_item_without_training_ratings_has_no_weight_unless_smoothed(judged_of, same):
    judged = judged_of({1: {77: 1.0}}, {1: {77: 5}, 2: {77: 5, 0: 5}}, THRESHOLD, train=TRAIN)
    same(Metric.of("StratRecall")(judged), [math.nan, 0.0])
    same(Metric.of("StratRecall(smooth=1)")(judged), [1.0, 0.0])
    same(Metric.of("SNIPS")(judged), [math.nan, 0.0])


def test_what_is_missing_or_wrong_is_an_error(judged_of):
    run, test = {1: {1: 1.0}}, {1: {1: 5}}
    for name in ("StratRecall", "IPS", "SNIPS"):
        with pytest.raises(SettingError, match=f"{name} needs the training ratings; give them as train="):
            Metric.of(name)(judged_of(run, test))
    judged = judged_of(run, test, train=TRAIN)
    for spelling in (
        "StratRecall(gamma=-1)",
        "StratRecall(count=some)",
        "StratRecall(weights=item)",
        "IPS(clip=2)",
        "IPS(gamma=inf)",
        "SNIPS(utility=err)",
        "SNIPS(smooth=-1)",
    ):
        with pytest.raises(SettingError):
            Metric.of(spelling)(judged)


@given(data=st.data(), n=st.integers(1, 13))
def test_a_metric_by_popularity_is_that_of_the_test_items_of_each_group(data, n, worlds, judged_of, ratings_of, same):
    run, test = data.draw(worlds)
    counts = _counts(positive=False)
    order = sorted(counts, key=lambda item: (-counts[item], item))
    settings = {"train": ratings_of(TRAIN), "threshold": THRESHOLD, "groups": 2, "of": "items"}
    frame = by_popularity({"mine": run}, ratings_of(test), ["Recall@5", f"P@{n}"], **settings)
    assert frame["ratings"].sum() == 2 * sum(map(len, test.values()))
    half = (len(order) + 1) // 2 if len(order) % 2 == 0 else len(order) // 2
    head = {user: {i: r for i, r in profile.items() if i in order[:half]} for user, profile in test.items()}
    head = {user: profile for user, profile in head.items() if profile}
    values = Metric.of("Recall@5")(judged_of(run, head, THRESHOLD)) if head else np.zeros(0)
    values = values[~np.isnan(values)]
    row = frame.row(0, named=True)
    assert (row["group"], row["metric"], row["lists"]) == ("1", "Recall@5", len(values))
    same(row["mean"], values.mean() if len(values) else math.nan)


def test_popularity_groups_are_shared_out_as_their_shares_read():
    # The midpoints of five items, .1, .3, .5, .7 and .9, are at the boundaries of tenths.
    train, test = Ratings.of(range(5), range(5)), Ratings.of([0] * 5, range(5))
    frame = by_popularity({"mine": {0: [0]}}, test, "Recall", train=train, groups=10, of="items")
    assert frame["items"].to_list() == [0, 1] * 5


def test_head_mid_and_tail_hold_their_shares_of_the_ratings(ratings_of):
    train = {user: {1: 5} for user in range(20)} | {50 + u: {10 + u % 12: 5} for u in range(60)}
    train |= {500 + u: {30 + u: 5} for u in range(20)}
    runs, test = {"mine": {1: {1: 1.0}}}, ratings_of({1: {1: 5, 10: 5, 35: 5}})
    frame = by_popularity(runs, test, "Recall", train=ratings_of(train))
    assert frame.select("group", "ratings", "mean").rows() == [("head", 1, 1.0), ("mid", 1, 0.0), ("tail", 1, 0.0)]
    with pytest.raises(SettingError, match=r"sum to 0\.9"):
        by_popularity(runs, test, "Recall", train=ratings_of(train), groups={"head": 0.2, "tail": 0.7})


@pytest.mark.parametrize("of", ["items", "ratings"])
def test_a_test_item_without_training_ratings_is_of_the_least_popular_group(of, ratings_of):
    train = ratings_of({1: {1: 5, 2: 5, 3: 5}, 2: {1: 5, 2: 5}, 3: {1: 5}})
    test = ratings_of({1: {1: 5, 77: 5, 78: 5}})
    frame = by_popularity({"mine": {1: {77: 2.0}}}, test, "Recall", train=train, groups=3, of=of)
    assert frame["ratings"].to_list() == [1, 0, 2]
    assert frame["mean"].to_list()[::2] == [0.0, 0.5]


def test_shares_of_popularity_groups_are_shares_also_where_they_sum_to_1(ratings_of):
    train, test = ratings_of({1: {1: 5}}), ratings_of({1: {1: 5}})
    with pytest.raises(SettingError, match=r"head=1\.5"):
        by_popularity({"mine": {1: [1]}}, test, "Recall", train=train, groups={"head": 1.5, "tail": -0.5})


def test_snips_is_stratified_recall_unless_a_probability_reaches_1():
    """Here all unseen pairs but one are rated, so the two most popular items are certain to be."""
    counts = {0: 50, 1: 20, 2: 1}
    train = cf.read([(100 + user, item, 5) for item, times in counts.items() for user in range(times)])
    pairs = [(user, item, 5) for user in range(10) for item in counts if (user, item) != (9, 2)]
    runs = {"mine": {user: [0] for user in range(10)}}
    scores = cf.measure(runs, cf.read(pairs), ["SNIPS(gamma=1)", "StratRecall(gamma=inf, count=all)"], train=train)
    inverse = {0: 1.0, 1: 1.0, 2: 10 / 9}  # the last item is rated by 9 of 10 users
    assert scores.values[0, 0, 0] == pytest.approx(inverse[0] / sum(inverse.values()))
    assert scores.values[0, 1, 0] == pytest.approx((1 / 50) / (1 / 50 + 1 / 20 + 1))


def test_calibrated_probabilities_are_at_most_1_and_sum_to_the_observed_pairs():
    pairs = np.array([10.0, 10.0])
    assert calibrated(np.array([1.0, 3.0]), pairs, 8.0).tolist() == pytest.approx([0.2, 0.6])
    assert calibrated(np.array([1.0, 9.0]), pairs, 15.0).tolist() == [0.5, 1.0]

"""Binary ranking metrics against loops written from their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.metrics import Metric

THRESHOLD = 3


def _hits(items, profile, n):
    return [k for k, item in enumerate(items[:n], 1) if profile.get(item, -1) >= THRESHOLD]


def _precision(items, profile, n):
    return len(_hits(items, profile, n)) / n


def _recall(items, profile, n):
    return len(_hits(items, profile, n)) / _relevant(profile)


def _f1(items, profile, n):
    p, r = _precision(items, profile, n), _recall(items, profile, n)
    return 2 * p * r / (p + r) if p + r else 0.0


def _hit_rate(items, profile, n):
    return float(bool(_hits(items, profile, n)))


def _reciprocal_rank(items, profile, n):
    return 1 / _hits(items, profile, n)[0] if _hits(items, profile, n) else 0.0


def _average_precision(items, profile, n):
    return sum(_precision(items, profile, k) for k in _hits(items, profile, n)) / _relevant(profile)


def _r_precision(items, profile, n):
    return len(_hits(items, profile, _relevant(profile))) / _relevant(profile)


def _auc(items, profile, n):
    relevant = [k in _hits(items, profile, n) for k in range(1, len(items[:n]) + 1)]
    others = relevant.count(False)
    pairs = sum(relevant[i] and not relevant[j] for i in range(len(relevant)) for j in range(i + 1, len(relevant)))
    return pairs / (_relevant(profile) * others) if others else math.nan


def _relevant(profile):
    return sum(rating >= THRESHOLD for rating in profile.values())


DEFINITIONS = {
    "P": _precision,
    "Recall": _recall,
    "F1": _f1,
    "HitRate": _hit_rate,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
    "Rprec": _r_precision,
    "AUC": _auc,
}


@given(data=st.data(), n=st.integers(1, 14))
def test_each_equals_its_definition(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    for name, definition in DEFINITIONS.items():
        expected = [
            definition(ranked(run.get(user, {})), test[user], n) if _relevant(test[user]) else math.nan
            for user in sorted(test)
        ]
        same(Metric.of(name if name == "Rprec" else f"{name}@{n}")(judged), expected, name)


@given(data=st.data())
def test_without_cut_off_precision_and_f1_are_over_the_length_of_the_list(data, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    for name in ("P", "F1"):
        expected = []
        for user in sorted(test):
            items = ranked(run.get(user, {}))
            value = DEFINITIONS[name](items, test[user], len(items)) if items and _relevant(test[user]) else 0.0
            expected.append(value if _relevant(test[user]) else math.nan)
        same(Metric.of(name)(judged), expected)


def test_a_test_user_without_a_list_scores_zero_and_one_without_relevant_items_is_undefined(judged_of, same):
    judged = judged_of({1: {7: 1.0}}, {1: {7: 5}, 2: {7: 5}, 3: {7: 1}}, threshold=4)
    for name in ("P@1", "P", "Recall", "F1", "HitRate", "RR", "AP", "Rprec", "nDCG(gain=binary)@3", "bpref", "infAP"):
        same(Metric.of(name)(judged), [1.0, 0.0, math.nan], name)


def test_the_lowest_relevant_rating_can_be_given_by_metric(judged_of):
    judged = judged_of({1: {7: 2.0, 8: 1.0}}, {1: {7: 3, 8: 5}}, threshold=1)
    assert Metric.of("RR(rel=4)")(judged).tolist() == [0.5]
    assert Metric.of("RR")(judged).tolist() == [1.0]


NAMES = ["P", "Recall", "F1", "HitRate", "RR", "AP", "DCG", "nDCG", "nDCG(gain=exp)", "RBP(p=0.8)"]
NAMES += ["RBPresidual(p=0.8)", "Unjudged", "StratRecall(gamma=1)", "SNIPS(utility=dcg)"]
NAMES += ["AntiP", "Fallout", "AntiRR", "NDCL", "NDCL(loss=exp)", "RScore", "RScore(popularity=inverse)"]
TRAIN = {1000 + user: dict.fromkeys(range(user + 1), 5) for user in range(6)}


def _orders(scores):
    """Every order of a list that its ties allow."""
    groups = [
        [item for item in scores if scores[item] == value] for value in sorted(set(scores.values()), reverse=True)
    ]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [item for order in orders for item in order]


@given(
    scores=st.dictionaries(st.integers(0, 4), st.sampled_from([1.0, 2.0]), min_size=1),
    profile=st.dictionaries(st.integers(0, 7), st.integers(0, 5), min_size=1, max_size=5),
    n=st.integers(1, 7),
    condensed=st.booleans(),
)
def test_each_equals_its_mean_over_all_orders(scores, profile, n, condensed, judged_of, same):
    _check_means_over_all_orders(scores, profile, n, condensed, judged_of, same)


@pytest.mark.parametrize("seed", range(20))
def test_each_equals_its_mean_over_all_orders_of_lists_with_many_relevant_items(seed, judged_of, same):
    rng = np.random.default_rng(seed)
    scores = dict(enumerate(rng.choice([1.0, 2.0], 5).tolist()))
    profile = {item: int(rng.integers(0, 6)) for item in range(7) if item == seed % 5 or rng.random() < 0.6}
    _check_means_over_all_orders(scores, profile, int(rng.integers(1, 6)), bool(seed % 2), judged_of, same)


def _check_means_over_all_orders(scores, profile, n, condensed, judged_of, same):
    orders = list(_orders(scores))
    runs = {user: {item: float(-k) for k, item in enumerate(order)} for user, order in enumerate(orders)}
    every = judged_of(runs, dict.fromkeys(range(len(orders)), profile), 3, train=TRAIN)
    averaged = judged_of({0: scores}, {0: profile}, 3, ties="average", train=TRAIN)
    if condensed:
        every, averaged = every.condensed(), averaged.condensed()
    for spelling in [*NAMES, *(f"{name}@{n}" for name in NAMES), "Rprec", "AUC"]:
        metric = Metric.of(spelling)
        same(metric(averaged), [np.mean(metric(every))], spelling)


@given(
    scores=st.dictionaries(st.integers(0, 5), st.sampled_from([1.0, 2.0]), min_size=2),
    profile=st.dictionaries(st.integers(0, 5), st.integers(0, 5), min_size=2, max_size=5),
)
def test_ap_correlation_equals_its_mean_over_all_orders(scores, profile, judged_of, same):
    orders = list(_orders(scores))
    runs = {user: {item: float(-k) for k, item in enumerate(order)} for user, order in enumerate(orders)}
    every = judged_of(runs, dict.fromkeys(range(len(orders)), profile), 3)
    averaged = judged_of({0: scores}, {0: profile}, 3, ties="average")
    tied_throughout = len(set(averaged.tied_from)) < 2  # then the system has no order at all: undefined
    expected = np.nan if tied_throughout else np.mean(Metric.of("TauAP")(every))
    same(Metric.of("TauAP")(averaged), [expected])


@given(
    scores=st.dictionaries(st.integers(0, 5), st.sampled_from([1.0, 2.0]), min_size=1),
    profile=st.dictionaries(st.integers(0, 7), st.integers(0, 5), min_size=1, max_size=5),
    n=st.integers(1, 7),
)
def test_what_cannot_be_averaged_over_a_tie_across_the_cut_off_breaks_it(scores, profile, n, judged_of, ranked, same):
    whole = judged_of({0: scores}, {0: profile}, 3, ties="average")
    first = judged_of({0: {item: scores[item] for item in ranked(scores)[:n]}}, {0: profile}, 3, ties="average")
    for name in ("AUC", "Tau(condensed=false)", "Spearman(condensed=false)"):
        same(Metric.of(f"{name}@{n}")(whole), Metric.of(name)(first), name)
    plain = judged_of({0: scores}, {0: profile}, 3)
    for name in ("bpref", "infAP", "ERR", "MAE", "RMSE", "SDCSE", "FullRank"):
        same(Metric.of(f"{name}@{n}")(whole), Metric.of(f"{name}@{n}")(plain), name)


@pytest.mark.parametrize("seed", range(5))
def test_the_value_of_a_list_does_not_depend_on_the_others(seed, judged_of, same):
    rng = np.random.default_rng(seed)
    runs = {user: {int(item): float(rng.integers(1, 3)) for item in rng.permutation(6)[:3]} for user in range(12)}
    profiles = {user: {int(item): int(rng.integers(2, 5)) for item in rng.permutation(8)[:3]} for user in range(12)}
    together = judged_of(runs, profiles, 3, ties="average", train=TRAIN)
    alone = [judged_of({u: runs[u]}, {u: profiles[u]}, 3, ties="average", train=TRAIN) for u in range(12)]
    for spelling in [*NAMES, *(f"{name}@2" for name in NAMES), "Rprec", "AUC"]:
        metric = Metric.of(spelling)
        same(metric(together), [metric(lists).item() for lists in alone], spelling)


def test_without_ties_averaging_changes_nothing(judged_of, same):
    run = {1: {item: float(-item) for item in range(9)}, 2: {item: float(item) for item in range(5)}}
    test = {1: {0: 5, 3: 1, 8: 4}, 2: {1: 4, 2: 2}}
    plain, averaged = (judged_of(run, test, 3, ties=ties, train=TRAIN) for ties in ("trec_eval", "average"))
    for name in NAMES:
        same(Metric.of(name)(averaged), Metric.of(name)(plain), name)

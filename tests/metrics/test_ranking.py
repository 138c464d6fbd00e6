"""Binary ranking metrics against loops written from their definitions."""

from __future__ import annotations

import math

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

"""Metrics beyond accuracy against loops written from their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.judgments import judge
from cranfield.metrics import Metric
from cranfield.metrics.training import catalogue

TRAIN = {100 + user: {item: 1 + (user * item) % 5 for item in range(0, 12, 1 + user % 4)} for user in range(9)}
COUNTS = {item: sum(item in profile for profile in TRAIN.values()) for profile in TRAIN.values() for item in profile}


def _cosine(one, other):
    dot = sum(profile.get(one, 0) * profile.get(other, 0) for profile in TRAIN.values())
    norms = [math.sqrt(sum(profile.get(item, 0) ** 2 for profile in TRAIN.values())) for item in (one, other)]
    return dot / (norms[0] * norms[1]) if all(norms) else 0.0


@given(data=st.data(), n=st.integers(1, 13), condensed=st.booleans())
def test_metrics_of_all_lists_equal_their_definitions(data, n, condensed, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, train=TRAIN)
    lists = [ranked(run.get(user, {})) for user in test]
    if condensed:
        judged = judged.condensed()
        lists = [[item for item in items if item in test[user]] for user, items in zip(test, lists)]
    shown = [item for items in lists for item in items[:n]]
    catalogue = {*COUNTS, *(item for profile in test.values() for item in profile)}
    exposure = sorted(shown.count(item) for item in catalogue)
    size, total = len(catalogue), sum(exposure)
    unequal = sum((2 * j - size - 1) * x for j, x in enumerate(exposure, 1))
    same(Metric.of(f"ItemCoverage@{n}")(judged), sum(x > 0 for x in exposure) / size)
    same(Metric.of(f"AggregateDiversity@{n}")(judged), len(set(shown)))
    same(Metric.of(f"Gini@{n}")(judged), unequal / (size * total) if total else math.nan)
    same(Metric.of(f"GiniDiversity@{n}")(judged), 1 - unequal / ((size - 1) * total) if total else math.nan)
    bits = -sum(x / total * math.log2(x / total) for x in exposure if x) if total else math.nan
    same(Metric.of(f"Entropy@{n}")(judged), bits)


@given(data=st.data(), n=st.integers(1, 13))
def test_metrics_of_each_list_equal_their_definitions(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, 3, train=TRAIN)
    popularity = {item: 1 - COUNTS.get(item, 0) / len(TRAIN) for item in range(13)}
    whole, rarest = sum(COUNTS.values()), min(COUNTS.values())
    information = {item: -math.log2(COUNTS.get(item, rarest) / whole) for item in range(13)}
    names = (
        "EPC(discount=none)",
        "EPC(discount=log)",
        "EFD",
        "EFD(discount=log, relevant=true)",
        "ILD",
        "Unjudged",
        "Coverage",
    )
    expected = {name: [] for name in (*names, "UserCoverage")}
    for user in sorted(test):
        items = ranked(run.get(user, {}))[:n]
        log = [1 / math.log2(k + 1) for k in range(1, len(items) + 1)]
        good = [test[user].get(item, 0) >= 3 for item in items]
        values = [math.nan] * 4
        if items:
            values = [sum(popularity[item] for item in items) / len(items)]
            values += [sum(w * popularity[item] for w, item in zip(log, items)) / sum(log)]
            values += [sum(information[item] for item in items) / len(items)]
            values += [sum(w * g * information[item] for w, g, item in zip(log, good, items)) / sum(log)]
        pairs = [1 - _cosine(*pair) for pair in itertools.combinations(items, 2)]
        values += [sum(pairs) / len(pairs) if pairs else math.nan]
        values += [sum(item not in test[user] for item in items) / len(items) if items else math.nan]
        values += [len(items) / n, float(bool(items))]
        for name, value in zip(expected, values):
            expected[name].append(value)
    for name in names:
        same(Metric.of(f"{name}@{n}")(judged), expected[name], name)
    same(Metric.of("UserCoverage")(judged), expected["UserCoverage"])


def test_diversity_by_a_given_similarity(judged_of, same):
    run, test = {1: {"a": 3.0, "b": 2.0, "z": 1.0}, 2: {"b": 1.0}}, {1: {"a": 5, "b": 4}, 2: {"a": 3}}
    table = np.array([[1.0, 0.25], [0.25, 1.0]])
    same(Metric.of("ILD")(judged_of(run, test, similarity=table)), [1 - 0.25 / 3, math.nan])

    def same_letter(first, second):
        return (first == second).to_numpy()

    same(Metric.of("ILD")(judged_of(run, test, similarity=same_letter)), [1.0, math.nan])
    for wrong in (np.eye(3), lambda first, second: np.zeros(1)):
        with pytest.raises(SettingError, match="similarity"):
            Metric.of("ILD")(judged_of(run, test, similarity=wrong))


@pytest.mark.parametrize("n", [2, 7, 60])
def test_diversity_of_lists_of_any_lengths_equals_a_loop_over_their_pairs(judged_of, same, n):
    rng = np.random.default_rng(n)
    # Items from 40 on are unknown to the test set; some lists are empty, have one item, or are entirely unknown.
    lists = {user: rng.permutation(60)[:size].tolist() for user, size in enumerate(rng.integers(1, 60, 40))}
    lists |= {40: [50, 51, 52], 41: [3], 42: [3, 55]}
    run = {user: {item: -float(rank) for rank, item in enumerate(own)} for user, own in lists.items()}
    test = {user: dict.fromkeys(range(40), 1) for user in range(45)}
    table = rng.random((40, 40))
    expected = []
    for user in range(45):
        own = lists.get(user, [])[:n]
        likeness = [table[a, b] if a < 40 and b < 40 else 0.0 for i, a in enumerate(own) for b in own[i + 1 :]]
        expected.append(1 - np.mean(likeness) if likeness else math.nan)
    same(Metric.of(f"ILD@{n}")(judged_of(run, test, similarity=table)), expected)
    sparse = pytest.importorskip("scipy.sparse").csr_array(table)
    same(Metric.of(f"ILD@{n}")(judged_of(run, test, similarity=sparse)), expected)


def test_full_rank_tells_where_the_condensed_items_stand(judged_of, same):
    run = {1: {item: -float(item) for item in range(1, 10)}, 2: {5: 2.0, 6: 1.0}}
    judged = judged_of(run, {1: {2: 5, 4: 1, 9: 3, 77: 2}, 2: {6: 2}})
    same(Metric.of("FullRank@2")(judged), [3.0, math.nan])
    same(Metric.of("FullRank(which=last)@3")(judged), [9.0, math.nan])
    same(Metric.of("FullRank")(judged), [5.0, 2.0])
    same(Metric.of("FullRank@2")(judged.condensed()), [3.0, math.nan])


def test_even_exposure_is_even_and_one_item_for_all_is_not(judged_of):
    items = range(4)
    even = judged_of({user: {user: 1.0} for user in items}, {user: dict.fromkeys(items, 1) for user in items})
    one = judged_of({user: {0: 1.0} for user in items}, {user: dict.fromkeys(items, 1) for user in items})
    assert [Metric.of(name)(even) for name in ("Gini", "GiniDiversity", "Entropy")] == [0.0, 1.0, 2.0]
    assert [Metric.of(name)(one) for name in ("Gini", "GiniDiversity", "Entropy")] == [0.75, 0.0, 0.0]


def test_novelty_needs_the_training_ratings(judged_of):
    for name in ("EPC", "EFD", "ILD"):
        with pytest.raises(SettingError, match="needs the training ratings"):
            Metric.of(name)(judged_of({1: {1: 1.0}}, {1: {1: 5}}))


@pytest.mark.parametrize(
    ("trained", "tested", "every"),
    [
        ([10, 20], ["10", "x"], ["10", "20", "x"]),
        ([10.0, 20.0], [10, 2**53, 2**53 + 1], [10, 20, 2**53, 2**53 + 1]),
    ],
)
def test_every_item_of_training_and_test_is_in_the_catalogue_whatever_the_type_of_its_id(trained, tested, every):
    train, test = Ratings.of([1, 2], trained), Ratings.of([1] * len(tested), tested)
    judged = judge({"mine": {1: tested}}, test, train=train)
    assert catalogue(judged).all.to_list() == every

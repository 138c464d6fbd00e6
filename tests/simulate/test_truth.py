"""The true value of ranked lists, against the definitions written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, Run, SettingError, simulate
from cranfield.simulate import tastes
from cranfield.tables import Vocabulary


@pytest.fixture(scope="module")
def small():
    return simulate.world(40, 30, 300, seed=2)


def by_hand(world, user, ranked, metric, cutoff, train):
    grades = world.preference([user])[0]
    candidates = [item for item in range(world.ratings.n_items) if (user, item) not in train]
    top = [item if item in candidates else None for item in ranked[:cutoff]]
    relevant = {item for item in candidates if grades[item] >= world.threshold}
    hits = sum(item in relevant for item in top)
    if metric == "P":
        return hits / cutoff
    if metric == "Recall":
        return hits / len(relevant) if relevant else math.nan
    gained = sum(grades[item] / math.log2(rank + 1) for rank, item in enumerate(top, 1) if item is not None)
    ideal = sorted((grades[item] for item in candidates), reverse=True)[:cutoff]
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    return gained / best if best else math.nan


@given(seed=st.integers(0, 10_000), cutoff=st.integers(1, 40), metric=st.sampled_from(["P", "Recall", "nDCG"]))
def test_values_are_the_definitions(small, seed, cutoff, metric):
    rng = np.random.default_rng(seed)
    lists = {
        user + 1: (rng.permutation(30)[: rng.integers(0, 31)] + 1).tolist() for user in rng.permutation(40)[:8].tolist()
    }
    kept = rng.random(len(small.ratings)) < 0.5
    train = small.ratings.keep(kept)
    held = set(zip(train.users.tolist(), train.items.tolist()))
    for exclude, pairs in ((None, set()), (train, held)):
        values = small.true_value(lists, f"{metric}@{cutoff}", exclude=exclude)
        for value, (user, items) in zip(values.tolist(), lists.items()):
            expected = by_hand(small, user - 1, [item - 1 for item in items], metric, cutoff, pairs)
            assert value == pytest.approx(expected, nan_ok=True)


def test_the_best_list_is_worth_one_and_nothing_nothing(small):
    order = np.argsort(-small.preference(), axis=1, kind="stable") + 1
    best = {user + 1: order[user].tolist() for user in range(40)}
    assert np.allclose(small.true_value(best, "nDCG@10"), 1)
    recall = small.true_value(best, "Recall@30")
    assert np.allclose(recall[~np.isnan(recall)], 1)
    assert small.true_value({3: []}, "P@5").tolist() == [0]
    assert small.true_value({}, "P@5").tolist() == []


def test_a_user_with_nothing_to_find_has_no_recall_and_no_ndcg_without_candidates(small):
    none = simulate.world(10, 8, 60, threshold=6)
    assert np.isnan(none.true_value({1: [1, 2]}, "Recall@2")).all()
    assert none.true_value({1: [1, 2]}, "P@2").tolist() == [0]
    everything = small.truth([0])
    assert np.isnan(small.true_value({1: [1]}, "nDCG@5", exclude=everything)).all()


def test_runs_and_mappings_agree_whatever_the_blocks_and_the_vocabulary(small, monkeypatch):
    rng = np.random.default_rng(1)
    lists = {user: (rng.permutation(30)[:10] + 1).tolist() for user in (4, 9, 40)}
    user_ids, item_ids = Vocabulary.of(["4", "40", "9"]), Vocabulary.of([str(item) for item in range(1, 31)])
    listed = {user: [str(item) for item in lists[int(user)]] for user in ("4", "40", "9")}
    run = Run(
        "by hand",
        user_ids,
        item_ids,
        user_ids.codes(list(listed)),
        np.array([0, 10, 20, 30]),
        item_ids.codes([item for items in listed.values() for item in items]),
    )
    train = small.ratings.frame()
    other = Ratings.of(train["user"].cast(str), train["item"].cast(str), train["rating"].to_numpy())
    for metric in ("P@10", "nDCG@5", "Recall@3"):
        expected = small.true_value(lists, metric, exclude=small.ratings)
        order = [list(lists).index(int(user)) for user in listed]
        assert np.array_equal(small.true_value(run, metric, exclude=other), expected[order], equal_nan=True)
        with monkeypatch.context() as patch:
            patch.setattr(tastes, "_CELLS", 1)
            assert np.array_equal(small.true_value(lists, metric, exclude=small.ratings), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("lists", "metric", "said"),
    [
        ({1: [1]}, "MAP@10", "MAP"),
        ({1: [1]}, "ndgc@10", "did you mean 'nDCG'"),
        ({1: [1]}, "P", "write P@10"),
        ({1: [1]}, "nDCG(gain=exp)@10", "cut-off and no parameters"),
        ({99: [1]}, "P@10", "user 99"),
        ({1: [31]}, "P@10", "item 31"),
        ({1: [3, 3]}, "P@10", "item 3 is in one list twice"),
        ([[1, 2]], "P@10", "list is not ranked lists"),
    ],
)
def test_what_has_no_true_value_is_refused(small, lists, metric, said):
    with pytest.raises(SettingError, match=said):
        small.true_value(lists, metric)


def test_lists_for_one_relevant_item_are_refused(small):
    codes = np.zeros(1, dtype=np.int32)
    run = Run("1R", small.ratings.user_ids, small.ratings.item_ids, codes, np.array([0, 1]), codes, one_relevant=True)
    with pytest.raises(SettingError, match="one relevant"):
        small.true_value(run)


def test_the_usual_world_flatters_popularity_offline():
    made = simulate.world()
    observed, rng = made.ratings, np.random.default_rng(0)
    held_out = rng.random(len(observed)) < 0.2
    train, test = observed.keep(~held_out), observed.keep(held_out)
    matrix = train.matrix().toarray().astype(np.float64)
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    systems = {
        "random": rng.random(matrix.shape),
        "popularity": np.tile(train.item_counts.astype(float), (len(matrix), 1)),
        "factors": (left[:, :10] * values[:10]) @ right[:10],
        "truth": made.preference() + rng.random(matrix.shape) / 2,
    }
    liked = test.matrix().toarray() >= 4
    offline, true = {}, {}
    for name, scores in systems.items():
        top = np.argsort(-np.where(matrix > 0, -np.inf, scores), axis=1)[:, :10]
        offline[name] = np.take_along_axis(liked, top, axis=1).mean()
        lists = {user + 1: (row + 1).tolist() for user, row in enumerate(top)}
        true[name] = made.true_value(lists, "P@10", exclude=train).mean()
    assert offline["popularity"] > 5 * offline["random"]
    assert offline["popularity"] > offline["truth"]
    assert true["popularity"] < true["random"] + 0.1
    assert true["factors"] > true["popularity"] + 0.2
    assert true["truth"] > true["factors"] + 0.2
    assert offline["factors"] > offline["popularity"]


def test_a_grade_below_0_gains_nothing_as_in_measuring():
    from cranfield.simulate.truth import list_values, parse_metric

    grades = np.array([[-3.0, 2.0, 1.0]], dtype=np.float32)
    lists = np.array([0, 3]), np.array([0, 1, 2], dtype=np.int32)
    found = list_values(parse_metric("nDCG@3"), *lists, grades, 1.0, np.zeros((1, 3), dtype=bool))
    ideal = 2 + 1 / math.log2(3)
    assert found.tolist() == pytest.approx([(2 / math.log2(3) + 1 / 2) / ideal])

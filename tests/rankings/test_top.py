"""Scores become lists: gaps filled, the best first, ties broken as in trec_eval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import InputError
from cranfield.rankings import ranker
from cranfield.rankings.top import filled, top
from cranfield.recommenders import Recommender


class Given(Recommender):
    """A system with scores of its own for every user."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)

    def fit(self, train):
        return self

    def score(self, users):
        return self.scores[users]


def _filled(scores, fill):
    scores = np.asarray(scores, dtype=float)
    return filled(scores, Given(fill), np.arange(len(scores), dtype=np.int32))


def test_a_filled_score_is_the_formula():
    rng = np.random.default_rng(3)
    scores, fill = rng.normal(0, 5, (6, 9)), rng.normal(size=(6, 9))
    scores[rng.random((6, 9)) < 0.4] = np.nan
    fill[:, 2] = np.nan
    for found, own, second in zip(_filled(scores, fill), scores, fill):
        low, best, worst = np.nanmin(own), np.nanmax(second), np.nanmin(second)
        below = low - max(1.0, abs(low)) * (1 + (best - second) / (best - worst))
        assert found == pytest.approx(np.where(np.isnan(own), below, own), nan_ok=True)


def test_a_fill_that_has_one_score_for_all_items_fills_them_all():
    assert _filled([[np.nan, 3.0, np.nan]], [[7.0, 7.0, 7.0]]).tolist() == [[0.0, 3.0, 0.0]]


def test_a_list_without_any_score_is_filled_below_0_and_one_without_a_fill_keeps_its_gaps():
    nothing = [np.nan, np.nan, np.nan]
    found = _filled([nothing, [np.nan, 5.0, np.nan]], [[1.0, 2.0, 3.0], nothing])
    assert found == pytest.approx(np.array([[-2.0, -1.5, -1.0], [np.nan, 5.0, np.nan]]), nan_ok=True)


def _split(seed=0):
    return cf.splits.random(cf.simulate.world(40, 30, 500, seed=seed).ratings, train=0.6, seed=seed)


class Scoring:
    """A system with given scores."""

    def __init__(self, scores):
        self.scores = scores

    def fit(self, train):
        self.ties = train.item_ids.string_order
        return self

    def score(self, users):
        return self.scores[users]


class Listing(Scoring):
    """The same system, which makes its own lists, worst first, and never a block of scores."""

    def score(self, users):
        pytest.fail("a system that gives lists is not asked for scores")

    def top(self, users, n, targets):
        scores = np.where(targets.allowed(users), self.scores[users], np.nan)
        order = np.lexsort((-np.broadcast_to(self.ties, scores.shape), -scores))[:, :n]
        kept = np.take_along_axis(scores, order, axis=1)
        return np.where(np.isnan(kept), -1, order)[:, ::-1], kept[:, ::-1]


@given(
    seed=st.integers(0, 20),
    kind=st.sampled_from([np.float32, np.float64]),
    length=st.sampled_from([1, 5, "all"]),
    options=st.sampled_from(
        [{}, {"candidates": "test"}, {"lists": "condensed"}, {"keep_seen": True}, {"nonrelevant": 5, "threshold": 4},
         {"sample": 7}]
    ),
)  # fmt: skip
def test_a_systems_own_lists_make_the_run_that_its_scores_make(seed, kind, length, options):
    split = _split(seed)
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, 9, (split.train.n_users, split.train.n_items)).astype(kind)
    scores[draw.random(scores.shape) < 0.2] = np.nan
    systems = {"scores": Scoring(scores), "lists": Listing(scores)}
    by_score, by_list = cf.recommend(split, systems, length, seed=seed, **options)
    for name in ("users", "indptr", "items", "scores"):
        one, other = getattr(by_score, name), getattr(by_list, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert by_score.counts == by_list.counts


def test_where_every_score_is_needed_scores_are_asked_for():
    split = _split()
    scores = np.random.default_rng(0).random((split.train.n_users, split.train.n_items))

    class Both(Listing):
        def score(self, users):
            return self.scores[users]

    for options in ({"fill": "popularity"}, {"relevant": "one", "threshold": 4}):
        one, other = cf.recommend(split, {"a": Scoring(scores), "b": Both(scores)}, **options)
        np.testing.assert_array_equal(one.items, other.items)


class Answering:
    """A system that answers whatever it is given."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, train):
        return self

    def score(self, users):
        raise AssertionError

    def top(self, users, n, targets):
        return self.answer(users, n, targets)


def _ones(users, items):
    return np.tile(items, (len(users), 1)), np.ones((len(users), len(items)))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda users, n, targets: _ones(users, [10**6]),
            "the item code 1000000 into the list of the user",
        ),
        (
            lambda users, n, targets: _ones(users, np.arange(5)),
            "into the list of the user .*, which must not contain it",
        ),
        (lambda users, n, targets: _ones(users, np.arange(n + 1)), "two arrays of 40 rows and at most 5 columns"),
        (lambda users, n, targets: _ones(users[1:], [1]), "one row per user, with the code -1"),
        (lambda users, n, targets: np.ones((len(users), n)), "did not return item codes and scores"),
        (lambda users, n, targets: (np.ones((len(users), 1)), np.ones((len(users), 1))), "did not return item codes"),
        (lambda users, n, targets: (np.ones((len(users), 1), dtype=int), [["a"]] * len(users)), "did not return"),
        (lambda users, n, targets: None, "did not return"),
    ],
)
def test_a_wrong_answer_is_one_line(answer, said):
    with pytest.raises(InputError, match=said) as error:
        cf.recommend(_split(), {"mine": Answering(answer)}, 5)
    assert "\n" not in str(error.value)


def test_an_item_twice_in_a_list_is_refused():
    def twice(users, n, targets):
        first = np.argmax(targets.allowed(users), axis=1)
        return np.stack([first, first], axis=1), np.ones((len(users), 2))

    with pytest.raises(InputError, match=r"into the list of the user .*, twice; list each item once"):
        cf.recommend(_split(), {"mine": Answering(twice)}, 5)


def test_empty_lists_and_missing_scores_are_left_out():
    def nothing(users, n, targets):
        return np.full((len(users), 2), [-1, 0]), np.full((len(users), 2), [1.0, -np.inf])

    (run,) = cf.recommend(_split(), {"mine": Answering(nothing)}, 5)
    assert run.counts["empty_lists"] == len(run) == 40


def test_single_precision_stays_single_until_the_lists_are_made(monkeypatch):
    split, seen = _split(), []

    def noted(scores, *rest):
        seen.append(scores.dtype)
        return top(scores, *rest)

    monkeypatch.setattr(ranker, "top", noted)
    cf.recommend(split, "wrmf(iterations=1)", 5)
    cf.recommend(split, {"mine": Scoring(np.ones((40, 30), dtype=np.float32))}, 5)
    cf.recommend(split, {"mine": Scoring(np.ones((40, 30), dtype=np.float16))}, 5)
    assert seen == [np.float32, np.float32, np.float64]

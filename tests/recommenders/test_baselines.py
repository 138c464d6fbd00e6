"""Random, popularity, averages: against their definitions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

import cranfield as cf
from cranfield.recommenders import baselines, recommender

WORLD = cf.simulate.world(users=40, items=120, ratings=1500, seed=3).ratings
SPLIT = cf.splits.random(WORLD, train=0.3, seed=1)


class ByScores:
    """A system that offers its scores alone."""

    def __init__(self, system):
        self._system = system

    def fit(self, train):
        self._system.fit(train)
        return self

    def score(self, users):
        return self._system.score(users)


@pytest.mark.parametrize(
    "decisions",
    [
        {},
        {"keep_seen": True, "new_users": "served"},
        {"candidates": "test"},
        {"lists": "condensed"},
        {"unrated": 5},
        {"nonrelevant": 9},
    ],
)
@pytest.mark.parametrize(
    "system", ["random(seed=2)", "popularity", "average", "average(support=6)", "average(support=99)"]
)
def test_the_lists_are_those_of_the_scores(system, decisions, monkeypatch):
    monkeypatch.setattr(baselines, "_MOST_DRAWN", 20)
    systems = {"top": recommender(system), "scores": ByScores(recommender(system))}
    top, scores = cf.recommend(SPLIT, systems, length=7, **decisions)
    assert top.indptr.tolist() == scores.indptr.tolist()
    assert top.items.tolist() == scores.items.tolist()
    assert top.scores.tolist() == scores.scores.tolist()


@pytest.mark.parametrize("drawn", [1, 2, 3])
def test_every_random_order_is_equally_likely(drawn, monkeypatch):
    monkeypatch.setattr(baselines, "_MOST_DRAWN", drawn)
    users = np.arange(3000)
    train = cf.Ratings.of(users, users % 3)
    orders = np.argsort(-recommender("random").fit(train).score(users), axis=1).tolist()
    counts = [orders.count(list(order)) for order in permutations(range(3))]
    assert chisquare(counts).pvalue > 1e-3


def _scores(spelling, train):
    return recommender(spelling).fit(train).score(np.arange(train.n_users))


def test_popularity_counts_ratings(world, dense):
    rated = dense(world) > 0
    known = rated.any(axis=0)
    assert (_scores("popularity", world) == rated.sum(axis=0))[:, known].all()
    assert (_scores("popularity(threshold=4)", world) == (dense(world) >= 4).sum(axis=0))[:, known].all()


def test_items_without_training_ratings_have_a_place_only_in_a_fill(world):
    unknown = world.item_counts == 0
    for system in ("popularity", "random"):
        fitted = recommender(system).fit(world)
        assert np.isnan(fitted.score([0, 1])[:, unknown]).all()
        assert not np.isnan(fitted.fill_scores(np.array([0, 1]))).any()
    assert (recommender("popularity").fit(world).fill_scores(np.array([0]))[:, unknown] == 0).all()


@pytest.mark.parametrize("system", ["random", "wrmf", "bprmf", "svd", "plsa", "rw", "itemknn", "nncosngbr-ub"])
def test_what_is_learned_does_not_depend_on_strangers_in_the_vocabularies(world, system):
    users, items = world.user_counts > 0, world.item_counts > 0
    among_strangers = recommender(system).fit(world).score(np.flatnonzero(users))[:, items]
    alone = recommender(system).fit(world.compact()).score(np.arange(users.sum()))
    assert np.array_equal(among_strangers, alone, equal_nan=True)


def test_average_is_the_mean_rating_and_nan_without_any(world, dense):
    matrix = dense(world)
    for row in _scores("average", world):
        for item, score in enumerate(row):
            ratings = matrix[:, item][matrix[:, item] > 0]
            assert np.isnan(score) if len(ratings) == 0 else np.isclose(score, ratings.mean())


def test_damping_pulls_averages_to_the_mean_and_support_drops_rare_items(world, dense):
    matrix, mean = dense(world), world.values.mean()
    damped = _scores("average(damping=5, support=2)", world)[0]
    for item, score in enumerate(damped):
        ratings = matrix[:, item][matrix[:, item] > 0]
        expected = np.nan if len(ratings) < 2 else (ratings.sum() + 5 * mean) / (len(ratings) + 5)
        assert np.isclose(score, expected, equal_nan=True)


def test_the_average_over_relevance_is_the_damped_share_of_relevant_ratings(world, dense):
    matrix, share = dense(world), (world.values >= 4).mean()
    model = recommender("average(threshold=4, damping=1)").fit(world)
    for item, score in enumerate(model.score([0])[0]):
        ratings = matrix[:, item][matrix[:, item] > 0]
        expected = np.nan if len(ratings) == 0 else ((ratings >= 4).sum() + share) / (len(ratings) + 1)
        assert np.isclose(score, expected, equal_nan=True)
    assert not model.predicts_ratings
    assert recommender("average").predicts_ratings


def test_useraverage_is_the_same_for_all_items_and_the_mean_for_strangers(world, dense):
    scores = _scores("useraverage", world)
    known = world.item_counts > 0
    assert np.allclose(scores[0, known], world.values.mean())
    row = dense(world)[2]
    assert np.allclose(scores[2, known], row[row > 0].mean())


def test_random_scores_depend_on_seed_and_user_alone(world):
    world = world.compact()
    one = recommender("random(seed=3)").fit(world)
    assert (one.score([5]) == one.score([2, 5])[1]).all()
    assert (one.score([5]) != recommender("random(seed=4)").fit(world).score([5])).any()
    many = recommender("random").fit(world).score(np.arange(world.n_users))
    assert 0 <= many.min() < 0.1
    assert 0.9 < many.max() <= 1

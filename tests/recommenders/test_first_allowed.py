"""Systems that find the best items without scoring all of them give the lists that their scores give."""

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
        {"keep_seen": True, "newcomers": "served"},
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

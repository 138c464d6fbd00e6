"""One fitted system ranked in several ways at once, against `rank` in each of them."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import simulate
from cranfield.rankings import Ranking, Serving, rank, rank_under
from cranfield.recommenders import recommender
from cranfield.splits import random

RANKINGS = [
    Ranking(length=5),
    Ranking(length="all", lists="condensed"),
    Ranking(length=7, fill="popularity"),
    Ranking(length=10, nonrelevant=8, threshold=4),
    Ranking(length=10, relevant="one", threshold=4),
    *(Ranking(length=10, unrated=unrated, fill=fill) for unrated in (3, 0, 9, 100) for fill in ("none", "random")),
    Ranking(length=10, unrated=4, candidates="test"),
    *(Ranking(length=10, nonrelevant=count, relevant="one", threshold=4, candidates="test") for count in (2, 9, 5)),
    Ranking(length=10, nonrelevant=4, relevant="one", threshold=3, candidates="test"),
    Ranking(length=10, nonrelevant=12, threshold=4, candidates="test"),
]


@pytest.fixture(scope="module")
def split():
    return random(simulate.world(users=60, items=40, ratings=900, seed=2).ratings, train=0.5, seed=2)


@pytest.mark.parametrize("spelling", ["knn(k=3)", "average", "random", "popularity"])
def test_lists_under_several_decisions_are_those_under_each(spelling, split):
    model, serving = recommender(spelling).fit(split.train), Serving(min_ratings=5)
    for run, ranking in zip(rank_under(model, split, RANKINGS, serving=serving, seed=3), RANKINGS, strict=True):
        alone = rank(model, split, serving=serving, ranking=ranking, seed=3)
        for column in ("users", "indptr", "items", "scores", "ranks", "lengths", "predictions"):
            np.testing.assert_array_equal(getattr(run, column), getattr(alone, column))
        assert run.history == alone.history


def test_a_system_that_gives_its_own_lists_is_ranked_each_way(split):
    class Own:
        def fit(self, train):
            return self

        def score(self, users):
            raise AssertionError("its lists are its own")

        def top(self, users, n, targets):
            allowed = targets.allowed(users)
            items = np.where(allowed.any(axis=1), allowed.argmax(axis=1), -1)[:, None]
            return items, np.ones(items.shape)

    short, condensed = rank_under(Own(), split, RANKINGS[:2], name="own")
    assert (np.diff(short.indptr) == 1).all()
    assert len(condensed.items) == np.count_nonzero(split.test.user_counts)


def test_no_decisions_make_no_runs(split):
    assert rank_under(recommender("popularity").fit(split.train), split, []) == []

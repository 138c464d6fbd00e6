"""implicit: item neighbourhoods, WRMF and BPR give what ours give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cranfield.data import Ratings
from cranfield.rankings.recommending import recommend
from cranfield.recommenders import as_recommender, recommender
from cranfield.splits import random as random_split

als = pytest.importorskip("implicit.als")
bpr = pytest.importorskip("implicit.bpr")
nearest = pytest.importorskip("implicit.nearest_neighbours")


@pytest.fixture(scope="module")
def split():
    return random_split(_ratings(), train=0.7, seed=1)


def _ratings():
    draw = np.random.default_rng(0)
    # Two kinds of users and items, and a few popular items: enough for a model to learn something.
    taste = np.outer(draw.choice([-1, 1], 150), draw.choice([-1, 1], 80)) + draw.normal(0, 0.7, 80)
    user, item = np.nonzero(draw.random((150, 80)) < 1 / (1 + np.exp(1.5 - 1.5 * taste)))
    return Ratings.of(user, item, draw.integers(1, 6, len(user)).astype(float))


def _precision(split, run, n=10):
    relevant = set(zip(split.test.users.tolist(), split.test.items.tolist(), strict=True))
    rows = np.repeat(run.users, np.diff(run.indptr))
    hits = sum(pair in relevant for pair in zip(rows.tolist(), run.items.tolist(), strict=True))
    return hits / n / len(run)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("itemknn(k=9, weighting=cosine)", lambda: nearest.CosineRecommender(K=9)),
        ("itemknn(k=9, weighting=tfidf)", lambda: nearest.TFIDFRecommender(K=9)),
        ("itemknn(k=9, weighting=bm25)", lambda: nearest.BM25Recommender(K=9)),
    ],
)
def test_item_neighbourhoods_score_alike(split, ours, theirs):
    users = np.arange(split.train.n_users)
    own = recommender(ours).fit(split.train).score(users)
    other = as_recommender(theirs()).fit(split.train).score(users)
    np.testing.assert_allclose(np.nan_to_num(own), np.nan_to_num(other), rtol=1e-8, atol=1e-10)


def test_wrmf_from_the_same_start_ends_at_the_same_factors(split):
    ours = recommender("wrmf(factors=6, iterations=5, alpha=2, regularization=1.5, steps=3)")
    model = als.AlternatingLeastSquares(
        factors=6,
        iterations=5,
        regularization=1.5,
        alpha=1.0,
        use_cg=True,
        num_threads=1,
        calculate_training_loss=False,
    )
    model.user_factors, model.item_factors = ours._start(split.train)
    # The library uses the value of a cell as its confidence: 1 + α.
    matrix = sparse.csr_matrix(split.train.matrix(np.full(len(split.train), 3.0, dtype=np.float32)), copy=True)
    model.fit(matrix, show_progress=False)
    users = np.arange(split.train.n_users)
    own = ours.fit(split.train).score(users)
    np.testing.assert_allclose(own, model.user_factors @ model.item_factors.T, atol=2e-3)


def test_bprmf_ranks_as_well(split):
    theirs = bpr.BayesianPersonalizedRanking(
        factors=8, iterations=100, learning_rate=0.05, regularization=0.01, random_state=3, num_threads=1
    )
    ours = "bprmf(factors=8, epochs=100, rate=0.05, user=0.01, positive=0.01, negative=0.01, sampling=rating)"
    own, other, chance = recommend(split, {"ours": ours, "theirs": theirs, "random": "random"}, length=10)
    assert _precision(split, own) > 1.3 * _precision(split, chance)
    assert _precision(split, own) > 0.95 * _precision(split, other)

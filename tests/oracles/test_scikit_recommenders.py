"""scikit-learn: PureSVD, SLIM, LDA and user neighbourhoods give what ours give."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from cranfield.data import Ratings
from cranfield.recommenders import recommender

pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def train():
    draw = np.random.default_rng(4)
    taste = np.outer(draw.choice([-1, 1], 60), draw.choice([-1, 1], 40))
    user, item = np.nonzero(draw.random((60, 40)) < 1 / (1 + np.exp(1 - 1.5 * taste)))
    # Continuous ratings: with integers, users would be equally similar and the choice between them a convention.
    return Ratings.of(user, item, draw.uniform(1, 5, len(user)))


def _scores(spelling, train):
    return recommender(spelling).fit(train).score(np.arange(train.n_users))


def test_puresvd_is_truncated_svd(train):
    from sklearn.decomposition import TruncatedSVD

    matrix = train.matrix().astype(float)
    svd = TruncatedSVD(5, algorithm="arpack", random_state=0).fit(matrix)
    expected = svd.inverse_transform(svd.transform(matrix))
    np.testing.assert_allclose(_scores("puresvd(factors=5)", train), expected, atol=1e-8)


def test_slim_columns_are_elastic_nets(train):
    from sklearn.linear_model import ElasticNet

    rated = (train.matrix().toarray() > 0).astype(float)
    rows, l1, l2 = len(rated), 0.5, 2.0
    # λ = m α ρ and β = m α (1 − ρ) for m rows, where α is the strength and ρ the share of the L1 norm.
    net = ElasticNet(
        alpha=(l1 + l2) / rows, l1_ratio=l1 / (l1 + l2), positive=True, fit_intercept=False, tol=1e-10, max_iter=10_000
    )
    expected = np.zeros((rated.shape[1],) * 2)
    for j in range(rated.shape[1]):
        others = rated.copy()
        others[:, j] = 0
        expected[:, j] = net.fit(others, rated[:, j]).coef_
    model = recommender(f"slim(l1={l1}, l2={l2}, neighbours=none, sweeps=5000, tolerance=1e-10, binary=true)").fit(
        train
    )
    np.testing.assert_allclose(model._weights.toarray(), expected, atol=1e-6)


@pytest.mark.slow
def test_lda_explains_held_out_ratings_as_well(train):
    from sklearn.decomposition import LatentDirichletAllocation

    draw = np.random.default_rng(0)
    kept = draw.random(len(train)) < 0.8
    part, rest = train.keep(kept), train.keep(~kept)

    def log_likelihood(probabilities):
        return np.log(probabilities[rest.users, rest.items]).mean()

    def theirs(seed):
        model = LatentDirichletAllocation(
            2, doc_topic_prior=0.5, topic_word_prior=0.1, max_iter=150, learning_method="batch", random_state=seed
        )
        shares = model.fit_transform(part.matrix())
        return shares @ (model.components_ / model.components_.sum(axis=1, keepdims=True))

    def ours(seed):
        return _scores(f"lda(topics=2, alpha=0.5, beta=0.1, iterations=150, seed={seed})", part)

    # Each start ends in another local optimum, so the best of several starts are compared.
    best, other = (max(log_likelihood(model(seed)) for seed in range(3)) for model in (ours, theirs))
    uniform = np.full((part.n_users, part.n_items), 1 / part.n_items)
    assert best > log_likelihood(uniform) + 0.05
    assert abs(best - other) < 0.02


def test_lda_is_at_a_fixed_point_of_theirs(train):
    from sklearn.decomposition import LatentDirichletAllocation

    model = recommender("lda(topics=2, alpha=0.5, beta=0.1, iterations=1000)").fit(train)
    theirs = LatentDirichletAllocation(
        2, doc_topic_prior=0.5, topic_word_prior=0.1, max_doc_update_iter=1000, mean_change_tol=1e-7
    )
    matrix = train.matrix()
    theirs.fit(matrix)
    # Our λ, up to a factor that hardly affects the mixtures of a user.
    mass = train.values.sum() * model._theta.mean(axis=0)
    theirs.components_ = (model._phi * (mass + 0.1 * train.n_items)).T
    theirs.exp_dirichlet_component_ = np.exp(
        _digamma(theirs.components_) - _digamma(theirs.components_.sum(axis=1, keepdims=True))
    )
    np.testing.assert_allclose(theirs.transform(matrix), model._theta, atol=0.02)


def _digamma(values):
    from scipy.special import digamma

    return digamma(values)


def test_knn_takes_the_neighbours_that_scikit_finds(train):
    from sklearn.neighbors import NearestNeighbors

    matrix = train.matrix().toarray().astype(float)
    distances, found = NearestNeighbors(n_neighbors=8, metric="cosine").fit(matrix).kneighbors(matrix)
    expected = np.zeros_like(matrix, dtype=float)
    for u in range(len(matrix)):
        for v, distance in zip(found[u], distances[u], strict=True):
            if v != u:
                expected[u] += (1 - distance) * matrix[v]
    np.testing.assert_allclose(np.nan_to_num(_scores("knn(k=7)", train)), expected, atol=1e-5)

"""Every deterministic system against its formula, in plain loops, on a small world."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.data import Ratings
from cranfield.recommenders import recommender

NEIGHBOURS = 4


@pytest.fixture
def world(world):
    """Leave out the user and the item without ratings, which systems do not see (`test_baselines`)."""
    return world.compact()


def _fitted(spelling, train):
    return recommender(spelling).fit(train).score(np.arange(train.n_users))


def _cosine(a, b):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / lengths if lengths else 0.0


def _nearest(rows, one, k, similarity=_cosine):
    """The k rows most like row ``one``, with their similarities."""
    found = [(similarity(rows[one], rows[v]), -v) for v in range(len(rows)) if v != one]
    return [(-v, s) for s, v in sorted(found, reverse=True)[:k] if s > 0]


def _check(world, dense, spelling, score):
    """Compare with ``score(matrix, user, item)`` on every pair."""
    matrix = dense(world)
    expected = [[score(matrix, u, i) for i in range(matrix.shape[1])] for u in range(matrix.shape[0])]
    np.testing.assert_allclose(_fitted(spelling, world), np.array(expected, dtype=float), rtol=1e-9, atol=1e-12)


def _none_to_nan(value):
    return np.nan if value == 0 else value


def _feedback(matrix, u, i):
    """Σ r_vi, |V|, p_n(i|V) and p_n(i|C) of the neighbours."""
    near = [v for v, _ in _nearest(matrix, u, NEIGHBOURS)]
    total = sum(matrix[v, i] for v in near)
    if total == 0:
        return None
    mass = sum(matrix[v].sum() for v in near)
    return total, len(near), total / mass / len(near), matrix[:, i].sum() / matrix.sum() / len(matrix)


FEEDBACK = {
    "rw": lambda total, size, near, everyone: total / size,
    "rsv": lambda total, size, near, everyone: total / size * near * size,
    "chi2": lambda total, size, near, everyone: (near - everyone) ** 2 / everyone,
    "kld": lambda total, size, near, everyone: near * math.log(near / everyone),
}


@pytest.mark.parametrize("name", FEEDBACK)
def test_feedback_systems(world, dense, name):
    def score(matrix, u, i):
        parts = _feedback(matrix, u, i)
        return np.nan if parts is None else FEEDBACK[name](*parts)

    _check(world, dense, f"{name}(k={NEIGHBOURS})", score)


def _model(matrix, v, i, smoothing, a):
    r, size, n = matrix[v, i], matrix[v].sum(), np.count_nonzero(matrix[v])
    everyone = matrix[:, i].sum() / matrix.sum()
    return {
        "jm": (1 - a) * r / size + a * everyone,
        "dirichlet": (r + a * everyone) / (size + a),
        "absolute": (max(r - a, 0) + a * n * everyone) / size,
        "additive": (r + a) / (size + a * matrix.shape[1]),
    }[smoothing]


SMOOTHINGS = [("jm", 0.3), ("dirichlet", 7.0), ("absolute", 0.1), ("additive", 0.01)]


@pytest.mark.parametrize(("smoothing", "amount"), SMOOTHINGS)
def test_rm1_up_to_a_factor_for_each_user(world, dense, smoothing, amount):
    matrix = dense(world)
    scores = _fitted(f"rm1(k={NEIGHBOURS}, smoothing={smoothing}, amount={amount})", world)
    for u in range(len(matrix)):
        near = [v for v, _ in _nearest(matrix, u, NEIGHBOURS)]
        profile = np.flatnonzero(matrix[u])
        expected = np.full(matrix.shape[1], np.nan)
        for i in range(matrix.shape[1]):
            if any(matrix[v, i] for v in near):
                expected[i] = sum(
                    _model(matrix, v, i, smoothing, amount)
                    * math.prod(_model(matrix, v, j, smoothing, amount) for j in profile)
                    for v in near
                )
        factor = np.nanmax(expected) / np.nanmax(scores[u]) if near else 1
        np.testing.assert_allclose(scores[u] * factor, expected, rtol=1e-8)


@pytest.mark.parametrize(("smoothing", "amount"), SMOOTHINGS)
def test_rm2_up_to_a_constant_for_each_user(world, dense, smoothing, amount):
    matrix = dense(world)
    scores = _fitted(f"rm2(k={NEIGHBOURS}, smoothing={smoothing}, amount={amount})", world)
    for u in range(len(matrix)):
        near = [v for v, _ in _nearest(matrix, u, NEIGHBOURS)]
        expected = np.full(matrix.shape[1], np.nan)
        for i in range(matrix.shape[1]):
            if any(matrix[v, i] for v in near):
                expected[i] = sum(
                    math.log(
                        sum(
                            _model(matrix, v, i, smoothing, amount) * _model(matrix, v, j, smoothing, amount)
                            for v in near
                        )
                    )
                    for j in np.flatnonzero(matrix[u])
                )
        assert np.array_equal(np.isnan(scores[u]), np.isnan(expected))
        if near:
            np.testing.assert_allclose(
                scores[u] - np.nanmax(scores[u]), expected - np.nanmax(expected), rtol=1e-4, atol=1e-4
            )


def _likelihood(rows, smoothing):
    def similarity(one, other):
        total = 0.0
        for i in np.flatnonzero((one > 0) & (other > 0)):
            share, everyone = other[i] / other.sum(), rows[:, i].sum() / rows.sum()
            total += one[i] * math.log(1 + (1 - smoothing) / smoothing * share / everyone)
        return total

    return similarity


def test_lm_wsr_ub(world, dense):
    def score(matrix, u, i):
        near = _nearest(matrix, u, NEIGHBOURS, _likelihood(matrix, 0.8))
        return _none_to_nan(sum(_cosine(matrix[u], matrix[v]) * matrix[v, i] for v, _ in near))

    _check(world, dense, f"lm-wsr-ub(k={NEIGHBOURS}, smoothing=0.8)", score)


def test_lm_wsr_ib(world, dense):
    def score(matrix, u, i):
        near = _nearest(matrix.T, i, NEIGHBOURS, _likelihood(matrix.T, 0.9))
        return _none_to_nan(sum(_cosine(matrix[:, i], matrix[:, j]) * matrix[u, j] for j, _ in near))

    _check(world, dense, f"lm-wsr-ib(k={NEIGHBOURS})", score)


def _biases(matrix):
    mean = matrix[matrix > 0].mean()
    item = [sum(r - mean for r in column[column > 0]) / (25 + np.count_nonzero(column)) for column in matrix.T]
    user = [sum(row[i] - mean - item[i] for i in np.flatnonzero(row)) / (10 + np.count_nonzero(row)) for row in matrix]
    return mean + np.array(user)[:, None] + np.array(item)


def _shrunk(one, other):
    common = np.count_nonzero((one > 0) & (other > 0))
    return common / (common + 3) * _cosine(one, other)


def test_nncosngbr_ub(world, dense):
    def score(matrix, u, i):
        base = _biases(matrix)
        near = _nearest(matrix, u, NEIGHBOURS, _shrunk)
        return base[u, i] + sum(d * (matrix[v, i] - base[v, i]) for v, d in near if matrix[v, i])

    _check(world, dense, f"nncosngbr-ub(k={NEIGHBOURS}, shrinkage=3)", score)


def test_nncosngbr_ib(world, dense):
    def score(matrix, u, i):
        base = _biases(matrix)
        near = _nearest(matrix.T, i, NEIGHBOURS, _shrunk)
        return base[u, i] + sum(d * (matrix[u, j] - base[u, j]) for j, d in near if matrix[u, j])

    _check(world, dense, f"nncosngbr-ib(k={NEIGHBOURS}, shrinkage=3)", score)


def _jaccard(one, other):
    either = np.count_nonzero((one > 0) | (other > 0))
    return np.count_nonzero((one > 0) & (other > 0)) / either if either else 0


def _pearson(one, other):
    both = (one > 0) & (other > 0)
    a, b = one[both], other[both]
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return 0
    return np.corrcoef(a, b)[0, 1]


@pytest.mark.parametrize("similarity", [_cosine, _jaccard, _pearson])
@pytest.mark.parametrize("overlap", [0, 2])
def test_knn(world, dense, similarity, overlap):
    def alike(one, other):
        return similarity(one, other) if np.count_nonzero((one > 0) & (other > 0)) >= overlap else 0

    def score(matrix, u, i):
        # Rounding decides ties of Pearson correlations at 1, so take all neighbours.
        near = _nearest(matrix, u, len(matrix), alike)
        return _none_to_nan(sum(s**2 * matrix[v, i] for v, s in near))

    _check(world, dense, f"knn(k=99, similarity={similarity.__name__[1:]}, overlap={overlap}, q=2)", score)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e5])
def test_pearson_does_not_depend_on_the_scale_of_the_ratings(world, scale):
    vocabularies = world.user_ids, world.item_ids
    scaled = Ratings.from_codes(*vocabularies, world.users, world.items, world.values.astype(float) * scale)
    one, other = (_fitted("knn(k=99, similarity=pearson)", train) for train in (world, scaled))
    np.testing.assert_allclose(other, one * scale, rtol=1e-6)


def test_knn_takes_the_nearest_and_binary_ratings(world, dense):
    def score(matrix, u, i):
        rated = (matrix > 0).astype(float)
        return _none_to_nan(sum(s * rated[v, i] for v, s in _nearest(rated, u, 99)))

    _check(world, dense, "knn(k=99, binary=true)", score)

    def nearest_only(matrix, u, i):
        return _none_to_nan(sum(s * matrix[v, i] for v, s in _nearest(matrix, u, NEIGHBOURS)))

    _check(world, dense, f"knn(k={NEIGHBOURS})", nearest_only)


def test_knn_of_truncated_ratings_is_normalised_over_enough_neighbours(world, dense):
    def score(matrix, u, i):
        near = [(v, s) for v, s in _nearest(matrix, u, NEIGHBOURS) if matrix[v, i] > 0]
        if len(near) < 3:
            return np.nan
        return sum(s * max(matrix[v, i] - 3 + 1, 0) for v, s in near) / sum(s for _, s in near)

    spelling = f"knn(k={NEIGHBOURS}, normalised=true, min_neighbours=3, ratings=truncated, threshold=3)"
    _check(world, dense, spelling, score)

    def summed(matrix, u, i):
        near = [(v, s) for v, s in _nearest(matrix, u, NEIGHBOURS) if matrix[v, i] > 0]
        return sum(s * max(matrix[v, i] - 4 + 1, 0) for v, s in near) if near else np.nan

    _check(world, dense, f"knn(k={NEIGHBOURS}, ratings=truncated)", summed)


def test_binary_and_truncated_ratings_exclude_each_other():
    with pytest.raises(SettingError, match="exclude each other"):
        recommender("knn(binary=true, ratings=truncated)")


def test_knn_scores_what_neighbours_rated_0_or_with_both_signs():
    users, items = ["ann", "ann", "bob", "bob", "bob", "cid", "cid"], ["w", "x", "w", "y", "z", "w", "z"]
    train = Ratings.of(users, items, [1, 1, 2, 0, 3, 2, -3])
    scores = _fitted("knn(similarity=jaccard, q=0)", train)
    np.testing.assert_array_equal(scores[0], [4, np.nan, 0, 0])  # 2 + 2, nobody, bob's 0, 3 - 3


def test_uir(world, dense):
    rest = 0.2

    def score(matrix, u, i):
        rated = matrix > 0
        counts = rated.sum(axis=0)
        if counts[i] == 0:
            return np.nan
        total = math.log(counts[i] / counts.sum())
        for b in np.flatnonzero(rated[u]):
            both = np.count_nonzero(rated[:, b] & rated[:, i])
            if both:
                total += math.log(1 + rest * (both / counts[i]) / ((1 - rest) * (counts[b] / counts.sum())))
        return total

    matrix = dense(world)
    expected = [[score(matrix, u, i) for i in range(matrix.shape[1])] for u in range(len(matrix))]
    np.testing.assert_allclose(_fitted(f"uir(rest={rest})", world), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 7, 8])
def test_ht_is_the_walk_step_by_step(world, dense, steps):
    matrix = dense(world)
    users, items = matrix.shape
    weights = np.block([[np.zeros((users, users)), matrix], [matrix.T, np.zeros((items, items))]])
    degree = weights.sum(axis=1, keepdims=True)
    moves = np.divide(weights, degree, out=np.zeros_like(weights), where=degree > 0)
    scores = _fitted(f"ht(steps={steps})", world)
    for q in range(users):
        time = np.zeros(users + items)
        for _ in range(steps):
            time = 1 + moves @ time
            time[q] = 0
        known = ~np.isnan(scores[q])
        np.testing.assert_allclose(scores[q][known], -time[users:][known])
        assert known.any() == bool(matrix[q].any())
        assert not known[matrix.sum(axis=0) == 0].any()


def test_ht_of_many_steps_ranks_as_the_exact_hitting_time(world, dense):
    matrix = dense(world)
    keep_users, keep_items = matrix.any(axis=1), matrix.any(axis=0)
    inner = matrix[keep_users][:, keep_items]
    users, items = inner.shape
    weights = np.block([[np.zeros((users, users)), inner], [inner.T, np.zeros((items, items))]])
    moves = weights / weights.sum(axis=1, keepdims=True)
    scores = _fitted("ht(steps=4001)", world)[keep_users][:, keep_items]
    for q in range(users):
        others = np.delete(np.arange(users + items), q)
        exact = np.linalg.solve(np.eye(users + items - 1) - moves[np.ix_(others, others)], np.ones(users + items - 1))
        np.testing.assert_allclose(-scores[q], exact[users - 1 :], rtol=1e-6)


def test_puresvd_is_the_projection_on_the_leading_vectors(world, dense):
    matrix = dense(world)
    vectors = np.linalg.svd(matrix)[2][:3].T
    expected = matrix @ vectors @ vectors.T
    scores = _fitted("puresvd(factors=3)", world)
    known = ~np.isnan(scores)
    np.testing.assert_allclose(scores[known], expected[known], atol=1e-8)
    assert (known == (matrix.any(axis=1)[:, None] & matrix.any(axis=0))).all()


def test_puresvd_with_all_factors_gives_the_ratings_back(world, dense):
    scores = _fitted("puresvd(factors=99)", world)
    np.testing.assert_allclose(np.nan_to_num(scores), dense(world), atol=1e-8)


def test_ease_solves_its_ridge_regressions(world, dense):
    rated = (dense(world) > 0).astype(float)
    weights = np.zeros((rated.shape[1],) * 2)
    for j in range(rated.shape[1]):
        others = np.delete(np.arange(rated.shape[1]), j)
        part = rated[:, others]
        weights[others, j] = np.linalg.solve(part.T @ part + 2.5 * np.eye(len(others)), part.T @ rated[:, j])
    scores = _fitted("ease(l2=2.5)", world)
    known = ~np.isnan(scores)
    np.testing.assert_allclose(scores[known], (rated @ weights)[known], atol=1e-9)


@pytest.mark.parametrize("weighting", ["cosine", "tfidf", "bm25"])
def test_itemknn(world, dense, weighting):
    matrix = dense(world)
    users, items = matrix.shape
    weights = np.zeros((items, users))
    lengths = matrix.sum(axis=0)
    for i in range(items):
        for u in np.flatnonzero(matrix[:, i]):
            r, idf = matrix[u, i], math.log(items / (1 + np.count_nonzero(matrix[u])))
            weights[i, u] = {
                "cosine": r,
                "tfidf": math.sqrt(r) * idf,
                "bm25": r * 2.2 / (1.2 * (0.25 + 0.75 * lengths[i] / lengths.mean()) + r) * idf,
            }[weighting]
    if weighting != "bm25":
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        weights = np.divide(weights, norms, out=np.zeros_like(weights), where=norms > 0)
    similarity = weights @ weights.T
    expected = np.zeros((users, items))
    for j in range(items):
        for i in sorted(range(items), key=lambda i, j=j: (-round(similarity[j, i], 12), i))[:NEIGHBOURS]:
            if similarity[j, i] > 0:
                expected[:, i] += matrix[:, j] * similarity[j, i]
    scores = _fitted(f"itemknn(k={NEIGHBOURS}, weighting={weighting})", world)
    np.testing.assert_allclose(np.nan_to_num(scores), expected, atol=1e-9)
    assert (np.isnan(scores) == (expected == 0)).all()


@pytest.mark.parametrize(
    "spelling",
    ["kld", "rm1", "rm2", "lm-wsr-ib", "nncosngbr-ib", "knn", "ht", "puresvd(factors=8)", "ease(l2=9)", "uir"],
)
def test_items_that_were_rated_alike_tie_to_the_last_digit(spelling):
    draw = np.random.default_rng(1)
    rated = draw.random((60, 40)) < draw.random(40) / 2
    ratings = np.tile(np.where(rated, draw.integers(1, 6, rated.shape), 0), 2)[:, draw.permutation(80)]
    users, items = np.nonzero(ratings)
    train = Ratings.of(users, items, ratings[users, items])
    dense = train.matrix().toarray()
    alike = np.unique(dense, axis=1, return_inverse=True)[1].ravel()  # NumPy 2.0 returns a row
    for row, own in zip(_fitted(spelling, train), dense, strict=True):
        unseen = (own == 0) & ~np.isnan(row)
        found = set(zip(alike[unseen].tolist(), row[unseen].tolist(), strict=True))
        assert len(found) == len(set(alike[unseen].tolist()))

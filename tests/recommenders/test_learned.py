"""The trained systems: their fixed points, their loops, their seeds."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.recommenders import recommender, work
from cranfield.recommenders.work import compiled_loops

TRAINED = ["slim", "svd", "bprmf", "mf-pointwise", "wrmf", "lda", "plsa"]
SMALL = {
    "slim": "slim(l1=0.1, l2=0.5)",
    "svd": "svd(factors=4, epochs=20)",
    "bprmf": "bprmf(factors=4, epochs=20)",
    "mf-pointwise": "mf-pointwise(factors=4, epochs=5)",
    "wrmf": "wrmf(factors=4)",
    "lda": "lda(topics=3)",
    "plsa": "plsa(topics=3)",
}


@pytest.fixture
def world(world):
    """Leave out the user and the item without ratings, which systems do not see (`test_baselines`)."""
    return world.compact()


def _fitted(spelling, train, **options):
    return recommender(spelling, **options).fit(train).score(np.arange(train.n_users))


@pytest.mark.parametrize("name", TRAINED)
def test_same_seed_same_scores_whatever_the_threads(world, name, monkeypatch):
    monkeypatch.setattr("cranfield.recommenders.work._RATINGS_A_THREAD", 1)
    monkeypatch.setattr(settings, "threads", 2)
    first = _fitted(SMALL[name], world, seed=5)
    monkeypatch.setattr(settings, "threads", 1)
    assert np.array_equal(first, _fitted(SMALL[name], world, seed=5), equal_nan=True)


@pytest.mark.parametrize(("ratings", "threads"), [(100, 1), (9_999, 1), (10_000, 2), (10**6, 3)])
def test_threads_are_as_many_as_the_ratings_are_worth(monkeypatch, ratings, threads):
    monkeypatch.setattr(settings, "threads", 3)
    started = []
    monkeypatch.setattr(work, "in_threads", lambda *_, threads: started.append(threads))
    work.over_rows(print, range(100), ratings)
    assert started == [threads]


@given(st.integers(0, 50), st.integers(0, 50), st.sampled_from([1, 2, 3]))
def test_every_row_is_in_one_part(first, count, threads):
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "threads", threads)
        rows = range(first, first + count)
        work.over_rows(lambda begin, end, into: into.extend(range(begin, end)), rows, 10**6, seen)
    assert sorted(seen) == list(rows)


@pytest.mark.parametrize("name", ["svd", "bprmf", "mf-pointwise", "wrmf", "lda", "plsa"])
def test_another_seed_starts_elsewhere(world, name):
    one, other = _fitted(SMALL[name], world, seed=5), _fitted(SMALL[name], world, seed=6)
    assert not np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("neighbours", ["none", 99, 4])
def test_slim_columns_minimise_their_objective(world, dense, neighbours):
    l1, l2 = 0.1, 0.5
    rated = (dense(world) > 0).astype(float)
    model = recommender(
        f"slim(l1={l1}, l2={l2}, neighbours={neighbours}, sweeps=2000, tolerance=1e-10, binary=true)"
    ).fit(world)
    weights = model._weights.toarray()
    assert (weights >= 0).all()
    assert (np.diag(weights) == 0).all()
    gram = rated.T @ rated
    for j in range(len(gram)):
        w = weights[:, j]
        cosines = gram[:, j] / np.sqrt(np.maximum(np.diag(gram) * gram[j, j], 1))
        allowed = cosines > 0
        allowed[j] = False
        if neighbours == 4:
            allowed &= cosines >= np.sort(cosines[allowed])[-4:].min(initial=np.inf) - 1e-12
        # Karush-Kuhn-Tucker: the gradient is 0 where w > 0 and not negative where w = 0.
        gradient = gram @ w - gram[:, j] + l2 * w + l1
        assert np.allclose(gradient[w > 0], 0, atol=1e-6)
        if neighbours != 4:
            assert (gradient[allowed & (w == 0)] > -1e-6).all()
        assert not w[~allowed].any()


def test_slim_is_the_same_when_the_gram_matrix_is_not_kept(world, monkeypatch):
    whole = _fitted("slim(l1=0.1, neighbours=5)", world)
    monkeypatch.setattr(sys.modules["cranfield.recommenders.linear"], "available_memory", lambda: 0.0)
    np.testing.assert_allclose(whole, _fitted("slim(l1=0.1, neighbours=5)", world), rtol=1e-12)


@pytest.mark.parametrize(("target", "binary"), [("one", True), ("one", False), ("rating", False)])
def test_wrmf_solves_its_normal_equations(world, dense, target, binary):
    matrix = dense(world)
    rated = matrix > 0
    alpha, ridge = 2.0, 0.7
    model = recommender(
        f"wrmf(factors=3, iterations=100, alpha={alpha}, regularization={ridge}, target={target}, "
        f"binary={str(binary).lower()}, steps=10)"
    ).fit(world)
    confidence = 1 + alpha * (rated if binary else matrix)
    goal = rated * (matrix if target == "rating" else 1.0)
    # The items were solved last; at a fixed point the users solve theirs too.
    for side, other, weight, wanted in (
        (model._items, model._users, confidence.T, goal.T),
        (model._users, model._items, confidence, goal),
    ):
        for row, c, t in zip(side, weight, wanted, strict=True):
            left = (other.T * c) @ other + ridge * np.eye(3)
            np.testing.assert_allclose(row, np.linalg.solve(left, other.T @ (c * t)), atol=2e-2)


def test_svd_descends_like_the_plain_loop(dense):
    """One epoch over one rating has no order to draw: the update is the formula's."""
    train = Ratings.of(["a", "b"], ["x", "y"], [5.0, 1.0])
    single = train.keep(np.array([True, False]))
    model = recommender("svd(factors=2, epochs=1, rate=0.1, regularization=0.3)").fit(single)
    start = recommender("svd(factors=2, epochs=1, rate=1e-30, regularization=0.3)").fit(single)
    p, q = start._users[0].astype(float), start._items[0].astype(float)
    error = 5.0 - (5.0 + p @ q)
    np.testing.assert_allclose(model._users[0], p + 0.1 * (error * q - 0.3 * p), rtol=1e-5)
    np.testing.assert_allclose(model._items[0], q + 0.1 * (error * p - 0.3 * q), rtol=1e-5)
    np.testing.assert_allclose(model._user_bias[0], 0.1 * error, rtol=1e-4, atol=1e-8)


def test_svd_fits_ratings_better_than_the_averages_do(world):
    predicted = _fitted("svd(factors=4, epochs=300, rate=0.02, regularization=0.01)", world)[world.users, world.items]
    averages = _fitted("average", world)[world.users, world.items]
    assert ((predicted - world.values) ** 2).mean() < 0.5 * ((averages - world.values) ** 2).mean()


def test_bprmf_ascends_like_the_plain_loop():
    """With one user, one item in the profile and one outside it, every triple is the same."""
    train = Ratings.of(["a", "b", "b"], ["x", "x", "y"])
    train = train.keep(np.array([True, False, False]))
    options = "factors=2, user=0.1, positive=0.2, negative=0.3, bias=0.4"
    model, start = (recommender(f"bprmf({options}, epochs=1, rate={rate})") for rate in (0.5, 1e-30))
    for learner in (model, start):
        learner._fit(train)  # `fit` would remove the item that nobody rated
    p, q, o = (row.astype(float) for row in (start._users[0], start._items[0], start._items[1]))
    e = 1 / (1 + np.exp(p @ (q - o)))
    np.testing.assert_allclose(model._users[0], p + 0.5 * (e * (q - o) - 0.1 * p), rtol=1e-5)
    np.testing.assert_allclose(model._items[0], q + 0.5 * (e * p - 0.2 * q), rtol=1e-5)
    np.testing.assert_allclose(model._items[1], o + 0.5 * (-e * p - 0.3 * o), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model._bias, [0.5 * e, -0.5 * e], rtol=1e-5)


@pytest.mark.parametrize("sampling", ["rating", "user"])
def test_bprmf_ranks_profiles_above_the_rest(world, sampling):
    scores = _fitted(f"bprmf(factors=8, epochs=600, sampling={sampling})", world)
    rated = world.matrix().toarray() > 0
    for row, own in zip(scores, rated, strict=True):
        if own.any():
            above = [row[i] > row[j] for i in np.flatnonzero(own) for j in np.flatnonzero(~own & ~np.isnan(row))]
            assert np.mean(above) > 0.9


def test_a_user_who_rated_everything_stops_no_bprmf():
    train = Ratings.of(["a", "a", "b"], ["x", "y", "x"])
    assert np.isfinite(_fitted("bprmf(factors=2)", train)).all()


@pytest.mark.parametrize("by_user", [True, False])
def test_bprmf_draws_every_item_outside_the_profile_and_no_other(world, by_user):
    # The last item of the catalogue is the first of the next profile, but not an item of this one.
    neighbours = Ratings.of(["a", "a", "b"], ["x", "y", "z"])
    for train in (neighbours, world):
        triples = np.empty((3, 20_000), dtype=np.int32)
        raters = np.flatnonzero(train.user_counts)
        compiled_loops("bprmf").draw_triples(
            train.users, train.indptr, train.items, raters, by_user, train.n_items, np.ones(1, np.uint64), triples
        )
        rated = {(u, i) for u, i in zip(train.users.tolist(), train.items.tolist(), strict=True)}
        users, positive, negative = triples.tolist()
        assert set(zip(users, positive, strict=True)) == rated
        everything = {(u, j) for u in raters.tolist() for j in range(train.n_items)}
        assert set(zip(users, negative, strict=True)) == everything - rated


def _em_step(matrix, theta, phi):
    """One pass of expectation maximisation, with the responsibilities written out."""
    q = theta[:, None, :] * phi[None, :, :]
    q /= np.maximum(q.sum(axis=2, keepdims=True), 1e-300)
    counts = matrix[:, :, None] * q
    return counts.sum(axis=1), counts.sum(axis=0)


def test_plsa_is_at_a_fixed_point_of_expectation_maximisation(world, dense):
    model = recommender("plsa(topics=2, iterations=2000)").fit(world)
    matrix = dense(world)
    keep = matrix.any(axis=1)
    of_users, of_items = _em_step(matrix, model._theta.astype(float) + 1e-12, model._phi.astype(float) + 1e-12)
    theta = of_users[keep] / of_users[keep].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model._theta[keep], theta, atol=2e-3)
    np.testing.assert_allclose(model._phi, of_items / of_items.sum(axis=0), atol=2e-3)
    np.testing.assert_allclose(model._phi.sum(axis=0), 1, rtol=1e-5)


def test_plsa_passes_are_those_of_the_definition(world, dense):
    before = recommender("plsa(topics=3, iterations=4)").fit(world)
    after = recommender("plsa(topics=3, iterations=5)").fit(world)
    of_users, of_items = _em_step(dense(world), before._theta.astype(float) + 1e-30, before._phi.astype(float))
    keep = dense(world).any(axis=1)
    theta = of_users[keep] / of_users[keep].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(after._theta[keep], theta, rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(after._phi, of_items / of_items.sum(axis=0), rtol=1e-3, atol=1e-12)


def test_topic_scores_are_probabilities_of_items(world):
    for name in ("lda(topics=3, beta=0.001)", "plsa(topics=3)"):
        scores = _fitted(name, world)
        sums = np.nansum(scores, axis=1)[world.user_counts > 0]
        assert (np.abs(sums - 1) < 0.01).all()


@pytest.mark.parametrize(
    ("ratings", "adapted"),
    [
        ([1, 5, 3, 4, 2, 5], {"l1": 0.35 * 80 / 6, "l2": 150 * 80 / 6, "binary": False}),
        ([1, 500, 3, 4, 2, 5], {"l1": 0.35, "l2": 150.0, "binary": True}),
    ],
)
def test_slim_follows_the_scale_of_the_ratings(ratings, adapted):
    train = Ratings.of([1, 1, 2, 2, 3, 3], [1, 2, 1, 3, 2, 3], ratings)
    assert recommender("slim").fit(train).adapted == pytest.approx(adapted)


@pytest.mark.parametrize(("system", "setting", "most"), [("plsa", "topics", 50), ("puresvd", "factors", 30)])
def test_short_profiles_make_few_topics_and_factors(system, setting, most):
    users, items = np.divmod(np.arange(120 * 70), 70)
    short = Ratings.of(users[items < 2], (items + users)[items < 2] % 70)
    assert recommender(system).fit(short).adapted == {setting: 2}
    assert recommender(system).fit(Ratings.of(users, items)).adapted == {setting: most}
    assert recommender(f"{system}({setting}=3)").fit(short).adapted == {}


def test_what_a_system_chose_by_the_data_stands_in_the_history_of_its_run():
    (run,) = cf.recommend(Ratings.of([1, 1, 2, 2, 2], [1, 2, 1, 2, 3]), ["puresvd"], length=1)
    assert dict(run.history[-1].effect) == {"factors": 2}


def test_counts_of_plays_can_be_predicted():
    draw = np.random.default_rng(0)
    cells = np.unique(draw.integers(0, 600, 400))
    train = Ratings.of(cells // 20, cells % 20, np.round(np.exp(draw.normal(4, 2.5, len(cells)))) + 1)
    scores = recommender("svd(epochs=5)").fit(train).score([0, 1])
    assert np.isfinite(scores).all()
    assert abs(np.median(scores) - train.values.mean()) < train.values.std()

"""Adapters take models of implicit and scikit-learn, functions and objects; some systems score from profiles."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import InputError, Ratings, SettingError, recommend, splits
from cranfield.recommenders import Function, ImplicitModel, ScikitModel, as_recommender, recommender
from cranfield.recommenders.protocol import checked_scores, named_systems


class Own:
    def fit(self, train):
        self.n = train.n_items
        return self

    def score(self, users):
        return np.zeros((len(users), self.n))


def test_an_object_with_fit_and_score_is_taken_as_it_is():
    own = Own()
    assert as_recommender(own) is own


def test_a_function_of_training_ratings_and_users_is_a_system(world):
    fitted = as_recommender(lambda train, users: np.tile(train.item_counts, (len(users), 1))).fit(world)
    assert isinstance(fitted, Function)
    assert (fitted.score(np.array([0, 1])) == world.item_counts).all()


class Tensor:
    """What PyTorch asks for before a tensor with gradients may become an array."""

    def __init__(self, rows, ready=False):
        self.rows, self.ready = rows, ready

    def detach(self):
        return Tensor(self.rows, ready=True)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if not self.ready:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return np.asarray(self.rows, dtype)


def test_a_tensor_is_taken_as_scores_with_its_gradients():
    rows = [[0.5, 2.0, 1.0]]
    assert checked_scores("mine", Tensor(rows), (1, 3)).tolist() == rows


def test_a_tensor_of_pytorch_is_taken_as_scores():
    torch = pytest.importorskip("torch")
    rows = torch.nn.Parameter(torch.tensor([[0.5, 2.0, 1.0]]))
    assert checked_scores("mine", rows * 2, (1, 3)).tolist() == [[1.0, 4.0, 2.0]]


@pytest.mark.parametrize("wrong", [3, None, Own])
def test_what_is_no_system_is_refused(wrong):
    with pytest.raises(SettingError, match="is not a system"):
        as_recommender(wrong)


def test_implicit_factors_score_by_their_inner_product(world):
    als = pytest.importorskip("implicit.als")
    model = as_recommender(als.AlternatingLeastSquares(factors=3, random_state=0))
    assert isinstance(model, ImplicitModel)
    scores = model.fit(world).score(np.arange(world.n_users))
    expected = model.model.user_factors @ model.model.item_factors.T
    known = ~np.isnan(scores)
    np.testing.assert_allclose(scores[known], expected[known], rtol=1e-6)
    assert (known == np.outer(world.user_counts > 0, world.item_counts > 0)).all()


def test_implicit_neighbourhoods_score_by_their_similarities(world):
    neighbours = pytest.importorskip("implicit.nearest_neighbours")
    model = as_recommender(neighbours.CosineRecommender(K=4)).fit(world)
    scores = model.score(np.arange(world.n_users))
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[3]).any()


@pytest.mark.parametrize("kind", ["NMF", "TruncatedSVD", "LatentDirichletAllocation"])
def test_scikit_decompositions_give_rows_back(world, kind):
    decomposition = pytest.importorskip("sklearn.decomposition")
    model = as_recommender(getattr(decomposition, kind)(n_components=3, random_state=0))
    assert isinstance(model, ScikitModel)
    scores = model.fit(world).score(np.arange(world.n_users))
    assert scores.shape == (world.n_users, world.n_items)
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[3]).sum() == np.count_nonzero(world.item_counts)


def test_scikit_regressors_predict_rows_from_rows(world):
    linear = pytest.importorskip("sklearn.linear_model")
    scores = as_recommender(linear.Ridge(alpha=1.0)).fit(world).score(np.array([3]))
    matrix = world.matrix().toarray()
    expected = linear.Ridge(alpha=1.0).fit(matrix, matrix).predict(matrix[[3]])
    known = ~np.isnan(scores)
    np.testing.assert_allclose(scores[known], expected[known], atol=1e-3)


def test_a_scikit_estimator_that_gives_no_rows_back_is_refused(world):
    cluster = pytest.importorskip("sklearn.cluster")
    fitted = as_recommender(cluster.KMeans(2, n_init=1)).fit(world)
    with pytest.raises(InputError, match="KMeans does not return a row of scores"):
        fitted.score(np.array([0]))


def test_names_come_from_the_mapping_the_spelling_the_object_or_its_class():
    def mine(train, users):
        return np.zeros((len(users), train.n_items))

    named = Own()
    named.name = "my own"
    assert list(named_systems({"a": Own(), "b": "knn"})) == ["a", "b"]
    assert list(named_systems(["knn( k=5 )", Own(), named, mine])) == ["knn(k=5)", "Own", "my own", "mine"]
    assert list(named_systems("popularity")) == ["popularity"]
    with pytest.raises(SettingError, match="two systems are called 'knn'"):
        named_systems(["knn", "knn"])
    with pytest.raises(SettingError, match="no system is given"):
        named_systems([])


EXACT = ["ease(l2=5)", "ease(l2=5, binary=false)", "slim(l1=0.1, l2=1)", "itemknn(k=5)", "itemknn(k=5, binary=true)",
         "puresvd(factors=4)", "popularity", "average"]  # fmt: skip


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(3)
    taste = rng.random((30, 3)) @ rng.random((3, 20))
    rated = rng.random((30, 20)) < taste / taste.max() * 0.8
    users, items = np.nonzero(rated)
    return Ratings.of(users, items, 1 + (users + items) % 5)


@pytest.mark.parametrize("system", EXACT)
def test_a_training_users_own_profile_has_the_scores_of_the_user(system, ratings):
    model = recommender(system).fit(ratings)
    np.testing.assert_array_equal(model.score_profiles(ratings), model.score(np.arange(30)))


@pytest.mark.parametrize(
    ("system", "tolerance"),
    [("wrmf(factors=3, iterations=60, steps=5, regularization=1)", 2e-2), ("plsa(topics=2, iterations=1000)", 2e-3)],
)
def test_folding_in_finds_what_fitting_converged_to(system, tolerance, ratings):
    model = recommender(system).fit(ratings)
    np.testing.assert_allclose(model.score_profiles(ratings), model.score(np.arange(30)), atol=tolerance)


@pytest.mark.parametrize("similarity", ["cosine", "pearson", "jaccard"])
def test_neighbours_of_a_profile_are_those_that_a_fitted_user_has(similarity, ratings):
    """Fitting with one more user gives that user the neighbours, and so the scores, of folding it in."""
    others = ratings.keep(ratings.users > 0)
    spelled = f"knn(k=4, similarity={similarity}, overlap=1)"
    together, apart = recommender(spelled).fit(ratings), recommender(spelled).fit(others)
    own = ratings.keep(ratings.users == 0).matrix()[[0]]
    known = others.item_counts > 0
    np.testing.assert_allclose(apart.score_profiles(own)[:, known], together.score([0])[:, known])


def test_items_without_training_ratings_are_not_looked_at(ratings):
    some = ratings.keep(ratings.items > 4)
    model = recommender("ease").fit(some)
    whole, without = (model.score_profiles(part) for part in (ratings, some))
    assert np.isnan(whole[:, :5]).all()
    rated = some.user_counts > 0
    np.testing.assert_array_equal(whole[rated], without[rated])


def test_an_empty_profile_has_no_scores_but_popular_items(ratings):
    empty = np.zeros((1, 20))
    assert np.isnan(recommender("ease").fit(ratings).score_profiles(empty)).all()
    assert np.isfinite(recommender("popularity").fit(ratings).score_profiles(empty)).all()


def test_profiles_over_other_items_are_refused(ratings):
    model = recommender("ease").fit(ratings)
    with pytest.raises(SettingError, match="profiles of 3 items do not fit the 20 items"):
        model.score_profiles(np.zeros((1, 3)))
    with pytest.raises(SettingError, match="different vocabularies of items"):
        model.score_profiles(Ratings.of([1], ["x"]))


def test_a_list_for_a_held_out_user_is_ranked_by_the_profile(ratings):
    split = splits.strong_generalisation(ratings, users=0.3, given=0.5, seed=1)
    (run,) = recommend(split, "ease(l2=5)", length=5)
    model = recommender("ease(l2=5)").fit(split.train)
    held = np.flatnonzero(split.profiles.user_counts)
    assert run.users.tolist() == held.tolist()
    scores = model.score_profiles(split.profiles.matrix()[held])
    for row, user in enumerate(held):
        seen = split.profiles.items[split.profiles.profile(user)]
        scores[row, seen] = np.nan
        best = run.items[run.indptr[row] : run.indptr[row + 1]]
        assert set(best) == set(np.argsort(-np.nan_to_num(scores[row], nan=-np.inf))[:5])
        assert not set(best) & set(seen)


def test_a_system_that_knows_only_its_own_users_cannot(ratings):
    split = splits.strong_generalisation(ratings, users=0.3, given=0.5)
    with pytest.raises(SettingError, match=r"bprmf cannot score from a profile alone.*systems that can: average, ease"):
        recommend(split, ["ease", "bprmf"])
    with pytest.raises(SettingError, match="cannot score from a profile alone"):
        recommend(split, lambda train, users: np.zeros((len(users), train.n_items)))


def test_an_object_with_score_profiles_of_its_own_is_asked_for_it(ratings):
    class Newest:
        def fit(self, train):
            self.items = train.n_items
            return self

        def score(self, users):
            raise AssertionError

        def score_profiles(self, profiles):
            return np.tile(np.arange(self.items), (profiles.shape[0], 1))

    split = splits.strong_generalisation(ratings, users=0.3, given=0.5)
    (run,) = recommend(split, {"newest": Newest()}, length=1, keep_seen=True)
    assert set(run.items) == {19}

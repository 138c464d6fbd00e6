"""What people bring: models of implicit and scikit-learn, functions, objects of their own."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import InputError, SettingError
from cranfield.recommenders import Function, ImplicitModel, ScikitModel, as_recommender
from cranfield.recommenders.adapters import checked_scores, named_systems


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

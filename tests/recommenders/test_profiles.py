"""Scores from a profile alone."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings, SettingError, recommend, splits
from cranfield.recommenders import recommender

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

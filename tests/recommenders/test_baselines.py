"""Random, popularity, averages: against their definitions."""

from __future__ import annotations

import numpy as np

from cranfield.recommenders import recommender


def _scores(spelling, train):
    return recommender(spelling).fit(train).score(np.arange(train.n_users))


def test_popularity_counts_ratings(world, dense):
    rated = dense(world) > 0
    assert (_scores("popularity", world) == rated.sum(axis=0)).all()
    assert (_scores("popularity(threshold=4)", world) == (dense(world) >= 4).sum(axis=0)).all()


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
    assert np.allclose(scores[0], world.values.mean())
    row = dense(world)[2]
    assert np.allclose(scores[2], row[row > 0].mean())


def test_random_scores_depend_on_seed_and_user_alone(world):
    one = recommender("random(seed=3)").fit(world)
    assert (one.score([5]) == one.score([2, 5])[1]).all()
    assert (one.score([5]) != recommender("random(seed=4)").fit(world).score([5])).all()
    many = recommender("random").fit(world).score(np.arange(world.n_users))
    assert 0 <= many.min() < 0.1
    assert 0.9 < many.max() < 1

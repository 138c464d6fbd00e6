"""iALS: the minimum of its objective, and folding in."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.recommenders import recommender


def _objective(rated, users, items, unobserved, regularization, exponent):
    predicted = users @ items.T
    loss = np.sum(rated * (predicted - 1) ** 2) + unobserved * np.sum(predicted**2)
    by_user = (rated.sum(axis=1) + unobserved * len(items)) ** exponent
    by_item = (rated.sum(axis=0) + unobserved * len(users)) ** exponent
    return loss + regularization * (by_user @ (users**2).sum(axis=1) + by_item @ (items**2).sum(axis=1))


@pytest.mark.parametrize(("exponent", "threshold"), [(0.0, None), (0.5, None), (1.0, None), (1.0, 4)])
def test_the_items_minimise_the_objective_given_the_users(world, dense, exponent, threshold):
    train = world.compact()
    model = recommender(f"ials(factors=3, epochs=3, unobserved=0.2, regularization=0.05, exponent={exponent})")
    model.threshold = threshold
    model.fit(train)
    rated = (dense(train) >= (threshold or 1)).astype(float)
    users, items = model._users.astype(float), model._items.astype(float)
    settings = (0.2, 0.05, exponent)
    at = _objective(rated, users, items, *settings)
    assert at / rated.sum() == pytest.approx(model.history[-1]["loss"], rel=1e-5)
    for row in range(len(items)):
        for factor in range(3):
            for change in (-1e-2, 1e-2):
                moved = items.copy()
                moved[row, factor] += change
                assert _objective(rated, users, moved, *settings) > at


def test_an_epoch_solves_the_normal_equations_of_all_users_and_then_of_all_items(world, dense):
    train = world.compact()
    model = recommender("ials(factors=3, unobserved=0.2, regularization=0.05)")
    numbers, epoch = model._start(train)
    after, _ = epoch(numbers, 0)
    rated, sides = dense(train) > 0, {name: values.astype(float) for name, values in numbers.items()}
    for name, other, own in (("users", "items", rated), ("items", "users", rated.T)):
        fixed = sides[other]
        for row, seen in enumerate(own):
            shrinkage = 0.05 * (seen.sum() + 0.2 * len(fixed))
            system = fixed[seen].T @ fixed[seen] + 0.2 * fixed.T @ fixed + shrinkage * np.eye(3)
            sides[name][row] = np.linalg.solve(system, fixed[seen].sum(axis=0))
        np.testing.assert_allclose(after[name], sides[name], rtol=1e-3, atol=1e-5)


def test_the_loss_never_rises(world):
    losses = [entry["loss"] for entry in recommender("ials(factors=4, epochs=8)").fit(world).history]
    assert np.all(np.diff(losses) < 1e-6)


def test_the_profile_of_a_training_user_has_the_scores_that_the_items_give_it(world):
    train = world.compact()
    model = recommender("ials(factors=3, epochs=200)").fit(train)
    np.testing.assert_allclose(model.score_profiles(train), model.score(np.arange(train.n_users)), atol=1e-3)


def test_lists_are_the_same_for_any_number_of_threads(monkeypatch):
    ratings = cf.simulate.world(900, 60, 9_000, seed=1, times=False).ratings
    states = []
    for threads in (1, 3):
        monkeypatch.setattr(cf.settings, "threads", threads)
        states.append(recommender("ials(factors=16, epochs=2)").fit(ratings).state())
    for name, values in states[0].items():
        np.testing.assert_array_equal(values, states[1][name])


def test_a_system_without_solution_is_one_line():
    ratings = cf.Ratings.of([1, 1, 2], [1, 2, 1])
    with pytest.raises(SettingError, match="give a larger regularization"):
        recommender("ials(factors=8, regularization=0, unobserved=0)").fit(ratings)


@pytest.mark.parametrize("name", ["ials", "mf-pointwise"])
def test_a_threshold_that_no_rating_reaches_is_named(world, name):
    with pytest.raises(InputError, match=f"no training rating reaches threshold=9 of {name}; the highest is 5"):
        recommender(f"{name}(threshold=9)").fit(world)

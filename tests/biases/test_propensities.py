"""Propensities: probabilities of being in the test part."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases.propensities import _log_likelihood, _regression, fit_propensities, given_propensities


def _unseen_sum(split, propensities):
    """The sum over all unseen pairs of test users, pair by pair."""
    seen = set(zip(split.train.users.tolist(), split.train.items.tolist()))
    pairs = [
        (user, item)
        for user in np.flatnonzero(split.test.user_counts).tolist()
        for item in range(split.train.n_items)
        if (user, item) not in seen
    ]
    users, items = (np.array(codes) for codes in zip(*pairs))
    return propensities.of(users, items)


@pytest.mark.parametrize("kind", ["popularity", "logistic"])
@pytest.mark.parametrize("exponent", [None, 0.0, 3.0])
def test_they_sum_to_the_number_of_test_ratings_over_unseen_pairs(kind, exponent, split):
    propensities = fit_propensities(split, kind, exponent=exponent)
    values = _unseen_sum(split, propensities)
    assert ((values > 0) & (values <= 1)).all()
    assert values.sum() == pytest.approx(len(split.test), rel=1e-6)
    assert propensities.total == pytest.approx(len(split.test), rel=1e-6)


def test_the_fit_finds_the_law_that_made_the_ratings():
    rng = np.random.default_rng(3)
    items = np.exp(rng.normal(0, 1, 120))
    chance = np.minimum(0.02 * items[None, :] * np.exp(rng.normal(0, 0.5, 1500))[:, None], 1)
    users, columns = np.nonzero(rng.random(chance.shape) < chance)
    ratings = cf.Ratings.of(users.tolist(), columns.tolist())
    split = cf.splits.random(ratings, train=0.8, seed=1)
    odds = fit_propensities(split, "logistic")
    assert odds.exponents[0] == pytest.approx(1.0, abs=0.3)
    assert 0.2 < odds.exponents[1] < 1.0
    propensities = fit_propensities(split)
    # Test counts are proportional to training counts; users have few ratings, so theirs are less informative.
    assert propensities.exponents[0] == pytest.approx(1.0, abs=0.2)
    assert 0.2 < propensities.exponents[1] < 1.0
    tested = np.bincount(split.test.items, minlength=ratings.n_items)
    every = np.repeat(np.arange(ratings.n_users), ratings.n_items), np.tile(np.arange(ratings.n_items), ratings.n_users)
    expected = propensities.of(*every).reshape(ratings.n_users, -1)
    expected[split.train.users, split.train.items] = 0
    expected[split.test.user_counts == 0] = 0
    head = np.argsort(-split.train.item_counts)[:20]
    assert expected.sum(axis=0)[head].sum() == pytest.approx(tested[head].sum(), rel=0.2)


@pytest.mark.parametrize("kind", ["popularity", "logistic"])
def test_the_regression_is_where_the_likelihood_is_highest(kind):
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(400), rng.normal(5, 2, 400), rng.normal(4, 1, 400)])
    pairs = rng.integers(1, 3000, 400).astype(float)
    linear = design @ [-11.0, 1.1, 0.7]
    mean = np.minimum(np.exp(linear), 1) if kind == "popularity" else 1 / (1 + np.exp(-linear))
    found = rng.binomial(pairs.astype(int), mean).astype(float)
    best = minimize(
        lambda theta: -_log_likelihood(np.minimum(design @ theta, 50), found, pairs, kind) / 1e4,
        [-10.0, 1.0, 0.5],
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 5000},
    )
    np.testing.assert_allclose(_regression(design, found, pairs, kind)[1:], best.x[1:], rtol=1e-3)


def test_given_ones_are_taken_by_pair_and_by_id(split):
    frame = split.test.frame()
    given = cf.Ratings.of(frame["user"].to_list(), frame["item"].to_list(), np.linspace(0.1, 1, len(frame)))
    found = given_propensities(given, split).of(split.test.users, split.test.items)
    np.testing.assert_allclose(found, np.linspace(0.1, 1, len(frame)), rtol=1e-6)


def test_zero_propensities_and_missing_ones_are_refused(split):
    frame = split.test.frame()
    users, items = frame["user"].to_list(), frame["item"].to_list()
    with pytest.raises(cf.InputError, match="is 0, and 1 in all are not above 0"):
        given_propensities(cf.Ratings.of(users, items, [0.0] + [0.5] * (len(frame) - 1)), split)
    with pytest.raises(cf.InputError, match=r"1 of .* test ratings have no propensity"):
        given_propensities(cf.Ratings.of(users[1:], items[1:], [0.5] * (len(frame) - 1)), split)
    with pytest.raises(cf.SettingError, match="not one of popularity, logistic"):
        fit_propensities(split, "magic")

"""Scores made predicted ratings: against scikit-learn, and never by pairs that a system learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError
from cranfield.data import RatingScale
from cranfield.rankings import Ranking, calibrate, rank, recommend
from cranfield.rankings.calibration import (
    CALIBRATIONS,
    Calibration,
    HeldOut,
    _met,
    calibrate_system,
    fitted_calibration,
)
from cranfield.recommenders import recommender
from cranfield.recommenders.protocol import pair_scores
from cranfield.splits import random

SCALE = RatingScale(1, 5)
PAIRS = st.lists(
    st.tuples(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 2.0]), st.integers(1, 5)), min_size=2, max_size=40
).filter(lambda pairs: len({rating for _, rating in pairs}) > 1)


@pytest.fixture(scope="module")
def split():
    ratings = cf.simulate.world(users=80, items=50, ratings=2_000, seed=3).ratings
    return random(ratings, train=0.7, seed=1)


@given(pairs=PAIRS, asked=st.lists(st.floats(-2e6, 2e6), max_size=20))
def test_isotonic_calibration_is_scikit_learns(pairs, asked):
    from sklearn.isotonic import IsotonicRegression

    scores, ratings = (np.array(column, dtype=float) for column in zip(*pairs))
    calibration = fitted_calibration("isotonic", scores, ratings, SCALE)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, ratings)
    asked = np.array([*asked, *scores])
    # scikit-learn merges scores that only differ by rounding errors.
    if len(np.unique(scores)) == len(np.unique(scores.round(6))):
        np.testing.assert_allclose(calibration(asked), theirs.predict(asked), atol=1e-6)


@given(pairs=PAIRS)
def test_linear_calibration_is_least_squares_on_the_scale_unless_it_would_fall(pairs):
    scores, ratings = (np.array(column, dtype=float) for column in zip(*pairs))
    scores = scores.round(3)
    calibration = fitted_calibration("linear", scores, ratings, SCALE)
    if np.ptp(scores) > 1e-2:
        slope, intercept = np.polynomial.Polynomial.fit(scores, ratings, 1).convert(domain=[-1, 1]).coef[::-1]
        line = np.full(len(scores), ratings.mean()) if slope <= 0 else np.clip(intercept + slope * scores, 1, 5)
        np.testing.assert_allclose(calibration(scores), line, atol=1e-6)
    else:
        assert (calibration(scores) >= 1).all()


@given(pairs=PAIRS, method=st.sampled_from(sorted(CALIBRATIONS)), data=st.data())
def test_a_calibration_changes_no_order_beyond_ties(pairs, method, data):
    scores, ratings = (np.array(column, dtype=float) for column in zip(*pairs))
    calibration = fitted_calibration(method, scores, ratings, SCALE)
    asked = np.sort(data.draw(st.lists(st.floats(-2e6, 2e6) | st.sampled_from(scores.tolist()), min_size=2)))
    predictions = calibration(asked)
    assert (np.diff(predictions) >= 0).all()
    assert ((predictions >= 1) & (predictions <= 5)).all()


def test_lists_keep_their_order_and_ranking_metrics_their_values(split):
    held_out = replace(split, train=HeldOut.of(split, 0).train)
    (plain,) = recommend(held_out, "knn(k=10)", lists="condensed")
    (calibrated,) = recommend(split, "knn(k=10)", lists="condensed", calibration="isotonic")
    np.testing.assert_array_equal(calibrated.items, plain.items)
    within = np.ones(len(plain.items) - 1, dtype=bool)
    within[plain.indptr[1:-1][plain.indptr[1:-1] < len(plain.items)] - 1] = False
    assert (np.diff(calibrated.predictions)[within] <= 0).all()


def test_a_calibration_is_fitted_on_pairs_that_no_system_learned_from(split):
    held = HeldOut.of(split, 0)
    learned, not_learned = (set(zip(part.users.tolist(), part.items.tolist())) for part in held[:2])
    assert not learned & not_learned
    assert learned | not_learned == set(zip(split.train.users.tolist(), split.train.items.tolist()))
    assert len(held.validation) == pytest.approx(0.1 * len(split.train), rel=0.3)
    model = recommender("ease").fit(held.train)
    scores = pair_scores("ease", model, held.validation.users, held.validation.items, held.train.n_items)
    by_hand = fitted_calibration("isotonic", scores, held.validation.values, RatingScale.of(split.train.grades))
    calibration = calibrate_system("ease", model, held, "isotonic")
    assert (calibration.scores, calibration.ratings) == (by_hand.scores, by_hand.ratings)
    (run,) = recommend(split, "ease", calibration="isotonic")
    assert run.calibration == calibration
    assert run.history[-1].action == "calibrate"
    assert run.history[-1].effect["spread"] == calibration.spread
    trained = pair_scores("ease", model, held.train.users, held.train.items, held.train.n_items)
    assert np.nanmean(trained) > np.nanmean(scores)  # which is why training scores are not used


def test_the_validation_part_of_a_split_is_used_where_there_is_one(split):
    with_part = random(cf.simulate.world(users=80, items=50, ratings=2_000, seed=3).ratings, validation=0.2, seed=1)
    held = HeldOut.of(with_part, 0)
    assert held.train is with_part.train
    assert held.validation is with_part.validation
    assert len(held.seen) == len(with_part.train) + len(with_part.validation)
    model = recommender("popularity").fit(with_part.train)
    run = rank(model, with_part, ranking=Ranking(calibration="linear"))
    assert run.calibration.pairs == len(with_part.validation)
    seen = {(u, i) for u, i in zip(held.seen.users.tolist(), held.seen.items.tolist())}
    assert not seen & set(zip(np.repeat(run.users, np.diff(run.indptr)).tolist(), run.items.tolist()))
    with pytest.raises(SettingError, match="the split has no validation part; make it with validation"):
        rank(model, split, ranking=Ranking(calibration="linear"))


def test_a_system_that_predicts_ratings_keeps_them_and_has_a_spread(split):
    (run,) = recommend(split, "average", lists="condensed", calibration="isotonic")
    np.testing.assert_array_equal(run.predictions, run.scores)
    held = HeldOut.of(split, 0)
    model = recommender("average").fit(held.train)
    residuals = held.validation.values - pair_scores(
        "average", model, held.validation.users, held.validation.items, held.train.n_items
    )
    assert run.calibration.method == "own"
    assert run.calibration.spread == pytest.approx(np.nanstd(residuals, ddof=1))


def test_pairs_are_scored_as_rows_are(split):
    for system in ("svd(epochs=2)", "bprmf(epochs=2)", "popularity", "average", "useraverage"):
        (lists,) = recommend(split, system, lists="condensed", new_users="served", length=7)
        model = recommender(system).fit(split.train)
        rows = model.score(np.repeat(lists.users, np.diff(lists.indptr)))[np.arange(len(lists.items)), lists.items]
        np.testing.assert_allclose(lists.scores, rows, rtol=1e-5, atol=1e-6)
        assert np.diff(lists.indptr).max() == 7
        users, items = split.test.users, split.test.items
        np.testing.assert_allclose(
            model.score_pairs(users, items), model.score(users)[np.arange(len(users)), items], rtol=1e-5, atol=1e-6
        )


def test_each_score_meets_the_rating_of_its_own_user_and_item():
    rng = np.random.default_rng(4)
    rated = {(user, item): float(rng.integers(1, 6)) for user in range(9) for item in rng.permutation(12)[:5]}
    lists = {user: {int(item): float(rng.random()) for item in rng.permutation(15)[:7]} for user in range(3, 12)}
    users, items = zip(*rated)
    scores, ratings = _met(cf.read_run(lists, name="mine"), Ratings.of(users, items, list(rated.values())))
    expected = [(lists[user][item], value) for (user, item), value in rated.items() if item in lists.get(user, {})]
    assert sorted(zip(scores, ratings)) == sorted(expected)


def test_given_lists_are_calibrated_by_lists_of_a_validation_part():
    lists = cf.read_run({"ann": {"x": 12.0, "y": 3.0, "new": 7.0}}, name="mine")
    held_out = cf.read_run({"bob": {"x": 10.0, "y": 2.0, "z": 6.0}, "stranger": {"x": 99.0}}, name="mine")
    validation = Ratings.of(["bob"] * 4, ["x", "y", "z", "w"], [5, 1, 3, 4])
    calibrated = calibrate(lists, held_out, validation, "linear")
    assert calibrated.predictions == pytest.approx([5.0, 3.5, 1.5])
    assert calibrated.calibration.pairs == 3
    ranks = cf.read_run({"ann": ["x", "y"]}, name="ranks")
    with pytest.raises(SettingError, match="ranks has no scores to calibrate"):
        calibrate(ranks, held_out, validation)
    with pytest.raises(SettingError, match="0 of the held-out ratings have a score"):
        calibrate(lists, cf.read_run({"eve": {"q": 1.0}}, name="mine"), validation)


@pytest.mark.parametrize(
    ("scores", "ratings", "words"),
    [
        ([1.0, 2.0, 3.0], [4, 4, 4], "every held-out rating is 4"),
        ([np.nan, np.nan, 1.0], [1, 2, 3], "1 of the held-out ratings have a score"),
    ],
)
def test_what_cannot_be_calibrated_is_said(scores, ratings, words):
    with pytest.raises(SettingError, match=words):
        fitted_calibration("isotonic", np.array(scores), np.array(ratings), SCALE)


def test_scores_that_fall_with_ratings_predict_the_mean_and_huge_ones_are_no_trouble():
    for method in CALIBRATIONS:
        falling = fitted_calibration(method, np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]), SCALE)
        assert len(set(falling.ratings)) == 1
        assert falling(np.array([0.0, 9.0, np.nan])).tolist()[:2] == [2.0, 2.0]
        huge = fitted_calibration(method, np.array([1e308, -1e308, 0.0]), np.array([5.0, 1.0, 3.0]), SCALE)
        assert huge(np.array([1e308, -1e308])) == pytest.approx([5.0, 1.0])


def test_a_calibration_comes_back_from_its_record_and_a_single_rating_cannot_be_held_out():
    calibration = fitted_calibration("isotonic", np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), SCALE)
    assert Calibration.of(calibration.as_dict()) == calibration
    with pytest.raises(SettingError, match="1 training ratings are too few to hold some out"):
        HeldOut.of(Ratings.of(["ann"], ["x"], [5]), 0)
    assert "validation part" in HeldOut._field_defaults["words"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fill": "popularity"}, "fill='popularity' lists others too"),
        ({"relevant": "one"}, "relevant='one' keeps only ranks"),
        ({"calibration": "platt"}, "calibration='platt' is not one of none, linear, isotonic"),
    ],
)
def test_what_contradicts_a_calibration_is_refused(options, words):
    with pytest.raises(SettingError, match=words):
        Ranking(**{"calibration": "linear", **options})

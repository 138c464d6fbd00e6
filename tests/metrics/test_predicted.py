"""Predicted ratings: scores that are not ratings are refused; calibration curves and errors against scikit-learn."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError
from cranfield.judgments import judge
from cranfield.measures import measure
from cranfield.metrics import Metric
from cranfield.metrics.predicted import Predicted, scale_of
from cranfield.rankings import read_run, recommend
from cranfield.splits import random

TEST = Ratings.of(["ann"] * 3 + ["bob"] * 2, ["x", "y", "z", "x", "y"], [5, 3, 1, 4, 2])


def _run(scale, shift=0.0):
    rows = [(user, item, scale * rating + shift) for user, item, rating in TEST.frame().iter_rows()]
    return pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")


@pytest.mark.parametrize(("scale", "shift"), [(0.1, 0.0), (20.0, 0.0), (1.0, -6.0)])
def test_scores_off_the_rating_scale_are_refused_with_an_offer(scale, shift):
    with pytest.raises(SettingError, match=r"RMSE, SDCSE@2 need.* the scores of mine are not on the rating scale of 1"):
        measure({"mine": _run(scale, shift)}, TEST, ["RMSE", "SDCSE@2", "P@2"])
    with pytest.raises(SettingError, match=r"calibration='isotonic' .* cranfield calibrate"):
        measure({"mine": _run(scale, shift)}, TEST, ["RMSE"])
    assert measure({"mine": _run(scale, shift)}, TEST, ["P@2"]).values.shape == (1, 1, 2)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 0.9), (0.5, 1.5)])
def test_scores_on_the_scale_are_taken_with_a_note(scale, shift):
    scores = measure({"mine": _run(scale, shift)}, TEST, ["RMSE"])
    assert any("used the scores instead" in note for note in map(str, scores.notes))


def test_clicks_may_be_predicted_from_0_to_1():
    clicks = Ratings.of(["ann", "ann"], ["x", "y"])
    run = pl.DataFrame({"user": ["ann"] * 3, "item": [*"xyz"], "score": [0.75, 0.5, 0.25]})
    assert measure({"m": run}, clicks, ["CSE"]).values.ravel() == pytest.approx([0.0625 + 0.25])
    assert measure({"m": run}, clicks, ["CSE(unrated=0)"]).values.ravel() == pytest.approx([0.0625 + 0.25 + 0.0625])


def test_a_system_that_only_ranks_is_refused_even_if_its_scores_look_like_ratings():
    ratings = cf.simulate.world(users=40, items=30, ratings=600, seed=3).ratings
    split = random(ratings, train=0.7, seed=1)
    runs = recommend(split, ["average", "popularity"], lists="condensed")
    assert [run.only_ranks for run in runs] == [False, True]
    with pytest.raises(SettingError, match="RMSE needs predicted ratings, and popularity gives scores that only rank"):
        measure(runs, split.test, ["RMSE"])
    runs = recommend(split, ["average", "popularity"], lists="condensed", calibration="linear")
    assert np.isfinite(measure(runs, split.test, ["PooledRMSE"]).overall).all()


def test_a_system_of_ones_own_may_say_that_it_predicts_ratings():
    class Mine:
        predicts_ratings = True

        def fit(self, train):
            self.n_items = train.n_items
            return self

        def score(self, users):
            return np.full((len(users), self.n_items), 3.0)

    split = random(cf.simulate.world(users=40, items=30, ratings=600, seed=3).ratings, train=0.7, seed=1)
    (run,) = recommend(split, Mine(), lists="condensed")
    assert (run.predictions == 3.0).all()


PAIRS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


@given(pairs=PAIRS, bins=st.integers(1, 12))
def test_the_calibration_curve_of_clicks_is_scikit_learns(pairs, bins):
    from sklearn.calibration import calibration_curve as theirs

    predictions, ratings = (list(column) for column in zip(*pairs))
    rows = {"user": [1] * len(pairs), "item": range(len(pairs)), "prediction": predictions}
    judged = judge(read_run(pl.DataFrame(rows), name="run"), Ratings.of([1] * len(pairs), range(len(pairs)), ratings))
    train = Ratings.of([1, 1], [1, 2], [0, 1])  # the scale, whatever is in the test set
    judged = judged.fresh(context=type(judged.context)(train))
    curve = Predicted.of(judged.condensed(), "ECE").curve(scale_of(judged), bins=bins)
    shares, means = theirs(ratings, predictions, n_bins=bins)
    np.testing.assert_allclose(curve["rating"], shares)
    np.testing.assert_allclose(curve["predicted"], means)
    gaps = np.abs(shares - means)
    assert Metric.of(f"ECE(bins={bins})")(judged) == pytest.approx(
        (curve["count"].to_numpy() * gaps).sum() / len(pairs)
    )


def test_the_calibration_error_has_ten_groups():
    rng = np.random.default_rng(1)
    users, ratings = range(40), rng.integers(1, 6, 40)
    rows = {"user": users, "item": users, "prediction": np.round(1 + 4 * rng.random(40), 2)}
    judged = judge(read_run(pl.DataFrame(rows), name="m"), Ratings.of(users, users, ratings))
    usual, ten, eleven = (Metric.of(spelling)(judged) for spelling in ("ECE", "ECE(bins=10)", "ECE(bins=11)"))
    assert usual == ten != eleven


def test_the_error_by_rank_compares_each_place_of_the_lists():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abab"], "prediction": [5.0, 3.0, 4.0, 2.0]})
    test = Ratings.of([1, 1, 2, 2], [*"abab"], [4, 3, 3, 1])
    # Items at rank 1 are predicted 4.5 and rated 3.5 on average, those at rank 2 are predicted 2.5 and rated 2.
    assert measure({"m": run}, test, ["ECE(by=rank)"]).overall.item() == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
    assert measure({"m": run}, test, ["ECE(by=rank)@1"]).overall.item() == pytest.approx(1.0)

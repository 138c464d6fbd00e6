"""True values of lists from judgments with known probabilities, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.measures import true_values
from cranfield.measures.by_truth import TrueValues
from cranfield.splits import truths

TRAIN = cf.Ratings.of(["ann", "bob"], ["x", "y"], [4, 5])
JUDGED = cf.Ratings.of(["ann", "ann", "bob", "cid"], ["p", "q", "q", "p"], [5, 2, 4, 5])
LISTS = {"one": {"ann": ["p", "q", "z"], "bob": ["z", "q", "p"]}, "two": {"ann": ["z", "q", "p"]}}


@pytest.fixture
def truth():
    return truths.given(TRAIN, JUDGED, probability=[0.5, 0.5, 0.25, 1.0])


def test_a_relevant_judgment_counts_one_over_its_probability(truth):
    values = true_values(LISTS, truth, cutoff=2, threshold=4)
    assert values.systems == ("one", "two")
    assert values.precision.tolist() == [[(1 / 0.5) / 2, (1 / 0.25) / 2], [0.0, 0.0]]


def test_only_users_with_training_ratings_count_and_one_without_a_list_counts_0(truth):
    values = true_values(LISTS, truth, cutoff=3, threshold=4)
    assert truth.train.user_ids.ids(values.users).to_list() == ["ann", "bob"]
    assert values.precision[1].tolist() == [pytest.approx(2 / 3), 0.0]


def test_liked_is_the_weighted_share_of_judged_items_and_counted_the_unweighted_precision(truth):
    row = true_values(LISTS, truth, cutoff=2, threshold=4).frame(resamples=50).row(0, named=True)
    assert row["liked"] == pytest.approx((2 + 4) / (2 + 2 + 4))
    assert row["counted"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert row["lower"] <= row["precision"] <= row["upper"]


def test_a_system_without_a_judged_item_has_no_share_that_is_liked_and_no_interval_of_it(truth):
    row = true_values({"none": {"ann": ["z"], "bob": ["z"]}}, truth, cutoff=2).frame(resamples=50).row(0, named=True)
    assert row["precision"] == row["lower"] == row["upper"] == 0.0
    assert np.isnan([row["liked"], row["liked_lower"], row["liked_upper"]]).all()


def test_without_weights_every_judgment_counts_one_over_the_mean_probability(truth):
    plain = cf.splits.Truth(truth.train, truth.judged, truth.probability, False, truth.step)
    values = true_values(LISTS, plain, cutoff=2, threshold=4)
    assert values.precision[0].tolist() == pytest.approx([1 / 0.5625 / 2, 1 / 0.5625 / 2])


def test_a_draw_of_users_is_a_draw_with_replacement():
    draws = TrueValues.user_draws(7, 20, 1)
    assert draws.shape == (20, 7)
    assert draws.sum(axis=1) == pytest.approx(np.ones(20))
    assert (draws != draws[0]).any()


def test_a_number_of_probabilities_that_does_not_fit_is_refused(truth):
    with pytest.raises(SettingError, match="1 probabilities for 4 judgments"):
        cf.splits.Truth(truth.train, truth.judged, np.array([0.5]), True, truth.step)


def test_no_mean_is_above_1_though_weights_can_make_it_so():
    truth = truths.given(TRAIN, cf.Ratings.of(["ann", "bob"], ["y", "z"], [5, 5]), probability=0.4)
    values = true_values({"mine": {"ann": ["y"], "bob": ["z"]}}, truth, cutoff=1, threshold=4)
    assert values.precision.tolist() == [[2.5, 2.5]]
    assert values.mean_precision.tolist() == [1.0]
    row = values.frame(resamples=50).row(0, named=True)
    assert (row["precision"], row["lower"], row["upper"]) == (1.0, 1.0, 1.0)


def test_percentiles_of_a_row_ignore_undefined_values():
    draws = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(TrueValues.row_percentiles(draws, (50.0,)), [[2.0, np.nan]])

"""The temporal split has one boundary."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, splits

TIMES = st.lists(st.integers(0, 12), min_size=1, max_size=40)


@given(TIMES, st.sampled_from([0.05, 0.25, 0.5, 0.7, 0.95]), st.sampled_from([None, 0.3]))
def test_training_is_older_than_validation_and_validation_than_test(times, train, validation):
    ratings = Ratings.of(range(len(times)), range(len(times)), times=times)
    try:
        made = splits.temporal(ratings, train=train, validation=validation)
    except ImpossibleSplitError:
        return
    parts = [part.times for part in made.parts.values()]
    for older, newer in pairwise(parts):
        assert older.max() < newer.min()
    # No later boundary between two moments leaves less than the requested share for training.
    assert len(times) - len(made.test) <= train * len(times) + 0.5
    oldest_test = made.test.times.min()
    assert np.count_nonzero(ratings.times <= oldest_test) > np.floor(train * len(times) + 0.5) - 1
    assert made.step.effect["test_before_own_train"] == 0
    assert made.step.effect["test_share_older_than_train_median"] == 0


@pytest.mark.parametrize(
    "at", [86_400, "1970-01-02", "1970-01-02T01:00+01:00", date(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC)]
)
def test_the_moment_itself_is_test(at):
    made = splits.temporal(Ratings.of(range(3), range(3), times=[86_399, 86_400, 86_401]), at=at)
    assert made.train.times.tolist() == [86_399]
    assert made.step.effect["cut"] == "1970-01-02 00:00:00"


@pytest.mark.parametrize("at", [1.5, "1970-01-01T00:00:01.5"])
def test_a_moment_between_two_seconds_separates_them(at):
    assert splits.temporal(Ratings.of(range(4), range(4), times=range(4)), at=at).train.times.tolist() == [0, 1]


@pytest.mark.parametrize("at", ["1969-01-01", "1970-01-01", "2001-01-01"])
def test_a_moment_outside_the_data_is_refused_with_their_span(at):
    with pytest.raises(ImpossibleSplitError, match="3 ratings of 3 users span 1970-01-01 00:00:00 to 1970-01-02"):
        splits.temporal(Ratings.of(range(3), range(3), times=[0, 1, 86_400]), at=at)


def test_ratings_of_one_second_cannot_be_cut():
    with pytest.raises(ImpossibleSplitError, match="leaves one part empty"):
        splits.temporal(Ratings.of(range(9), range(9), times=[5] * 9))


def test_the_share_of_movielens_100k_is_that_of_polars(real_data):
    frame = pl.read_parquet(real_data("ml-100k.parquet")).sort("timestamp")
    cut = frame["timestamp"][80_000]
    made = splits.temporal(Ratings.of(frame["user"], frame["item"], frame["rating"], frame["timestamp"]))
    assert len(made.train) == len(frame.filter(pl.col("timestamp") < cut))
    cold = set(frame.filter(pl.col("timestamp") >= cut)["user"]) - set(frame.filter(pl.col("timestamp") < cut)["user"])
    assert made.step.effect["cold_users"] == len(cold)


@given(st.integers(20, 60), st.integers(10, 90), st.sampled_from([None, 20, 33, 50]))
def test_the_shares_are_rounded_to_the_nearest_number_of_ratings(n, train, validation):
    ratings = Ratings.of(range(n), range(n), times=range(n))
    made = splits.temporal(ratings, train=train / 100, validation=None if validation is None else validation / 100)
    learn = n - len(made.test)
    assert 2 * abs(100 * learn - train * n) <= 100
    if validation is not None:
        share = min((100 - validation) * learn, 100 * (learn - 1))  # the validation part is never empty
        assert 2 * abs(100 * len(made.train) - share) <= 100

"""Within each user: the exact ratio, l left out, the last in time."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, splits
from cranfield._numbers import count_text

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 4)),
    min_size=1,
    max_size=50,
    unique_by=lambda row: row[:2],
)


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


def _by_user(ratings):
    profiles = defaultdict(list)
    for user, _, _, time in ratings.frame().rows():
        profiles[user].append(time)
    return profiles


@given(ROWS, st.floats(0.05, 0.95), st.sampled_from(["random", "last"]))
def test_each_profile_is_cut_at_the_ratio(rows, train, which):
    try:
        made = splits.per_user(_ratings(rows), train=train, which=which, validation=0.4)
    except ImpossibleSplitError:
        return
    whole, parts = _by_user(_ratings(rows)), {name: _by_user(part) for name, part in made.parts.items()}
    for user, profile in whole.items():
        learn = math.floor(train * len(profile) + 0.5)
        aside = math.floor(0.4 * learn + 0.5)
        sizes = [len(parts[name][user]) for name in ("train", "validation", "test")]
        assert sizes == [learn - aside, aside, len(profile) - learn]
        if which == "last":
            in_time = [time for name in ("train", "validation", "test") for time in sorted(parts[name][user])]
            assert in_time == sorted(profile)
    assert made.step.effect["users_without_test"] == len(set(whole) - {u for u, t in parts["test"].items() if t})
    if which == "last":
        assert made.step.effect["test_before_own_train"] == 0


@given(ROWS, st.integers(1, 4), st.sampled_from(["random", "last"]), st.sampled_from([None, 1]))
def test_l_ratings_of_each_user_are_left_out(rows, l, which, validation):  # noqa: E741
    ratings = _ratings(rows)
    profiles = _by_user(ratings)
    need = l + (validation or 0)
    short = [user for user, profile in profiles.items() if len(profile) < need]
    if short:
        with pytest.raises(ImpossibleSplitError, match=rf"^{len(short)} of {len(profiles)} users have fewer than"):
            splits.leave_out(ratings, l=l, which=which, validation=validation)
    try:
        made = splits.leave_out(ratings, l=l, which=which, short="train", validation=validation)
    except ImpossibleSplitError:
        return
    left_out = _by_user(made.test)
    for user, profile in profiles.items():
        expected = [] if user in short else sorted(profile)[-l:]
        assert len(left_out[user]) == len(expected)
        if which == "last":
            assert sorted(left_out[user]) == expected
    if short:
        assert made.notes[0] == f"{count_text(len(short), 'user')} with fewer than {need} ratings: all in training"


def test_ties_at_the_cut_are_counted_and_drawn():
    ratings = Ratings.of([1, 1, 1, 2, 2], [1, 2, 3, 1, 2], times=[5, 9, 9, 1, 2])
    made = splits.leave_out(ratings, which="last")
    assert made.step.effect["users_tied_at_cut"] == 1
    assert any("for 1 user the cut falls among ratings of the same second" in note for note in made.notes)
    drawn = {splits.leave_out(ratings, which="last", seed=seed).test.items[0] for seed in range(20)}
    assert drawn == {1, 2}


def test_random_ratings_of_a_user_are_equally_likely():
    ratings = Ratings.of([1] * 3 + [2] * 5, [*range(3), *range(5)])
    times = np.zeros(8)
    for seed in range(3_000):
        made = splits.leave_out(ratings, l=1, seed=seed)
        times[[made.test.items[0], 3 + made.test.items[1]]] += 1
    expected = np.array([1_000] * 3 + [600] * 5)
    assert np.abs(times - expected).max() < 4.5 * math.sqrt(1_000)


def test_profiles_too_short_for_the_ratio_are_noted():
    made = splits.per_user(Ratings.of([1, 2, 2, 2, 2, 2], [1, 1, 2, 3, 4, 5]), train=0.8)
    assert "1 user with too few ratings for a test rating at this ratio" in made.notes


def test_a_part_that_would_be_empty_is_refused_with_the_users_it_concerns():
    with pytest.raises(ImpossibleSplitError, match=r"leaves the test part empty \(6 ratings of 2 users in all\)"):
        splits.per_user(Ratings.of([1, 1, 1, 2, 2, 2], [1, 2, 3] * 2), train=0.9)


def test_leave_last_out_on_movielens_100k_agrees_with_polars(real_data):
    frame = pl.read_parquet(real_data("ml-100k.parquet"))
    ratings = Ratings.of(frame["user"], frame["item"], frame["rating"], frame["timestamp"])
    made = splits.leave_out(ratings, l=1, which="last", seed=1)
    newest = frame.group_by("user").agg(pl.col("timestamp").max()).sort("user")
    assert made.test.frame()["time"].to_list() == newest["timestamp"].to_list()
    tied = frame.filter(pl.col("timestamp") == pl.col("timestamp").max().over("user")).group_by("user").len()
    assert made.step.effect["users_tied_at_cut"] == len(tied.filter(pl.col("len") > 1))

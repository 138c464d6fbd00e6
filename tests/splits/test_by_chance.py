"""Random splits have the ratio they promise."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, splits
from cranfield._errors import ImpossibleSplitError
from cranfield._numbers import count_text


@given(st.integers(2, 300), st.integers(2, 98), st.integers(2, 98))
def test_the_exact_ratio_is_exact(count, train, validation):
    learn = (2 * train * count + 100) // 200
    aside = (2 * validation * learn + 100) // 200
    train, validation = train / 100, validation / 100
    ratings = Ratings.of(range(count), range(count))
    if not (0 < aside < learn < count):
        with pytest.raises(ImpossibleSplitError, match="part empty"):
            splits.random(ratings, train=train, exact=True, validation=validation)
        return
    made = splits.random(ratings, train=train, exact=True, validation=validation)
    assert (len(made.train), len(made.validation), len(made.test)) == (learn - aside, aside, count - learn)


def test_a_half_goes_to_training_as_it_reads_in_decimals():
    ratings = Ratings.of([1] * 50, range(50))
    assert 0.29 * 50 < 14.5
    for made in (splits.random(ratings, train=0.29, exact=True), splits.per_user(ratings, train=0.29)):
        assert len(made.train) == 15


@pytest.mark.parametrize("exact", [False, True])
def test_every_rating_has_the_same_chance(exact):
    """Over many seeds, how often each rating is a test rating is binomial: check its mean and its spread."""
    ratings, seeds = Ratings.of([1] * 20 + [2] * 20, [*range(20)] * 2), 2_000
    times = sum(_tested(splits.random(ratings, train=0.75, exact=exact, seed=seed), 40) for seed in range(seeds))
    expected, deviation = seeds / 4, math.sqrt(seeds * 3 / 16)
    assert np.abs(times - expected).max() < 4.5 * deviation
    assert 0.6 < np.std(times) / deviation < 1.4


def _tested(made, count):
    mask = np.zeros(count)
    mask[made.test.users * 20 + made.test.items] = 1
    return mask


def test_coins_keep_the_ratio_in_expectation_with_validation(real_data):
    import polars as pl

    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    made = splits.random(Ratings.of(frame["user"], frame["item"]), train=0.8, validation=0.1, seed=7)
    sizes = np.array([len(part) for part in made.parts.values()])
    expected = np.array([0.72, 0.08, 0.2]) * len(frame)
    assert np.abs(sizes - expected).max() < 5 * math.sqrt(len(frame) * 0.25)


# Within each user: the exact ratio, l left out, the last in time


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


# Folds partition the ratings, evenly


PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=2, max_size=50)


@given(PAIRS, st.integers(2, 8), st.booleans(), st.integers(0, 5))
def test_each_rating_is_tested_once(pairs, k, per_user, seed):
    ratings = Ratings.of(*zip(*pairs))
    if k > len(pairs):
        with pytest.raises(ImpossibleSplitError, match=rf"choose at most k={len(pairs)}"):
            splits.k_fold(ratings, k=k)
        return
    folds = splits.k_fold(ratings, k=k, per_user=per_user, seed=seed)
    tested = [pair for one in folds for pair in one.test.frame().select("user", "item").rows()]
    assert Counter(tested) == Counter(pairs)
    sizes = [len(one.test) for one in folds]
    assert max(sizes) - min(sizes) <= 1
    if per_user:
        of_user = np.array([one.test.user_counts for one in folds])
        assert (of_user.max(axis=0) - of_user.min(axis=0) <= 1).all()
    assert [(one.fold, one.folds) for one in folds] == [(fold, k) for fold in range(k)]


def test_folds_are_a_sequence():
    folds = splits.k_fold(Ratings.of([1] * 10, range(10)), k=5)
    assert len(folds) == 5
    assert repr(folds) == "Folds(5 of Ratings(1 users, 10 items, 10 ratings))"
    assert folds[-1].fold == 4
    assert [one.fold for one in folds[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        folds[5]


def test_more_than_256_folds_work():
    folds = splits.k_fold(Ratings.of([1] * 300, range(300)), k=300)
    assert sorted(int(one.test.items[0]) for one in folds) == list(range(300))


def test_the_validation_parts_of_folds_are_drawn_apart():
    folds = splits.k_fold(Ratings.of([1] * 100, range(100)), k=2, validation=0.5)
    one, other = (set(fold.validation.items.tolist()) for fold in folds)
    assert one.isdisjoint(folds[0].test.items.tolist())
    assert not one & other


# Random splits of one seed are nested over ratios: an audit compares ratios that differ by the ratio alone


SPLITS = {
    "coins": lambda ratings, train: cf.splits.random(ratings, train=train, seed=3),
    "exact": lambda ratings, train: cf.splits.random(ratings, train=train, seed=3, exact=True),
    "per user": lambda ratings, train: cf.splits.per_user(ratings, train=train, seed=3),
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=list(SPLITS))
def test_a_larger_training_part_holds_every_smaller_one(split):
    ratings = cf.simulate.world(60, 40, 900).ratings
    parts = [
        set(zip(part.users.tolist(), part.items.tolist()))
        for part in (split(ratings, tenths / 10).train for tenths in range(1, 10))
    ]
    assert all(small < large for small, large in pairwise(parts))

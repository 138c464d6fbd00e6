"""A validation part is made like the test part, from the training part alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield import Ratings, read, splits
from cranfield.splits import Split, follows_training, for_validation, validation_words


def _ratings(seed=0, users=30, items=25):
    draw = np.random.default_rng(seed)
    user, item = np.nonzero(draw.random((users, items)) < 0.5)
    times = draw.permutation(len(user)) * 60
    return Ratings.of(user, item, draw.integers(1, 6, len(user)).astype(float), times=times)


def _events(seed=0):
    draw = np.random.default_rng(seed)
    columns = {"user": draw.integers(0, 12, 400), "item": draw.integers(0, 9, 400), "time": draw.permutation(400) * 60}
    return read(pl.DataFrame(columns))


def _cells(part):
    return set(zip(part.users.tolist(), part.items.tolist()))


METHODS = [
    ("random(train=0.7)", "random", "a random fifth of training"),
    ("k_fold(k=3)", "random", "a random fifth of training"),
    ("k_fold(k=3, per_user=true)", "per_user", "a random fifth of each user's training"),
    ("per_user(train=0.7, which=last)", "per_user", "the last fifth of each user's training"),
    ("leave_out(l=2, which=last)", "leave_out", "the last 2 items of each user's training"),
    ("leave_out(l=1)", "leave_out", "1 item of each user's training"),
    ("temporal(train=0.7, target=first, new_users=drop)", "temporal", "the newest fifth of training"),
    ("rolling(windows=2, horizon=2h)", "temporal", "the newest fifth of training"),
    ("cold_users(users=0.3, left=2)", "cold_users", "other users of training"),
    ("cold_items(items=0.3, left=2)", "cold_items", "other items of training"),
    ("strong_generalisation(users=0.3)", "strong_generalisation", "other users of training"),
    ("train_per_item(l=5)", "random", "a random fifth of training"),
    ("tail_test(head=0.2)", "tail_test", "training divided by tail_test"),
]


@pytest.mark.parametrize(("method", "inner", "words"), METHODS)
def test_the_method_is_that_of_the_test_and_only_training_is_used(method, inner, words):
    split = splits.apply(_ratings(), method, seed=3)[-1]
    (made,) = for_validation(split, seed=3)
    assert made.step.action == f"split.{inner}"
    assert validation_words(split) == words
    parts = [_cells(part) for part in made.parts.values()]
    assert set().union(*parts) <= _cells(split.train)
    assert sum(map(len, parts)) == len(set().union(*parts))
    blind = Split(split.train, split.test.keep(np.arange(len(split.test)) < 1), split.step)
    assert for_validation(blind, seed=3)[0].test.fingerprint == made.test.fingerprint


@pytest.mark.parametrize("target", ["all", "first", "last", 2])
@pytest.mark.parametrize("ratings", [_ratings(1), _events(1)], ids=["ratings", "events"])
def test_the_newest_fifth_is_that_of_a_split_with_a_validation_part(ratings, target):
    options = {"train": 0.7, "target": target, "new_users": "drop", "seed": 5}
    whole = splits.temporal(ratings, **options)
    asked = splits.temporal(ratings, **options, validation=0.2)
    (made,) = for_validation(whole, seed=5)
    assert made.train.fingerprint == asked.train.fingerprint
    assert made.test.fingerprint == asked.validation.fingerprint


def test_the_last_of_each_user_is_the_one_before_the_test():
    ratings = Ratings.of([1] * 4 + [2] * 3 + [3], [*"abcd", *"abc", "a"], times=[*range(8)])
    split = splits.leave_out(ratings, l=1, which="last", short="train")
    (made,) = for_validation(split)
    assert made.test.frame().select("user", "item").rows() == [(1, "c"), (2, "b")]  # user 3 has nothing to leave


def test_baskets_are_left_out_whole():
    days = [1, 1, 2, 2, 3, 3]
    ratings = read(pl.DataFrame({"user": ["u"] * 6, "item": [*"xyxzxw"], "time": days, "b": days}), basket="b")
    split = splits.leave_out(ratings, l=1, which="last", unit="basket")
    (made,) = for_validation(split)
    assert sorted(made.test.frame()["item"].to_list()) == ["x", "z"]
    assert sorted(made.train.frame()["item"].to_list()) == ["x", "y"]
    assert validation_words(split) == "the last basket of each user's training"


def test_windows_come_one_before_the_other():
    ratings = _ratings(2)
    split = splits.temporal(ratings, train=0.8)
    windows = for_validation(split, windows=3)
    for before, after in zip(windows[1:], windows):
        assert before.test.times.max() < after.test.times.min()
        assert len(before.train) + len(before.test) == len(after.train)


def test_a_stated_method_and_a_part_of_the_split_itself():
    ratings = _ratings(4)
    split = splits.temporal(ratings, train=0.8)
    (made,) = for_validation(split, "random(train=0.5)", seed=1)
    assert made.test.fingerprint == splits.random(split.train, train=0.5, seed=1).test.fingerprint
    own = splits.temporal(ratings, train=0.8, validation=0.3)
    first, second = for_validation(own, windows=2)
    assert first.test is own.validation
    assert second.test.times.max() < first.test.times.min()
    assert validation_words(own) == "the validation part"
    assert for_validation(ratings, seed=2)[0].step.action == "split.random"


def test_predefined_parts_are_validated_at_random_and_later_tests_are_seen():
    ratings = _ratings(5)
    cut = splits.temporal(ratings, train=0.8)
    later = splits.predefined(cut.train, cut.test)
    mixed = splits.random(ratings, train=0.8)
    assert for_validation(later)[0].step.action == "split.random"
    assert follows_training(later)
    assert not follows_training(splits.predefined(mixed.train, mixed.test))
    timeless = Ratings.of([1, 2], ["a", "b"])
    assert not follows_training(splits.predefined(timeless, Ratings.of([1], ["b"])))


@pytest.mark.parametrize("method", ["random", "temporal", "per_user", "cold_users", "strong_generalisation"])
@pytest.mark.parametrize("ratings", [_ratings(6), _events(6)], ids=["ratings", "events"])
def test_training_and_validation_joined_are_the_training_part_without_validation(method, ratings):
    (plain,) = splits.apply(ratings, method, seed=2)
    (asked,) = splits.apply(ratings, method, seed=2, validation=0.25)
    joined = asked.joined
    assert joined.validation is None
    assert joined.train.fingerprint == plain.train.fingerprint
    assert joined.test.fingerprint == plain.test.fingerprint
    np.testing.assert_array_equal(joined.train.values, plain.train.values)
    assert (joined.train.events is None) == (plain.train.events is None)
    if plain.train.events is not None:
        np.testing.assert_array_equal(joined.train.events.times, plain.train.events.times)
    assert plain.joined is plain

"""Who is served."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.data import Ratings
from cranfield.rankings.serving import EVERYONE, Serving, measured_ratings, served_users
from cranfield.splits import predefined


def test_newcomers_are_measured_and_not_served_unless_they_are_to_be():
    split = predefined(Ratings.of(["ann", "bob"], ["x", "x"]), Ratings.of(["bob", "cid"], ["y", "y"]))
    names = split.train.user_ids.ids
    assert measured_ratings(split).frame()["user"].to_list() == ["bob", "cid"]
    users, step = served_users(split.train)
    assert (names(users).to_list(), step.effect["newcomers"]) == (["ann", "bob"], 1)
    assert names(served_users(split.train, Serving(newcomers="served"))[0]).to_list() == ["ann", "bob", "cid"]
    assert measured_ratings(split, Serving(min_ratings=1)).frame()["user"].to_list() == ["bob"]


def test_parts_without_a_user_in_common_are_refused_unless_newcomers_are_served():
    split = predefined(Ratings.of(["ann"], ["x"]), Ratings.of(["bob"], ["y"]))
    with pytest.raises(SettingError, match=r"none has a training rating; .* both parts need the same user ids"):
        measured_ratings(split)
    assert len(measured_ratings(split, Serving(newcomers="served"))) == 1


@pytest.mark.parametrize("sample", [None, "all"])
def test_all_of_them_has_one_form(sample):
    assert Serving(0, sample) == EVERYONE
    assert EVERYONE.everyone


@pytest.mark.parametrize("sample", [0, 1.0, 1.5, -0.5, "some", True, float("nan"), np.float32(2)])
def test_a_sample_is_a_number_or_a_share_below_one(sample):
    with pytest.raises(SettingError, match="is neither 'all' nor a number of users nor a share below 1"):
        Serving(sample=sample)


def test_a_share_may_be_of_any_kind():
    assert Serving(sample=Fraction(1, 4)).sample == 0.25
    assert Serving(sample=np.int64(3)).sample == 3


@pytest.mark.parametrize("seed", range(5))
def test_a_user_is_drawn_in_the_same_order_whoever_else_has_enough_ratings(seed):
    rng = np.random.default_rng(seed)
    profiles = rng.integers(1, 6, 30)
    train = Ratings.of(np.repeat(np.arange(30), profiles), np.concatenate([np.arange(n) for n in profiles]))
    order, drawn = [], set()
    for number in range(1, 31):
        users, _ = served_users(train, Serving(0, number), seed)
        (added,) = set(users.tolist()) - drawn
        drawn.add(added)
        order.append(added)
    for least in (2, 4, 5):
        enough = [user for user in order if train.user_counts[user] >= least]
        for number in range(1, len(enough) + 1):
            users, _ = served_users(train, Serving(least, number), seed)
            assert users.tolist() == sorted(enough[:number])

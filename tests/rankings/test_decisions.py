"""Who is served (B1), and how scores become lists (B2, C1): defaults, checks and contradictions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.data import Ratings
from cranfield.rankings import Ranking
from cranfield.rankings.decisions import EVERYONE, Serving, measured_ratings, served_users
from cranfield.recommenders import recommender
from cranfield.splits import predefined


def test_new_users_are_measured_and_not_served_unless_they_are_to_be():
    split = predefined(Ratings.of(["ann", "bob"], ["x", "x"]), Ratings.of(["bob", "cid"], ["y", "y"]))
    names = split.train.user_ids.ids
    assert measured_ratings(split).frame()["user"].to_list() == ["bob", "cid"]
    users, step = served_users(split.train)
    assert (names(users).to_list(), step.effect["new users"]) == (["ann", "bob"], 1)
    assert names(served_users(split.train, Serving(new_users="served"))[0]).to_list() == ["ann", "bob", "cid"]
    assert measured_ratings(split, Serving(min_ratings=1)).frame()["user"].to_list() == ["bob"]


def test_parts_without_a_user_in_common_are_refused_unless_new_users_are_served():
    split = predefined(Ratings.of(["ann"], ["x"]), Ratings.of(["bob"], ["y"]))
    with pytest.raises(SettingError, match=r"none has a training rating; .* both parts need the same user ids"):
        measured_ratings(split)
    assert len(measured_ratings(split, Serving(new_users="served"))) == 1


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


def test_a_value_has_one_form():
    assert Ranking(fill=None, nonrelevant=None, length=None) == Ranking(length="all")
    assert Ranking(fill="knn( k=5 )").fill == "knn(k=5)"
    assert (Ranking(length="all").most(7), Ranking(length=5.0).most(7)) == (7, 5)


def test_a_system_may_be_the_fill():
    popularity = recommender("popularity")
    assert Ranking(fill=popularity).fill is popularity


def test_the_test_ratings_and_the_threshold_are_needed_where_lists_depend_on_them():
    assert Ranking().needs_test is None
    assert Ranking(lists="condensed").needs_test == "lists='condensed'"
    assert Ranking(nonrelevant=5, threshold=4).needs_test == "nonrelevant=5"
    assert Ranking(unrated=0).needs_test == "unrated=0"
    assert [Ranking(relevant=one, threshold=4).needs_relevance for one in ("all", "one")] == [False, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fill": "populrity"}, "fill='populrity': there is no system 'populrity'; did you mean 'popularity'?"),
        ({"fill": 5}, "5 is not a system"),
        ({"length": 0}, "length=0 is neither 'all' nor a whole number of at least 1"),
        ({"nonrelevant": "some"}, "nonrelevant='some' is neither 'all' nor a whole number"),
        ({"unrated": -1}, "unrated=-1 is neither 'all' nor a whole number of at least 0"),
        ({"unrated": 5, "nonrelevant": 5, "threshold": 4}, "nonrelevant=5 asks for others; leave one of them out"),
        ({"unrated": 5, "lists": "condensed"}, "lists='condensed' asks for others"),
        ({"unrated": 5, "relevant": "one", "threshold": 4}, "relevant='one' asks for others"),
        ({"unrated": 5, "keep_seen": True}, "keep_seen=True asks for others"),
        ({"candidates": "group"}, "set relevant='one'"),
        ({"relevant": "one", "threshold": None}, "give a threshold, such as threshold=4"),
        ({"threshold": float("nan")}, "threshold=nan is not a number"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises(SettingError) as error:
        Ranking(**options)
    assert said in str(error.value)

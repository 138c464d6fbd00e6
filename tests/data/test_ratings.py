"""`Ratings`: sorted, unique, and as they came."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import splits
from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.data import Ratings, describe, filters
from cranfield.data.pairs import sort_pairs
from cranfield.tables import Vocabulary

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1)


def _codes(pairs):
    return tuple(np.array(column, dtype=np.int32) for column in zip(*pairs))


@given(PAIRS, st.booleans())
def test_pairs_are_sorted_stably(pairs, presorted):
    pairs = sorted(pairs) if presorted else pairs
    found = sort_pairs(*_codes(pairs), 6, 6)
    expected = sorted(range(len(pairs)), key=lambda row: pairs[row])
    order = np.arange(len(pairs)) if found.order is None else found.order
    assert order.tolist() == expected
    assert found.items.tolist() == [pairs[row][1] for row in expected]
    assert found.indptr.tolist() == [sum(user < u for user, _ in pairs) for u in range(7)]
    repeats = [False] + [pairs[a] == pairs[b] for a, b in pairwise(expected)]
    assert (np.zeros(len(pairs), bool) if found.again is None else found.again).tolist() == repeats


@pytest.mark.parametrize("n_items", [1000, 2**31 - 1], ids=["packed keys", "keys too wide to pack"])
def test_many_pairs_are_sorted_in_either_way(n_items):
    # A million users, 2³¹ items and 200,000 rows need 20 + 31 + 18 bits: more than the 63 of a packed key.
    random = np.random.default_rng(1)
    users, items = (random.integers(0, high, 200_000).astype(np.int32) for high in (2**20, 1000))
    found = sort_pairs(users, items, 2**20, n_items)
    order = np.lexsort((items, users))
    assert np.array_equal(found.order, order)
    assert np.array_equal(found.items, items[order])
    assert np.array_equal(np.diff(found.indptr), np.bincount(users, minlength=2**20))
    again = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    assert np.array_equal(found.again[1:], again)


def test_a_repeated_pair_names_the_first_row_that_repeats():
    with pytest.raises(
        InputError, match=r"row 3: user 'b' rates item 'y' more than once \(2 repeated ratings in all\)"
    ):
        Ratings.of(["b", "a", "b", "a"], ["y", "x", "y", "x"])


@given(PAIRS.map(lambda pairs: list(dict.fromkeys(pairs))), st.randoms())
def test_the_order_of_rows_does_not_matter(pairs, random):
    table = [(user, item, user + item / 10, 100 * user + item) for user, item in pairs]
    shuffled = random.sample(table, len(table))
    one, other = (Ratings.of(*(list(column) for column in zip(*rows))) for rows in (table, shuffled))
    assert one.frame().rows() == sorted(table) == other.frame().rows()
    assert one.fingerprint == other.fingerprint


def test_fingerprints_tell_data_apart():
    base = Ratings.of([1, 2], [1, 1], [3, 4])
    others = [
        Ratings.of([1, 2], [1, 1], [3, 5]),
        Ratings.of([1, 3], [1, 1], [3, 4]),
        Ratings.of([1, 2], [1, 1], [3, 4], times=[0, 0]),
    ]
    assert len({ratings.fingerprint for ratings in (base, *others)}) == 4


def test_values_keep_their_precision():
    assert Ratings.of([1], [1], [0.5]).values.dtype == np.float32
    assert Ratings.of([1], [1], [0.1]).values.dtype == np.float64
    assert Ratings.of([1], [1], [2**24 + 1]).values.tolist() == [2**24 + 1]


def test_the_arrays_are_frozen_and_the_callers_are_not():
    values = np.array([0.1, 0.2])
    ratings = Ratings.of([1, 2], [1, 1], values)
    with pytest.raises(ValueError, match="read-only"):
        ratings.values[0] = 1
    values[0] = 5


@pytest.mark.parametrize("block", [1, 3, 8])
def test_what_is_kept_does_not_depend_on_the_blocks(monkeypatch, block):
    monkeypatch.setattr("cranfield.data.ratings._BLOCK", block)
    users = [0, 0, 0, 2, 2, 3, 5, 5]
    ratings = Ratings.of(users, range(8), times=range(8)).keep(np.ones(8, dtype=bool))
    mask = np.array([True, False, True, True, True, False, True, False])
    kept = ratings.keep(mask)
    assert kept.frame().rows() == [row for row, holds in zip(ratings.frame().rows(), mask, strict=True) if holds]
    assert kept.indptr.tolist() == [0, 2, 4, 4, 5]
    assert ratings.keep(~np.ones(8, dtype=bool)).indptr.tolist() == [0] * 5


def test_keep_and_compact():
    ratings = Ratings.of(["a", "a", "b"], ["x", "y", "z"], [1, 2, 3], times=[1, 2, 3])
    kept = ratings.keep(np.array([False, True, False]), Step("mine"))
    assert kept.frame().rows() == [("a", "y", 2.0, 2)]
    assert (kept.n_users, kept.n_items) == (2, 3)
    assert kept.history[-1].action == "mine"
    small = kept.compact()
    assert small.frame().rows() == kept.frame().rows()
    assert (small.n_users, small.n_items) == (1, 1)
    with pytest.raises(SettingError, match="give one for each"):
        ratings.keep(np.array([True]))


def test_profiles_counts_and_matrix():
    ratings = Ratings.of(["a", "b", "a"], ["x", "x", "y"], [1, 2, 3])
    assert ratings.values[ratings.profile(0)].tolist() == [1, 3]
    assert ratings.user_counts.tolist() == [2, 1]
    assert ratings.item_counts.tolist() == [2, 1]
    assert ratings.users.tolist() == [0, 0, 1]
    assert ratings.matrix().toarray().tolist() == [[1, 3], [2, 0]]


def test_one_hundred_million_ratings_with_times_need_less_than_two_gib():
    small = Ratings.of(np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100), times=np.zeros(10_000))
    assert small.nbytes / len(small) * 100e6 < 2 * 2**30


def test_users_of_the_vocabulary_may_have_no_ratings():
    users, items = Vocabulary.of(["a", "b", "c"]), Vocabulary.of([1])
    ratings = Ratings.from_codes(users, items, np.array([2], np.int32), np.array([0], np.int32), np.ones(1))
    assert ratings.indptr.tolist() == [0, 0, 0, 1]
    assert repr(ratings) == "Ratings(1 users, 1 items, 1 ratings)"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["a"], ["x", "y"]), "there are 1 users, 2 items, 1 values; give one of each for every rating"),
        ((["a", "b"], ["x", "y"], [1]), "there are 2 users, 2 items, 1 values"),
        ((["a", "b"], ["x", "y"], [1, 2], [1]), "2 values, 1 times"),
        ((["a", "b"], ["x", "y"], [1, float("nan")]), "row 2: nan is not a finite value"),
        ((["a", "b"], ["x", "y"], [float("inf"), 1]), "row 1: inf is not a finite value"),
        ((["a", "b"], ["x", "y"], ["good", "bad"]), "the values are not numbers"),
        ((["a", "b"], ["x", "y"], [1, 2], ["2001-01-01", "2001-01-02"]), "the times are not numbers"),
        ((["a"], ["x"], [1], np.array(["2001-01-01"], "datetime64[s]")), "the times are not numbers"),
        ((["a", None], ["x", "y"]), "row 2: the user is missing"),
        ((["a", 1], ["x", "y"]), "use ids of one type"),
    ],
)
def test_ratings_by_hand_are_checked(columns, message):
    with pytest.raises(InputError) as error:
        Ratings.of(*columns)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "work",
    [describe, splits.random, lambda data: splits.predefined(data, data), lambda data: filters.apply(data, "k_core")],
)
def test_a_path_is_not_ratings(work):
    with pytest.raises(SettingError, match=r"str is not Ratings; make them from a file or a dataframe with cf\.read"):
        work("ratings.csv")

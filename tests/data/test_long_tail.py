"""Play counts as ratings."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings, celma, read


def _by_hand(plays):
    """Celma's mapping from its words: the fifth of the user's plays in which the item begins."""
    of_user = defaultdict(list)
    for user, _, count in plays:
        of_user[user].append(count)
    grades = {}
    for user, item, count in plays:
        total, before = sum(of_user[user]), sum(other for other in of_user[user] if other > count)
        grades[user, item] = 5 if total == 0 else max(1, 5 - (5 * before) // total)
    return grades


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 30)),
        min_size=1,
        unique_by=lambda play: play[:2],
    )
)
def test_it_is_the_mapping_by_hand(plays):
    got = celma(read(plays)).frame()
    assert {(user, item): grade for user, item, grade in got.rows()} == _by_hand(plays)


def test_equal_counts_share_the_better_rating():
    assert celma(Ratings.of(["u"] * 5, range(5), [10, 10, 10, 10, 10])).values.tolist() == [5] * 5


def test_the_favourite_has_five_however_much_it_was_played():
    assert celma(Ratings.of(["u", "u"], [1, 2], [1000, 1])).values.tolist() == [5, 1]


def test_negative_counts_are_refused():
    with pytest.raises(InputError, match="-1 is negative"):
        celma(Ratings.of(["u"], ["i"], [-1]))


def test_reading_counts():
    ratings = read([("u", "a", 8), ("u", "b", 1), ("u", "b", 1)], repeated="sum", counts="celma")
    assert ratings.frame().rows() == [("u", "a", 5.0), ("u", "b", 1.0)]
    assert [step.action for step in ratings.history] == ["read", "celma"]
    assert read([("u", "a", 8)]).values.tolist() == [8.0]
    with pytest.raises(SettingError, match="counts='celmo'"):
        read([("u", "a", 8)], counts="celmo")

"""The scale of ratings: its ends, its step, and the levels of relevance on it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings, RatingScale, Relevance, counts_to_ratings, read, usual_threshold
from cranfield.rankings import read_test


@pytest.mark.parametrize(
    ("values", "scale", "levels"),
    [
        ([1, 2, 3, 4, 5], RatingScale(1, 5, 1), (1, 3, 4)),
        ([0.5, 1, 4.5, 5], RatingScale(0.5, 5, 0.5), (0.5, 2.75, 3.875)),
        ([1, 2, 10], RatingScale(1, 10, 1), (1, 5.5, 7.75)),
        ([0, 1], RatingScale(0, 1, 1), (0, 0.5, 0.75)),
        ([-10, 0, 10], RatingScale(-10, 10, 10), (-10, 0, 5)),
        ([4, 4], RatingScale(4, 4, 1), (4, 4, 4)),
    ],
)
def test_levels_are_the_lowest_grade_half_and_three_quarters_of_the_range(values, scale, levels):
    assert RatingScale.of(values) == scale
    assert tuple(scale.levels.values()) == levels


def test_the_step_is_read_through_rounding_and_over_several_arrays():
    assert RatingScale.of(np.float32([0.1, 0.2]), np.float64([0.3])).step == pytest.approx(0.1)
    assert RatingScale.of(Ratings.of([1, 1], [1, 2], [3, 5]).grades, [4]).step == 1.0


# The threshold that follows from the ratings


@pytest.mark.parametrize(
    ("lowest", "highest", "threshold"),
    [
        (1, 5, 4),
        (0.5, 5, 4),
        (2, 5, 4),
        (1, 4, 4),
        (1, 3, 3),
        (2, 3, 3),
        (1, 2, 2),
        (1, 10, 8),
        (2, 10, 8),
        (-10, 10, 5),
        (1, 1, 1),
        (0, 1, 1),
        (-1, 1, 1),
        (1, 352_698, 1),
        (0, 3, 1),
        (-2, 2, 1),
        (0, 5, 4),
    ],
)
def test_the_upper_quarter_of_a_scale_is_relevant_and_every_click(lowest, highest, threshold):
    assert usual_threshold(lowest, highest) == threshold


@pytest.mark.parametrize("highest", [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 11, 1000])
def test_something_can_be_relevant_and_on_a_scale_not_everything(highest):
    threshold = usual_threshold(0.5, highest)
    assert threshold <= max(highest, 1)
    if 1 < highest <= 10:
        assert threshold > 1


def test_the_threshold_follows_from_the_values_whatever_holds_them(tmp_path):
    rows = [("ann", "x", 3), ("ann", "y", 1), ("bob", "x", 2)]
    (tmp_path / "qrels").write_text("".join(f"{user} 0 {item} {grade}\n" for user, item, grade in rows))
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    frame.write_parquet(tmp_path / "test.parquet")
    frame.write_csv(tmp_path / "test.csv")
    sources = [tmp_path / name for name in ("qrels", "test.parquet", "test.csv")]
    judgments = {"ann": {"x": 3, "y": 1}, "bob": {"x": 2}}
    assert {Relevance.of(read_test(source)).threshold for source in [*sources, frame, judgments]} == {3.0}


def test_a_given_threshold_is_kept_and_none_is_1():
    ratings = Ratings.of(["ann", "ann"], ["x", "y"], [5, 2])
    assert [Relevance.of(ratings, one).threshold for one in ("auto", None, 3)] == [4, 1, 3]


def test_the_scale_is_that_of_test_and_training_ratings():
    test, train = Ratings.of(["ann"] * 3, ["x", "y", "z"], [1, 2, 3]), Ratings.of(["ann"] * 2, ["v", "w"], [1, 5])
    assert Relevance.of(test).threshold == 3
    assert Relevance.of(test, train=train).threshold == 4
    assert (Relevance.of(test, train=train).scale.low, Relevance.of(test, train=train).scale.high) == (1, 5)


# Play counts as ratings


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
    got = counts_to_ratings(read(plays)).frame()
    assert {(user, item): grade for user, item, grade in got.rows()} == _by_hand(plays)


def test_equal_counts_share_the_better_rating():
    assert counts_to_ratings(Ratings.of(["u"] * 5, range(5), [10, 10, 10, 10, 10])).values.tolist() == [5] * 5


def test_the_favourite_has_five_however_much_it_was_played():
    assert counts_to_ratings(Ratings.of(["u", "u"], [1, 2], [1000, 1])).values.tolist() == [5, 1]


def test_negative_counts_are_refused():
    with pytest.raises(InputError, match="-1 is negative"):
        counts_to_ratings(Ratings.of(["u"], ["i"], [-1]))


def test_reading_counts():
    ratings = read([("u", "a", 8), ("u", "b", 1), ("u", "b", 1)], repeated="sum", counts="to_ratings")
    assert ratings.frame().rows() == [("u", "a", 5.0), ("u", "b", 1.0)]
    assert [step.action for step in ratings.history] == ["read", "counts_to_ratings"]
    assert read([("u", "a", 8)]).values.tolist() == [8.0]
    with pytest.raises(SettingError, match="counts='celmo'"):
        read([("u", "a", 8)], counts="celmo")

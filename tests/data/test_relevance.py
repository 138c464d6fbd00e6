"""The threshold that follows from the ratings."""

from __future__ import annotations

import polars as pl
import pytest

from cranfield.data import Ratings
from cranfield.data.relevance import Relevance, usual_threshold
from cranfield.rankings import read_test


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

"""The threshold that follows from the ratings."""

from __future__ import annotations

import pytest

from cranfield.data import Ratings
from cranfield.data.relevance import threshold_of, threshold_on, usual_threshold
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


def test_judgments_are_relevant_from_1_and_ratings_as_their_scale_has_it():
    grades = {"ann": {"x": 5, "y": 2}}
    assert threshold_of(read_test(grades)) == 1
    ratings = Ratings.of(["ann", "ann"], ["x", "y"], [5, 2])
    assert threshold_of(ratings) == 4
    assert [threshold_on(ratings, one) for one in ("auto", None, 3)] == [4, 1, 3]

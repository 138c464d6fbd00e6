"""The scale of ratings: its ends, its step, and the levels of relevance on it."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings
from cranfield.data.scale import RatingScale


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

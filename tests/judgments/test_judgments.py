"""The test side of a measurement."""

from __future__ import annotations

import numpy as np

from cranfield import Ratings
from cranfield.judgments import Judgments

TEST = Ratings.of(["b", "a", "a", "c"], ["x", "x", "y", "z"], [5, 2, 4, 1])


def test_a_user_has_one_list_with_its_test_ratings():
    judgments = Judgments.of(TEST, 4.0)
    assert judgments.user_ids.ids(judgments.users).to_list() == ["a", "b", "c"]
    assert judgments.lists.tolist() == [0, 0, 1, 2]
    assert judgments.n_judged.tolist() == [2, 1, 1]
    assert judgments.n_relevant.tolist() == [1, 1, 0]
    assert judgments.n_nonrelevant.tolist() == [1, 0, 1]
    assert judgments.top_grades.tolist() == [4.0, 5.0, 1.0]
    assert judgments.top_grade == 5.0


def test_users_of_the_vocabulary_without_test_ratings_have_no_list():
    judgments = Judgments.of(TEST.keep(np.array([True, False, True, False])), 4.0)
    assert judgments.user_ids.ids(judgments.users).to_list() == ["a", "b"]
    assert judgments.indptr.tolist() == [0, 1, 2]


def test_a_threshold_can_be_changed_without_losing_the_order_of_gains():
    judgments = Judgments.of(TEST, 4.0)
    lower = judgments.at(2.0)
    assert lower.n_relevant.tolist() == [2, 1, 0]
    assert judgments.at(4.0) is judgments
    binary = [
        one.ideal("binary", lambda j: j.relevant.astype(float), np.ones(9)).tolist() for one in (judgments, lower)
    ]
    assert binary == [[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]]


def test_a_mask_drops_users_without_any_judgment_and_tells_where_the_others_went():
    smaller, place, number = Judgments.of(TEST, 4.0).only(np.array([False, True, False, True]))
    assert smaller.user_ids.ids(smaller.users).to_list() == ["a", "c"]
    assert smaller.grades.tolist() == [4.0, 1.0]
    assert place.tolist() == [-1, 0, -1, 1]
    assert number.tolist() == [0, -1, 1]


def test_the_ideal_is_the_gains_in_descending_order_discounted():
    judgments = Judgments.of(TEST, 4.0)
    assert judgments.ideal("rating", lambda j: j.grades, np.array([1.0, 0.5])).tolist() == [5.0, 5.0, 1.0]
    assert judgments.ideal("rating", lambda j: j.grades, np.array([1.0])).tolist() == [4.0, 5.0, 1.0]

"""The order of ratings within their segments, against a plain sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, splits
from cranfield._errors import ImpossibleSplitError
from cranfield.data import filters
from cranfield.splits.parts import places


class Keys:
    """A generator that draws what it is told to."""

    def __init__(self, keys):
        self.keys = list(keys)

    def random(self, count):
        drawn, self.keys = self.keys[:count], self.keys[count:]
        return np.array(drawn, dtype=float)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.75]), st.integers(-3, 3)), max_size=8),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from([1, 2**28, 2**60]),
)
@example([[], []], True, 1)
def test_places_are_those_of_a_stable_sort_even_where_keys_tie(segments, timed, scale):
    indptr = np.cumsum([0, *map(len, segments)])
    rows = [row for segment in segments for row in segment]
    times = np.array([time * scale for _, time in rows], dtype=np.int64) if timed else None
    expected = []
    for segment in segments:
        order = sorted(range(len(segment)), key=lambda place: (segment[place][1] if timed else 0, segment[place][0]))
        expected += [order.index(place) for place in range(len(segment))]
    assert places(indptr, Keys(key for key, _ in rows), times).tolist() == expected


@pytest.mark.parametrize("block", [1, 3])
def test_a_segment_larger_than_a_block_stays_whole(block, monkeypatch):
    monkeypatch.setattr("cranfield.splits.parts._BLOCK", block)
    drawn = places(np.array([0, 5, 5, 6]), Keys([0.5, 0.4, 0.3, 0.2, 0.1, 0.9]))
    assert drawn.tolist() == [4, 3, 2, 1, 0, 0]


TRAIN = Ratings.of([1, 2, 2], ["a", "a", "c"], [5, 3, 4])
TEST = Ratings.of([3, 2], ["b", "b"], [1, 2])


def _rows(ratings):
    return ratings.frame().rows()


def test_the_parts_meet_over_one_vocabulary():
    made = splits.predefined(TRAIN, TEST)
    assert made.train.user_ids.all.to_list() == [1, 2, 3]
    assert made.train.item_ids.all.to_list() == ["a", "b", "c"]
    assert _rows(made.train) == _rows(TRAIN)
    assert _rows(made.test) == [(2, "b", 2.0), (3, "b", 1.0)]
    assert made.train.user_ids is made.test.user_ids


def test_numbers_and_text_as_ids_become_text():
    made = splits.predefined(Ratings.of([9, 10], [1, 2]), Ratings.of(["9", "11"], [2, 3]))
    assert made.train.user_ids.all.to_list() == ["10", "11", "9"]
    assert _rows(made.train) == [("10", 2, 1.0), ("9", 1, 1.0)]
    assert _rows(made.test) == [("11", 3, 1.0), ("9", 2, 1.0)]


def test_common_pairs_are_an_error_or_stay_in_one_part():
    test = Ratings.of([2, 3], ["c", "b"], [1, 1])
    with pytest.raises(ImpossibleSplitError, match=r"^1 \(user, item\) pairs .*\(first user 2, item 'c'\)"):
        splits.predefined(TRAIN, test)
    kept_in_test = splits.predefined(TRAIN, test, overlap="test")
    assert (_rows(kept_in_test.train), len(kept_in_test.test)) == ([(1, "a", 5.0), (2, "a", 3.0)], 2)
    kept_in_train = splits.predefined(TRAIN, test, overlap="train")
    assert (len(kept_in_train.train), _rows(kept_in_train.test)) == (3, [(3, "b", 1.0)])
    assert kept_in_train.step.effect["repeated_pairs"] == 1
    assert kept_in_train.notes[0] == "1 pairs were in more than one part; kept in train only"


def test_a_pair_of_all_three_parts_is_counted_once():
    test, validation = (Ratings.of([2, 9], ["a", item]) for item in "xy")
    made = splits.predefined(TRAIN, test, validation=validation, overlap="test")
    assert {name: (2, "a", 1.0) in _rows(part) for name, part in made.parts.items()} == {
        "train": False,
        "validation": False,
        "test": True,
    }
    assert made.step.effect["repeated_pairs"] == 1


def test_the_record_tells_how_each_part_came():
    made = splits.predefined(filters.min_ratings(TRAIN, user=1), filters.positives(TEST, threshold=1))
    data = made.record()["data"]
    assert [step["action"] for step in data["history"]] == ["min_ratings"]
    assert [step["action"] for step in data["parts"]["test"]["history"]] == ["positives"]
    assert [step.action for step in made.test.history] == ["positives", "split.predefined"]


def test_validation_is_given_or_drawn_from_training():
    given = splits.predefined(TRAIN, TEST, validation=Ratings.of([1], ["b"]))
    assert _rows(given.validation) == [(1, "b", 1.0)]
    many = Ratings.of([1] * 50, range(50))
    drawn = splits.predefined(many, Ratings.of([1], [99]), validation=0.4, seed=2)
    assert len(drawn.train) + len(drawn.validation) == 50
    assert not set(_rows(drawn.train)) & set(_rows(drawn.validation))
    with pytest.raises(ImpossibleSplitError, match="pairs of the validation part"):
        splits.predefined(TRAIN, TEST, validation=TEST)


def test_an_empty_part_is_refused():
    with pytest.raises(ImpossibleSplitError, match="the test part has no ratings"):
        splits.predefined(TRAIN, Ratings.of([], []))
    with pytest.raises(ImpossibleSplitError, match="test part empty"):
        splits.predefined(TRAIN, TRAIN, overlap="train")
    with pytest.raises(SettingError, match="overlap='both'"):
        splits.predefined(TRAIN, TEST, overlap="both")


def test_held_out_users_have_profiles_and_are_not_in_training():
    profiles = Ratings.of([3], ["c"])
    given = splits.predefined(TRAIN, Ratings.of([3], ["b"]), profiles=profiles)
    assert _rows(given.profiles) == [(3, "c", 1.0)]
    assert given.validation is None
    assert given.profiles.user_ids is given.train.user_ids
    assert given.step.effect["cold_users"] == 0
    with pytest.raises(ImpossibleSplitError, match=r"^1 users of profiles are in the training part too"):
        splits.predefined(TRAIN, TEST, profiles=Ratings.of([2], ["z"]))
    with pytest.raises(ImpossibleSplitError, match="pairs of the profiles part are also in another part"):
        splits.predefined(TRAIN, TEST, profiles=Ratings.of([3], ["b"]))

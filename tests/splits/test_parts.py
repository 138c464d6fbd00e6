"""The order of ratings within their segments, against a plain sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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

"""Work in blocks is the work at once."""

from __future__ import annotations

import numpy as np

from cranfield.metrics import _blocks


def test_places_are_repeated_the_same_in_blocks_also_one_that_is_larger_than_a_block(monkeypatch):
    monkeypatch.setattr(_blocks, "_CELLS", 3)
    for times in ([5], [1, 0, 7, 2], [2, 2, 0, 4, 9]):
        blocks = list(_blocks.expanded(np.array(times)))
        assert (
            np.concatenate([places for _, places, _ in blocks]).tolist() == np.repeat(range(len(times)), times).tolist()
        )
        assert np.concatenate([count for *_, count in blocks]).tolist() == [k for n in times for k in range(n)]
        assert all(len(places) <= 3 or np.ptp(places) == 0 for _, places, _ in blocks)

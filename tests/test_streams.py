"""Numbers by id are the same wherever they are drawn."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield._streams import MOST_BLOCKS, id_keys, user_blocks


@pytest.mark.parametrize("ids", [["ann", "bob"], [7, 8], [b"a", b"a\0"]])
def test_the_key_of_an_id_does_not_depend_on_the_others(ids):
    both = id_keys(pl.Series(ids))
    assert both[1] == id_keys(pl.Series(ids[1:]))[0] != both[0]


def test_users_are_spread_evenly_over_blocks_that_depend_on_seed_and_names():
    keys = np.arange(30_000, dtype=np.uint64)
    blocks = user_blocks(keys, MOST_BLOCKS, 0, "example")
    assert int(blocks.max()) == MOST_BLOCKS - 1
    assert np.bincount(blocks).max() < 20
    assert np.array_equal(blocks[100:], user_blocks(keys[100:], MOST_BLOCKS, 0, "example"))
    assert not np.array_equal(blocks, user_blocks(keys, MOST_BLOCKS, 1, "example"))
    assert not np.array_equal(blocks, user_blocks(keys, MOST_BLOCKS, 0, "other"))

"""What Spark's workers do with the rows that they get, without Spark."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from cranfield.tables.spark import Schema, user_blocks


@pytest.mark.parametrize("size", [1, 5, 12, 1000])
def test_a_block_holds_all_rows_of_its_users_and_no_row_is_lost(size):
    random = np.random.default_rng(size)
    counts = [*random.integers(1, 6, 20).tolist(), 30, 2]  # a user with more rows than most blocks
    frame = pl.DataFrame({"user": np.repeat(np.arange(len(counts)), counts)}).with_row_index("row")
    cuts = [0, *np.sort(random.choice(len(frame), 15, replace=False)).tolist(), len(frame)]
    batches = [frame[start:stop].to_arrow() for start, stop in pairwise(cuts)]
    blocks = list(user_blocks(iter(batches), size))
    assert_frame_equal(pl.concat(blocks), frame)
    users = [user for block in blocks for user in block["user"].unique()]
    assert len(users) == len(set(users)) == len(counts)
    assert len(blocks) == 1 or size < len(frame)


def test_a_user_without_an_id_is_a_user():
    frame = pl.DataFrame({"user": [None, None, "a", "a", "b"]}, schema={"user": pl.String})
    blocks = user_blocks(iter([frame[:3].to_arrow(), frame[3:].to_arrow()]), 3)
    assert [block["user"].to_list() for block in blocks] == [[None, None], ["a", "a"], ["b"]]


def test_nothing_has_no_block():
    assert list(user_blocks(iter([]), 3)) == []


def test_columns_have_the_types_of_a_schema_and_are_null_where_there_are_none():
    frame = pl.DataFrame({"user": [1, 2], "value": [0.5, None]})
    schema = {"value": "double", "user": "int", "tally": "binary", "covered": "boolean"}
    (batch,) = Schema(schema).batches(frame)
    assert [str(kind) for kind in batch.schema.types] == ["double", "int32", "binary", "bool"]
    assert batch.to_pylist() == [
        {"value": 0.5, "user": 1, "tally": None, "covered": None},
        {"value": None, "user": 2, "tally": None, "covered": None},
    ]

"""Ratings written to a file come back as they were, or are refused in one line."""

from __future__ import annotations

import pytest

from cranfield._errors import SettingError
from cranfield.data import Ratings, read
from cranfield.data.writing import write


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "CSV"])
@pytest.mark.parametrize("ids", [["a,b", 'c"d', "e\tf\n"], ["007", "7", " 7"], [3, -1, 2]])
def test_what_is_written_is_read_back(tmp_path, ending, ids):
    ratings = Ratings.of(ids, ["x", "y", "x"], [4.5, 0.1, 3], [978300760, 0, 5])
    assert read(write(ratings, tmp_path / f"r.{ending}")).fingerprint == ratings.fingerprint


def test_ids_that_are_bytes_need_parquet_unless_they_are_text(tmp_path):
    assert read(write(Ratings.of([b"ann"], [1]), tmp_path / "r.csv")).user_ids.all.to_list() == ["ann"]
    ratings = Ratings.of([b"\xff"], [1])
    with pytest.raises(SettingError, match=r"r\.csv cannot hold the column 'user' .*name the file \.parquet"):
        write(ratings, tmp_path / "r.csv")
    assert read(write(ratings, tmp_path / "r.parquet")).user_ids.all.to_list() == [b"\xff"]


def test_an_ending_that_names_no_format(tmp_path):
    with pytest.raises(SettingError, match=r"name it \.parquet, \.csv or \.tsv"):
        write(Ratings.of([1], [1]), tmp_path / "r.txt")

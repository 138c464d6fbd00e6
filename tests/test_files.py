from __future__ import annotations

import errno

import polars as pl
import pytest

from cranfield import CranfieldError
from cranfield._files import whole_file


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), r"a\.txt cannot be written \(No space left on device\)"),
        (pl.exceptions.ComputeError("parquet: No space left on device (os error 28)"), r"a\.txt cannot be written"),
    ],
)
def test_a_disk_that_fills_up_is_one_line_and_the_old_file_stays(tmp_path, error, said):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(CranfieldError, match=said), whole_file(path):
        raise error
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_of_the_writer_is_its_own(tmp_path):
    with pytest.raises(ValueError, match="mine"), whole_file(tmp_path / "a.txt"):
        raise ValueError("mine")
    assert not list(tmp_path.iterdir())

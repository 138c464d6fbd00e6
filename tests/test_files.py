from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cranfield import CranfieldError
from cranfield._files import TEMPORARY, _half_of, meant, whole_file


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


def test_what_a_killed_process_left_half_written_is_removed_and_nothing_else(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{_half_of(ended.pid)}-abc.csv"
    kept = [
        tmp_path / f"{_half_of(os.getpid())}-abc.csv",
        tmp_path / f"{TEMPORARY}another-{ended.pid}-abc.csv",
        tmp_path / f"{TEMPORARY}notes.txt",
        tmp_path / "mine.csv",
    ]
    for path in (left, *kept):
        path.write_text("half")
    with whole_file(tmp_path / "a.csv") as temporary:
        temporary.write_text("whole")
    assert not left.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*kept, tmp_path / "a.csv"])


def test_a_file_is_written_whole_and_a_tilde_means_the_home_folder(tmp_path):
    with whole_file(tmp_path / "new" / "a.txt") as temporary:
        temporary.write_text("all of it")
        assert not (tmp_path / "new" / "a.txt").exists()
    assert (tmp_path / "new" / "a.txt").read_text() == "all of it"
    assert meant("a.csv") == Path("a.csv")
    assert meant("~/a.csv") == Path.home() / "a.csv"

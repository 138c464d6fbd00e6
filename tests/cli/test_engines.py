"""``--engine`` and ``--memory``: tables that are larger than memory."""

from __future__ import annotations

import sys

import polars as pl
import pytest


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(place % 9, place * 7 % 11, 1.0 - place / 90, place) for place in range(80)]
    runs = pl.DataFrame(rows, schema=["customer", "item", "score", "day"], orient="row")
    test = [(user, item, 1 + (user + item) % 5) for user in range(9) for item in range(0, 11, 3)]
    for name, sign in (("a", 1), ("b", -1)):
        runs.with_columns(pl.col("score") * sign).write_parquet(f"{name}.parquet")
    pl.DataFrame(test, schema=["user", "item", "rating"], orient="row").write_parquet("test.parquet")
    monkeypatch.setattr("cranfield.measures.ranged._LARGEST_RANGE", 3000)
    monkeypatch.setattr("cranfield.measures.ranged._SMALLEST_RANGE", 1)
    return tmp_path


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("format", ["table", "json"])
def test_ranges_print_what_memory_prints(files, cranfield, command, format):
    options = (command, "--test", "test.parquet", "a.parquet", "b.parquet", "-m", "nDCG@5", "-m", "P@3",
               "--format", format, "--read", "user=user", "--read-runs", "user=customer")  # fmt: skip
    code, out, err = cranfield(*options, "--engine", "ranges", "--memory", "4GiB")
    assert code == 0
    assert (code, out, err) == cranfield(*options, "--engine", "memory")


def test_values_of_users_are_kept_as_parquet(files, cranfield):
    options = ("evaluate", "--test", "test.parquet", "a.parquet", "b.parquet", "-m", "nDCG@5", "-m", "RR", "-q")
    assert cranfield(*options, "--engine", "ranges", "--per-user", "ranges.parquet")[0] == 0
    assert cranfield(*options, "--engine", "memory", "--per-user", "memory.parquet")[0] == 0
    assert pl.read_parquet("ranges.parquet").equals(pl.read_parquet("memory.parquet"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--engine", "ranges", "--memory", "1kB"), "of memory is too little"),
        (("--engine", "ranges", "--report", "page.html"), "--report needs all lists at once"),
        (("--engine", "ranges", "--segment", "activity"), "--segment needs all lists at once"),
        (("--engine", "memory", "--memory", "1GiB"), "leave one of them out"),
        (("--memory", "much"), "'much' is not a size"),
        (("--engine", "ranges", "--read-runs", "tag=true"), "has no tag to name the system by"),
        (("--engine", "ranges", "--read-runs", "separator=','"), "is only for text; leave it out"),
    ],
)
def test_what_ranges_cannot_do_is_refused_in_a_line(files, cranfield, options, problem, monkeypatch):
    monkeypatch.setattr("cranfield.measures.ranged._SMALLEST_RANGE", 1 << 20)
    code, _, err = cranfield("evaluate", "--test", "test.parquet", "a.parquet", "-m", "RR", *options)
    assert code == 2
    assert problem in err
    assert err.count("\n") <= 1


def test_files_of_several_systems_in_a_folder_are_not_taken_for_one_table(files, cranfield):
    code, _, err = cranfield("evaluate", "--test", "test.parquet", str(files), "-m", "RR")
    assert code == 2
    assert "this is a folder of files that are not parts of one table; name the files; it holds a.parquet" in err


def test_a_cluster_without_spark_and_spark_without_its_library_are_one_line(files, cranfield, monkeypatch):
    arguments = ("evaluate", "--test", "test.parquet", "a.parquet", "-m", "RR")
    code, _, err = cranfield(*arguments, "--master", "yarn")
    assert code == 2
    assert "--master does nothing without --engine spark" in err
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    code, _, err = cranfield(*arguments, "--engine", "spark")
    assert code == 2
    assert (
        "needs pyspark, which is not installed; get it with: pip install 'cranfield[spark]'; see docs/scale.md" in err
    )

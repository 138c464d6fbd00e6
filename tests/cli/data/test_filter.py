"""``cranfield data filter`` writes what is kept and prints what is removed."""

from __future__ import annotations

import json

import polars as pl
import pytest

from cranfield import Ratings
from cranfield.data import filters

RATINGS = Ratings.of([1, 1, 1, 2, 2, 3], ["a", "b", "c", "a", "b", "c"], [5, 4, 1, 5, 4, 2])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ratings.csv"
    RATINGS.frame().write_csv(path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_the_chain_is_applied_printed_and_recorded(file, tmp_path, cranfield, ending):
    out = tmp_path / f"kept.{ending}"
    found = cranfield(
        "data", "filter", file, "--filter", "positives(threshold=2)", "--filter", "k_core(k=2)", "--out", out
    )
    assert found.code == 0
    read = pl.read_parquet if ending == "parquet" else lambda path: pl.read_csv(path, separator=",\t"[ending == "tsv"])
    expected = filters.k_core(filters.positives(RATINGS, threshold=2), k=2)
    assert read(out).rows() == expected.frame().rows()
    printed = " ".join(found.out.split())
    assert "positives(threshold=2.0) users 3 → 3 removed 0 items 3 → 3 removed 0 ratings 6 → 5 removed 1" in printed
    assert "k_core(k=2) users 3 → 2 removed 1 items 3 → 2 removed 1 ratings 5 → 4 removed 1" in printed
    record = json.loads(out.with_suffix(".json").read_text())
    assert [step["action"] for step in record["steps"]][-2:] == ["positives", "k_core"]
    assert record["fingerprint"] == expected.fingerprint


@pytest.mark.parametrize("theirs", ['{"precious": 1}', "[1, 2", '{"cranfield": "0.1.0", "ratings": "kept.parquet"}'])
def test_a_file_where_the_record_goes_stays(file, tmp_path, cranfield, theirs):
    (tmp_path / "kept.json").write_text(theirs)
    found = cranfield("data", "filter", file, "--filter", "k_core(k=1)", "--out", tmp_path / "kept.csv")
    assert found.code == 2
    assert "kept.json, which is another file" in found.err
    assert (tmp_path / "kept.json").read_text() == theirs
    assert not (tmp_path / "kept.csv").exists()


def test_filtering_again_replaces_ratings_and_record(file, tmp_path, cranfield):
    for k in (1, 2):
        assert (
            cranfield("data", "filter", file, "--filter", f"k_core(k={k})", "--out", tmp_path / "kept.csv", "-q").code
            == 0
        )
    assert json.loads((tmp_path / "kept.json").read_text())["steps"][-1]["settings"] == {"k": 2}


def test_quiet_says_nothing(file, tmp_path, cranfield):
    found = cranfield("data", "filter", file, "--filter", "k_core(k=1)", "--out", tmp_path / "a.csv", "--quiet")
    assert found.code == 0
    assert found.out == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--filter", "k_cor", "--out", "a.csv"], "there is no filter 'k_cor'; did you mean 'k_core'?"),
        (["--filter", "k_core(k=9)", "--out", "a.csv"], "k_core(k=9) would leave none of the 6 ratings"),
        (["--filter", "k_core", "--out", "a.xls"], "a.xls does not end in a known format; name it .parquet"),
        (["--filter", "k_core", "--out", "a.parqet"], "name it .parquet, .csv or .tsv; did you mean 'parquet'?"),
        (["--filter", "time_window(start=inf)", "--out", "a.csv"], "time_window needs times"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(file, tmp_path, cranfield, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    found = cranfield("data", "filter", file, *options)
    assert found.code == 2
    error = found.err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "a.csv").exists()

"""``cranfield dialects`` prints what the Python function returns."""

from __future__ import annotations

import csv
import io
import json

import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

TEST = "user,item,rating\nann,x,5\nann,y,2\nbob,y,4\ncid,x,4\n"
RUN = "user,item,score\nann,x,0.9\nann,z,0.8\nbob,z,0.7\nbob,y,0.2\n"


@pytest.fixture
def speak(tmp_path, monkeypatch, cranfield):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.csv").write_text(TEST)
    (tmp_path / "mine.csv").write_text(RUN)

    def run(*arguments: str) -> str:
        code, out, err = cranfield("dialects", "--test", "test.csv", "mine.csv", "--threshold", "4", *arguments)
        assert (code, err) == (0, "")
        return out

    return run


def _expected(metric):
    test = cf.Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "y", "x"], [5, 2, 4, 4])
    return compare_tools({"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}}, test, metric, threshold=4)


def test_csv_and_json_hold_the_frame_of_the_function(speak):
    rows = list(csv.DictReader(io.StringIO(speak("-m", "nDCG@2", "--format", "csv"))))
    same = json.loads(speak("-m", "nDCG@2", "--format", "json"))
    assert same == _expected("nDCG@2").to_dicts()
    assert [float(row["value"]) for row in rows] == pytest.approx([row["value"] for row in same])


def test_the_table_has_a_row_a_dialect_and_says_how_each_differs(speak):
    out = speak("-m", "Recall@1")
    assert out.startswith("Recall@1 as other tools compute it; system mine")
    for row in _expected("Recall@1").iter_rows(named=True):
        line = next(one for one in out.splitlines()[3:] if one.startswith(row["spelling"] + " "))
        assert f"{row['value']:.4f}" in line
        assert row["how"] in out


def test_several_metrics_stand_in_one_table(speak):
    out = speak("-m", "P@2", "-m", "AP@2")
    assert out.splitlines()[1].split() == ["dialect", "metric", "value", "difference", "users"]


@pytest.mark.parametrize(("format", "sign"), [("latex", r"\begin{tabular}"), ("markdown", "| dialect |")])
def test_latex_and_markdown(speak, format, sign):
    assert sign in speak("-m", "P@2", "--format", format)


def test_a_published_number_is_looked_for(speak):
    out = speak("-m", "AP@2", "--published", "0.75")
    assert "The published number matches AP(dialect=lenskit)@2, AP(dialect=recommenders)@2" in out


def test_a_metric_without_dialects_is_one_line_and_exit_code_2(cranfield, speak):
    code, out, err = cranfield("dialects", "--test", "test.csv", "mine.csv", "-m", "RBP")
    assert (code, out) == (2, "")
    assert err.startswith("cranfield: no dialect of RBP is known")
    assert err.count("\n") == 1


def test_a_file_is_written_whole(speak, tmp_path):
    assert speak("-m", "P@2", "--format", "json", "--out", "values.json") == ""
    assert json.loads((tmp_path / "values.json").read_text()) == _expected("P@2").to_dicts()

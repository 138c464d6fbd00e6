"""``cranfield recommend`` writes what the Python function makes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield.data import read
from cranfield.rankings.names import file_name
from cranfield.rankings.recommending import recommend
from cranfield.recommenders.model import Model


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(0)
    user, item = np.nonzero(draw.random((20, 15)) < 0.6)
    frame = pl.DataFrame({"user": user, "item": item, "rating": draw.integers(1, 6, len(user))})
    held_out = pl.Series(draw.random(len(user)) < 0.3)
    frame.filter(~held_out).write_csv(tmp_path / "train.csv")
    frame.filter(held_out).write_csv(tmp_path / "test.csv")
    return tmp_path


def test_the_files_are_the_runs_of_the_function(files, cranfield):
    systems = ["popularity", "knn(k=3, overlap=2)"]
    asked = ["-s", systems[0], "-s", systems[1], "--length", 5, "--fill", "average"]
    found = cranfield("recommend", "--train", files / "train.csv", *asked, "--out", files / "r")
    assert found.code == 0
    made = recommend(read(files / "train.csv"), systems, length=5, fill="average")
    for run, name in zip(made, ["popularity", "knn(k=3,overlap=2)"], strict=True):
        assert pl.read_parquet(files / "r" / f"{name}.parquet").rows() == run.frame().rows()
    assert "popularity.parquet: 20 lists, 100 items" in found.out


def test_evaluate_reads_what_recommend_writes(files, cranfield):
    for ending in ("parquet", "tsv", "csv", "trec"):
        out = files / ending
        found = cranfield(
            "recommend", "--train", files / "train.csv", "-s", "rw", "--out", out, "--format", ending, "--quiet"
        )
        assert found.code == 0
        found = cranfield("evaluate", "--test", files / "test.csv", out / f"rw.{ending}", "--threshold", 4)
        assert "rw" in found.out


def test_evaluate_reads_one_relevant_lists_too(files, cranfield):
    asked = ["--test", files / "test.csv", "--relevant", "one", "--nonrelevant", 3, "--threshold", 4]
    found = cranfield(
        "recommend", "--train", files / "train.csv", *asked, "-s", "knn(k=3)", "--out", files / "one", "--quiet"
    )
    assert found.code == 0
    path = files / "one" / "knn(k=3).parquet"
    found = cranfield("evaluate", "--test", files / "test.csv", path, "-m", "Recall@2", "--threshold", 4)
    assert "Recall@2" in found.out
    assert pl.read_parquet(path).columns == ["user", "item", "rank", "length"]


def test_resuming_makes_only_what_is_missing(files, cranfield):
    out = files / "r"
    out.mkdir()
    (out / "popularity.tsv").write_text("mine\n")
    options = ["--train", files / "train.csv", "-s", "popularity", "-s", "random", "--out", out, "--format", "tsv"]
    found = cranfield("recommend", *options, "--resume")
    assert found.code == 0
    assert (out / "popularity.tsv").read_text() == "mine\n"
    assert (out / "random.tsv").exists()
    assert "1 of 2 runs were there already" in found.out
    found = cranfield("recommend", *options)
    assert found.code == 0
    assert (out / "popularity.tsv").read_text() != "mine\n"
    assert "popularity.tsv: 20 lists, 177 items (replaced)" in found.out


def test_the_ratings_are_not_replaced_by_lists(files, cranfield):
    mine = (files / "train.csv").rename(files / "popularity.csv")
    before = mine.read_text()
    found = cranfield("recommend", "--train", mine, "-s", "popularity", "--out", files, "--format", "csv")
    assert found.code == 2
    assert "popularity.csv holds ratings that are read; choose another folder with --out" in found.err
    assert mine.read_text() == before


def test_the_test_set_restricts_candidates(files, cranfield):
    options = ["--train", files / "train.csv", "--test", files / "test.csv", "-s", "popularity", "--length", "all"]
    assert cranfield("recommend", *options, "--lists", "condensed", "--out", files / "r", "--quiet").code == 0
    pairs = set(pl.read_parquet(files / "r" / "popularity.parquet").select("user", "item").rows())
    assert pairs == set(pl.read_csv(files / "test.csv").select("user", "item").rows())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no system is given"),
        (["-s", "knnn"], "did you mean 'knn'?"),
        (["-s", "knn(k=0)"], "k=0 of knn is out of range"),
        (["-s", "knn", "-s", "knn"], "give each system once"),
        (["-s", "knn", "--candidates", "test"], "needs the test ratings"),
        (["-s", "knn", "--length", "many"], "'many' is neither a number nor 'all'"),
        (["-s", "knn", "-n", "5"], "-n is now --length; write that instead"),
        (["-s", "knn", "--condensed"], "--condensed is now --lists condensed; write that instead"),
        (["-s", "knn", "--sample", "1.5"], "sample=1.5 is neither 'all' nor a number of users nor a share below 1"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(files, cranfield, options, message):
    found = cranfield("recommend", "--train", files / "train.csv", "--out", files / "r", *options)
    assert found.code == 2
    assert message in found.err
    assert not (files / "r").exists()


def test_a_folder_that_cannot_be_is_told_before_anything_is_trained(files, cranfield, monkeypatch):
    monkeypatch.setattr(Model, "fit", None)
    found = cranfield("recommend", "--train", files / "train.csv", "-s", "knn", "--out", files / "train.csv")
    assert found.code == 2
    assert "train.csv cannot be a folder (File exists); choose another with --out" in found.err


def test_pairs_in_both_files_stay_where_the_option_says(files, cranfield):
    asked = ["--train", files / "train.csv", "--test", files / "train.csv", "-s", "knn", "--out", files / "r"]
    found = cranfield("recommend", *asked)
    assert found.code == 2
    assert "--overlap test" in found.err
    (files / "other.csv").write_text((files / "train.csv").read_text().split("\n", 2)[0] + "\n0,0,5\n19,14,5\n")
    asked[3] = files / "other.csv"
    assert cranfield("recommend", *asked, "--overlap", "train").code == 0
    alone = cranfield("recommend", *asked[:2], *asked[4:], "--overlap", "train")
    assert alone.code == 2
    assert "--overlap goes with --test" in alone.err


def test_file_names_are_safe_and_distinct():
    assert file_name(["a/b(x=../c)"]) == {"a/b(x=../c)": "a_b(x=.._c)"}


def test_systems_trained_side_by_side_write_the_same_files(files, cranfield):
    asked = ["--train", files / "train.csv", "-s", "random", "-s", "knn(k=3)", "-s", "puresvd(factors=2)", "-q"]
    for jobs in (1, 2):
        assert cranfield("recommend", *asked, "--jobs", jobs, "--out", files / f"jobs-{jobs}").code == 0
    for path in (files / "jobs-1").iterdir():
        assert (files / "jobs-2" / path.name).read_bytes() == path.read_bytes()

"""``cranfield recommend`` writes what the Python function makes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield.cli import main
from cranfield.data import read
from cranfield.rank.names import file_name
from cranfield.rank.recommend import recommend
from cranfield.recommend._model import Model


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(0)
    user, item = np.nonzero(draw.random((20, 15)) < 0.6)
    frame = pl.DataFrame({"user": user, "item": item, "rating": draw.integers(1, 6, len(user))})
    held_out = pl.Series(draw.random(len(user)) < 0.3)
    frame.filter(~held_out).write_csv(tmp_path / "train.csv")
    frame.filter(held_out).write_csv(tmp_path / "test.csv")
    return tmp_path


def _run(*arguments):
    try:
        main(["recommend", *(str(argument) for argument in arguments)])
    except SystemExit as stop:
        return stop.code
    return 0


def test_the_files_are_the_runs_of_the_function(files, capsys):
    systems = ["popularity", "knn(k=3, overlap=2)"]
    asked = ["-s", systems[0], "-s", systems[1], "-n", 5, "--fill", "average"]
    code = _run("--train", files / "train.csv", *asked, "--out", files / "r")
    assert code == 0
    made = recommend(read(files / "train.csv"), systems, n=5, fill="average")
    for run, name in zip(made, ["popularity", "knn(k=3,overlap=2)"], strict=True):
        assert pl.read_parquet(files / "r" / f"{name}.parquet").rows() == run.frame().rows()
    assert "popularity.parquet: 20 lists, 100 items" in capsys.readouterr().out


def test_evaluate_reads_what_recommend_writes(files, capsys):
    for ending in ("parquet", "tsv", "csv", "trec"):
        out = files / ending
        assert not _run("--train", files / "train.csv", "-s", "rw", "--out", out, "--format", ending, "--quiet")
        main(["evaluate", "--test", str(files / "test.csv"), str(out / f"rw.{ending}"), "--threshold", "4"])
        assert "rw" in capsys.readouterr().out


def test_evaluate_reads_one_relevant_lists_too(files, capsys):
    asked = ["--test", files / "test.csv", "--relevant", "one", "--nonrelevant", 3, "--threshold", 4]
    assert not _run("--train", files / "train.csv", *asked, "-s", "knn(k=3)", "--out", files / "one", "--quiet")
    path = files / "one" / "knn(k=3).parquet"
    main(["evaluate", "--test", str(files / "test.csv"), str(path), "-m", "Recall@2", "--threshold", "4"])
    assert "Recall@2" in capsys.readouterr().out
    assert pl.read_parquet(path).columns == ["user", "item", "rank", "length"]


def test_resuming_makes_only_what_is_missing(files, capsys):
    out = files / "r"
    out.mkdir()
    (out / "popularity.tsv").write_text("mine\n")
    options = ["--train", files / "train.csv", "-s", "popularity", "-s", "random", "--out", out, "--format", "tsv"]
    assert not _run(*options, "--resume")
    assert (out / "popularity.tsv").read_text() == "mine\n"
    assert (out / "random.tsv").exists()
    assert "1 runs were there already" in capsys.readouterr().out
    assert not _run(*options)
    assert (out / "popularity.tsv").read_text() != "mine\n"


def test_the_test_set_restricts_candidates(files):
    options = ["--train", files / "train.csv", "--test", files / "test.csv", "-s", "popularity", "-n", "all"]
    assert not _run(*options, "--condensed", "--out", files / "r", "--quiet")
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
        (["-s", "knn", "-n", "many"], "'many' is neither a number nor 'all'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(files, capsys, options, message):
    assert _run("--train", files / "train.csv", "--out", files / "r", *options) == 2
    assert message in capsys.readouterr().err
    assert not (files / "r").exists()


def test_a_folder_that_cannot_be_is_told_before_anything_is_trained(files, capsys, monkeypatch):
    monkeypatch.setattr(Model, "fit", None)
    assert _run("--train", files / "train.csv", "-s", "knn", "--out", files / "train.csv") == 2
    assert "train.csv cannot be a folder (File exists); choose another with --out" in capsys.readouterr().err


def test_pairs_in_both_files_stay_where_the_option_says(files, capsys):
    asked = ["--train", files / "train.csv", "--test", files / "train.csv", "-s", "knn", "--out", files / "r"]
    assert _run(*asked) == 2
    assert "--overlap test" in capsys.readouterr().err
    (files / "other.csv").write_text((files / "train.csv").read_text().split("\n", 2)[0] + "\n0,0,5\n19,14,5\n")
    asked[3] = files / "other.csv"
    assert _run(*asked, "--overlap", "train") == 0


def test_file_names_are_safe_and_distinct():
    assert file_name(["a/b(x=../c)"]) == {"a/b(x=../c)": "a_b(x=.._c)"}


def test_systems_trained_side_by_side_write_the_same_files(files):
    asked = ["--train", files / "train.csv", "-s", "random", "-s", "knn(k=3)", "-s", "puresvd(factors=2)", "-q"]
    for jobs in (1, 2):
        assert _run(*asked, "--jobs", jobs, "--out", files / f"jobs-{jobs}") == 0
    for path in (files / "jobs-1").iterdir():
        assert (files / "jobs-2" / path.name).read_bytes() == path.read_bytes()

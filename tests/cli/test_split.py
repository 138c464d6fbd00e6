"""Splits are made by ``cranfield split`` and checked by ``check-split``."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from cranfield import Ratings, splits
from cranfield.cli import main

RATINGS = Ratings.of(
    [u for u in range(8) for _ in range(6)], [*range(6)] * 8, [1 + n % 5 for n in range(48)], range(48)
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ratings.csv"
    RATINGS.frame().write_csv(path)
    return path


def test_parts_are_those_of_the_function(file, tmp_path, cranfield):
    found = cranfield(
        "split", file, "--method", "per_user(train=0.5)", "--seed", 7, "--validation", 0.3, "--out", tmp_path / "p"
    )
    assert found.code == 0
    made = splits.per_user(RATINGS, train=0.5, seed=7, validation=0.3)
    for name, part in made.parts.items():
        assert pl.read_parquet(tmp_path / "p" / f"{name}.parquet").rows() == part.frame().rows()
    record = json.loads((tmp_path / "p" / "split.json").read_text())
    assert record["data"]["fingerprint"] == RATINGS.fingerprint
    assert record["splits"][0]["split"]["settings"]["seed"] == 7
    out = found.out
    assert "Split(per_user: train 16, validation 8, test 24)" in out
    assert "leakage in time" in out


def test_folds_go_to_folders_and_formats_are_as_asked(file, tmp_path, cranfield):
    assert (
        cranfield("split", file, "--method", "k_fold(k=2)", "--out", tmp_path / "p", "--format", "tsv", "--quiet").code
        == 0
    )
    files = sorted(path.relative_to(tmp_path / "p").as_posix() for path in (tmp_path / "p").rglob("*.tsv"))
    assert files == ["fold-1/test.tsv", "fold-1/train.tsv", "fold-2/test.tsv", "fold-2/train.tsv"]


def test_filters_come_first_and_are_in_the_record(file, tmp_path, cranfield):
    found = cranfield("split", file, "--filter", "positives(threshold=3)", "--out", tmp_path / "p")
    assert found.code == 0
    record = json.loads((tmp_path / "p" / "split.json").read_text())
    assert "positives" in [step["action"] for step in record["data"]["history"]]
    assert "positives(threshold=3.0): users [8, 8]" in found.out


def test_a_given_test_set_is_a_split(file, tmp_path, cranfield):
    made = splits.random(RATINGS, train=0.5)
    splits.write(made, tmp_path / "a", format="csv")
    assert (
        cranfield(
            "split", tmp_path / "a/train.csv", "--test", tmp_path / "a/test.csv", "--out", tmp_path / "b", "-q"
        ).code
        == 0
    )
    assert pl.read_parquet(tmp_path / "b/test.parquet").rows() == made.test.frame().rows()
    read = json.loads((tmp_path / "b/split.json").read_text())["data"]["parts"]["test"]["history"][0]
    assert read["settings"]["source"] == str(tmp_path / "a/test.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "randm"], "there is no split 'randm'; did you mean 'random'?"),
        (["--method", "leave_out(l=9)"], "8 of 8 users have fewer than the 9 ratings to leave out"),
        (["--validation", "2"], "--validation 2.0 is not a share"),
        (["--method", "random", "--test", "x.csv"], "--method and --test exclude each other"),
        (["--method", ""], "'' cannot be read"),
        (["--overlap", "test"], "--overlap goes with --test"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(file, tmp_path, cranfield, options, message):
    found = cranfield("split", file, *options, "--out", tmp_path / "p")
    assert found.code == 2
    error = found.err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p").exists()


def test_what_is_in_the_folder_stays_unless_forced(file, tmp_path, cranfield):
    out = tmp_path / "p"
    found = cranfield("split", file, "--out", out, "-q")
    assert found.code == 0
    found = cranfield("split", file, "--out", out, "-q")
    assert found.code == 0
    found = cranfield("split", file, "--seed", 7, "--out", out)
    assert found.code == 2
    assert "p already holds another split; choose another folder with --out, or replace it with --force" in (found.err)
    assert cranfield("split", file, "--seed", 7, "--out", out, "--force", "-q").code == 0
    assert json.loads((out / "split.json").read_text())["splits"][0]["split"]["settings"]["seed"] == 7


def test_the_input_is_not_replaced_by_a_part(file, tmp_path, cranfield):
    train = file.rename(tmp_path / "train.csv")
    found = cranfield("split", train, "--out", tmp_path, "--format", "csv")
    assert found.code == 2
    assert "train.csv already exists" in found.err
    assert pl.read_csv(train).rows() == RATINGS.frame().rows()


def test_the_help_lists_every_method(cranfield):
    found = cranfield("split", "--help")
    out = found.out
    assert all(name in out for name in splits.registry)


def test_uniform_test_says_how_many_items_and_ratings_of_each(file, tmp_path, cranfield):
    method = "uniform_test(sigma=0.5, epsilon=0.5)"
    found = cranfield("split", file, "--method", method, "--out", tmp_path / "p")
    assert found.code == 0
    assert "the 6 most popular items are T, and 4 ratings of each are test" in found.out


def test_a_name_that_is_neither_file_nor_dataset_is_refused(tmp_path, cranfield):
    found = cranfield("split", "ml-1mm", "--out", tmp_path / "p")
    assert found.code == 2
    error = found.err
    assert "'ml-1mm' is neither a file nor a known dataset" in error
    assert "see: cranfield data list; did you mean 'ml-1m'?" in error


def test_a_folder_for_a_file_is_named(tmp_path, cranfield, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "train.csv").write_text("user,item\n1,2\n")
    monkeypatch.chdir(tmp_path)
    found = cranfield("split", "parts", "--out", tmp_path / "p")
    assert found.code == 2
    assert "parts: this is a folder; name a file in it; it holds train.csv" in found.err


@pytest.fixture(scope="module")
def ratings():
    rows = [(u, i, 86_400 * ((u * 31 + i * 17) % 97)) for u in range(30) for i in range(20) if (u * 7 + i * 5) % 3]
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


@pytest.fixture(scope="module")
def folder(ratings, tmp_path_factory):
    home = tmp_path_factory.mktemp("splits")
    splits.write(splits.random(ratings, seed=1), home / "random")
    splits.write(splits.temporal(ratings), home / "temporal", format="csv")
    splits.write(splits.k_fold(ratings, k=2), home / "folds")
    return home


def _called(*arguments):
    try:
        main([*map(str, arguments)])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_a_clean_split_ends_with_0_and_a_wrong_one_with_1_if_it_is_to_fail(folder, capsys):
    train, test = (folder / "temporal" / f"{part}.csv" for part in ("train", "test"))
    assert _called("check-split", train, test, "--fail", "--promise", "global") == 0
    assert "nothing wrong" in capsys.readouterr().out
    assert _called("check-split", train, train) == 0
    assert _called("check-split", train, train, "--fail") == 1
    assert "pairs are in both train and test" in capsys.readouterr().out


def test_the_sentences_come_first_and_then_the_counts_side_by_side(folder, capsys):
    assert _called("check-split", folder / "random", folder / "temporal", "--fail") == 0
    out = capsys.readouterr().out
    assert out.startswith("random: nothing wrong")
    assert out.index("temporal: nothing wrong") < out.index("test before own training")


def test_the_folds_of_a_folder_are_checked_one_by_one(folder, capsys):
    assert _called("check-split", folder / "folds", "--format", "json") == 0
    assert [one["split"] for one in json.loads(capsys.readouterr().out)] == ["folds/fold-1", "folds/fold-2"]


def test_a_page_is_written_with_figures(folder, tmp_path):
    assert (
        _called("check-split", folder / "temporal", "--report", tmp_path / "page.html", "--out", tmp_path / "a.csv")
        == 0
    )
    page = (tmp_path / "page.html").read_text()
    assert "Check of a split" in page
    for name in ("time", "gaps", "ratings", "profiles"):
        assert f'data-save-figure="split-1-{name}"' in page
    assert (tmp_path / "a.csv").read_text().startswith("split,about,level,sentence")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv"], "1 file cannot be one split"),
        (["nowhere"], "there is no folder nowhere"),
        (["a.csv", "b.csv", "c.csv", "d.csv"], "4 files cannot be one split"),
        (["missing.csv", "missing2.csv"], "missing.csv"),
        ([".", "train.csv"], ". is a folder and train.csv is not"),
    ],
)
def test_a_wrong_call_is_one_line_with_the_page_that_helps_and_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Ratings.of([1, 2], [1, 2], np.ones(2)).frame().write_csv("train.csv")
    assert _called("check-split", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "; see docs/" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("rating", [True, False])
def test_the_command_and_python_agree_on_what_repeats(tmp_path, cranfield, rating):
    rows = {"user": [1, 1, 1, 2, 2], "item": [7, 7, 8, 7, 8], "rating": [3, 4, 5, 2, 1], "time": [1, 2, 3, 4, 5]}
    train = pl.DataFrame(rows).select("user", "item", *(["rating"] if rating else []), "time")
    test = train[:2].with_columns(time=pl.col("time") + 100)
    for name, frame in {"train": train, "test": test}.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    files = [str(tmp_path / f"{name}.csv") for name in ("train", "test")]
    told = json.loads(cranfield("check-split", *files, "--format", "json").out)
    here = splits.check_split(*files)
    assert bool(here.wrong) is rating  # events may repeat, ratings may not
    assert [finding["sentence"] for finding in told[0]["findings"]] == [one.sentence for one in here.findings]

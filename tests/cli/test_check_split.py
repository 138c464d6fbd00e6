"""``cranfield check-split``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cranfield import Ratings, splits
from cranfield.cli import main


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

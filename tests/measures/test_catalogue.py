"""Items that do not exist are counted separately from unjudged ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.cli import main

TEST = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"])
RUNS = {
    "real": {"ann": ["x", "w", "y"], "bob": ["w", "x"]},
    "made up": {"ann": ["x", "ghost", "w", "phantom"], "bob": ["ghost", "x"], "cid": ["ghost"]},
}


def _measured(**options):
    return cf.measure(RUNS, TEST, ["P@2", "AP"], catalogue=["x", "y", "w"], **options)


def test_each_share_is_that_of_the_recommendations_down_to_the_cut_off():
    scores = _measured()
    assert scores.nonexistent.tolist() == [[0, 0], [2 / 4, 3 / 6]]
    assert scores.unjudged == pytest.approx(np.array([[2 / 4, 2 / 5], [0, 1 / 6]]))
    whole = cf.measure(RUNS, TEST, ["P@2", "AP"])
    assert scores.unjudged + scores.nonexistent == pytest.approx(whole.unjudged)
    assert whole.nonexistent is None
    assert scores.average().tolist() == whole.average().tolist()


def test_the_table_the_frame_and_the_verdict_name_them():
    scores = _measured()
    assert "nonexistent in the whole list" in scores.table().header
    assert scores.frame()["nonexistent"].to_list() == [0, 0, 0.5, 0.5]
    sentence = (
        "made up recommends 2 items that are not in the catalogue, such as ghost, phantom: 3 of its 6 recommendations "
        "(50.0%), counted separately from unjudged ones"
    )
    assert sentence in scores.notes
    assert any(sentence in said for said in cf.compare(scores).sentences())


def test_an_item_with_a_test_rating_exists():
    scores = cf.measure(RUNS, TEST, "P@2", catalogue=["w"])
    assert scores.nonexistent.tolist() == [[0], [0.5]]


def test_condensed_lists_are_counted_as_they_were_given():
    assert _measured(lists="condensed").nonexistent.tolist() == [[0, 0], [2 / 4, 3 / 6]]
    assert _measured(lists="condensed").unjudged.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["ratings", "set", "frame", "one column", "csv", "lines", "parquet", "train"])
def test_a_catalogue_may_be_anything_that_names_items(kind, tmp_path):
    items, options = ["w", "x", "y"], {}
    frame = pl.DataFrame({"title": ["a", "b", "c"], "item_id": items})
    if kind == "ratings":
        catalogue = cf.Ratings.of([1, 2, 3], items)
    elif kind == "set":
        catalogue = set(items)
    elif kind == "train":
        catalogue, options = "train", {"train": cf.Ratings.of([1, 2, 3], items)}
    elif kind in ("frame", "one column"):
        catalogue = frame if kind == "frame" else frame.select(pl.col("item_id").alias("whatever"))
    else:
        catalogue = tmp_path / f"catalogue.{kind}"
        if kind == "lines":
            catalogue.write_text("w\nx\n\ny\n")
        else:
            (frame.write_csv if kind == "csv" else frame.write_parquet)(catalogue)
    assert cf.measure(RUNS, TEST, "P@2", catalogue=catalogue, **options).nonexistent.tolist() == [[0], [0.5]]


@pytest.mark.parametrize(
    ("catalogue", "message"),
    [
        ("train", "catalogue='train' needs the training ratings"),
        (7, "catalogue=7 is not a catalogue"),
        (["x", 7], "ids of one type"),
        ([], "the catalogue holds no items"),
        (pl.DataFrame({"a": [1], "b": [2]}), "no column is known to hold the items"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_a_catalogue_that_names_nothing_is_refused(catalogue, message):
    with pytest.raises((SettingError, InputError), match=message):
        cf.measure(RUNS, TEST, "P@2", catalogue=catalogue)


def test_the_command_line_takes_a_catalogue(tmp_path, capsys):
    TEST.frame().write_csv(tmp_path / "test.csv")
    for name, lists in RUNS.items():
        rows = [(user, item, 10 - rank) for user, items in lists.items() for rank, item in enumerate(items)]
        pl.DataFrame(rows, schema=["user", "item", "score"], orient="row").write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "items.txt").write_text("w\nx\ny\n")
    runs = [str(tmp_path / f"{name}.csv") for name in RUNS]
    options = ["--test", str(tmp_path / "test.csv"), "-m", "P@2", "--catalogue", str(tmp_path / "items.txt")]
    main(["evaluate", *runs, *options])
    assert "nonexistent@2" in capsys.readouterr().out
    main(["compare", *runs, *options])
    assert "made up recommends 2 items that are not in the catalogue" in capsys.readouterr().out

"""Splits on disk."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from cranfield import CranfieldError, InputError, Ratings, SettingError, __version__, simulate, splits
from cranfield.data import filters
from cranfield.splits.files import read_item_groups

RATINGS = Ratings.of([u for u in range(6) for _ in range(5)], [*range(5)] * 6, range(30), range(30))


def _read(path):
    separator = "\t" if path.suffix == ".tsv" else ","
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, separator=separator)


def _visible(folder):
    """Return the files but the records of their checksums."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if ".cranfield-records" not in path.parts)


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_the_parts_come_back_and_the_record_says_how_they_were_made(tmp_path, form):
    ratings = filters.min_ratings(RATINGS, user=2)
    made = splits.percentiles(ratings, groups=2, train=0.6, seed=7, validation=0.2)
    record = json.loads(splits.write(made, tmp_path, format=form, fingerprint=ratings.fingerprint).read_text())
    for name, part in made.parts.items():
        assert _read(tmp_path / f"{name}.{form}").rows() == part.frame().rows()
        assert record["splits"][0]["fingerprints"][name] == part.fingerprint
    assert _read(tmp_path / f"groups.{form}").columns == ["item", "group"]
    assert record["cranfield"] == __version__
    assert record["data"]["fingerprint"] == ratings.fingerprint
    assert [step["action"] for step in record["data"]["history"]] == ["min_ratings"]
    assert record["splits"][0]["split"]["settings"] == {"groups": 2, "train": 0.6, "seed": 7, "validation": 0.2}
    assert record["splits"][0]["split"]["notes"] == list(made.notes)
    assert sorted([*record["files"], "split.json"]) == _visible(tmp_path)


def test_folds_have_folders_and_an_earlier_split_makes_room(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    splits.write(splits.k_fold(RATINGS, k=3, validation=0.3), tmp_path)
    assert (tmp_path / "fold-3" / "validation.parquet").exists()
    splits.write(splits.k_fold(RATINGS, k=2), tmp_path, force=True)
    files = _visible(tmp_path)
    folds = [f"fold-{fold}/{part}.parquet" for fold in (1, 2) for part in ("test", "train")]
    assert files == [*folds, "mine.txt", "split.json"]
    assert len(json.loads((tmp_path / "split.json").read_text())["splits"]) == 2
    assert not (tmp_path / "fold-3").exists()


def test_another_split_stays_unless_forced(tmp_path):
    splits.write(splits.random(RATINGS, seed=1), tmp_path)
    before = (tmp_path / "train.parquet").read_bytes()
    for other in (splits.random(RATINGS, seed=2), splits.k_fold(RATINGS, k=2)):
        with pytest.raises(SettingError, match=r"already holds another split; choose another folder .* force=True"):
            splits.write(other, tmp_path)
    assert (tmp_path / "train.parquet").read_bytes() == before
    assert (tmp_path / "split.json").exists()
    splits.write(splits.random(RATINGS, seed=2), tmp_path, force=True)
    assert (tmp_path / "train.parquet").read_bytes() != before


def test_the_same_split_is_written_anew_in_any_format(tmp_path):
    for made in (splits.random(RATINGS, seed=1), splits.k_fold(RATINGS, k=2)):
        for form in ("parquet", "parquet", "csv"):
            record = splits.write(made, tmp_path / made.__class__.__name__, format=form)
        assert {name.rpartition(".")[2] for name in _visible(record.parent)} == {"csv", "json"}


@pytest.mark.parametrize("name", ["train.csv", "split.json", "groups.csv"])
def test_files_that_are_of_no_split_stay_unless_forced(tmp_path, name):
    (tmp_path / name).write_text("[1]")
    made = splits.percentiles(RATINGS, groups=2)
    with pytest.raises(SettingError, match=f"{name} already exists"):
        splits.write(made, tmp_path, format="csv")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    splits.write(made, tmp_path, format="csv", force=True)


def test_splits_that_are_not_folds_do_not_replace_each_other(tmp_path):
    with pytest.raises(SettingError, match="2 splits that are not folds"):
        splits.write([splits.random(RATINGS, seed=seed) for seed in (1, 2)], tmp_path)


def test_a_record_cannot_make_us_delete_other_files(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "train.csv"
    home.mkdir()
    outside.write_text("precious")
    (home / "split.json").write_text(json.dumps({"files": ["../train.csv", str(outside), "notes.csv", 7, ""]}))
    (home / "notes.csv").write_text("mine")
    splits.write(splits.random(RATINGS), home, force=True)
    assert outside.exists()
    assert (home / "notes.csv").exists()


def test_a_file_of_an_earlier_split_that_somebody_changed_is_not_removed(tmp_path):
    made = splits.random(RATINGS, seed=1)
    splits.write(made, tmp_path, format="csv")
    (tmp_path / "test.csv").write_text("user,item,rating\n1,1,1\n")
    splits.write(made, tmp_path)
    assert _visible(tmp_path) == ["split.json", "test.csv", "test.parquet", "train.parquet"]


def test_a_wrong_format_or_folder_is_named(tmp_path):
    with pytest.raises(SettingError, match="format='xls' is not one of parquet, csv, tsv"):
        splits.write(splits.random(RATINGS), tmp_path, format="xls")
    (tmp_path / "file").write_text("")
    with pytest.raises(CranfieldError, match="cannot be written"):
        splits.write(splits.random(RATINGS), tmp_path / "file")


# The popularity groups of items come back from the file that a split writes


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_groups_come_back_as_they_were_written(tmp_path, ending):
    split = splits.percentiles(simulate.world(40, 30, 500).ratings, groups=3)
    splits.write(split, tmp_path, format=ending)
    again = read_item_groups(tmp_path / f"groups.{ending}", split.train.item_ids)
    np.testing.assert_array_equal(again, split.item_groups)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item\na\nb\n", "there is no column 'group'"),
        ("item,group\na,0\n", "item b has no group"),
        ("item,group\na,0\nb,many\n", "item b has no group"),
        ("item,group\na,0\nb,-2\n", "item b has no group"),
        ("item,group\na,0\na,1\nb,1\n", "item a has more than one row"),
        (None, "it is not a file"),
    ],
)
def test_a_file_that_does_not_say_every_group_is_refused(tmp_path, content, message):
    path = tmp_path / "groups.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_item_groups(path, splits.random(simulate.popularity(9, 2, 10)).train.item_ids.of(["a", "b"]))

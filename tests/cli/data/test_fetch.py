"""``cranfield data list`` and ``cranfield data fetch``."""

from __future__ import annotations

import csv
import io
import json

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def coat(tmp_path):
    folder = tmp_path / "coat"
    folder.mkdir()
    (folder / "train.ascii").write_text("5 0\n0 1\n")
    (folder / "test.ascii").write_text("0 3\n0 0\n")
    return folder


def test_list_prints_a_row_for_each_dataset(cranfield):
    found = cranfield("data", "list")
    lines = found.out.splitlines()
    assert lines[0].split() == ["name", "users", "items", "ratings", "scale", "times", "get", "cached", "licence"]
    (row,) = [line for line in lines if line.startswith("ml-1m ")]
    assert row.split()[:4] == ["ml-1m", "6,040", "3,706", "1,000,209"]
    assert [line for line in lines if line.startswith("netflix ") and "by hand" in line]


def test_list_can_be_narrowed(cranfield):
    found = cranfield("data", "list", "lastfm")
    assert [line.split()[0] for line in found.out.splitlines()] == [
        "name",
        "lastfm-1k",
        "lastfm-1k-temporal",
        "lastfm-360k",
    ]


def test_list_as_csv_and_json_holds_the_same(cranfield):
    found = cranfield("data", "list", "coat", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(found.out))
    found = cranfield("data", "list", "coat", "--format", "json")
    (entry,) = json.loads(found.out)
    assert list(row) == list(entry)
    assert (row["ratings"], entry["ratings"]) == ("6960", 6960)
    assert entry["home"].startswith("https://")
    assert entry["cached"] is False


def test_fetch_prints_where_it_lies_and_its_counts(cranfield, coat, cache):
    found = cranfield("data", "fetch", "coat", "--from", coat, "--no-verify")
    out = found.out
    assert "coat (train): 2 users, 2 items, 2 ratings" in out
    assert str(cache / "coat" / "test.parquet") in out
    assert "Schnabel" in out
    found = cranfield("data", "list", "coat", "--format", "json")
    assert json.loads(found.out)[0]["cached"] is True


def test_fetch_refuses_other_data_in_one_line(cranfield, coat):
    error = cranfield("data", "fetch", "coat", "--from", coat).err
    assert "2 users in its train part instead of 290" in error
    assert len(error.splitlines()) == 1


def test_fetch_of_what_needs_a_person_names_page_and_line(cranfield):
    error = cranfield("data", "fetch", "yahoo-r3").err
    assert "https://webscope" in error
    assert "cranfield data fetch yahoo-r3 --from PATH" in error


def test_an_unknown_name_is_answered_with_the_nearest(cranfield):
    assert "did you mean 'ml-100k'?" in cranfield("data", "fetch", "ml100k").err


def test_a_published_test_part_makes_a_split(coat, tmp_path, cranfield):
    found = cranfield("data", "fetch", "coat", "--from", coat, "--no-verify")
    found = cranfield("split", "coat", "--test", "coat", "--out", tmp_path / "parts")
    assert "Split(predefined: train 2, test 1)" in found.out
    error = cranfield("split", "coat", "--test", "ml-1m", "--out", tmp_path / "others").err
    assert "there is no part 'test' of ml-1m" in error

"""``cranfield data list`` and ``cranfield data fetch``."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cranfield.cli import main


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


def _fails(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_list_prints_a_row_for_each_dataset(capsys):
    main(["data", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "users", "items", "ratings", "scale", "times", "get", "cached", "licence"]
    (row,) = [line for line in lines if line.startswith("ml-1m ")]
    assert row.split()[:4] == ["ml-1m", "6,040", "3,706", "1,000,209"]
    assert [line for line in lines if line.startswith("netflix ") and "by hand" in line]


def test_list_can_be_narrowed(capsys):
    main(["data", "list", "lastfm"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["name", "lastfm-1k", "lastfm-360k"]


def test_list_as_csv_and_json_holds_the_same(capsys):
    main(["data", "list", "coat", "--format", "csv"])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    main(["data", "list", "coat", "--format", "json"])
    (entry,) = json.loads(capsys.readouterr().out)
    assert list(row) == list(entry)
    assert (row["ratings"], entry["ratings"]) == ("6960", 6960)
    assert entry["home"].startswith("https://")
    assert entry["cached"] is False


def test_fetch_prints_where_it_lies_and_its_counts(capsys, coat, cache):
    main(["data", "fetch", "coat", "--from", str(coat), "--no-verify"])
    out = capsys.readouterr().out
    assert "coat (train): 2 users, 2 items, 2 ratings" in out
    assert str(cache / "coat" / "test.parquet") in out
    assert "Schnabel" in out
    main(["data", "list", "coat", "--format", "json"])
    assert json.loads(capsys.readouterr().out)[0]["cached"] is True


def test_fetch_refuses_other_data_in_one_line(capsys, coat):
    error = _fails(capsys, "data", "fetch", "coat", "--from", str(coat))
    assert "2 users in its train part instead of 290" in error
    assert len(error.splitlines()) == 1


def test_fetch_of_what_needs_a_person_names_page_and_line(capsys):
    error = _fails(capsys, "data", "fetch", "yahoo-r3")
    assert "https://webscope" in error
    assert "cranfield data fetch yahoo-r3 --from PATH" in error


def test_an_unknown_name_is_answered_with_the_nearest(capsys):
    assert "did you mean 'ml-100k'?" in _fails(capsys, "data", "fetch", "ml100k")


def test_a_published_test_part_makes_a_split(coat, tmp_path, capsys):
    main(["data", "fetch", "coat", "--from", str(coat), "--no-verify"])
    main(["split", "coat", "--test", "coat", "--out", str(tmp_path / "parts")])
    assert "Split(given: train 2, test 1)" in capsys.readouterr().out
    error = _fails(capsys, "split", "coat", "--test", "ml-1m", "--out", str(tmp_path / "others"))
    assert "there is no part 'test' of ml-1m" in error

"""Audits saved and read again."""

from __future__ import annotations

import json

import polars as pl
import pytest

from cranfield._errors import InputError
from cranfield._settings import settings
from cranfield.audits import Audit, read_audit

SYSTEMS = ("knn", "mf", "pop")


@pytest.fixture
def folder(audit, tmp_path):
    audit.save(tmp_path)
    return tmp_path


def test_an_audit_is_written_as_four_files(folder, audit):
    assert sorted(path.name for path in folder.iterdir()) == [
        "audit.json", "flips.csv", "influence.csv", "universes.parquet"
    ]  # fmt: skip
    assert json.loads((folder / "audit.json").read_text())["verdict"] == audit.verdict
    assert pl.read_csv(folder / "influence.csv").height == audit.influence().height


def test_what_is_read_says_the_same(folder, audit):
    again = read_audit(folder)
    assert str(again) == str(audit)
    for name in ("frame", "shares", "effects", "joint", "ranks", "influence", "flips"):
        assert getattr(again, name)().equals(getattr(audit, name)()), name
    assert again.rule() == audit.rule()


def test_saving_twice_gives_the_same_bytes(folder, audit, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    read_audit(folder).save(tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == before


def test_a_folder_without_an_audit_is_an_error(tmp_path):
    with pytest.raises(InputError, match="name a folder with a saved audit"):
        read_audit(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "not JSON"), ("[]", "not an audit of format 2"), ('{"format": 1}', "run the audit again")],
)
def test_a_changed_file_is_an_error_of_one_line(folder, content, message):
    (folder / "audit.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_audit(folder)
    assert "\n" not in str(caught.value)


def test_files_of_different_audits_are_an_error(folder):
    path = folder / "universes.parquet"
    pl.read_parquet(path).filter(system_a="knn").write_parquet(path)
    with pytest.raises(InputError, match="belong to different audits"):
        read_audit(folder)


def test_the_bytes_do_not_depend_on_the_number_of_threads(grid, terms, tmp_path, monkeypatch):
    averages = terms.values.mean(axis=2, dtype="float64")
    saved = []
    for threads in (1, 2):
        monkeypatch.setattr(settings, "threads", threads)
        audit = Audit.of(grid, SYSTEMS, averages, terms, draws=600, resamples=10)
        saved.append([path.read_bytes() for path in audit.save(tmp_path / str(threads))])
    assert saved[0] == saved[1]

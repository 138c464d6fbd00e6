from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cranfield._errors import CranfieldError
from cranfield.data.writing import write_table
from cranfield.experiments.folder import Folder, open_folder


class Maker:
    """Makes a table, and counts how often."""

    def __init__(self, folder: Folder, value: int = 1, files: tuple[str, ...] = ("a.parquet",)) -> None:
        self.folder, self.value, self.files, self.times = folder, value, files, 0

    def __call__(self):
        self.times += 1
        frame = pl.DataFrame({"value": [self.value] * 100})
        return [write_table(frame, self.folder.path / "runs" / file) for file in self.files], {"value": self.value}


@pytest.fixture
def folder(tmp_path):
    with open_folder(tmp_path / "out") as opened:
        yield opened


def test_what_was_made_of_the_same_is_kept_and_else_made_anew(folder):
    make = Maker(folder)
    first = folder.artifact("runs/a", {"k": 1}, make)
    assert folder.artifact("runs/a", {"k": 1}, make) == first
    assert make.times == 1
    folder.artifact("runs/a", {"k": 2}, make)
    assert make.times == 2


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [_truncate, _flip, _empty, Path.unlink])
@pytest.mark.parametrize("file", ["runs/a.parquet", ".cranfield/records/runs/a.json"])
def test_what_is_truncated_changed_empty_or_missing_is_made_anew_as_it_was(folder, harm, file):
    make = Maker(folder)
    folder.artifact("runs/a", {"k": 1}, make)
    before = {path: path.read_bytes() for path in folder.path.rglob("*a.*")}
    harm(folder.path / file)
    assert folder.state("runs/a", {"k": 1})[0] in ("damaged", "new")
    folder.artifact("runs/a", {"k": 1}, make)
    assert make.times == 2
    assert {path: path.read_bytes() for path in folder.path.rglob("*a.*")} == before


def test_a_folder_where_a_file_should_be_is_a_clear_message(folder):
    make = Maker(folder)
    folder.artifact("runs/a", {"k": 1}, make)
    _folder(folder.path / "runs" / "a.parquet")
    with pytest.raises(CranfieldError, match="cannot be written"):
        folder.artifact("runs/a", {"k": 1}, make)


def test_a_record_changed_by_hand_does_not_count(folder):
    make = Maker(folder)
    folder.artifact("runs/a", {"k": 1}, make)
    path = folder.path / ".cranfield" / "records" / "runs" / "a.json"
    record = json.loads(path.read_text())
    record["facts"]["value"] = 2
    path.write_text(json.dumps(record))
    assert folder.artifact("runs/a", {"k": 1}, make).facts["value"] == 1
    assert make.times == 2


def test_files_that_are_no_longer_made_are_removed_and_others_stay(folder):
    folder.artifact("runs/a", {"k": 1}, Maker(folder, files=("a.parquet", "b.parquet")))
    folder.artifact("runs/a", {"k": 2}, Maker(folder, files=("a.parquet",)))
    folder.artifact("runs/c", {"k": 1}, Maker(folder, files=("c.parquet",)))
    (folder.path / "runs" / "mine.txt").write_text("mine")
    folder.needed = ["runs/a"]
    folder.prune()
    assert sorted(path.name for path in (folder.path / "runs").iterdir()) == ["a.parquet", "mine.txt"]
    assert list(folder.records()) == ["runs/a"]


def test_what_a_killed_process_left_half_written_is_swept_away_and_nothing_else(tmp_path):
    with open_folder(tmp_path):
        pass
    (tmp_path / "runs").mkdir()
    for name in (".knn(k=5).ab12_x9z.parquet", ".card.abcdefgh.md"):
        (tmp_path / "runs" / name).write_text("half")
    for name in (".gitignore", ".nomedia", "notes.txt"):
        (tmp_path / "runs" / name).write_text("mine")
    with open_folder(tmp_path):
        assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [".gitignore", ".nomedia", "notes.txt"]


def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(CranfieldError, match=r"holds other files \(thesis.tex\); choose an empty or new folder"):
        open_folder(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(CranfieldError, match="is not a folder; choose another with --out"):
        open_folder(tmp_path / "out").__enter__()


@pytest.mark.parametrize("text", ['{"cranfield": "0.0.1", "format": 1}', '{"cranfield": "0.1.0", "format": 0}', "half"])
def test_a_folder_of_another_version_is_refused(tmp_path, text):
    with open_folder(tmp_path):
        pass
    (tmp_path / ".cranfield" / "folder.json").write_text(text)
    with pytest.raises(CranfieldError, match=r"was made by cranfield .* and this is .*; choose another folder"):
        open_folder(tmp_path).__enter__()


def test_two_processes_cannot_use_one_folder(tmp_path):
    code = "import sys; from cranfield.experiments.folder import open_folder; open_folder(sys.argv[1]).__enter__()"
    with open_folder(tmp_path):
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert other.returncode != 0
    assert f"is in use by another run (process {os.getpid()}); wait for it" in other.stderr
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == 0


def test_a_full_disk_is_a_clear_message_and_leaves_nothing_that_counts(folder, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    make = Maker(folder)
    with monkeypatch.context() as patched:
        patched.setattr("cranfield._files.os.fsync", full)
        with pytest.raises(CranfieldError, match=r"No space left on device\); make room .* what is finished is kept"):
            folder.artifact("runs/a", {"k": 1}, make)
    assert folder.state("runs/a", {"k": 1})[0] == "new"
    assert list((folder.path / "runs").iterdir()) == []
    folder.artifact("runs/a", {"k": 1}, make)


@pytest.fixture
def mounted(tmp_path):
    """Mount a small file system, where one may."""
    places = []

    def mount(options: str) -> Path:
        place = tmp_path / f"mounted-{len(places)}"
        place.mkdir()
        tool = shutil.which("mount")
        done = tool and subprocess.run([tool, "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True)
        if not done or done.returncode:
            pytest.skip("a file system cannot be mounted here")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tiny, mounted, tmp_path):
    from cranfield.experiments import run

    experiment = tiny()
    run(experiment, tmp_path / "whole")
    small = mounted("size=32k")
    for size in (64, 96, 128, 144):
        with pytest.raises(CranfieldError, match="cannot be written"):
            run(experiment, small / "out")
        subprocess.run(["mount", "-o", f"remount,size={size}k", str(small)], check=True)
    subprocess.run(["mount", "-o", "remount,size=4000k", str(small)], check=True)
    run(experiment, small / "out")
    for path in (tmp_path / "whole").rglob("*"):
        name = path.relative_to(tmp_path / "whole").as_posix()
        if path.is_file() and name not in ("log.jsonl", ".cranfield/process"):
            assert (small / "out" / name).read_bytes() == path.read_bytes(), name


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(tiny, mounted):
    from cranfield.experiments import run

    place = mounted("size=100k")
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    with pytest.raises(CranfieldError, match="Read-only file system"):
        run(tiny(), place / "out")

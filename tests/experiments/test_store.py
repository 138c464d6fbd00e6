from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield.data.write import write_table
from cranfield.experiment.folder import Folder, open_folder


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


def test_what_a_killed_process_left_half_written_is_swept_away(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from cranfield._files import whole_file
from cranfield.experiment.folder import open_folder

with open_folder(sys.argv[1]) as folder, whole_file(folder.path / "runs" / "a.parquet") as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode != 0
    assert list((tmp_path / "runs").iterdir()) == []
    left = tmp_path / ".cranfield" / "temporary"
    assert len(list(left.iterdir())) == 1
    with open_folder(tmp_path):
        assert list(left.iterdir()) == []


def test_files_of_the_user_that_look_like_temporary_ones_stay(tmp_path):
    with open_folder(tmp_path):
        pass
    mine = [
        ".env.template",
        ".vscode.settings",
        "mine/.draft.chapter1.tex",
        ".cache.personal/data",
        ".cranfield/x.json",
    ]
    for name in mine:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    with open_folder(tmp_path) as folder:
        folder.prune()
    assert all((tmp_path / name).read_text() == "mine" for name in mine)


_NAMES = st.sampled_from(
    [
        *(
            ".env.template",
            ".a.abcdefgh",
            ".a.abcdefgh.csv",
            ".cranfield-half-abcdefgh.parquet",
            "notes.txt",
            "a.parquet",
        ),
        *("runs", "samples", "a", "temporary", "unfinished", "records", ".cranfield", ".cranfield-records"),
        *("folder.json", "0" * 64 + ".json", "split.json", "#a b", "~", "[a]*?", "x\ny"),
    ]
)


@given(
    paths=st.sets(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), max_size=12),
    changed=st.booleans(),
)
def test_nothing_that_we_did_not_make_is_ever_removed(tmp_path_factory, paths, changed):
    home = tmp_path_factory.mktemp("tree")
    with open_folder(home) as folder:
        folder.artifact("runs/a", {"k": 1}, Maker(folder, files=("a.parquet", "b.parquet")))
        folder.artifact("runs/c", {"k": 1}, Maker(folder, files=("c.parquet",)))
        folder.unfinished({"k": 3}).parent.mkdir()
        folder.unfinished({"k": 3}).write_text("{}")
    ours = {path for path in home.rglob("*") if path.is_file()}
    if changed:
        (home / "runs" / "c.parquet").write_text("mine")
    mine = {}
    for path in sorted(home / name for name in paths):
        with contextlib.suppress(OSError):
            if not os.path.lexists(path) and ".cranfield" not in path.relative_to(home).parts[:1]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"mine {path}")
                mine[path] = path.read_bytes()
    if changed:
        mine[home / "runs" / "c.parquet"] = b"mine"
    with open_folder(home) as folder:
        folder.artifact("runs/a", {"k": 2}, Maker(folder, files=("a.parquet",)))
        folder.needed = ["runs/a"]
        folder.prune()
    for path, content in mine.items():
        assert path.read_bytes() == content
    left = {path for path in ours if path.exists()} - set(mine)
    assert {path.name for path in left} == {"a.parquet", "a.json", "folder.json", "lock", "process", "log.jsonl"}


@given(names=st.sets(_NAMES.filter(lambda name: not name.startswith(".cranfield-half-")), max_size=8))
def test_in_our_own_folder_only_what_bears_a_name_of_ours_is_removed(tmp_path_factory, names):
    home = tmp_path_factory.mktemp("own")
    with open_folder(home):
        pass
    places = [home / ".cranfield" / "temporary" / name for name in names]
    places += [home / ".cranfield" / "unfinished" / name for name in names if not name.startswith("000")]
    for path in places:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    with open_folder(home) as folder:
        folder.prune()
    assert all(path.read_text() == "mine" for path in places)


def test_temporary_files_are_on_the_file_system_of_the_file(folder, mounted):
    place = mounted("size=1000k")
    (folder.path / "runs").symlink_to(place)
    folder.artifact("runs/a", {"k": 1}, Maker(folder))
    assert pl.read_parquet(place / "a.parquet").height == 100


def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(CranfieldError, match=r"holds other files \(thesis.tex\); choose an empty or new folder"):
        open_folder(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(CranfieldError, match="is not a folder; choose another with --out"):
        open_folder(tmp_path / "out").__enter__()


@pytest.mark.parametrize("text", ['{"cranfield": "0.0.1", "format": 1}', '{"cranfield": "0.1.0", "format": 0}'])
def test_a_folder_of_another_version_is_refused(tmp_path, text):
    with open_folder(tmp_path):
        pass
    (tmp_path / ".cranfield" / "folder.json").write_text(text)
    with pytest.raises(CranfieldError, match=r"was made by cranfield .* and this is .*; choose another folder"):
        open_folder(tmp_path).__enter__()


def _remove(path: Path) -> None:
    path.unlink()


def _other_version(path: Path) -> None:
    path.write_text('{"cranfield": "0.7.0", "format": 1}')


@pytest.mark.parametrize("harm", [_truncate, _empty, _remove, _other_version])
def test_a_damaged_folder_json_is_rebuilt_and_no_finished_work_is_lost(tmp_path, harm):
    with open_folder(tmp_path) as folder:
        for name in ("a", "b", "c"):
            folder.artifact(f"runs/{name}", {"k": name}, Maker(folder, files=(f"{name}.parquet",)))
    made = tmp_path / ".cranfield" / "folder.json"
    before = made.read_bytes()
    harm(made)
    _flip(tmp_path / "runs" / "b.parquet")
    opened = open_folder(tmp_path)
    with pytest.warns(CranfieldWarning, match=r"folder\.json was missing or damaged .*; 2 of 3 artifacts are whole"):
        folder = opened.__enter__()
    times = {}
    for name in ("a", "b", "c"):
        make = Maker(folder, files=(f"{name}.parquet",))
        folder.artifact(f"runs/{name}", {"k": name}, make)
        times[name] = make.times
    opened.__exit__(None, None, None)
    assert times == {"a": 0, "b": 1, "c": 0}
    assert made.read_bytes() == before
    assert next(entry for entry in folder.logged() if entry["did"] == "rebuilt")["whole"] == 2


def test_records_of_another_version_are_not_taken_for_ours(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("cranfield.experiment.folder.__version__", "0.0.1")
        with open_folder(tmp_path) as folder:
            folder.artifact("runs/a", {"k": 1}, Maker(folder))
    (tmp_path / ".cranfield" / "folder.json").write_text("half")
    make = Maker(folder)
    with pytest.warns(CranfieldWarning, match="0 of 1 artifacts"), open_folder(tmp_path) as folder:
        folder.artifact("runs/a", {"k": 1}, make)
    assert make.times == 1


def test_the_results_of_a_folder_without_its_folder_json_are_read(tiny, tmp_path):
    from cranfield.experiment import run
    from cranfield.experiment.results import Results

    told = str(run(tiny(), tmp_path / "out"))
    (tmp_path / "out" / ".cranfield" / "folder.json").write_text("{")
    assert str(Results(tmp_path / "out")) == told


def test_two_processes_cannot_use_one_folder(tmp_path):
    code = "import sys; from cranfield.experiment.folder import open_folder; open_folder(sys.argv[1]).__enter__()"
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
    from cranfield.experiment import run

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
    from cranfield.experiment import run

    place = mounted("size=100k")
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    with pytest.raises(CranfieldError, match="Read-only file system"):
        run(tiny(), place / "out")

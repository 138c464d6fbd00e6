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
from cranfield.store.store import Store, open_store
from cranfield.tables import write_table


class Maker:
    """Makes a table, and counts how often."""

    def __init__(self, value: int = 1, files: tuple[str, ...] = ("a.parquet",)) -> None:
        self.value, self.files, self.times = value, files, 0

    def __call__(self, place: Path):
        self.times += 1
        frame = pl.DataFrame({"value": [self.value] * 100})
        return [write_table(frame, place / file) for file in self.files], {"value": self.value}


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "out") as opened:
        opened.begin("a title", "a text")
        yield opened


def test_what_was_made_of_the_same_is_kept_and_else_made_anew(store):
    make = Maker()
    first = store.artifact("runs/a", {"k": 1}, make)
    again = store.artifact("runs/a", {"k": 1}, make)
    assert (again.home, again.files, again.facts) == (first.home, first.files, first.facts)
    assert make.times == 1
    store.artifact("runs/a", {"k": 2}, make)
    assert make.times == 2


def test_what_was_made_before_is_found_again_under_any_name_of_its_stage(store):
    make = Maker()
    first = store.artifact("runs/a", {"k": 1}, make)
    store.artifact("runs/a", {"k": 2}, make)
    again = store.artifact("runs/b", {"k": 1}, make)
    assert make.times == 2
    assert (again.name, again.home, again.digest) == ("runs/b", first.home, first.digest)
    store.artifact("scores/a", {"k": 1}, make)
    assert make.times == 3


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [_truncate, _flip, _empty, Path.unlink])
@pytest.mark.parametrize("file", ["a.parquet", "record.json"])
def test_what_is_truncated_changed_empty_or_missing_is_made_anew_as_it_was(store, harm, file):
    make = Maker()
    artifact = store.artifact("runs/a", {"k": 1}, make)
    before = {path: path.read_bytes() for path in artifact.home.iterdir()}
    harm(artifact.home / file)
    assert store.state("runs/a", {"k": 1})[0] in ("damaged", "new")
    store.artifact("runs/a", {"k": 1}, make)
    assert make.times == 2
    assert {path: path.read_bytes() for path in artifact.home.iterdir()} == before


def test_states_are_told_by_what_the_experiment_before_had(tmp_path):
    with open_store(tmp_path) as store:
        store.begin("one", "one")
        store.artifact("runs/a", {"k": 1}, Maker())
        store.finish()
    other = Store(tmp_path)
    assert other.state("runs/a", {"k": 1})[0] == "kept"
    assert other.state("runs/a", {"k": 2})[0] == "changed"
    assert other.state("runs/b", {"k": 2})[0] == "new"


def test_a_folder_where_a_file_should_be_is_a_clear_message(store):
    make = Maker()
    path = store.artifact("runs/a", {"k": 1}, make).path()
    path.unlink()
    path.mkdir()
    with pytest.raises(CranfieldError, match="cannot be written"):
        store.artifact("runs/a", {"k": 1}, make)


def test_a_record_changed_by_hand_does_not_count(store):
    make = Maker()
    path = store.artifact("runs/a", {"k": 1}, make).home / "record.json"
    record = json.loads(path.read_text())
    record["facts"]["value"] = 2
    path.write_text(json.dumps(record))
    assert store.artifact("runs/a", {"k": 1}, make).facts["value"] == 1
    assert make.times == 2


def test_a_record_that_was_moved_to_another_place_does_not_count(store):
    make = Maker()
    one = store.artifact("runs/a", {"k": 1}, make)
    other = store.artifact("runs/a", {"k": 2}, make)
    shutil.copy(one.home / "record.json", other.home / "record.json")
    assert store.state("runs/a", {"k": 2})[0] == "damaged"


def test_a_root_says_in_words_what_an_experiment_uses(tmp_path):
    with open_store(tmp_path) as store:
        store.begin("First", "one")
        one = store.artifact("runs/a", {"k": 1}, Maker())
        store.finish()
        store.needed = {}
        store.begin("Second", "two")
        store.artifact("runs/a", {"k": 1}, Maker())
        two = store.artifact("runs/b", {"k": 2}, Maker())
    first, second = Store(tmp_path).roots.all()
    assert (first.title, first.artifacts, first.finished) == ("First", {"runs/a": one.key}, True)
    assert (second.title, second.artifacts, second.finished) == (
        "Second",
        {"runs/a": one.key, "runs/b": two.key},
        False,
    )
    assert Store(tmp_path).roots.current() == second


@pytest.mark.parametrize("harm", [_truncate, _empty, Path.unlink])
def test_a_damaged_root_is_written_again_from_what_is_in_the_store(tmp_path, harm):
    def ask(make):
        with open_store(tmp_path) as store:
            store.begin("First", "one")
            store.artifact("runs/a", {"k": 1}, make)
            store.finish()

    make = Maker()
    ask(make)
    (path,) = (tmp_path / ".cranfield" / "roots").iterdir()
    before = path.read_bytes()
    harm(path)
    ask(make)
    assert make.times == 1
    assert path.read_bytes() == before


def test_the_newest_root_is_the_current_one_where_nothing_says_so(tmp_path):
    with open_store(tmp_path) as store:
        store.begin("First", "one")
        store.artifact("runs/a", {"k": 1}, Maker())
    (tmp_path / ".cranfield" / "current.json").unlink()
    assert Store(tmp_path).roots.current().title == "First"


def test_what_a_killed_process_left_half_written_is_swept_away(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from cranfield._files import whole_file
from cranfield.store.store import open_store

with open_store(sys.argv[1]) as store, whole_file(store.path / "runs" / "a.parquet") as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode != 0
    assert list((tmp_path / "runs").iterdir()) == []
    left = tmp_path / ".cranfield" / "temporary"
    assert len(list(left.iterdir())) == 1
    with open_store(tmp_path):
        assert list(left.iterdir()) == []


_NAMES = st.sampled_from(
    [
        *(".env.template", ".a.abcdefgh", ".a.abcdefgh.csv", ".cranfield-abcdefgh.parquet", "notes.txt", "a.parquet"),
        *("runs", "samples", "a", "temporary", "unfinished", "records", "store", ".cranfield", ".cranfield-records"),
        *("folder.json", "0" * 64 + ".json", "split.json", "#a b", "~", "[a]*?", "x\ny"),
    ]
)


@given(
    paths=st.sets(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), max_size=12),
    inside=st.sets(_NAMES, max_size=4),
    changed=st.booleans(),
)
def test_nothing_that_we_did_not_make_is_ever_removed(tmp_path_factory, paths, inside, changed):
    home = tmp_path_factory.mktemp("tree")
    with open_store(home) as store:
        store.begin("First", "one")
        a = store.artifact("runs/a", {"k": 1}, Maker(files=("a.parquet", "b.parquet")))
        c = store.artifact("runs/c", {"k": 2}, Maker(files=("c.parquet",)))
        store.unfinished("runs/d", {"k": 3}).parent.mkdir()
        store.unfinished("runs/d", {"k": 3}).write_text("{}")
    mine = {}
    for path in [*sorted(home / name for name in paths), *(c.home / name for name in inside)]:
        with contextlib.suppress(OSError):
            if not os.path.lexists(path) and (
                path.parent == c.home or ".cranfield" not in path.relative_to(home).parts[:1]
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"mine {path}")
                mine[path] = path.read_bytes()
    if changed:
        (c.home / "c.parquet").write_text("mine")
        mine[c.home / "c.parquet"] = b"mine"
    with open_store(home) as store:
        store.begin("Second", "two")
        store.artifact("runs/a", {"k": 1}, Maker())
        store.finish()
        store.free(c.key)
    for path, content in mine.items():
        assert path.read_bytes() == content
    assert store.whole(a)
    assert store.find(c.key) is None
    assert (c.home / "c.parquet").exists() == changed
    assert not (home / ".cranfield" / "unfinished").exists()


@given(names=st.sets(_NAMES.filter(lambda name: name not in ("temporary", ".cranfield-abcdefgh.parquet")), max_size=8))
def test_in_our_own_folder_only_what_bears_a_name_of_ours_is_removed(tmp_path_factory, names):
    home = tmp_path_factory.mktemp("own")
    with open_store(home):
        pass
    places = [home / ".cranfield" / "temporary" / name for name in names]
    places += [home / ".cranfield" / "unfinished" / name for name in names if not name.startswith("000")]
    for path in places:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    with open_store(home) as store:
        store.begin("a", "b")
        store.finish()
    assert all(path.read_text() == "mine" for path in places)


def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(CranfieldError, match=r"holds other files \(thesis.tex\); choose an empty or new folder"):
        open_store(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(CranfieldError, match="is not a folder; choose another with out="):
        open_store(tmp_path / "out").__enter__()


@pytest.mark.parametrize("text", ['{"cranfield": "0.0.1", "format": 1}', '{"cranfield": "0.1.0", "format": 0}'])
def test_a_folder_of_another_version_is_refused(tmp_path, text):
    with open_store(tmp_path):
        pass
    (tmp_path / ".cranfield" / "folder.json").write_text(text)
    with pytest.raises(CranfieldError, match=r"was made by cranfield .* and this is .*; choose another folder"):
        open_store(tmp_path).__enter__()


def _other_version(path: Path) -> None:
    path.write_text('{"cranfield": "0.7.0", "format": 1}')


@pytest.mark.parametrize("harm", [_truncate, _empty, Path.unlink, _other_version])
def test_a_damaged_folder_json_is_rebuilt_and_no_finished_work_is_lost(tmp_path, harm):
    with open_store(tmp_path) as store:
        artifacts = {name: store.artifact(f"runs/{name}", {"k": name}, Maker()) for name in ("a", "b", "c")}
    made = tmp_path / ".cranfield" / "folder.json"
    before = made.read_bytes()
    harm(made)
    _flip(artifacts["b"].path())
    opened = open_store(tmp_path)
    with pytest.warns(CranfieldWarning, match=r"folder\.json was missing or damaged .*; 2 of 3 artifacts are complete"):
        store = opened.__enter__()
    times = {}
    for name in ("a", "b", "c"):
        make = Maker()
        store.artifact(f"runs/{name}", {"k": name}, make)
        times[name] = make.times
    opened.__exit__(None, None, None)
    assert times == {"a": 0, "b": 1, "c": 0}
    assert made.read_bytes() == before
    assert next(entry for entry in store.logged() if entry["did"] == "rebuilt")["whole"] == 2


def test_records_of_another_version_are_not_taken_for_ours(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        for module in ("store", "records"):
            older.setattr(f"cranfield.store.{module}.__version__", "0.0.1")
        with open_store(tmp_path) as store:
            store.artifact("runs/a", {"k": 1}, Maker())
    (tmp_path / ".cranfield" / "folder.json").write_text("half")
    make = Maker()
    with pytest.warns(CranfieldWarning, match="0 of 1 artifacts"), open_store(tmp_path) as store:
        store.artifact("runs/a", {"k": 1}, make)
    assert make.times == 1


def test_the_results_of_a_folder_without_its_folder_json_are_read(tiny, tmp_path):
    from cranfield.experiments import run
    from cranfield.experiments.results import Results

    told = str(run(tiny(), tmp_path / "out"))
    (tmp_path / "out" / ".cranfield" / "folder.json").write_text("{")
    assert str(Results(tmp_path / "out")) == told


def test_two_processes_cannot_use_one_folder(tmp_path):
    code = "import sys; from cranfield.store.store import open_store; open_store(sys.argv[1]).__enter__()"
    with open_store(tmp_path):
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert other.returncode != 0
    assert f"is in use by another run (process {os.getpid()}); wait for it" in other.stderr
    with open_store(tmp_path):
        pass


def test_a_full_disk_is_a_clear_message_and_leaves_nothing_that_counts(store, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    make = Maker()
    with monkeypatch.context() as patched:
        patched.setattr("cranfield._files.os.fsync", full)
        message = r"No space left on device\); free some space .* what is finished is kept"
        with pytest.raises(CranfieldError, match=message):
            store.artifact("runs/a", {"k": 1}, make)
    assert store.state("runs/a", {"k": 1})[0] == "new"
    store.artifact("runs/a", {"k": 1}, make)


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


def test_exports_may_lie_on_another_file_system(tiny, tmp_path, mounted):
    from cranfield.experiments import run

    place = mounted("size=1000k")
    with open_store(tmp_path / "out"):
        (tmp_path / "out" / "runs").symlink_to(place)
    run(tiny(), tmp_path / "out")
    assert pl.read_parquet(place / "tiny" / "near.parquet").height > 100


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tiny, mounted, tmp_path):
    from cranfield.experiments import run

    experiment = tiny()
    run(experiment, tmp_path / "whole")
    small = mounted("size=32k")
    for size in (96, 160, 220, 300):
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

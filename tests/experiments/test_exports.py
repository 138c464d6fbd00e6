from __future__ import annotations

import contextlib
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield._files import write_text
from cranfield.experiments import run
from cranfield.store.exports import Exports
from cranfield.store.store import open_store


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "out") as opened:
        yield opened


def _artifact(store, name, text):
    def make(place):
        write_text(place / "text", text)
        return [place / "text"], {}

    return store.artifact(name, {"text": text}, make)


def _writer(text, *files):
    def write(folder):
        for file in files:
            write_text(folder / file, f"{text} in {file}")
        return [folder / file for file in files]

    return write


def _publish(store, contents):
    exports = Exports(store)
    exports.publish(
        {name: (_artifact(store, name, text), _writer(text, *files)) for name, (text, files) in contents.items()}
    )
    exports.withdraw()
    return exports


def _files(store):
    found = (path for path in store.path.rglob("*") if path.is_file() and ".cranfield" not in path.parts)
    return {path.relative_to(store.path).as_posix(): path.read_text() for path in found if path.name != "log.jsonl"}


def test_files_are_written_where_they_are_missing_or_different(store):
    _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/b.txt"])})
    assert _files(store) == {"runs/a.txt": "one in runs/a.txt", "runs/b.txt": "one in runs/b.txt"}
    times = {path: path.stat().st_mtime_ns for path in (store.path / "runs").iterdir()}
    _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/b.txt"])})
    assert {path: path.stat().st_mtime_ns for path in (store.path / "runs").iterdir()} == times
    (store.path / "runs" / "b.txt").unlink()
    _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/b.txt"])})
    assert _files(store) == {"runs/a.txt": "one in runs/a.txt", "runs/b.txt": "one in runs/b.txt"}


@pytest.mark.parametrize("text", ["one", "two"])  # the same artifact again, and a new one
def test_a_file_that_somebody_edited_is_kept_under_another_name_and_that_is_said_once(store, text):
    _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/b.txt"])})
    expected = {f"runs/{name}.txt": f"{text} in runs/{name}.txt" for name in "ab"}
    for name in ("runs/a.edited.txt", "runs/a.edited2.txt"):
        (store.path / "runs" / "a.txt").write_text(f"edited for {name}")
        with pytest.warns(CranfieldWarning, match="your version is kept as") as said:
            _publish(store, {"runs/a": (text, ["runs/a.txt", "runs/b.txt"])})
        assert [str(one.message).endswith(name.removeprefix("runs/")) for one in said] == [True]
        expected[name] = f"edited for {name}"
        assert _files(store) == expected
    _publish(store, {"runs/a": (text, ["runs/a.txt", "runs/b.txt"])})  # without a word
    _publish(store, {})
    assert _files(store) == {file: content for file, content in expected.items() if "edited" in file}


def test_a_file_that_is_a_link_is_replaced_and_never_written_through(store, tmp_path):
    _publish(store, {"runs/a": ("one", ["runs/a.txt"])})
    other = tmp_path / "other.txt"
    other.write_text("theirs")
    (store.path / "runs" / "a.txt").unlink()
    (store.path / "runs" / "a.txt").symlink_to(other)
    with pytest.warns(CranfieldWarning, match=r"kept as a\.edited\.txt"):
        _publish(store, {"runs/a": ("two", ["runs/a.txt"])})
    assert (store.path / "runs" / "a.txt").read_text() == "two in runs/a.txt"
    assert not (store.path / "runs" / "a.txt").is_symlink()
    assert other.read_text() == (store.path / "runs" / "a.edited.txt").read_text() == "theirs"


def test_files_of_another_experiment_are_replaced_or_removed(store):
    _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/old.txt"]), "runs/b": ("one", ["deep/er/b.txt"])})
    _publish(store, {"runs/a": ("two", ["runs/a.txt"])})
    assert _files(store) == {"runs/a.txt": "two in runs/a.txt"}
    assert not (store.path / "deep").exists()


def test_a_file_that_somebody_else_put_there_stays_and_is_told(store):
    write_text(store.path / "runs" / "a.txt", "mine")
    with pytest.warns(CranfieldWarning, match=r"runs/a.txt is not a file of this experiment, so it stays as it is"):
        _publish(store, {"runs/a": ("one", ["runs/a.txt", "runs/b.txt"])})
    _publish(store, {})
    assert _files(store) == {"runs/a.txt": "mine"}


def test_a_file_that_was_changed_since_is_not_removed(store):
    _publish(store, {"runs/a": ("one", ["runs/a.txt"])})
    write_text(store.path / "runs" / "a.txt", "changed")
    _publish(store, {})
    assert _files(store) == {"runs/a.txt": "changed"}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff{", b'{"files": 3, "artifacts": {}}'])
def test_a_damaged_table_is_made_again_from_files_that_are_as_they_would_be_written(store, text):
    contents = {"runs/a": ("one", ["runs/a.txt"])}
    _publish(store, contents)
    table = store.path / ".cranfield" / "exports.json"
    before = table.read_text()
    table.write_bytes(text)
    exports = _publish(store, contents)
    assert json.loads(table.read_text()) == json.loads(before)
    assert list(exports.files("runs/a")) == ["runs/a.txt"]


_NAMES = st.sampled_from(["runs/a.txt", "runs/b.txt", "runs", "data/x.txt", "notes.txt", "runs/deep/c.txt"])
_CONTENTS = st.dictionaries(
    st.sampled_from(["runs/a", "runs/b", "data/x"]),
    st.tuples(st.sampled_from(["one", "two"]), st.just(())),
    max_size=3,
)


@given(steps=st.lists(st.one_of(_CONTENTS, st.tuples(_NAMES, st.text(max_size=3))), max_size=8))
def test_what_the_user_writes_is_never_replaced_unless_it_was_ours_nor_removed(tmp_path_factory, steps):
    home = tmp_path_factory.mktemp("mixed")
    files = {"runs/a": ["runs/a.txt"], "runs/b": ["runs/b.txt", "runs/deep/c.txt"], "data/x": ["data/x.txt"]}
    mine: dict[str, str] = {}
    with open_store(home) as store:
        for step in steps:
            if isinstance(step, dict):
                known = json.loads(_table(store))["files"] if _table(store) else {}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CranfieldWarning)
                    wanted = {name: (text, files[name]) for name, (text, _) in step.items()}
                    # A file in place of a folder is an error.
                    with contextlib.suppress(CranfieldError):
                        _publish(store, wanted)
                # A changed file of ours is written again if it is needed, and kept under another name.
                again = {file for name in step for file in files[name] if file in known}
                moved = {text for file, text in mine.items() if file in again}
                assert moved <= set(_files(store).values())
                mine = {file: text for file, text in mine.items() if file not in again}
                assert {file: text for file, text in _files(store).items() if file in mine} == mine
                continue
            name, text = step
            path = store.path / name
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(f"mine {text}".encode())
                mine[name] = f"mine {text}"
        assert {file: (home / file).read_bytes().decode() for file in mine} == mine


def _table(store):
    path = store.path / ".cranfield" / "exports.json"
    return path.read_text() if path.exists() else ""


def test_a_stranger_in_the_folder_of_an_experiment_stays_through_all_runs(tiny, tmp_path):
    out = tmp_path / "out"
    with open_store(out):
        pass
    for name in ("runs/tiny/near.parquet", "notes.txt", "scores/mine.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    with pytest.warns(CranfieldWarning, match=r"near.parquet is not a file of this experiment"):
        results = run(tiny(), out)
    assert results.finished
    with pytest.warns(CranfieldWarning, match=r"near.parquet is not a file of this experiment"):
        run(tiny(decisions={"length": "all"}), out)
    for name in ("runs/tiny/near.parquet", "notes.txt", "scores/mine.csv"):
        assert (out / name).read_text() == "mine"


def test_edits_of_a_card_and_of_a_table_survive_the_next_run(tiny, tiny_folder):
    edited = {"card.md": "my own words", "tables/tiny-averages.md": "my own table"}
    before = {name: (tiny_folder / name).read_text() for name in edited}
    for name, text in edited.items():
        (tiny_folder / name).write_text(text)
    with pytest.warns(CranfieldWarning, match="your version is kept as") as said:
        run(tiny(), tiny_folder)
    assert len(said) == 2
    for name, text in edited.items():
        assert (tiny_folder / name).read_text() == before[name]
        assert (tiny_folder / name.replace(".md", ".edited.md")).read_text() == text


@pytest.mark.parametrize("file", ["log.jsonl", ".cranfield/process", ".cranfield/lock"])
def test_a_link_that_would_be_written_through_is_refused(tiny, tiny_folder, tmp_path, file):
    other = tmp_path / "other.txt"
    other.write_text("theirs")
    (tiny_folder / file).unlink()
    (tiny_folder / file).symlink_to(other)
    with pytest.raises(CranfieldError, match=f"{file} is a symbolic link, and a run would write through it; remove"):
        run(tiny(), tiny_folder)
    assert other.read_text() == "theirs"

"""A file that has changed since cranfield wrote it: Parquet is an error, text gets a note."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

import pytest

from cranfield.cli import main

SMALL = ("world(users=40, items=30, ratings=600)",)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What simulate, filter, split and recommend write, as Parquet and as text."""
    folder = tmp_path_factory.mktemp("written")
    for form in ("parquet", "tsv"):
        home = folder / form
        world = home / f"world.{form}"
        lines = [
            ("data", "simulate", "--out", world, "--truth", home / f"truth.{form}", *SMALL),
            ("data", "filter", world, "--filter", "min_ratings(user=2)", "--out", home / f"core.{form}"),
            ("split", world, "--out", home / "parts", "--format", form),
            ("split", world, "--out", home / "folds", "--format", form, "--method", "k_fold(k=2)"),
            ("recommend", "--train", home / "parts" / f"train.{form}", "-s", "random", "--out", home, "--format", form),
        ]
        for line in lines:
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                main([str(argument) for argument in line])
            assert "note: " not in said.getvalue().replace("note: There", "")
    return folder


@pytest.fixture
def made(written, tmp_path):
    """A copy of one's own of what the commands wrote."""
    return Path(shutil.copytree(written, tmp_path / "made"))


def _change(path):
    data = bytearray(path.read_bytes())
    if path.suffix == ".tsv":
        data += b"\n"
    else:
        data[len(data) // 3] ^= 1
    path.write_bytes(data)


FILES = ["world", "truth", "core", "parts/train", "parts/test", "folds/fold-2/test", "random"]


@pytest.mark.parametrize("name", FILES)
def test_a_changed_parquet_file_is_an_error_for_the_commands_that_read_it(made, cranfield, name):
    home = made / "parquet"
    path = home / f"{name}.parquet"
    _change(path)
    runs = home / "random.parquet"
    ways = [("data", "describe", path), ("split", path, "--out", made / "again")]
    ways += [
        ("evaluate", "--test", path, runs),
        ("recommend", "--train", path, "-s", "random", "--out", made / "again"),
    ]
    if name == "random":
        ways = [("evaluate", "--test", home / "parts" / "test.parquet", runs)]
    for way in ways:
        found = cranfield(*way)
        assert found.code == 2
        assert "the file has changed since cranfield wrote it; write it again, or remove" in found.err
        assert found.err.count("\n") == 1


@pytest.mark.parametrize("name", FILES)
def test_a_changed_text_file_gets_one_note(made, cranfield, name):
    home = made / "tsv"
    path = home / f"{name}.tsv"
    _change(path)
    # Using the training set as the test set of a run trained on it would be an error.
    command = ("evaluate", "--test", home / "parts" / "test.tsv" if name in ("random", "parts/train") else path)
    train = ("--train", path) if name == "parts/train" else ()
    found = cranfield(*command, home / "random.tsv", "-m", "P@5", "--threshold", 4, *train)
    assert found.code == 0, found.err
    assert found.err == f"note: {path} has changed since it was written; reading it as it is\n"


def test_a_changed_file_of_an_experiment_is_an_error_for_it_too(made, cranfield):
    _change(made / "parquet" / "world.parquet")
    (made / "a.toml").write_text('[systems]\na = "random"\n[data.tiny]\nfile = "parquet/world.parquet"\n')
    found = cranfield("run", made / "a.toml", "--no-report")
    assert found.code == 2
    assert "has changed since cranfield wrote it" in found.err


def test_a_rebuilt_folder_is_a_note(tmp_path, cranfield):
    (tmp_path / "a.toml").write_text(
        '[systems]\na = "random"\nb = "popularity"\n[data.tiny]\nsimulate = "world(users=40, items=30, ratings=600)"\n'
    )
    first = cranfield("run", tmp_path / "a.toml", "--no-report", "--quiet")
    (tmp_path / "a" / ".cranfield" / "folder.json").write_text("{")
    second = cranfield("run", tmp_path / "a.toml", "--no-report", "--quiet")
    assert (second.code, second.out) == (0, first.out)
    assert "folder.json was missing or damaged and is written again; " in second.err
    assert second.err.startswith("note: ")

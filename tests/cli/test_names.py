"""Names that shells, patterns and addresses give a meaning to are names like others, for every command."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

import cranfield as cf
from cranfield.cli import main
from cranfield.rankings import read_run

# Each name with another one that it would match if it were a pattern.
NAMES = {
    "#v[1]?a* b\nc": "#v11ab b\nc",
    "v[1]?a*": "v11ab", "#1 a\nb": None,
    "{a,b}": "a", "~": None, "v[1]": "v1", "x?": "x1", "a*": "ab", "~nobody": None,
}  # fmt: skip
# The first combines what is special about the others; running a whole pipeline takes a second.
QUICK = [name if place < 1 else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(NAMES)]


def _run(*arguments: object) -> None:
    code = 0
    try:
        main(["--quiet", *(str(argument) for argument in arguments)])
    except SystemExit as stop:
        code = stop.code
    assert not code, arguments


def _line(name: str, seed: int) -> None:
    """Take every command that reads or writes files through a folder and files of one name."""
    home = Path(name)
    world, core, parts, runs, trec = (
        home / f"{name}{ending}" for ending in (".parquet", " core.csv", "", " runs", " trec")
    )
    size = ("world(users=40, items=30, ratings=600)", "--seed", seed)
    _run("data", "simulate", "--out", world, "--truth", home / f"truth {name}.parquet", *size)
    _run("data", "filter", world, "--filter", "min_ratings(user=2)", "--out", core)
    _run("data", "describe", core, "--format", "json", "--out", home / f"{name}.described.json")
    _run("split", core, "--out", parts)
    _run("split", core, "--out", home / f"{name} text", "--format", "tsv")
    systems = ("-s", "popularity", "-s", "random", "--length", 10, "--seed", 3)
    for out, form in ((runs, "parquet"), (trec, "trec")):
        _run("recommend", "--train", parts / "train.parquet", *systems, "--out", out, "--format", form)
    listed = [runs / "popularity.parquet", trec / "random.trec"]
    measured = ("--test", parts / "test.parquet", *listed, "--threshold", 4, "-m", "P@5")
    ways = {"csv": "--out", "json": "--out", "parquet": "--per-user"}
    for ending, option in ways.items():
        _run("evaluate", *measured, option, home / f"{name} values.{ending}")
    _run("evaluate", "--test", home / f"{name} text" / "test.tsv", *measured[2:], "--out", home / f"{name} text.csv")
    qrels = home / f"{name}.qrels"
    judged = cf.read(parts / "test.parquet").frame().rows()
    qrels.write_text("".join(f"{user} 0 {item} {rating:.0f}\n" for user, item, rating, *_ in judged))
    _run("evaluate", "--test", qrels, *measured[2:], "--out", home / f"{name} qrels.csv")
    _run("compare", *measured, "--format", "csv", "--out", home / f"{name} compared.csv")
    grid = ("--scenario", "ratings", "--sizes", "1,0.5", "--samples", 2, "--no-figures")
    grid += ("--out", home / f"{name} assess")
    _run("assess", *measured, *grid)
    _run("assess", *measured, *grid)  # stored results are found again
    _experiment(name, home, world)


def _experiment(name: str, home: Path, world: Path) -> None:
    file = home / f"{name}.toml"
    file.write_text(
        f'[systems]\npopularity = "popularity"\nrandom = "random"\n[data.tiny]\nfile = {json.dumps(world.name)}\n'
        '[decisions]\nsignificance = "student"\nmetrics = ["P@5"]\n',
        encoding="utf-8",
    )
    out = home / f"{name} out"
    _run("run", file, "--out", out, "--no-report")
    _run("run", file, "--out", out, "--no-report")
    _run("show", out)
    _run("diff", out, out)


def _contents(home: Path, name: str) -> dict[str, bytes]:
    """Return the tables that the line wrote; what states names or times, as places in the store do, is left aside."""
    written = [path for path in home.rglob("*") if ".cranfield" not in path.parts]
    paths = {path.relative_to(home).as_posix().replace(name, "NAME"): path for path in written}
    return {
        at: path.read_bytes()
        for at, path in sorted(paths.items())
        if path.is_file() and path.suffix in (".parquet", ".csv", ".tsv", ".trec", ".qrels")
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    home, before = tmp_path_factory.mktemp("plain"), Path.cwd()
    os.chdir(home)
    try:
        _line("plain", seed=1)
    finally:
        os.chdir(before)
    return _contents(home / "plain", "plain")


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """What the line leaves under another name and with other numbers."""
    home, before = tmp_path_factory.mktemp("others"), Path.cwd()
    os.chdir(home)
    try:
        _line("others", seed=2)
    finally:
        os.chdir(before)
    return home / "others"


def _copy_as(folder: Path, name: str) -> None:
    """Copy what the line left to a folder and files of another name."""
    for path in folder.rglob("*"):
        if path.is_file():
            target = Path(name, path.relative_to(folder).as_posix().replace(folder.name, name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


@pytest.mark.parametrize("name", QUICK)
def test_every_command_reads_and_writes_the_files_that_are_named(plain, others, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    if NAMES[name] is not None:
        _copy_as(others, NAMES[name])
    _line(name, seed=1)
    found = _contents(tmp_path / name, name)
    assert list(found) == list(plain)
    assert len(found) > 30
    for file, content in found.items():
        assert content == plain[file], file
    folders = {path.name for path in tmp_path.iterdir()}
    assert folders == {name, NAMES[name]} - {None}


@pytest.mark.parametrize("name", NAMES)
def test_python_reads_and_writes_the_files_that_are_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    ratings = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [4, 5, 3])
    other = cf.Ratings.of(["eve"], ["z"])
    home = Path(name)
    for ending in ("parquet", "csv"):
        if NAMES[name] is not None:
            cf.write(other, f"{NAMES[name]}/{NAMES[name]}.{ending}")
        cf.write(ratings, home / f"{name}.{ending}")
        assert cf.read(f"{name}/{name}.{ending}").fingerprint == ratings.fingerprint
    (made,) = cf.recommend(ratings, "popularity")
    for ending in ("parquet", "tsv", "trec"):
        path = cf.write_run(made, home / f"{name}.run.{ending}")
        assert read_run(str(path)).frame().select("user", "item", "rank").rows() == (
            made.frame().select("user", "item", "rank").rows()
        )
    parts = home / f"{name} parts"
    parts.mkdir()
    for number, part in enumerate(made.frame().partition_by("user")):
        with (parts / f"part-{number}").open("wb") as file:
            part.write_parquet(file)
    assert len(read_run(parts)) == made.frame()["user"].n_unique()
    assert pl.read_parquet((home / f"{name}.parquet").open("rb")).height == 3


def test_a_tilde_is_the_home_folder_where_no_file_has_that_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cf.write(cf.Ratings.of(["ann"], ["x"]), tmp_path / "a.parquet")
    assert len(cf.read("~/a.parquet")) == 1
    cf.write(cf.Ratings.of(["ann", "bob"], ["x", "x"]), Path("~") / "a.parquet")
    assert len(cf.read("~/a.parquet")) == 2

"""The options that say how files are read, on every command that reads some."""

from __future__ import annotations

import click
import numpy as np
import polars as pl
import pytest

from cranfield.cli import cranfield as group

TEST = [("ann", "x", 5), ("ann", "y", 2), ("bob", "y", 4)]
LISTS = [("ann", "x", 0.1), ("ann", "z", 0.9), ("bob", "y", 0.4)]


def _text(rows, header="", separator=","):
    lines = [separator.join(map(str, row)) for row in rows]
    return "\n".join([header, *lines] if header else lines) + "\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = {
        "test.csv": _text(TEST, "user,item,rating"),
        "log.csv": _text(TEST, "visitor,page,liked"),
        "run.csv": _text(LISTS, "user,item,score"),
        "odd.csv": _text([(b, a, c) for a, b, c in LISTS], "film,member,strength"),
        "odd.txt": _text(LISTS, "user#item#score", "#"),
        "pipes.txt": _text(TEST, "user#item#rating", "#"),
        "two.csv": _text([(*row, name) for name in ("a", "b") for row in LISTS], "user,item,score,who"),
    }
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def measured(files, cranfield):
    """Return P@1 of what a command line of ``evaluate`` reads."""

    def run(*arguments):
        code, out, err = cranfield("evaluate", "-m", "P@1", "-m", "Recall@2", "--format", "csv", "-q", *arguments)
        assert code == 0, err
        return out

    return run


OF_RUNS = ("evaluate", "compare", "dialects", "assess", "audit", "bias", "suggest-judgments")


@pytest.mark.parametrize("name", [*OF_RUNS, "recommend", "split", "check-split", "replicate"])
def test_every_command_that_reads_has_the_options(name):
    command = group.get_command(click.Context(group), name)
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--read" in options
    assert ({"--read-runs", "--strict"} <= options) == (name in OF_RUNS)


@pytest.mark.parametrize(
    "command", ["audit -m P@3", "bias --train train.csv -m P@3 --groups 2", "suggest-judgments -m P@3"]
)
def test_the_options_reach_the_files_of_every_command_that_measures(files, cranfield, command):
    rng = np.random.default_rng(0)
    names = {
        "test": ("user", "item", "rating"),
        "odd": ("visitor", "page", "liked"),
        "runs": ("film", "who", "strength"),
    }
    (files / "odd").mkdir()
    rated = {user: rng.permutation(20).tolist() for user in range(30)}
    for name, part in (("train.csv", slice(0, 8)), ("test.csv", slice(8, 14))):
        rows = [(user, item, int(rng.integers(1, 6))) for user, items in rated.items() for item in items[part]]
        (files / name).write_text(_text(rows, ",".join(names["test"])))
        (files / "odd" / name).write_text(_text(rows, ",".join(names["odd"])))
    for name in ("a.csv", "b.csv"):
        rows = [(user, item, k) for user in rated for k, item in enumerate(rng.permutation(20)[:8].tolist())]
        (files / name).write_text(_text(rows, "user,item,score"))
        (files / "odd" / name).write_text(_text([(i, u, s) for u, i, s in rows], ",".join(names["runs"])))
    plain = cranfield(*command.split(), "--test", "test.csv", "a.csv", "b.csv", "--threshold", "4")
    odd = command.replace("train.csv", "odd/train.csv").split()
    ratings = ("--read", "user=visitor, item=page, rating=liked")
    runs = ("--read-runs", "user=who, item=film, score=strength")
    named = cranfield(*odd, "--test", "odd/test.csv", "odd/a.csv", "odd/b.csv", *ratings, *runs, "--threshold", "4")
    assert (plain.code, named.code) == (0, 0), plain.err + named.err
    assert named.out == plain.out


@pytest.mark.parametrize("name", ["describe", "filter", "simulate"])
def test_every_command_of_data_that_reads_has_the_options(name):
    data = group.get_command(click.Context(group), "data")
    command = data.get_command(click.Context(data), name)
    assert "--read" in {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--test", "log.csv", "run.csv", "--read", "user=visitor, item=page, rating=liked"),
        ("--test", "log.csv", "run.csv", "--read", "user=1, item=2, rating=3"),
        ("--test", "test.csv", "odd.csv", "--read-runs", "user=member, item=film, score=strength"),
        ("--test", "test.csv", "odd.csv", "--read", "user=member, item=film", "--read-runs", "score=strength"),
        ("--test", "test.csv", "odd.csv", "--read-runs", "user=2, item=1, score=3"),
        ("--test", "test.csv", "odd.txt", "--read-runs", "separator=#"),
        ("--test", "pipes.txt", "run.csv", "--read", "separator=#"),
        ("--test", "pipes.txt", "odd.txt", "--read", "separator=#", "--read-runs", "separator=#"),
    ],
)
def test_columns_and_separators_of_ratings_and_runs_can_be_named(measured, arguments):
    same = measured("--test", "test.csv", "run.csv").splitlines()[1:]
    found = measured(*arguments).splitlines()[1:]
    assert [line.partition(",")[2] for line in found] == [line.partition(",")[2] for line in same]


def test_the_column_of_systems_can_be_named(measured):
    found = measured("--test", "test.csv", "two.csv", "--read-runs", "system=who").splitlines()[1:]
    assert [line.partition(",")[0] for line in found] == ["a", "a", "b", "b"]


def test_a_column_is_taken_from_every_file_that_has_it(files, measured):
    (files / "both.csv").write_text((files / "run.csv").read_text().replace("user", "visitor"))
    options = ("--test", "log.csv", "--read", "user=visitor, item=page")
    assert measured(*options, "both.csv").splitlines()[1:] == [
        line.replace("run,", "both,") for line in measured(*options, "run.csv").splitlines()[1:]
    ]


def test_options_reach_the_training_set_and_further_folds(files, cranfield):
    (files / "train.txt").write_text(_text([("ann", "w", 3), ("bob", "z", 3)], "user#item#rating", "#"))
    command = (
        "evaluate",
        "--test",
        "pipes.txt",
        "--train",
        "train.txt",
        "run.csv",
        "-m",
        "EPC@2",
        "--read",
        "separator=#",
    )
    assert cranfield(*command)[0] == 0


def test_encoding_and_quotes_hold_for_runs_too(files, measured):
    (files / "t.csv").write_bytes(_text([("zoé", "x", 5)], "user,item,rating").encode("latin-1"))
    (files / "r.csv").write_bytes(_text([("zoé", "x", 5)], "user,item,score").encode("latin-1"))
    assert "r,P@1,1.0" in measured("--test", "t.csv", "r.csv", "--read", "encoding=latin-1")


def test_options_of_text_are_refused_where_every_file_is_parquet_and_else_concern_the_text(files, cranfield):
    for name in ("test", "run"):
        pl.read_csv(files / f"{name}.csv").write_parquet(files / f"{name}.parquet")
    parquet = ("evaluate", "--test", "test.parquet", "run.parquet", "-m", "P@1")
    for option in (
        "--read separator=','",
        "--read-runs separator=','",
        "--read header=true",
        "--read encoding=latin-1",
    ):
        code, _, err = cranfield(*parquet, *option.split())
        assert code == 2
        key = option.split()[1].partition("=")[0]
        assert f"{key} ... is only for text; leave it out" in err.replace(f"{key}=...", f"{key} ...")
    mixed = ("evaluate", "--test", "pipes.txt", "run.parquet", "-m", "P@1", "--read", "encoding=latin-1")
    assert cranfield(*mixed, "--read", "separator=#")[0] == 0

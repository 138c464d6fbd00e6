"""What holds for the command line as a whole."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
from pathlib import Path

import pytest

from cranfield.comparisons.comparing import Comparing
from cranfield.measures import Averaging
from cranfield.rankings import Ranking, Serving

TEST = "user,item,rating\n" + "".join(f"u{u},i{i},{1 + (u * i) % 5}\n" for u in range(8) for i in range(0, 6, 2))
RUNS = {
    "up.csv": "user,item,score\n" + "".join(f"u{u},i{i},{i + u % 2}\n" for u in range(8) for i in range(6)),
    "down.csv": "user,item,score\n" + "".join(f"u{u},i{i},{9 - i}\n" for u in range(8) for i in range(6)),
}
MEASURED = ("--test", "test.csv", "up.csv", "down.csv", "--threshold", "4", "-m", "P@3")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Stand in a folder with a test set and two runs."""
    for name, text in {"test.csv": TEST, **RUNS}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("evalaute",), "there is no command 'evalaute'; did you mean 'evaluate'?"),
        (("evaluate", *MEASURED, "--bogus"), "--bogus"),
        (("evaluate", "up.csv"), "Missing option '--test'"),
        (("evaluate", *MEASURED, "--alpha", "1"), "--alpha"),
        (("replicate", "--data", "test.csv"), "valcarce2018, valcarce2020"),
        (("data", "describe", "test.csv", "--read", "time=x, time=none"), "time is given twice"),
    ],
)
def test_a_mistake_in_the_options_is_one_line_that_names_the_help(cranfield, arguments, told):
    code, out, err = cranfield(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert "--help" in err


def test_no_command_at_all_shows_the_help(cranfield):
    assert "Commands:" in cranfield().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("compare", *MEASURED, "--subset-size", "0.3"), "--subset-size does nothing without --subsets"),
        (("compare", *MEASURED, "--power", "1", "--correction", "none"), "--correction does nothing with --power"),
        (
            ("compare", *MEASURED, "--baseline", "a", "--better", "--correction", "none"),
            "--correction does nothing with --better",
        ),
        (("compare", *MEASURED, "--power", "1", "--significance", "sign"), "--significance does nothing with --power"),
        (("assess", *MEASURED, "--study", "power"), "--study does nothing without --format csv or json"),
        (("assess", *MEASURED, "--no-figures"), "--figures/--no-figures does nothing without --out"),
        (("assess", *MEASURED, "--style", "screen"), "--style does nothing without --out"),
        (("assess", *MEASURED, "--out", "a", "--no-figures", "--style", "paper"), "--style does nothing with"),
        (
            ("recommend", "--train", "test.csv", "-s", "random", "--out", "runs", "--threshold", "4"),
            "--threshold does nothing without --relevant one or --nonrelevant",
        ),
        (("new", "--schema", "--force"), "--force does nothing with --schema"),
        (("new", "schema.json", "--schema"), "FILE does nothing with --schema"),
        (("run", "experiment.toml", "--no-report", "--open"), "--open does nothing with --no-report"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(cranfield, arguments, told):
    code, out, err = cranfield(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_a_power_says_which_test_it_is_of(cranfield):
    caption = cranfield("compare", *MEASURED, "--power", "0.1", "--alpha", "0.1").out.splitlines()[0]
    assert caption.startswith("Student's paired t-test, without correction, level 0.1; average: mean")


@pytest.mark.parametrize("command", ["evaluate", "compare", "dialects"])
def test_the_ending_of_the_file_is_the_format_unless_one_is_given(cranfield, files, monkeypatch, command):
    for ending, format in (("csv", "csv"), ("json", "json"), ("tex", "latex"), ("md", "markdown"), ("txt", "table")):
        monkeypatch.setenv("COLUMNS", "1000")  # output to a file is not wrapped to the width of a terminal
        printed = cranfield(command, *MEASURED, "--format", format).out
        monkeypatch.setenv("COLUMNS", "40")
        assert cranfield(command, *MEASURED, "--out", f"made.{ending}").out == ""
        assert (files / f"made.{ending}").read_text() == printed
    cranfield(command, *MEASURED, "--format", "json", "--out", "made.txt")
    assert json.loads((files / "made.txt").read_text())
    code, _, err = cranfield(command, *MEASURED, "--out", "made.parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert "made.parquet" in err
    assert not (files / "made.parquet").exists()


@pytest.mark.parametrize(("command", "shows"), [("evaluate", "averages"), ("compare", "comparison")])
def test_latex_carries_the_name_of_the_data_the_decisions_and_a_label(cranfield, command, shows):
    lines = cranfield(command, *MEASURED, "--format", "latex").out.splitlines()
    caption = next(line for line in lines if line.startswith(r"\caption"))
    assert caption.startswith((r"\caption{Averages on test: ", r"\caption{Comparison on test: "))
    assert "average: mean; users without a list count as 0; users for whom a metric is undefined count as 0" in caption
    assert rf"\label{{tab:test-{shows}}}" in lines


def test_values_go_only_to_files_whose_ending_is_a_format(cranfield, files):
    code, out, err = cranfield("evaluate", *MEASURED, "--per-user", "values.xlsx")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ".parquet, .csv, .tsv or .json" in err
    assert not (files / "values.xlsx").exists()


def test_the_description_in_a_file_is_the_one_that_is_printed(cranfield, files):
    printed = cranfield("data", "describe", "test.csv", "--format", "csv").out
    cranfield("data", "describe", "test.csv", "--out", "made.csv")
    assert (files / "made.csv").read_text() == printed
    assert len(list(csv.reader(io.StringIO(printed)))) > 5


def test_quiet_silences_the_simulation(cranfield, files):
    world = ("data", "simulate", "--out", "world.csv", "world(users=20, items=20, ratings=150)")
    assert cranfield(*world, "--quiet") == (0, "", "")
    assert (files / "world.csv").exists()


def test_a_seed_of_zero_counts_before_the_command_as_after_it(cranfield, monkeypatch):
    monkeypatch.setattr("cranfield.cli.experiment.plan", lambda *_, seed, **__: f"seed {seed}")
    asked = ("run", "experiment.toml", "--dry-run")
    assert cranfield("--seed", "0", *asked).out == cranfield(*asked, "--seed", "0").out == "seed 0\n"
    assert cranfield(*asked).out == "seed None\n"


@pytest.mark.parametrize("option", ["--report", "--per-user"])
def test_a_folder_in_the_place_of_a_file_is_refused_before_there_is_any_result(cranfield, files, option):
    (files / "folder").mkdir()
    code, out, err = cranfield("evaluate", *MEASURED, option, "folder")
    assert (code, out) == (2, "")
    assert err == f"cranfield: {option} folder is a folder; name a file\n"


@pytest.mark.parametrize(
    "command",
    [
        ("data", "describe", "packed.csv.gz"),
        ("data", "filter", "packed.csv.gz", "--filter", "min_ratings(user=1)", "--out", "made.csv"),
        ("split", "packed.csv.gz", "--out", "parts"),
        ("recommend", "--train", "packed.csv.gz", "-s", "popularity", "--out", "runs"),
        ("evaluate", "--test", "packed.csv.gz", "up.csv", "--threshold", "4"),
        ("compare", "--test", "packed.csv.gz", "up.csv", "down.csv", "--threshold", "4", "-m", "P@3"),
    ],
    ids=lambda command: command[0],
)
def test_how_much_a_file_may_unpack_to_is_an_option(cranfield, files, command):
    (files / "packed.csv.gz").write_bytes(gzip.compress(TEST.encode()))
    code, out, err = cranfield(*command, "--unpack-limit", "100")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "unpacks to more than 100 bytes; if you trust it, raise the limit" in err
    assert cranfield(*command, "--unpack-limit", "0.5 MiB").code == 0


@pytest.mark.parametrize("size", ["0", "-1", "much", "1XB", "9" * 40])
def test_a_limit_that_is_not_a_size_is_refused(cranfield, size):
    code, _, err = cranfield("data", "describe", "test.csv", "--unpack-limit", size)
    assert (code, err.count("\n")) == (2, 1)
    assert "500MB or 4GiB" in err


def test_a_line_feed_in_a_name_does_not_break_the_lines_that_say_what_was_made(cranfield, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ratings = "user,item,rating\n" + "".join(f"{u},{i},{1 + (u * i) % 5}\n" for u in range(12) for i in range(9))
    Path("a\nb.csv").write_text(ratings)
    experiment = (
        '[data.x]\nfile = "a\\nb.csv"\n[decisions]\nmetrics = ["P@5"]\nlength = 5\n[systems]\np = "popularity"\n'
    )
    Path("e.toml").write_text(experiment)
    for command in (
        ("data", "describe", "a\nb.csv"),
        ("data", "filter", "a\nb.csv", "--filter", "k_core(k=1)", "--out", "c\nb.csv"),
        ("data", "simulate", "world(users=20, items=20, ratings=150)", "--out", "d\nb.csv"),
        ("split", "a\nb.csv", "--out", "s\nb"),
        ("recommend", "--train", "s\nb/train.parquet", "-s", "popularity", "--length", "5", "--out", "r\nb"),
        ("new", "n\nb.toml"),
        ("run", "e.toml", "--no-report", "--out", "e\nb"),
    ):
        code, out, err = cranfield(*command)
        assert code == 0
        assert not [line for line in (out + err).splitlines() if line.startswith("b")], command


@pytest.mark.parametrize(
    ("name", "groups"),
    [("recommend", (Serving, Ranking)), ("evaluate", (Averaging,)), ("compare", (Averaging, Comparing))],
)
def test_every_decision_of_a_group_is_an_option_of_the_command_that_takes_it(name, groups):
    command = getattr(importlib.import_module(f"cranfield.cli.{name}"), f"{name}_command")
    options = {option for one in command.params for option in one.opts}
    decisions = [decision for group in groups for decision in group.decisions()]
    assert {f"--{decision.replace('_', '-')}" for decision in decisions} <= options

"""Ctrl-C says what is kept, and how to go on."""

from __future__ import annotations

import pytest

GIVEN = ("--test", "t.csv", "r.csv")


def _stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        (("run", "e.toml"), "finished parts are kept; run the same command again to continue"),
        (("replicate", "valcarce2018", "--data", "r.csv"), "run the same command again to continue"),
        (
            ("recommend", "--train", "t.csv", "-s", "knn", "--out", "r"),
            "run the same command with --resume to continue",
        ),
        (("assess", *GIVEN, "--out", "o"), "run the same command again to continue"),
        (("assess", *GIVEN), "nothing is kept without --out FOLDER; with it, the same command continues"),
    ],
)
def test_ctrl_c_says_how_to_go_on(cranfield, monkeypatch, arguments, how):
    monkeypatch.setattr("cranfield.cli.experiment.run", _stop)
    monkeypatch.setattr("cranfield.cli.replicate.file_or_dataset", _stop)
    monkeypatch.setattr("cranfield.cli.recommend.read", _stop)
    monkeypatch.setattr("cranfield.cli._measuring.MeasuringOptions.load", _stop)
    code, out, err = cranfield(*arguments)
    assert (code, out) == (130, "")
    line = err.splitlines()[-1]
    assert line.startswith("cranfield: stopped; ")
    assert line.endswith(how)


def test_a_command_with_nothing_to_go_on_with_is_just_stopped(cranfield, monkeypatch):
    monkeypatch.setattr("cranfield.cli._measuring.MeasuringOptions.load", _stop)
    assert cranfield("evaluate", *GIVEN).err.strip() == "cranfield: stopped"

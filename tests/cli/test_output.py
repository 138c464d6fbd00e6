from __future__ import annotations

import json
import re
import time
from math import inf, nan

import polars as pl

from cranfield import _terminal
from cranfield._result import as_json, frame_text
from cranfield.cli import _output
from cranfield.cli._output import stages


def test_nan_and_infinity_are_null_in_json_at_any_depth():
    text = as_json({"a": nan, "b": [inf, {"c": (-inf, 0.5, 1)}], "d": "NaN", "e": None})
    assert json.loads(text) == {"a": None, "b": [None, {"c": [None, 0.5, 1]}], "d": "NaN", "e": None}
    rows = json.loads(frame_text(pl.DataFrame({"p": [nan, inf, 0.25], "n": [1, 2, 3]}), "json"))
    assert rows == [{"p": None, "n": 1}, {"p": None, "n": 2}, {"p": 0.25, "n": 3}]
    assert not any(word in text.replace('"NaN"', "") for word in ("NaN", "Infinity"))


def test_a_long_stage_of_one_step_writes_lines_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_terminal, "_PATIENCE", 0.0)
    monkeypatch.setattr(_output, "_LOOK", 0.001)
    seen = ""
    with stages("Assessing"):
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            time.sleep(0.001)
            seen = capsys.readouterr().err
    assert seen == "Assessing: 0 s so far\n"
    assert capsys.readouterr().err.startswith("Assessing   ")


def test_a_stage_says_how_far_what_runs_inside_it_is(capsys, monkeypatch):
    monkeypatch.setattr(_terminal, "_PATIENCE", -1.0)
    with stages("Training", 2) as advance:
        with _terminal.progress("Fitting neumf", total=20, unit="epochs") as epochs:
            epochs.advance(note="loss 0.5, validation nDCG@10 0.3")
        advance()
    said = capsys.readouterr().err
    assert said.startswith("Training: 0 of 2, 0 s so far; Fitting neumf: 1 of 20 epochs, 0 s so far")
    assert "loss 0.5, validation nDCG@10 0.3\n" in said


def test_below_a_bar_it_is_said_whole_on_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_terminal, "_PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    with _output._bar("Training", 2) as (advance, listen), _terminal.heard_by(listen):
        with _terminal.progress("Fitting neumf", total=20, unit="epochs") as epochs:
            epochs.advance(note="loss 0.5, validation nDCG@10 0.3")
        said, until = "", time.monotonic() + 20
        while "Fitting neumf" not in said and time.monotonic() < until:  # until it is redrawn
            time.sleep(0.05)
            said += capsys.readouterr().err
        advance()
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said + capsys.readouterr().err)
    assert "Training" in said
    assert "Fitting neumf: 1 of 20 epochs" in said
    assert "validation nDCG@10 0.3" in " ".join(said.split())

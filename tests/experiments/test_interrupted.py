"""A run that is stopped anywhere goes on, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cranfield.experiments import run

SCRIPT = Path(__file__).parent / "killed.py"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the children are forked")


def _killed(kind, experiment, home, argument, seed=0, jobs=1):
    done = subprocess.run(
        [sys.executable, SCRIPT, kind, experiment, home, json.dumps(argument), str(seed), str(jobs)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("jobs", "kills"),
    [pytest.param(2, 10, marks=pytest.mark.slow), pytest.param(1, 200, marks=pytest.mark.hours)],
)
def test_runs_killed_at_random_times_end_with_the_same_bytes(tiny_file, tmp_path, jobs, kills):
    if jobs > 1:
        # Every fold starts processes of its own.
        tiny_file.write_text(tiny_file.read_text().replace('split = "k_fold(k=2)"\n', ""))
    # What was killed while systems were trained side by side is finished with one at a time.
    outcome = _killed("times", tiny_file, tmp_path / "home", kills, seed=jobs, jobs=jobs)
    assert outcome["killed"] == kills
    assert outcome["files"] > 20


def test_a_run_killed_at_every_stage_ends_with_the_same_bytes(tiny_file, tmp_path):
    tiny_file.write_text(tiny_file.read_text().replace('split = "k_fold(k=2)"\n', ""))
    stages = ["experiment", "data", "splits", "searches", "models", "runs", "judged", "scores", "results", "card"]
    outcome = _killed("stages", tiny_file, tmp_path / "home", stages)
    assert outcome["killed"] == 1
    assert outcome["reached"][-1] == "results"


@pytest.mark.slow
def test_runs_killed_around_a_file_of_each_stage_end_with_the_same_bytes(tiny_file, tmp_path):
    # With its record every artifact is two files or more: the counts lie in all stages.
    counts = [1, 16, 22, 46, 61, 79, 115, 133, 152]
    moments = [(count, ("before", "after")[place % 2]) for place, count in enumerate(counts)]
    outcome = _killed("files", tiny_file, tmp_path / "home", moments)
    assert set(outcome["reached"]) >= {"data", "splits", "searches", "models", "runs", "judged", "scores", "results"}


@pytest.mark.hours
def test_runs_killed_around_every_file_end_with_the_same_bytes(tiny_file, tmp_path):
    moments = [(count, when) for count in range(1, 187) for when in ("before", "after")]
    outcome = _killed("files", tiny_file, tmp_path / "home", moments)
    assert set(outcome["reached"]) >= {
        *("nothing", "experiment", "data", "splits", "searches", "models", "runs", "scores", "results", "card")
    }


def test_control_c_stops_the_run_and_the_next_one_goes_on(tiny_file, tmp_path):
    # For a minute in the second system, unless it is stopped.
    code = """
import signal, sys, time
from cranfield.experiments import run
from cranfield.recommenders.baselines import Random

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it aside
score = Random.score
Random.score = lambda self, users: time.sleep(60) if len(users) > 12 else score(self, users)
run(sys.argv[1], sys.argv[2])
"""
    out = tmp_path / "out"
    child = subprocess.Popen([sys.executable, "-c", code, str(tiny_file), str(out)], stderr=subprocess.PIPE, text=True)

    def is_made():
        log = out / "log.jsonl"
        return log.exists() and '"artifact": "runs/tiny/fold-1/popularity"' in log.read_text()

    for _ in range(300):
        if is_made():
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=30)[1]
    assert is_made()
    run(tiny_file, out)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    again = log[[k for k, one in enumerate(log) if one["did"] == "started"][-1] :]
    assert {"artifact": "runs/tiny/fold-1/popularity", "did": "kept"}.items() <= next(
        one for one in again if one.get("artifact") == "runs/tiny/fold-1/popularity"
    ).items()

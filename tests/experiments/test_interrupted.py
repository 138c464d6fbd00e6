"""A run that is stopped anywhere goes on, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cranfield.experiments import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the children are forked")
STAGES = ("experiment", "data", "splits", "searches", "models", "runs", "judged", "scores", "results", "card")


@pytest.fixture
def killed_runs(killed_command, tiny_file):
    """Return a function that runs the experiment in children that are killed."""

    def kill(kind, argument, *options):
        return killed_command(["run", str(tiny_file), "--out", "OUT", "--no-report", *options], kind, argument)

    return kill


def _without_folds(tiny_file):
    tiny_file.write_text(tiny_file.read_text().replace('split = "k_fold(k=2)"\n', ""))


@pytest.mark.parametrize(
    ("jobs", "kills"),
    [pytest.param(2, 10, marks=pytest.mark.slow), pytest.param(1, 200, marks=pytest.mark.hours)],
)
def test_runs_killed_at_random_times_end_with_the_same_bytes(killed_runs, tiny_file, jobs, kills):
    if jobs > 1:
        # Every fold would start its own processes.
        _without_folds(tiny_file)
    outcome = killed_runs("times", kills, f"--jobs={jobs}")
    assert outcome["killed"] == kills
    assert outcome["files"] > 20


# Fast tests of interruptions: control-C below, a search in test_searching, a full disk in test_store.
@pytest.mark.slow
def test_a_run_killed_at_a_stage_ends_with_the_same_bytes(killed_runs, tiny_file):
    _without_folds(tiny_file)
    outcome = killed_runs("stages", STAGES)
    assert outcome["reached"][-1] == "results"


@pytest.mark.slow
def test_runs_killed_around_a_file_of_each_stage_end_with_the_same_bytes(killed_runs):
    # Every artifact has at least two files, including its record: the counts cover all stages.
    counts = [1, 16, 22, 46, 61, 79, 115, 133, 152]
    moments = [(count, ("before", "after")[place % 2]) for place, count in enumerate(counts)]
    outcome = killed_runs("files", moments)
    assert set(outcome["reached"]) >= {"data", "splits", "searches", "models", "runs", "judged", "scores", "results"}


@pytest.mark.hours
def test_runs_killed_around_every_file_end_with_the_same_bytes(killed_runs):
    outcome = killed_runs("files", [(count, when) for count in range(1, 187) for when in ("before", "after")])
    assert set(outcome["reached"]) >= {
        *("nothing", "experiment", "data", "splits", "searches", "models", "runs", "scores", "results", "card")
    }


def test_control_c_stops_the_run_and_the_next_one_goes_on(tiny_file, tmp_path):
    # The second system takes a minute unless it is stopped.
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

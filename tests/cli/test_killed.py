"""A command that is killed at any time goes on when it is given again, and ends with the same bytes."""

from __future__ import annotations

import os

import pytest

from cranfield import simulate
from cranfield.data import write
from cranfield.rankings import recommend, write_run
from cranfield.splits import random

SYSTEMS = ("random", "popularity", "average", "knn(k=5)")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the children are forked")

EXPERIMENT = """
[systems]
popularity = "popularity"
average = "average"
knn = "knn(k=5)"
[data.tiny]
simulate = "world(users=60, items=40, ratings=900)"
[decisions]
metrics = ["P@5", "nDCG@10"]
"""
AUDIT = """
[audit.vary]
cutoff = [5, 10]
threshold = [3, 4]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    ratings = simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
    split = random(ratings, train=0.5, seed=1)
    write(ratings, folder / "ratings.csv")
    write(split.train, folder / "train.csv")
    write(split.test, folder / "test.csv")
    for number, run in enumerate(recommend(split, list(SYSTEMS), 20)):
        write_run(run, folder / f"{number}.csv")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "audit.toml").write_text(EXPERIMENT + AUDIT)
    return folder


def _commands(files):
    runs = [str(files / f"{number}.csv") for number in range(len(SYSTEMS))]
    test, systems = str(files / "test.csv"), [word for name in SYSTEMS for word in ("-s", name)]
    return {
        "run": ["run", str(files / "experiment.toml"), "--out", "OUT"],
        "audit": ["audit", str(files / "audit.toml"), "--out", "OUT"],
        "assess": ["assess", "--test", test, *runs, "-m", "P@5", "-m", "nDCG@10", "--samples", "20", "--out", "OUT"],
        "replicate": [
            *("replicate", "valcarce2020", "--data", str(files / "ratings.csv"), "--out", "OUT", "--no-figures"),
            *("--folds", "2", "--samples", "2", "--sizes", "1,0.5", *systems),
        ],
        "recommend": ["recommend", "--train", str(files / "train.csv"), *systems, "--out", "OUT", "--resume"],
    }  # fmt: skip


@pytest.mark.parametrize("command", ["run", "audit", "assess", "replicate", "recommend"])
@pytest.mark.parametrize("kills", [pytest.param(5, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.hours)])
def test_a_command_that_is_killed_goes_on_to_the_same_bytes(command, kills, files, killed_command):
    outcome = killed_command(_commands(files)[command], "times", kills)
    assert outcome["killed"] == kills
    assert kills < 100 or outcome["begun"] > 0
    assert outcome["files"] > 3

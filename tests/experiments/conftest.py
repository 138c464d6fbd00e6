"""What the tests of experiments share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cranfield.experiments import Decisions, Experiment, Source, System, run

QUICK = {"metrics": ("P@10", "nDCG@10"), "significance": "student"}
"""Decisions that take least time, for tests that are about others."""


@pytest.fixture(scope="session")
def tiny():
    """An experiment of a fraction of a second; keywords change it, and a dictionary some of its quick decisions."""

    def make(**changes: object) -> Experiment:
        decisions = changes.pop("decisions", {})
        usual = {
            "data": (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
            "systems": (System("popularity", "popularity"), System("random", "random"), System("near", "knn(k=5)")),
            "decisions": Decisions(**{**QUICK, **decisions}) if isinstance(decisions, dict) else decisions,
        }
        return Experiment(**{**usual, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def _run_of_tiny(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "out"
    run(tiny(), folder)
    return folder


@pytest.fixture
def tiny_folder(_run_of_tiny, tmp_path):
    """A folder of one's own, as running the experiment `tiny` leaves it."""
    return Path(shutil.copytree(_run_of_tiny, tmp_path / "out", symlinks=True))


@pytest.fixture
def tiny_file(tmp_path):
    """The file of an experiment of a fraction of a second, with two folds."""
    path = tmp_path / "tiny.toml"
    path.write_text(
        '[systems]\npopularity = "popularity"\nrandom = "random"\n'
        'liked = { system = "average", search = { damping = [0, 9] } }\n'
        '[decisions]\nsplit = "k_fold(k=2)"\nsignificance = "student"\nmetrics = ["P@10", "nDCG@10"]\n'
        '[data.tiny]\nsimulate = "world(users=60, items=40, ratings=900)"\n'
    )
    return path

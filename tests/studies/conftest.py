"""A small world in which both studies were run again."""

from __future__ import annotations

import pytest

from cranfield import simulate
from cranfield.studies import replicate

SYSTEMS = ("random", "popularity", "average", "knn(k=5)", "ease")


@pytest.fixture(scope="session")
def small():
    """Return the ratings."""
    return simulate.world(users=80, items=60, ratings=2_000, seed=1).ratings


@pytest.fixture(scope="session")
def run_again(small, tmp_path_factory):
    """Return a function that runs a study on the small world."""

    def run(study, out=None, **options):
        usual = {"folds": 2, "systems": SYSTEMS, "samples": 3, "sizes": [1, 0.5, 0.2], "figures": False}
        return replicate(study, small, out=out or tmp_path_factory.mktemp(study) / "out", **{**usual, **options})

    return run


@pytest.fixture(scope="session")
def of_2018(run_again, without_drawing):
    """Return the study of 2018, with empty figures."""
    with without_drawing():
        return run_again("valcarce2018", figures=True)


@pytest.fixture(scope="session")
def of_2020(run_again):
    """Return the study of 2020, without figures."""
    return run_again("valcarce2020")

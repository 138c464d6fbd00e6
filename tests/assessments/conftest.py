"""A small world: some systems of different quality, and a test set with popular items and large profiles."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings
from cranfield.rankings import read_run

METRICS = ("P@10", "Recall@10", "F1@10", "AP@10", "nDCG@10", "RR@10", "ERR@10", "bpref@10", "infAP@10")


@pytest.fixture(scope="session")
def make_world():
    """Make (runs, test): each system sees the test ratings through noise of its own."""

    def make(users=60, items=40, systems=5, depth=20, seed=0):
        rng = np.random.default_rng(seed)
        rated = rng.random((users, items)) < np.linspace(0.9, 0.05, items) * rng.uniform(0.1, 0.7, (users, 1))
        rated[:, 0] = True
        grades = rng.integers(1, 6, (users, items))
        user, item = np.nonzero(rated)
        test = Ratings.of([f"u{u}" for u in user], [f"i{i}" for i in item], grades[user, item])
        runs = []
        for s in range(systems):
            liked = rng.random((users, items)) + (0.1 + 0.12 * s) * rated * grades / 5
            lists = {
                f"u{u}": {f"i{i}": float(liked[u, i]) for i in np.argsort(-liked[u])[:depth]}
                for u in range(users)
                if s or u % 9
            }
            runs.append(read_run(lists, name=f"s{s}"))
        return runs, test

    return make


@pytest.fixture(scope="session")
def world(make_world):
    return make_world()


@pytest.fixture(scope="session")
def assessed(world):
    """The whole assessment of the small world, under two averages."""
    from cranfield.assessments import assess

    runs, test = world
    return assess(
        runs, test, METRICS, threshold=4, sizes=[1, 0.5, 0.1], samples=6, averages=["mean", "geometric", "median"]
    )

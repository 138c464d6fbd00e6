"""A small audit in which the split changes the winner, and a small experiment to audit."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits import Audit, Grid, UserContributions, VariedDecision
from cranfield.experiments import Decisions, Experiment, Source, System

OPENED = (
    VariedDecision("split", "question", ("random(train=0.2)", "random(train=0.5)", "random(train=0.8)")),
    VariedDecision("metric", "equivalent", ("P@5", "P@10", "AP")),
    VariedDecision("average", "equivalent", ("mean", "weighted")),
    VariedDecision("seed", "chance", ("0", "1")),
)
SYSTEMS = ("knn", "mf", "pop")
START = 24  # split 0.8, P@5, mean, seed 0


def terms_of(grid: Grid) -> UserContributions:
    """Draw terms in which mf gains on knn with the train share, and pop is last."""
    rng = np.random.default_rng(0)
    shared = 0.2 * rng.normal(size=(3, 1, 150))
    values = 0.5 + shared + 0.05 * rng.normal(size=(3, grid.n_cells, 150))
    values[1] += 0.15 * (grid.cells[:, [0]] - 1) + 0.08
    values[2] -= 0.4
    return UserContributions(values)


@pytest.fixture(scope="session")
def grid() -> Grid:
    return Grid.product(OPENED, START)


@pytest.fixture(scope="session")
def terms(grid) -> UserContributions:
    return terms_of(grid)


@pytest.fixture(scope="session")
def audit(grid, terms) -> Audit:
    averages = terms.values.mean(axis=2, dtype=np.float64)
    return Audit.of(grid, SYSTEMS, averages, terms, draws=250, resamples=40)


@pytest.fixture(scope="session")
def tiny():
    """An experiment of a fraction of a second; keywords change it."""

    def make(**changes: object) -> Experiment:
        usual = {
            "data": (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
            "systems": (System("popular", "popularity"), System("near", "knn(k=5)")),
            "decisions": Decisions(split="random(train=0.5)", min_ratings=1),
        }
        return Experiment(**{**usual, **changes})  # type: ignore[arg-type]

    return make

"""Protocols on simulated worlds, where everything is known, under varying biases of the observations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import simulate, splits
from cranfield.data import Ratings
from cranfield.rankings import Run
from cranfield.studies._truth_orders import TruePairs, values_of
from cranfield.studies._truth_protocols import Readings, Worth, read_protocols
from cranfield.studies._truth_systems import fit_systems

SYSTEMS = (
    "random", "popularity", "average(damping=10)", "svd(factors=10, epochs=15)", "puresvd(factors=10)",
    "wrmf(factors=10, iterations=8)", "knn(k=50)", "itemknn", "ease", "rw(k=50)",
)  # fmt: skip
KNOBS: dict[str, tuple[float, ...]] = {
    "popularity_bias": (0.0, 0.6, 1.2, 1.8, 2.4, 3.0),
    "relevance_bias": (-0.6, 0.0, 0.6, 1.1, 1.6),
    "ratings": (2_000, 4_000, 8_000, 16_000),
}
"""The settings that are varied, one at a time, from the defaults in `BASE`."""
BASE = {"users": 300, "items": 200, "ratings": 8_000, "popularity_bias": 1.8, "relevance_bias": 1.1}
THRESHOLD = 4.0


def world_readings(knob: str, value: float, seed: int, systems: Sequence[str] = SYSTEMS) -> Readings:
    """Read every protocol on a random split of a world with one setting changed, and the true precision at 10."""
    settings = {**BASE, knob: int(value) if knob == "ratings" else value}
    world = simulate.world(**settings, threshold=THRESHOLD, times=False, seed=seed)  # type: ignore[arg-type]
    split = splits.random(world.ratings, train=0.8, seed=seed)
    fitted = fit_systems(systems, split.train)
    return read_protocols(split.train, split.test, fitted, _by_world(world, split.train), THRESHOLD, seed)


def _by_world(world: simulate.World, train: Ratings) -> Worth:
    def worth(runs: Sequence[Run]) -> NDArray[np.float64]:
        values = np.full((len(runs), train.n_users), np.nan)
        for place, run in enumerate(runs):
            values[place, run.users] = world.true_value(run, "P@10", exclude=train)
        return values

    return worth


def world_scores(readings: Readings) -> pl.DataFrame:
    """Return one row per reading: ``protocol, metric, tau, winner`` against the true order of one world."""
    pairs = TruePairs.of(readings.truth)
    values = values_of(readings, np.ones((1, readings.truth.shape[1])))[:, 0]
    return pl.DataFrame(
        {
            "protocol": [protocol for protocol, _ in readings.names],
            "metric": [metric for _, metric in readings.names],
            "tau": pairs.tau(values),
            "winner": pairs.finds_winner(values),
        }
    )

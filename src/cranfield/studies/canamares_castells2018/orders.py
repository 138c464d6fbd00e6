"""How well readings find the true order of systems, on pairs that truly differ: over draws and users, and on worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import simulate, splits
from cranfield._streams import stream
from cranfield.comparisons import holm
from cranfield.data import Ratings
from cranfield.measures import TrueValues
from cranfield.rankings import Run
from cranfield.studies.canamares_castells2018.protocols import Readings, Worth, fit_systems, read_protocols
from cranfield.studies.frame.claims import Floats

_ALPHA = 0.05
_TAILS = (2.5, 97.5)
_Z = 1.96

WORLD_SYSTEMS = (
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

_SCORES = ("tau", "lower", "upper", "winner", "winner_lower", "winner_upper")
SCHEMA: dict[str, Any] = {
    "protocol": pl.String, "metric": pl.String, **dict.fromkeys(_SCORES, pl.Float64), "pairs": pl.Int64,
}  # fmt: skip
"""One row per reading: tau with the true order over ``pairs``, how often the winner is correct, and their intervals."""


@dataclass(frozen=True, eq=False)
class TruePairs:
    """The pairs of systems that differ significantly in truth."""

    better: NDArray[np.int64]  # the indices of the systems of each pair
    worse: NDArray[np.int64]
    best: NDArray[np.bool_]  # whether each system is not significantly worse than the truly best one

    @staticmethod
    def of(truth: Floats) -> TruePairs:
        """Find them from systems × users: a paired t-test over users, corrected by Holm's method over all pairs."""
        from scipy.special import stdtr

        counted = truth[:, ~np.isnan(truth).any(axis=0)]
        means, users = counted.mean(axis=1), counted.shape[1]
        first, second = np.triu_indices(len(counted), 1)
        differences = counted[first] - counted[second]
        errors = differences.std(axis=1, ddof=1) / np.sqrt(users)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = differences.mean(axis=1) / errors
        p = np.where(errors > 0, 2.0 * stdtr(users - 1, -np.abs(t)), 1.0)
        differ = holm(p) < _ALPHA
        up = differences.mean(axis=1) > 0
        better, worse = np.where(up, first, second)[differ], np.where(up, second, first)[differ]
        best = np.ones(len(counted), dtype=np.bool_)
        best[worse[better == int(np.argmax(means))]] = False
        return TruePairs(better, worse, best)

    def tau(self, values: Floats) -> Floats:
        """Return concordant minus discordant pairs as a share of all; a tie, or a system without a value, is 0."""
        if not len(self.better):
            return np.full(values.shape[:-1], np.nan)
        signs = np.sign(values[..., self.better] - values[..., self.worse])
        return np.asarray(np.nan_to_num(signs).mean(axis=-1))

    def finds_winner(self, values: Floats) -> Floats:
        """Return whether the best system by the values is one that no other truly beats, as 0 or 1."""
        return self.best[np.argmax(np.nan_to_num(values, nan=-np.inf), axis=-1)].astype(np.float64)


def values_of(readings: Readings, weights: Floats) -> Floats:
    """Return readings × draws × systems: the readings under each set of user weights; higher is better."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (readings.numerators @ weights.T) / (readings.denominators @ weights.T)
    return np.swapaxes(values * readings.signs[:, None, None], 1, 2)


def order_scores(draws: Sequence[Readings], *, resamples: int = 200, seed: int = 0) -> pl.DataFrame:
    """Score every reading by how well it finds the true order, with 95 % intervals; see `SCHEMA`.

    The truth of each user is averaged over the draws. Tau is the mean over draws. Intervals are percentiles over
    bootstrap samples of users and of draws.
    """
    pairs = TruePairs.of(_mean_truth(draws))
    users = draws[0].truth.shape[1]
    everybody = np.full((1, users), 1.0)
    tau = np.mean([pairs.tau(values_of(draw, everybody))[:, 0] for draw in draws], axis=0)
    winner = np.mean([pairs.finds_winner(values_of(draw, everybody))[:, 0] for draw in draws], axis=0)
    weights = TrueValues.user_draws(users, resamples, seed)
    picks = (stream(seed, "truth", "draws").random((resamples, len(draws))) * len(draws)).astype(np.int64)

    def interval(score: Callable[[Floats], Floats]) -> Floats:
        scores = np.array([score(values_of(draw, weights)) for draw in draws])
        mixed = scores[picks, :, np.arange(resamples)[:, None]].mean(axis=1)
        return np.asarray(np.percentile(mixed, _TAILS, axis=0))

    lower, upper = interval(pairs.tau)
    winner_lower, winner_upper = interval(pairs.finds_winner)
    protocols, metrics = zip(*draws[0].names, strict=True)
    scores = (tau, lower, upper, winner, winner_lower, winner_upper)
    columns = [protocols, metrics, *scores, np.full(len(tau), len(pairs.better))]
    return pl.DataFrame(dict(zip(SCHEMA, columns, strict=True)), schema=SCHEMA)


def _mean_truth(draws: Sequence[Readings]) -> Floats:
    """Return systems × users: the mean over the draws in which a user counts, NaN if there are none."""
    truths = np.array([draw.truth for draw in draws])
    counted = ~np.isnan(truths)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counted, truths, 0.0).sum(axis=0) / counted.sum(axis=0))


def world_readings(knob: str, value: float, seed: int, systems: Sequence[str] = WORLD_SYSTEMS) -> Readings:
    """Read every protocol on a random split of a world with one setting changed, and the true precision at 10."""
    settings = {**BASE, knob: int(value) if knob == "ratings" else value}
    world = simulate.world(**settings, threshold=THRESHOLD, times=False, seed=seed)  # type: ignore[arg-type]
    split = splits.random(world.ratings, train=0.8, seed=seed)
    fitted = fit_systems(systems, split.train)
    return read_protocols(split.train, split.test, fitted, _by_world(world, split.train), THRESHOLD, seed)


def _by_world(world: simulate.World, train: Ratings) -> Worth:
    def worth(runs: Sequence[Run]) -> Floats:
        values = np.full((len(runs), train.n_users), np.nan)
        for place, run in enumerate(runs):
            values[place, run.users] = world.true_value(run, "P@10", exclude=train)
        return values

    return worth


def world_scores(readings: Readings) -> pl.DataFrame:
    """Return one row per reading: ``protocol, metric, tau, winner`` against the true order of one world."""
    pairs = TruePairs.of(readings.truth)
    values = values_of(readings, np.ones((1, readings.truth.shape[1])))[:, 0]
    protocols, metrics = zip(*readings.names, strict=True)
    scores = {"tau": pairs.tau(values), "winner": pairs.finds_winner(values)}
    return pl.DataFrame({"protocol": protocols, "metric": metrics, **scores})


def worlds_frame(worlds: pl.DataFrame) -> pl.DataFrame:
    """Return means over worlds with 95 % intervals: two standard errors for tau, Wilson's for the share of winners."""
    error = pl.col("tau").std() / pl.len().sqrt()
    share, count = pl.col("winner").mean(), pl.len()
    middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = (share * (1 - share) / count + _Z**2 / (4 * count**2)).sqrt() * _Z / (1 + _Z**2 / count)
    return worlds.group_by("knob", "value", "protocol", "metric", maintain_order=True).agg(
        pl.col("tau").mean(),
        lower=(pl.col("tau").mean() - 2 * error.fill_null(0.0)).clip(-1, 1),
        upper=(pl.col("tau").mean() + 2 * error.fill_null(0.0)).clip(-1, 1),
        winner=share,
        winner_lower=(middle - half).clip(0, 1),
        winner_upper=(middle + half).clip(0, 1),
        worlds=count,
    )

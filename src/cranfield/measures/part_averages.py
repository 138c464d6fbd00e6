"""Averages of scores in parts: sums over the parts, and the averages and intervals computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._hashing import id_keys, poisson_weights
from cranfield.measures._scale import power_of_two
from cranfield.measures.averages import Interval, student_interval
from cranfield.measures.averages_frame import averages_schema
from cranfield.measures.averaging import Averaging
from cranfield.measures.moments import Moments
from cranfield.measures.score_parts import ScoreParts
from cranfield.measures.scores import Scores

Floats = NDArray[np.float64]

_RESAMPLES = 1000
# Approximate number of weights (users × replicates) drawn at a time.
_BLOCK = 1 << 22


def check_additive(averaging: Averaging) -> None:
    """Refuse averages that need all values at once."""
    if averaging.kind.scale is None or averaging.groups == "equal":
        name = "groups='equal'" if averaging.groups == "equal" else f"average='{averaging.average}'"
        raise SettingError(
            f"{name} needs the values of all users at once, and these are kept in parts; use mean, weighted or "
            "geometric, or measure in memory (engine='memory', --engine memory)"
        )


@dataclass(frozen=True, eq=False)
class AverageSums:
    """The sums behind averages, as systems × metrics: moments, counts of missing values, and weighted sums.

    ``ends`` are those of the bounds, 2 × systems × metrics, if there are any.
    """

    moments: Moments
    missing: NDArray[np.int64]
    weight: Floats
    total: Floats
    ends: Floats | None

    def __add__(self, other: AverageSums) -> AverageSums:
        return AverageSums(
            self.moments + other.moments,
            self.missing + other.missing,
            self.weight + other.weight,
            self.total + other.total,
            None if self.ends is None or other.ends is None else self.ends + other.ends,
        )

    @property
    def mean(self) -> Floats:
        """The mean, weighted if there are weights; NaN of nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.weight > 0, self.total / self.weight, np.nan)


def part_averages_frame(
    scores: ScoreParts, averaging: Averaging, *, level: float, interval: str, seed: int
) -> pl.DataFrame:
    """Return one row for each system and metric; see `Scores.frame`."""
    check_additive(averaging)
    averaging = averaging.with_(average=str(averaging.average))
    powers = power_of_two(scores.census.largest)
    sums: AverageSums = scores.sum(partial(_sums, averaging=averaging, powers=powers))
    weighted = averaging.kind.weights is not None
    spread = sums.moments
    if weighted and interval == "analytic":
        residuals = partial(_residuals, averaging=averaging, powers=powers, mean=sums.mean, weight=_mean_weight(sums))
        spread = scores.sum(residuals)
    draws = None
    if interval == "bootstrap":
        draws = _replicates(scores, averaging, powers, seed)
    rows = [
        {"system": system, "metric": metric, **_row(scores, averaging, (s, m), sums, spread, powers, draws, level)}
        for s, system in enumerate(scores.systems)
        for m, metric in enumerate(scores.metrics)
    ]
    return pl.DataFrame(rows, schema=averages_schema(scores))


def _mean_weight(sums: AverageSums) -> Floats:
    return sums.weight / np.maximum(sums.moments.n, 1)


@dataclass(frozen=True, eq=False)
class _CountedLists:
    """The values and weights of some lists that count in averages.

    ``values`` are systems × metrics × lists on the scale that is averaged, NaN if a list does not count; ``weights``
    are those of the lists, and ``missing`` is the number of lists without a value.
    """

    values: Floats
    weights: Floats
    missing: NDArray[np.int64]
    ends: Floats | None

    @classmethod
    def of(cls, scores: Scores, averaging: Averaging, powers: NDArray[Any]) -> _CountedLists:
        averaging = averaging.with_kind()
        scaled, scale = averaging.taken_of(scores), averaging.kind.scale
        assert scale is not None
        served = scaled.served if averaging.coverage == "reduced" else np.ones(scaled.n_lists, dtype=bool)
        metrics = range(len(scaled.metrics))
        zero = np.array([scaled.counts_zero(m, averaging.undefined) for m in metrics])[:, None]

        def counting(values: Floats) -> Floats:
            return np.where(served & (zero | ~np.isnan(values)), np.nan_to_num(values), np.nan)

        values = np.stack([[scaled.values_of(s, m, averaging) for m in metrics] for s in range(len(scaled.systems))])
        missing = (np.isnan(values) & served).sum(axis=2)
        ends = None if scaled.bounds is None else scale(np.stack([counting(end) for end in scaled.bounds]))
        if ends is not None and scaled.bounds is not None:
            ends[np.isnan(scaled.bounds).all(axis=3)] = np.nan
        weights = scaled.weights(averaging.kind)
        return cls(
            scale(np.ldexp(counting(values), -powers[:, :, None])),
            np.ones(scaled.n_lists) if weights is None else weights,
            missing,
            ends,
        )


def _sums(scores: Scores, averaging: Averaging, powers: NDArray[Any]) -> AverageSums:
    lists = _CountedLists.of(scores, averaging, powers)
    total, weight = _weighted(lists.values, lists.weights)
    ends = None if lists.ends is None else np.stack(_weighted(lists.ends, lists.weights))
    return AverageSums(Moments.of(lists.values), lists.missing, weight, total, ends)


def _weighted(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return Σ w x and Σ w over the lists that count."""
    return np.nansum(values * weights, axis=-1), (~np.isnan(values) * weights).sum(axis=-1)


def _residuals(scores: Scores, averaging: Averaging, powers: NDArray[Any], mean: Floats, weight: Floats) -> Moments:
    """Return the moments of w (x − mean) / mean weight: the linearised ratio estimator."""
    lists = _CountedLists.of(scores, averaging, powers)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Moments.of(lists.weights * (lists.values - mean[:, :, None]) / weight[:, :, None])


def _replicates(scores: ScoreParts, averaging: Averaging, powers: NDArray[Any], seed: int) -> Floats:
    """Return replicates × systems × metrics: the mean in each replicate of the users."""
    totals, weights = scores.sum(partial(_drawn, averaging=averaging, powers=powers, seed=seed))
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals / weights


def _drawn(scores: Scores, averaging: Averaging, powers: NDArray[Any], seed: int) -> Floats:
    """Return 2 × replicates × systems × metrics: the weighted sums of the values, and of the weights."""
    lists = _CountedLists.of(scores, averaging, powers)
    rows = np.stack([np.nan_to_num(lists.values * lists.weights), ~np.isnan(lists.values) * lists.weights])
    shape = rows.shape[:3]
    columns = rows.reshape(-1, scores.n_lists).T
    keys, step = id_keys(scores.user_ids.ids(scores.users)), max(1, _BLOCK // _RESAMPLES)
    totals = np.zeros((_RESAMPLES, columns.shape[1]))
    for start in range(0, scores.n_lists, step):
        block = slice(start, start + step)
        totals += poisson_weights(keys[block], seed, _RESAMPLES).T.astype(np.float64) @ columns[block]
    return np.moveaxis(totals.reshape(_RESAMPLES, *shape), 0, 1)


def _row(
    scores: ScoreParts,
    averaging: Averaging,
    place: tuple[int, int],
    sums: AverageSums,
    spread: Moments,
    powers: NDArray[Any],
    draws: Floats | None,
    level: float,
) -> Mapping[str, Any]:
    s, m = place
    row: dict[str, Any] = {
        "coverage": float(scores.user_coverage[s]),
        **{
            name: None if table is None else float(table[place])
            for name, table in (("filled", scores.filled), ("unjudged", scores.unjudged))
        },
        "item_coverage": None if scores.item_coverage is None else float(scores.item_coverage[s]),
    }
    if scores.nonexistent is not None:
        row["nonexistent"] = float(scores.nonexistent[place])
    if scores.overall is not None and not np.isnan(scores.overall[place]):
        return {**row, "mean": float(scores.overall[place]), "average": "whole system", "lists": scores.n_lists}
    kind, mean = averaging.kind, float(sums.mean[place])
    assert kind.back is not None

    def taken_back(value: float) -> float:
        assert kind.back is not None
        return kind.back(float(np.ldexp(value, int(powers[place])))) if not np.isnan(value) else float("nan")

    if draws is None:
        ends, method = student_interval(float(spread.n[place]), mean, float(spread.sd[place]), level), kind.method
    else:
        ends, method = _percentiles(draws[:, s, m], level), "bootstrap percentile, Poisson weights"
    lower, upper = (taken_back(end) for end in ends)
    return {
        **row,
        "mean": taken_back(mean),
        "lower": lower,
        "upper": upper,
        "average": str(averaging.average),
        "interval": f"{100 * level:g}% {method}",
        "lists": int(sums.moments.n[place]),
        "undefined": int(sums.missing[place]),
        **_bounds(sums, place, kind.back),
    }


def _percentiles(draws: Floats, level: float) -> Interval:
    tail = (1.0 - level) / 2.0
    if np.isnan(draws).all():
        return float("nan"), float("nan")
    lower, upper = np.nanquantile(draws, [tail, 1.0 - tail])  # a replicate may contain no user
    return float(lower), float(upper)


def _bounds(sums: AverageSums, place: tuple[int, int], back: Callable[[float], float]) -> dict[str, float]:
    """Return the averages of the bounds, if they were measured and the metric has bounds."""
    if sums.ends is None or not sums.ends[1][:, place[0], place[1]].all():
        return {}
    total, weight = sums.ends[:, :, place[0], place[1]]
    least, most = (back(float(end)) for end in total / weight)
    return {"least": least, "most": most}

"""Averages of scores as a frame, each with its interval and coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._streams import MOST_BLOCKS
from cranfield.measures.averaging import Averaging
from cranfield.measures.repetitions import cells_of, crossed
from cranfield.measures.scores import Scores
from cranfield.metrics import possible_values

_SCHEMA: Mapping[str, Any] = {
    "system": pl.String,
    "metric": pl.String,
    "mean": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "average": pl.String,
    "interval": pl.String,
    "lists": pl.Int64,
    "undefined": pl.Int64,
    "coverage": pl.Float64,
    "filled": pl.Float64,
    "item_coverage": pl.Float64,
    "unjudged": pl.Float64,
    "spread": pl.Float64,
}

_BOUNDS_SCHEMA: Mapping[str, Any] = {"least": pl.Float64, "most": pl.Float64}


def averages_frame(scores: Scores, averaging: Averaging, *, level: float, interval: str, seed: int) -> pl.DataFrame:
    """Return one row for each system and metric; see `Scores.frame`."""
    scaled = averaging.taken_of(scores)
    rows = [
        {
            "system": system,
            "metric": metric,
            **_row(scaled, s, m, averaging, level, interval, seed),
            **_bounds(scaled, s, m, averaging),
        }
        for s, system in enumerate(scores.systems)
        for m, metric in enumerate(scores.metrics)
    ]
    return pl.DataFrame(rows, schema=averages_schema(scores))


def averages_schema(scores: Any) -> dict[str, Any]:
    """Return the columns of the frame of averages of scores, whole or in parts."""
    further = {} if scores.nonexistent is None else {"nonexistent": pl.Float64}
    return {**_SCHEMA, **further, **({} if scores.bounds is None else _BOUNDS_SCHEMA)}


def _row(
    scores: Scores, s: int, m: int, averaging: Averaging, level: float, interval: str, seed: int
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "coverage": float(scores.user_coverage[s]),
        "filled": None if scores.filled is None else float(scores.filled[s, m]),
        "item_coverage": None if scores.item_coverage is None else float(scores.item_coverage[s]),
        "unjudged": None if scores.unjudged is None else float(scores.unjudged[s, m]),
    }
    if scores.nonexistent is not None:
        row["nonexistent"] = float(scores.nonexistent[s, m])
    if scores.overall is not None and not np.isnan(scores.overall[s, m]):
        name = "whole system" if averaging.kind.of_all is None else str(averaging.average)
        return {**row, "mean": float(scores.overall[s, m]), "average": name, "lists": scores.n_lists}
    counted = scores.counted(s, m, averaging)
    kind, values, weights, missing, _ = counted
    method = kind.method
    if interval == "bootstrap":
        lower, upper = kind.bootstrap(values, weights, level, seed, lambda: scores.user_ids.keys[counted.units])
        drawn = "" if len(values) <= MOST_BLOCKS else f", {MOST_BLOCKS:,} blocks of users"
        method = f"bootstrap percentile{drawn}"
    else:
        lower, upper = kind.interval(values, np.ones(len(values)) if weights is None else weights, level)
    if scores.repetitions is not None:
        row["spread"], ends = _over_repetitions(scores, s, m, averaging, level)
        if ends is not None and interval == "analytic":
            (lower, upper), method = ends, "Student's t, users crossed with repetitions"
    if averaging.kind.of_all is None:
        lower, upper = _possible((lower, upper), values, scores.metrics[m])
    return {
        **row,
        "mean": kind(values, weights),
        "lower": lower,
        "upper": upper,
        "average": f"{averaging.average}{' of groups' if averaging.groups == 'equal' else ''}",
        "interval": f"{100 * level:g}% {method}",
        "lists": len(values),
        "undefined": missing,
    }


def _possible(ends: tuple[float, float], values: NDArray[np.float64], metric: str) -> tuple[float, float]:
    """Return the part of an interval that lies between the lowest and the highest value of a metric.

    An average is always there, so the interval holds at the same level. With few users most of it may be outside.
    """
    low, high = possible_values(metric)
    lower = max(ends[0], low) if values.min(initial=np.inf) >= low else ends[0]
    return lower, min(ends[1], high) if values.max(initial=-np.inf) <= high else ends[1]


def _over_repetitions(
    scores: Scores, s: int, m: int, averaging: Averaging, level: float
) -> tuple[float, tuple[float, float] | None]:
    """Return the standard deviation of an average between repetitions, and the interval that includes it.

    The interval is from `crossed`, for a mean over users; None for other averages.
    """
    from scipy.special import stdtrit

    assert scores.repetitions is not None
    is_mean = averaging.kind.weights is None and averaging.kind.method == "Student's t"
    if averaging.by != "user" or averaging.groups == "equal" or not is_mean:
        parts = [scores.of_lists(scores.repetitions == r) for r in range(int(scores.repetitions.max()) + 1)]
        means = [part.counted(s, m, averaging).mean for part in parts]
        return float(np.std(means, ddof=1)), None
    kept = _kept(scores, s, m, averaging)
    values = np.where(kept, np.nan_to_num(scores.values[s, m]), np.nan)
    estimate = crossed(cells_of(values[None], scores.users, scores.repetitions))
    middle = scores.counted(s, m, averaging).mean
    reach = float((stdtrit(estimate.degrees, 0.5 + level / 2.0) * estimate.error)[0])
    return float(estimate.spread[0]), (middle - reach, middle + reach)


def _kept(scores: Scores, s: int, m: int, averaging: Averaging) -> NDArray[np.bool_]:
    """Return which lists count in the average of a system."""
    kept = scores.served if averaging.coverage == "reduced" else np.ones(scores.n_lists, dtype=np.bool_)
    return kept if scores.counts_zero(m, averaging.undefined) else kept & ~np.isnan(scores.values[s, m])


def _bounds(scores: Scores, s: int, m: int, averaging: Averaging) -> dict[str, float]:
    """Return the averages of the bounds, if they were measured and the metric has bounds."""
    if scores.bounds is None or np.isnan(scores.bounds[:, s, m]).all():
        return {}
    least, most = (scores.counted(s, m, averaging, values).mean for values in scores.bounds[:, s, m])
    return {"least": least, "most": most}

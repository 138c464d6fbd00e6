"""Averages of scores as a frame and as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._numbers import all_systems, count_text, number_text, percent_text
from cranfield._streams import MOST_BLOCKS
from cranfield._table import Cell, Table, places
from cranfield.facts import sentences
from cranfield.measures.averaging import Averaging
from cranfield.measures.crossed import Errors
from cranfield.metrics import averaging_phrases, deepest, legend, metric_label, properties_of

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores

LEVEL = 0.95
"""Default confidence level of the intervals that are shown."""

_SCHEMA: Mapping[str, Any] = {
    **dict.fromkeys(("system", "metric"), pl.String),
    **dict.fromkeys(("mean", "lower", "upper"), pl.Float64),
    **dict.fromkeys(("average", "interval"), pl.String),
    **dict.fromkeys(("lists", "undefined"), pl.Int64),
    **dict.fromkeys(("coverage", "filled", "item_coverage", "unjudged", "spread"), pl.Float64),
}


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
    nonexistent = {} if scores.nonexistent is None else {"nonexistent": pl.Float64}
    bounds = {} if scores.bounds is None else {"least": pl.Float64, "most": pl.Float64}
    return pl.DataFrame(rows, schema={**_SCHEMA, **nonexistent, **bounds})


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
    low, high = properties_of(metric).between
    lower = max(ends[0], low) if values.min(initial=np.inf) >= low else ends[0]
    return lower, min(ends[1], high) if values.max(initial=-np.inf) <= high else ends[1]


def _over_repetitions(
    scores: Scores, s: int, m: int, averaging: Averaging, level: float
) -> tuple[float, tuple[float, float] | None]:
    """Return the standard deviation of an average between repetitions, and the interval that includes it.

    The interval is from `Errors.crossed`, for a mean over users; None for other averages.
    """
    assert scores.repetitions is not None
    is_mean = averaging.kind.weights is None and averaging.kind.method == "Student's t"
    if averaging.by != "user" or averaging.groups == "equal" or not is_mean:
        parts = [scores.of_lists(scores.repetitions == r) for r in range(int(scores.repetitions.max()) + 1)]
        means = [part.counted(s, m, averaging).mean for part in parts]
        return float(np.std(means, ddof=1)), None
    own = scores.values[s, m]
    values = np.where(scores.who_counts(m, averaging, own), np.nan_to_num(own), np.nan)
    estimate = Errors.crossed(Errors.cells(values[None], scores.users, scores.repetitions))
    middle = scores.counted(s, m, averaging).mean
    reach, spread = float(estimate.reach(1 - level)[0]), estimate.spread
    assert spread is not None
    return float(spread[0]), (middle - reach, middle + reach)


def _bounds(scores: Scores, s: int, m: int, averaging: Averaging) -> dict[str, float]:
    """Return the averages of the bounds, if they were measured and the metric has bounds."""
    if scores.bounds is None or np.isnan(scores.bounds[:, s, m]).all():
        return {}
    least, most = (scores.counted(s, m, averaging, values).mean for values in scores.bounds[:, s, m])
    return {"least": least, "most": most}


_Form = Callable[[float, float, float, int], str]
"""Returns the text of a number and its two ends."""


def averages_table(
    scores: Scores,
    averaging: Averaging,
    *,
    digits: int,
    services: bool,
    level: float | None,
    interval: Literal["analytic", "bootstrap"],
    seed: int,
) -> Table:
    """Return the averages of scores as a table; see `Scores.table`."""
    means = scores.average(averaging)
    kinds: dict[tuple[str, str], tuple[bool, _Form]] = {
        ("lower", "upper"): (level is not None, _interval),
        ("least", "most"): (scores.bounds is not None, _span),
        ("mean", "spread"): (scores.repetitions is not None, _deviation),
    }
    pairs = [(*names, form) for names, (is_shown, form) in kinds.items() if is_shown]
    ends = pl.DataFrame()
    if pairs:
        ends = scores.frame(averaging, level=LEVEL if level is None else level, interval=interval, seed=seed)
    lowest_first = averaging.taken_of(scores).lower_is_better
    header = ["system", *map(metric_label, scores.metrics)]
    cells = _cells(scores, means, lowest_first, ends, pairs, digits)
    for name, shares in _services(scores, services).items():
        header.append(name)
        for s, served in enumerate(shares):
            cells[s].append(Cell(percent_text(served)))
    caption = _caption(scores, averaging)
    if level is not None:
        shown = ends.filter(pl.col("lower").is_not_nan())  # neither NaN nor null
        methods = list(dict.fromkeys(shown["interval"].drop_nulls()))
        caption += f"; interval: {', '.join(methods) or 'none'}"
    notes = [*sentences((*scores.notes, *scores.on_left_out(averaging))), legend(header)]
    return Table(header, _best_first(cells, means, lowest_first), caption, [*filter(None, notes)])


def _cells(
    scores: Scores,
    means: NDArray[np.float64],
    lowest_first: Sequence[bool],
    ends: pl.DataFrame,
    pairs: Sequence[tuple[str, str, _Form]],
    digits: int,
) -> list[list[Cell]]:
    """Return the name and the averages of each system, the best of each metric marked."""
    cells = [[Cell(name)] for name in scores.systems]
    for m, lower in enumerate(lowest_first):
        several = len(scores.systems) > 1 and properties_of(scores.metrics[m]).has_winners
        for s, place in enumerate(places(means[:, m], lower, digits)):
            text = number_text(means[s, m], digits)
            for low, high, form in pairs:
                below, above = ends.select(low, high).row(s * len(scores.metrics) + m)
                if None not in (below, above) and not np.isnan([below, above]).any():
                    text += " " + form(means[s, m], below, above, digits)
            cells[s].append(Cell(text, best=several and place == 0, second=several and place == 1))
    return cells


def _services(scores: Scores, all_of_them: bool) -> dict[str, NDArray[np.float64]]:
    """Return the shares next to the averages, by the names of their columns."""
    shares = {"users": scores.user_coverage}
    if not scores.metrics:
        return shares
    metric, depth = deepest(scores.metrics)
    place = scores.metrics.index(metric)
    if all_of_them and scores.filled is not None:
        shares[f"places{depth}"] = scores.filled[:, place]
    if all_of_them and scores.item_coverage is not None:
        shares[f"items in {scores.catalogue}"] = scores.item_coverage
    if scores.unjudged is not None:
        shares[f"unjudged{depth}"] = scores.unjudged[:, place]
    if scores.nonexistent is not None:
        shares[f"nonexistent{depth}"] = scores.nonexistent[:, place]
    return shares


def _caption(scores: Scores, averaging: Averaging) -> str:
    settings = scores.step.settings
    parts = [
        scores.whom,
        f"{settings.get('lists', 'full')} lists",
        *([] if scores.relevance is None else [str(scores.relevance)]),
        *_averaged(scores, averaging),
        *([] if scores.repetitions is None else ["sd: the standard deviation between repetitions"]),
        *([] if scores.bounds is None else ["in brackets: all unjudged items irrelevant, or all relevant"]),
    ]
    return "; ".join(parts)


def _averaged(scores: Scores, averaging: Averaging) -> list[str]:
    """Return how lists are averaged, in clauses."""
    decided = {"average": averaging.average, "coverage": averaging.coverage, "undefined": averaging.undefined}
    average, coverage, undefined = averaging_phrases(decided, scores.metrics, scores.left_out_by(averaging))
    if averaging.coverage == "reduced" and len(scores.systems) > 1:
        served, every = scores.n_served_users, scores.n_users
        users = f"{served:,} of {every:,} users" if served < every else count_text(every, "user")
        coverage = f"over the {users} that {all_systems(len(scores.systems))} serve"
    groups = [] if averaging.groups == "pooled" else [f"groups: {averaging.groups}"]
    return [average, *groups, coverage, undefined]


def _best_first(
    rows: list[list[Cell]], means: NDArray[np.float64], lower_is_better: Sequence[bool]
) -> list[list[Cell]]:
    """Return the rows of the systems in the order of the first metric; those without an average are last."""
    if not lower_is_better:
        return rows
    return [rows[s] for s in np.argsort(means[:, 0] * (1 if lower_is_better[0] else -1), kind="stable")]


def _interval(mean: float, lower: float, upper: float, digits: int) -> str:
    """Return an interval as text: its half width if the mean is in the middle, otherwise its ends."""
    if f"{mean - lower:.{digits}f}" == f"{upper - mean:.{digits}f}":
        return f"±{number_text(mean - lower, digits)}"
    return f"[{number_text(lower, digits)}, {number_text(upper, digits)}]"


def _deviation(_: float, __: float, deviation: float, digits: int) -> str:
    return f"(sd {number_text(deviation, digits)})"


def _span(_: float, least: float, most: float, digits: int) -> str:
    return f"({number_text(least, digits)}–{number_text(most, digits)})"

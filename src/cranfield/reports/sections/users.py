"""How the values spread over users."""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield.measures import Scores
from cranfield.reports import figures
from cranfield.reports.markup import downloads, figure, paragraphs
from cranfield.reports.section import Reported, Section, on_page

# Every value of every list is a table to download if it has no more rows; else only quantiles are.
_MOST_VALUES = 40_000
_FIGURES = 3
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def users(scores: Scores) -> Section | None:
    """Return the distributions of the first metrics; None where no metric has a value by list."""
    metrics = [name for m, name in enumerate(scores.metrics) if np.isfinite(scores.values[:, m]).any()]
    if not metrics:
        return None
    said = (
        f"An average hides for whom it is made. Thin lines go from the 10 % of {scores.unit}s with the lowest values "
        "to the 10 % with the highest, bars hold the middle half, the tick is the median and the dot the mean."
    )
    drawn = "".join(
        figure(f"users-{k}", figures.distributions(scores, metric), f"{metric} over the {scores.unit}s of each system.")
        for k, metric in enumerate(metrics[:_FIGURES], start=1)
    )
    tables = {"quantiles": quantiles(scores)}
    if scores.values.size <= _MOST_VALUES:
        tables["per-user"] = scores.per_user()
    return Section("users", "User by user", paragraphs([said]) + drawn + downloads(*tables), tables=tables)


@on_page(40)
def _on_page(reported: Reported) -> Section | None:
    return users(reported.scores)


def quantiles(scores: Scores) -> pl.DataFrame:
    """Return one row per system and metric: how many lists have a value, how many of these are 0, and quantiles."""
    rows = []
    for s, system in enumerate(scores.systems):
        for m, metric in enumerate(scores.metrics):
            values = scores.values[s, m][np.isfinite(scores.values[s, m])]
            levels = np.quantile(values, _LEVELS).tolist() if len(values) else [None] * len(_LEVELS)
            counts = {"lists": len(values), "zero": int(np.count_nonzero(values == 0))}
            named = {f"q{100 * level:.0f}": value for level, value in zip(_LEVELS, levels)}
            rows.append({"system": system, "metric": metric, **counts, **named})
    kinds = {"system": pl.String, "metric": pl.String, "lists": pl.Int64, "zero": pl.Int64}
    return pl.DataFrame(rows, schema={**kinds, **{f"q{100 * level:.0f}": pl.Float64 for level in _LEVELS}})

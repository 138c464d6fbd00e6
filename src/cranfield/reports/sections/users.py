"""How values are distributed over users."""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield.measures import PLAIN, Averaging, Scores
from cranfield.metrics import average_phrase
from cranfield.reports import figures
from cranfield.reports.markup import downloads, figure, paragraphs
from cranfield.reports.section import Reported, Section, on_page

# Up to this many values, the page offers all of them as a table to download; above, only quantiles.
_MOST_VALUES = 40_000
_FIGURES = 3
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def users(scores: Scores, averaging: Averaging = PLAIN) -> Section | None:
    """Return the distributions of the first metrics; None if no metric has a value per list.

    The values are those that are averaged: one per user if each user's lists are averaged first, and 0 where an
    undefined value counts as 0.
    """
    metrics = [name for m, name in enumerate(scores.metrics) if np.isfinite(scores.values[:, m]).any()]
    if not metrics:
        return None
    if averaging.with_kind().taken_of(scores).overall is not scores.overall:
        averaging = averaging.with_(average="mean")  # an average like TRisk has no values per user
    unit = "user" if averaging.by == "user" else scores.unit
    average = average_phrase(str(averaging.average))
    dots = "tick and dot are the median" if average == "median" else f"the tick is the median and the dot the {average}"
    said = (
        f"An average does not show for whom a system works well. Thin lines go from the 10 % of {unit}s with the "
        f"lowest values to the 10 % with the highest, bars hold the middle half, {dots}."
    )
    drawn = "".join(
        figure(
            f"users-{k}",
            figures.distributions(scores, metric, averaging=averaging),
            f"{metric} over the {unit}s, by system.",
        )
        for k, metric in enumerate(metrics[:_FIGURES], start=1)
    )
    tables = {"quantiles": quantiles(scores, averaging)}
    if scores.values.size <= _MOST_VALUES:
        tables["per-user"] = scores.per_user()
    return Section("users", "User by user", paragraphs([said]) + drawn + downloads(*tables), tables=tables)


@on_page(40)
def _on_page(reported: Reported) -> Section | None:
    return users(reported.scores, reported.averaging)


def quantiles(scores: Scores, averaging: Averaging = PLAIN) -> pl.DataFrame:
    """Return one row per system and metric: the average, the number of users (or lists), the number of 0, quantiles."""
    rows = []
    averages = scores.average(averaging)
    for s, system in enumerate(scores.systems):
        for m, metric in enumerate(scores.metrics):
            values = scores.averaged_values(s, m, averaging)
            levels = np.quantile(values, _LEVELS).tolist() if len(values) else [None] * len(_LEVELS)
            counts = {"n": len(values), "zero": int(np.count_nonzero(values == 0))}
            named = {f"q{100 * level:.0f}": value for level, value in zip(_LEVELS, levels)}
            rows.append({"system": system, "metric": metric, "average": averages[s, m], **counts, **named})
    kinds = {"system": pl.String, "metric": pl.String, "average": pl.Float64, "n": pl.Int64, "zero": pl.Int64}
    return pl.DataFrame(rows, schema={**kinds, **{f"q{100 * level:.0f}": pl.Float64 for level in _LEVELS}})

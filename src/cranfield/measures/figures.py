"""The figures of scores: averages with intervals, by group too, and the distribution over users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield._figures import (
    ACCENT,
    MOST_SYSTEMS,
    MUTED,
    QUANTILES,
    Style,
    altair,
    by_name,
    data_of,
    look,
    points_on_intervals,
    quantile_bars,
    tips,
)
from cranfield.measures.averages_frame import LEVEL
from cranfield.measures.averaging import PLAIN, Averaging

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores
    from cranfield.measures.segments import Segments


def averages(
    scores: Scores,
    metric: str | None = None,
    *,
    averaging: Averaging = PLAIN,
    level: float = LEVEL,
    style: Style = "screen",
) -> Any:
    """Return the average of every system with its confidence interval at ``level``, best first."""
    alt, metric = altair(), metric or scores.metrics[0]
    frame = scores.only([metric]).frame(averaging, level=level)
    lower = averaging.taken_of(scores).lower_is_better[scores.metric(metric)]
    rows = frame.select("system", "mean", "lower", "upper").drop_nulls("mean").drop_nans("mean")
    rows = rows.sort("mean", descending=not lower, maintain_order=True).head(MOST_SYSTEMS)
    y = alt.Y("system:N", sort=rows["system"].to_list(), title=None)
    base = alt.Chart(data_of(rows)).encode(tooltip=_tips_of_interval(metric, level, system="system"))
    return by_name(points_on_intervals(base, y, metric, color=ACCENT), style)


def distributions(
    scores: Scores, metric: str | None = None, *, averaging: Averaging = PLAIN, style: Style = "screen"
) -> Any:
    """Return the distribution of values per system: 10 to 90 %, 25 to 75 %, median and average; best first."""
    alt, metric = altair(), metric or scores.metrics[0]
    m = scores.metric(metric)
    averages = scores.average(averaging)[:, m]
    rows = []
    for s, system in enumerate(scores.systems):
        values = scores.averaged_values(s, m, averaging)
        if len(values) and np.isfinite(averages[s]):
            levels = np.quantile(values, list(QUANTILES.values())).tolist()
            rows.append({"system": system, **dict(zip(QUANTILES, levels)), "mean": float(averages[s])})
    lower = averaging.taken_of(scores).lower_is_better[m]
    rows = sorted(rows, key=lambda row: row["mean"], reverse=not lower)[:MOST_SYSTEMS]
    y = alt.Y("system:N", sort=[row["system"] for row in rows], title=None)
    quantiles = {f"q{level}": (f"{level} % below", ".4f") for level in (10, 25, 75, 90)}
    tooltip = tips(system="system", mean=("average", ".4f"), median=("median", ".4f"), **quantiles)
    base = alt.Chart(data_of(rows)).encode(tooltip=tooltip)
    mean = base.mark_point(color=ACCENT, filled=True, size=60, opacity=1).encode(y=y, x="mean:Q")
    return by_name(quantile_bars(base, y, metric, size=0.6 * look(style)["step"]) + mean, style)


def segments(
    averaged: Segments,
    metric: str | None = None,
    *,
    averaging: Averaging = PLAIN,
    level: float = LEVEL,
    style: Style = "screen",
) -> Any:
    """Return every system's average in each group with its interval, best first; the best of a group is coloured."""
    alt, metric = altair(), metric or averaged.scores.metrics[0]
    sign = 1 if averaging.taken_of(averaged.scores).lower_is_better[averaged.scores.metric(metric)] else -1
    frame = averaged.frame(averaging, level=level).filter(metric=metric)
    frame = frame.select("group", "system", "mean", "lower", "upper").drop_nulls("mean").drop_nans("mean")
    rows: list[dict[str, Any]] = []
    for group in averaged.names:
        ranked = sorted(frame.filter(group=group).to_dicts(), key=lambda row: sign * row["mean"])
        for place, row in enumerate(ranked[: max(2, MOST_SYSTEMS // len(averaged.names))]):
            rows.append({**row, "row": f"{group}: {row['system']}", "best": place == 0})
    y = alt.Y("row:N", sort=[row["row"] for row in rows], title=None)
    colour = alt.condition("datum.best", alt.value(ACCENT), alt.value(MUTED))
    tooltip = _tips_of_interval(metric, level, group="group", system="system")
    return by_name(
        points_on_intervals(alt.Chart(data_of(rows)).encode(color=colour, tooltip=tooltip), y, metric), style
    )


def _tips_of_interval(metric: str, level: float, **names: str) -> Any:
    ends = {"lower": (f"{100 * level:g} % from", ".4f"), "upper": ("to", ".4f")}
    return tips(**names, mean=(metric, ".4f"), **ends)

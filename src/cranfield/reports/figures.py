"""Figures: one definition each (Altair), for the page and for SVG, PDF and PNG; no browser is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from cranfield._figures import (
    ACCENT,
    INK,
    MUTED,
    RULE,
    WARN,
    Style,
    altair,
    check_libraries,
    data_of,
    look,
    save,
    svg,
    themed,
    tips,
)
from cranfield.comparisons import Comparison
from cranfield.measures import Scores
from cranfield.reports.orders import best_first

__all__ = [
    "MOST_SYSTEMS",
    "Style",
    "against_truth",
    "averages",
    "check_libraries",
    "distributions",
    "orders",
    "save",
    "svg",
    "themed",
    "wins",
]

MOST_SYSTEMS = 40
"""Figures of more systems show the best ones."""


def averages(
    scores: Scores, metric: str, *, averaging: Mapping[str, Any] = MappingProxyType({}), style: Style = "screen"
) -> Any:
    """Return the average of every system with its interval, best first; ``averaging`` are options of `Scores.frame`."""
    alt = altair()
    frame = scores.only([metric]).frame(**averaging)
    lower = scores.lower_is_better[scores.metric(metric)]
    rows = frame.select("system", "mean", "lower", "upper").drop_nulls("mean").drop_nans("mean")
    rows = rows.sort("mean", descending=not lower, maintain_order=True).head(MOST_SYSTEMS)
    y = alt.Y("system:N", sort=rows["system"].to_list(), title=None)
    base = alt.Chart(data_of(rows)).encode(
        tooltip=tips(system="system", mean=(f"{metric}", ".4f"), lower=("95 % from", ".4f"), upper=("to", ".4f"))
    )
    interval = base.mark_rule(color=ACCENT, strokeWidth=2).encode(
        y=y, x=alt.X("lower:Q", title=metric, scale=alt.Scale(zero=False)), x2="upper:Q"
    )
    return _styled(
        interval + base.mark_point(color=ACCENT, filled=True, size=70, opacity=1).encode(y=y, x="mean:Q"), style
    )


def distributions(scores: Scores, metric: str, *, style: Style = "screen") -> Any:
    """Return how the lists' values are spread, by system: 10 to 90 %, 25 to 75 %, median and mean; best first."""
    alt = altair()
    m = scores.metric(metric)
    rows = []
    for s, system in enumerate(scores.systems):
        values = scores.values[s, m][np.isfinite(scores.values[s, m])]
        if len(values):
            q10, q25, q50, q75, q90 = np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9]).tolist()
            rows.append({"system": system, "q10": q10, "q25": q25, "median": q50, "q75": q75, "q90": q90,
                         "mean": float(values.mean())})  # fmt: skip
    rows = sorted(rows, key=lambda row: row["mean"], reverse=not scores.lower_is_better[m])[:MOST_SYSTEMS]
    y = alt.Y("system:N", sort=[row["system"] for row in rows], title=None)
    quantiles = {f"q{level}": (f"{level} % below", ".4f") for level in (10, 25, 75, 90)}
    told = tips(system="system", mean=("mean", ".4f"), median=("median", ".4f"), **quantiles)
    base = alt.Chart(alt.Data(values=rows)).encode(tooltip=told)
    wide = base.mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y, x=alt.X("q10:Q", title=metric), x2="q90:Q")
    narrow = base.mark_bar(color=MUTED, opacity=0.45, height={"band": 0.5}).encode(y=y, x="q25:Q", x2="q75:Q")
    middle = base.mark_tick(color=INK, thickness=2.5, size=16).encode(y=y, x="median:Q")
    mean = base.mark_point(color=ACCENT, filled=True, size=60, opacity=1).encode(y=y, x="mean:Q")
    return _styled(wide + narrow + middle + mean, style)


def wins(comparison: Comparison, metric: str, *, style: Style = "screen") -> Any:
    """Return, for the best system against each other, for which share of the users it is better, equal and worse."""
    alt = altair()
    m = comparison.metrics.index(metric)
    places = best_first(comparison.averages[:, m], comparison.lower_is_better[m])
    order = [comparison.systems[s] for s in places]
    best, rows = comparison.baseline or order[0], []
    for row in comparison.of_metric(metric).iter_rows(named=True):
        if best not in (row["system_a"], row["system_b"]) or not row["n"]:
            continue
        first = row["system_a"] == best
        counts = (row["wins"], row["ties"], row["losses"])
        for name, count in zip(("better", "equal", "worse"), counts if first else counts[::-1]):
            other = row["system_b"] if first else row["system_a"]
            rows.append({"system": other, "users": name, "share": count / row["n"]})
    shown = [system for system in order if system != best][:MOST_SYSTEMS]
    rows = [row for row in rows if row["system"] in shown]
    chart = (
        alt.Chart(alt.Data(values=rows))
        .transform_calculate(part="indexof(['better', 'equal', 'worse'], datum.users)")
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("system:N", sort=shown, title=None),
            x=alt.X("share:Q", title=f"share of users, by {metric}", axis=alt.Axis(format="%"), stack="zero"),
            color=alt.Color(
                "users:N",
                title=f"{best} is",
                scale=alt.Scale(domain=["better", "equal", "worse"], range=[ACCENT, RULE, WARN]),
                legend=alt.Legend(orient="top", titleOrient="left", titleLimit=300),
            ),
            order="part:Q",
            tooltip=tips(system=f"{best} against", users="is", share=("share of users", ".1%")),
        )
    )
    return _styled(chart, style)


def orders(
    columns: Mapping[str, Mapping[str, float]], highlight: Sequence[str] = (), *, style: Style = "screen"
) -> Any:
    """Return how the order of systems changes from column to column: a line a system, best on top.

    ``columns`` hold values by system, higher is better; the systems in ``highlight`` are coloured.
    """
    alt = altair()
    sizes = look(style)
    names, rows = list(columns), []
    for name, values in columns.items():
        ranked = sorted(values, key=lambda system: -values[system])
        rows += [{"column": name, "system": system, "place": place} for place, system in enumerate(ranked, start=1)]
    x = alt.X(
        "column:N",
        sort=names,
        title=None,
        scale=alt.Scale(padding=0.5),
        axis=alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False, labelColor=INK, grid=False),
    )
    y = alt.Y("place:Q", scale=alt.Scale(reverse=True, nice=False), axis=None)
    condition = alt.condition(
        alt.FieldOneOfPredicate(field="system", oneOf=list(highlight)),
        alt.Color("system:N", scale=alt.Scale(domain=list(highlight), range=[ACCENT, WARN, INK]), legend=None),
        alt.value(MUTED),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=x, y=y, color=condition, detail="system:N", tooltip=tips(system="system", column="by", place="place")
    )
    lines = base.mark_line(strokeWidth=2.5, opacity=0.75)
    points = base.mark_point(filled=True, size=90, opacity=1)
    ends = [
        base.transform_filter(alt.FieldEqualPredicate(field="column", equal=name))
        .mark_text(align=align, dx=dx, fontSize=sizes["size"], limit=0.24 * sizes["width"])
        .encode(text="system:N")
        for name, align, dx in ((names[0], "right", -10), (names[-1], "left", 10))
    ]
    chart = alt.layer(lines, points, *ends)
    sides = {"width": 1.5 * sizes["width"], "height": 1.35 * sizes["step"] * max(map(len, columns.values()))}
    return _styled(chart, style).properties(**sides)


def against_truth(
    measured: Mapping[str, float], truth: Mapping[str, float], name: str, *, style: Style = "screen"
) -> Any:
    """Return what was measured against the truth, a point a system."""
    alt = altair()
    sizes = look(style)
    # Names stand left and right of their points in turn, so that neighbours do not cover each other; not on the axis.
    low, high = min(measured.values()), max(measured.values())
    rows = [
        {"system": one, "measured": measured[one], "truth": truth[one],
         "left": k % 2 == 0 and measured[one] > low + 0.25 * (high - low)}
        for k, one in enumerate(sorted(measured, key=lambda system: truth[system]))
    ]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("measured:Q", title=name, scale=alt.Scale(zero=False)),
        y=alt.Y("truth:Q", title="true value", scale=alt.Scale(zero=False), axis=alt.Axis(grid=True)),
        tooltip=tips(system="system", measured=(f"{name}", ".4f"), truth=("true value", ".4f")),
    )
    points = base.mark_point(filled=True, color=ACCENT, size=80, opacity=1)
    names = [
        base.transform_filter(f"datum.left == {str(left).lower()}")
        .mark_text(align=align, dx=dx, color=INK, fontSize=sizes["size"] - 1)
        .encode(text="system:N")
        for left, align, dx in ((True, "right", -9), (False, "left", 9))
    ]
    return _styled(alt.layer(points, *names), style).properties(
        width=0.72 * sizes["width"], height=0.5 * sizes["width"]
    )


def _styled(chart: Any, style: Style) -> Any:
    """Return a chart of systems in the width, fonts and colours of a style; names of systems stand at its left."""
    sizes = look(style)
    names = {"grid": False, "domain": False, "ticks": False, "labelColor": INK, "labelFontSize": sizes["size"]}
    return themed(chart.properties(width=sizes["width"]), style).configure_axisY(**names)

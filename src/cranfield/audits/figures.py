"""The figures of an audit: the specification curve, the flip map, influence bars and rank distributions.

Each is an Altair chart in the style of a page (``screen``) or of a paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._figures import ACCENT, INK, MUTED, RULE, WARN, Style, altair, data_of, look, themed, tips
from cranfield.audits.leads import Floats
from cranfield.audits.pair import ANSWERS, PairAudit

if TYPE_CHECKING:
    from cranfield.audits.answers import Audit

# A curve of more cells is drawn from so many of them, evenly chosen in its order: more would not be tooltip apart.
_MOST_CELLS = 400


def curve(audit: Audit, *, first: str | None = None, second: str | None = None, style: Style = "screen") -> Any:
    """Return the specification curve: d_z of the cells in ascending order, and beneath it which options each has.

    Significant cells are filled in the colour of the leader; the starting point is a diamond.
    """
    alt, own = altair(), look(style)
    pair = audit.pair(first, second)
    effects, matrix, options = _curve_frames(audit, pair)
    x = alt.X("place:Q", title=None, axis=None, scale=alt.Scale(nice=False))
    title = f"d_z, above 0 where {pair.systems[0]} leads"
    names = [*pair.systems, "not significant"]
    colour = alt.Color(
        "result:N", title="significantly better", scale=alt.Scale(domain=names, range=[ACCENT, WARN, MUTED])
    )
    tooltip = tips(
        words="options", d_z=("d_z", ".3f"), difference=("difference", ".4f"), p=("p", ".3g"), leader="leads"
    )
    base = alt.Chart(data_of(effects)).encode(x=x, y=alt.Y("d_z:Q", title=title), color=colour, tooltip=tooltip)
    points = base.transform_filter("!datum.start").mark_point(filled=True, size=14, opacity=1)
    start = base.transform_filter("datum.start").mark_point(
        shape="diamond", filled=True, size=130, opacity=1, stroke=INK
    )
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="zero:Q")
    upper = (zero + points + start).properties(width=own["width"], height=own["panel"][1])
    lower = (
        alt.Chart(data_of(matrix))
        .mark_tick(opacity=1, thickness=1.2, height=0.55 * own["step"])
        .encode(x=x, y=alt.Y("option:N", title=None, sort=options), color=colour)
        .properties(width=own["width"], height={"step": 0.65 * own["step"]})
    )
    return themed(alt.vconcat(upper, lower, spacing=6), style)


def _curve_frames(audit: Audit, pair: PairAudit) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return the cells of the curve, one row per cell and decision for the matrix, and the rows of the matrix."""
    grid, leads = audit.grid, pair.leads
    universe = grid.universe
    order = np.argsort(leads.d_z[universe], kind="stable")
    if len(order) > _MOST_CELLS:
        kept = np.unique(np.linspace(0, len(order) - 1, _MOST_CELLS).round().astype(np.int64))
        kept = np.union1d(kept, np.flatnonzero(order == grid.start))
    else:
        kept = np.arange(len(order))
    cells = order[kept]
    own = universe[cells]
    leader = np.array([pair.systems[1], "neither", pair.systems[0]])[leads.lead[own] + 1]
    result = np.where(leads.significant[own] & (leads.lead[own] != 0), leader, "not significant")
    numbers = {name: getattr(leads, name)[own] for name in ("d_z", "difference", "p")}
    words = [", ".join(f"{name} {option}" for name, option in grid.words(int(cell)).items()) for cell in cells]
    effects = pl.DataFrame(
        {"place": kept, "start": cells == grid.start, "leader": leader, "result": result, "words": words, **numbers}
    )
    parts, options = [], []
    for place, opened in enumerate(grid.opened):
        labels = [f"{opened.name}: {option}" for option in opened.options]
        options += labels
        parts.append(
            pl.DataFrame({"place": kept, "option": np.array(labels)[grid.cells[cells, place]], "result": result})
        )
    return effects, pl.concat(parts), options


def flip_map(audit: Audit, *, first: str | None = None, second: str | None = None, style: Style = "screen") -> Any:
    """Return the flip map: for each option of each decision the share of its cells that the first system leads."""
    alt, own = altair(), look(style)
    pair = audit.pair(first, second)
    rows, options = _option_rows(audit, pair)
    colour = alt.Color("leads:Q", legend=None, scale=alt.Scale(domain=[0, 0.5, 1], range=[WARN, "#f2f2f2", ACCENT]))
    title = f"share of the cells that {pair.systems[0]} leads; the others are led by {pair.systems[1]}"
    led = {name: (f"{system} leads", ".0%") for name, system in zip(("leads", "trails"), pair.systems)}
    tooltip = tips(option="option", **led, significant=("significant", ".0%"), cells="cells")
    base = alt.Chart(data_of(rows)).encode(y=alt.Y("option:N", title=None, sort=options))
    bars = base.mark_bar(stroke=RULE).encode(
        x=alt.X("leads:Q", title=title, axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])),
        x2=alt.datum(0.5),
        color=colour,
        tooltip=tooltip,
    )
    start = base.transform_filter("datum.start").mark_point(shape="diamond", filled=True, size=60, color=INK)
    marks = start.encode(x="leads:Q", tooltip=tooltip)
    half = alt.Chart(alt.Data(values=[{"half": 0.5}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="half:Q")
    return themed((bars + half + marks).properties(width=own["width"]), style)


def _option_rows(audit: Audit, pair: PairAudit) -> tuple[pl.DataFrame, list[str]]:
    grid = audit.grid
    lead, significant = pair.leads.lead[grid.universe], pair.leads.significant[grid.universe]
    rows: list[dict[str, Any]] = []
    for place in grid.decisions:
        opened = grid.opened[place]
        for number, option in enumerate(opened.options):
            mask = grid.cells[:, place] == number
            if not mask.any():
                continue
            weights = grid.weights[mask] / grid.weights[mask].sum()
            rows.append(
                {
                    "option": f"{opened.name}: {option}",
                    "leads": float(weights @ (lead[mask] > 0)),
                    "trails": float(weights @ (lead[mask] < 0)),
                    "significant": float(weights @ significant[mask]),
                    "cells": int(mask.sum()),
                    "start": bool(grid.cells[grid.start, place] == number),
                }
            )
    return pl.DataFrame(rows), [row["option"] for row in rows]


def influence(
    audit: Audit,
    *,
    first: str | None = None,
    second: str | None = None,
    answer: str = "d_z",
    style: Style = "screen",
) -> Any:
    """Return influence bars: the Shapley share of each decision with its interval, and chance as the noise floor."""
    alt, own = altair(), look(style)
    _checks.one_of("answer", answer, ANSWERS)
    kept = [row for row in audit.pair(first, second).influence if row["answer"] == answer]
    singles = [row for row in kept if row["with_decision"] is None]
    decided = sorted((row for row in singles if row["kind"] != "chance"), key=lambda row: -row["shapley"])
    columns = ("decision", "kind", "shapley", "main", "total", "lower", "upper")
    rows = pl.DataFrame([{name: row[name] for name in columns} for row in decided])
    names = [row["decision"] for row in decided]
    variance = "d_z" if answer == "d_z" else "the sign of the lead"
    tooltip = tips(
        decision="decision",
        kind="kind",
        shapley=("share", ".1%"),
        main=("alone", ".1%"),
        total=("with all interactions", ".1%"),
        lower=("from", ".1%"),
        upper=("to", ".1%"),
    )
    x = alt.X("shapley:Q", title=f"share of the variance of {variance}", axis=alt.Axis(format=".0%"))
    base = alt.Chart(data_of(rows)).encode(y=alt.Y("decision:N", title=None, sort=names))
    bars = base.mark_bar(color=ACCENT, height={"band": 0.65}).encode(x=x, tooltip=tooltip)
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lower:Q", x2="upper:Q")
    layers = [bars, ends]
    chance = [row["shapley"] for row in singles if row["kind"] == "chance"]
    if chance:
        floor = alt.Chart(alt.Data(values=[{"floor": sum(chance), "label": "chance"}]))
        layers.append(floor.mark_rule(color=WARN, strokeDash=[4, 3], strokeWidth=1.5).encode(x="floor:Q"))
        layers.append(
            floor.mark_text(color=WARN, align="left", dx=4, y=-6, fontSize=own["size"] - 1).encode(
                x="floor:Q", text="label:N"
            )
        )
    return themed(alt.layer(*layers).properties(width=own["width"]), style)


def ranks(audit: Audit, *, style: Style = "screen") -> Any:
    """Return the rank distribution of every system over all cells, the best on average first."""
    alt, own = altair(), look(style)
    rows = audit.ranks().filter(pl.col("question").is_null()).drop("question")
    mean = rows.group_by("system", maintain_order=True).agg((pl.col("rank") * pl.col("share")).sum().alias("mean"))
    names = mean.sort("mean", maintain_order=True)["system"].to_list()
    n = len(names)
    # From dark to light: the order of the ranks is seen without telling hues apart.
    colours = alt.Scale(domain=list(range(1, n + 1)), range=_shades(n))
    tooltip = tips(system="system", rank="rank", share=("share", ".1%"), lower=("from", ".1%"), upper=("to", ".1%"))
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("share:Q", title="share of the cells", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("system:N", title=None, sort=names),
            color=alt.Color("rank:O", title="rank", scale=colours),
            order=alt.Order("rank:Q"),
            tooltip=tooltip,
        )
        .properties(width=own["width"])
    )
    return themed(chart, style)


def _shades(n: int) -> list[str]:
    """Return so many blues, from dark to light."""
    dark, light = np.array([0, 68, 136]), np.array([222, 235, 247])
    steps: Floats = np.linspace(0, 1, n) if n > 1 else np.zeros(1)
    return ["#" + "".join(f"{round(part):02x}" for part in dark + step * (light - dark)) for step in steps]


FIGURES: dict[str, Callable[..., Any]] = {"curve": curve, "map": flip_map, "influence": influence, "ranks": ranks}
"""The figures, by name."""

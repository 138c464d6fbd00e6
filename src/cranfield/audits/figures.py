"""The figures of an audit: the specification curve, the flip map, influence bars and rank distributions.

Each figure is an Altair chart in the style of a web page (``screen``) or a paper.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._figures import ACCENT, INK, MUTED, WARN, Style, altair, data_of, look, themed, tips
from cranfield.audits.grid import Floats, VariedDecision
from cranfield.audits.influence import ANSWERS
from cranfield.audits.pair import PairView
from cranfield.audits.words import option_label
from cranfield.facts import audit as audit_facts

if TYPE_CHECKING:
    from cranfield.audits.result import Audit

_MOST_CELLS = 400  # with more cells, the curve shows this many of them, evenly spaced: more could not be distinguished
_MOST_SYSTEMS = 40  # with more systems, figures show the best ones
_MOST_SHADES = 10  # with more ranks, the legend shows the first and the last
# The axis of names at the left of a row.
_NAMES = {"grid": False, "domain": False, "ticks": False, "labelColor": INK, "labelPadding": 5}

_SYMBOLS: Mapping[str, Any] = {"symbolOpacity": 1, "symbolType": "circle", "symbolStrokeWidth": 0}


def curve(audit: Audit, *, first: str | None = None, second: str | None = None, style: Style = "screen") -> Any:
    """Return the specification curve: d_z of the cells in ascending order, and the options of each cell below."""
    alt, own = altair(), look(style)
    view = PairView.of(audit, first, second)
    effects, matrix = _curve_frames(audit, view)
    x = alt.X("place:Q", title=None, axis=None, scale=alt.Scale(nice=False, padding=4))
    names = [*(f"{system} significantly better" for system in view.systems), "not significant"]
    legend = alt.Legend(title=None, orient="top", direction="vertical", offset=4, **_SYMBOLS)
    colour = alt.Color("result:N", legend=legend, scale=alt.Scale(domain=names, range=[ACCENT, WARN, MUTED]))
    tooltip = tips(
        words="options", d_z=("d_z", ".3f"), difference=("difference", ".4f"), p=("p", ".3g"), leader="leads"
    )
    y = alt.Y("d_z:Q", title="d_z", axis=alt.Axis(grid=True, tickCount=5))
    base = alt.Chart(data_of(effects)).encode(x=x, y=y, color=colour, tooltip=tooltip)
    # Significant points are also larger, so that colour is not the only sign.
    significant = f"datum.result != {json.dumps(names[-1])}"
    others = base.transform_filter("!datum.start")
    points = others.transform_filter(significant).mark_point(filled=True, size=22, opacity=1)
    faint = others.transform_filter(f"!({significant})").mark_point(filled=True, size=7, opacity=1)
    start = base.transform_filter("datum.start").mark_point(
        shape="diamond", filled=True, size=130, opacity=1, stroke=INK, strokeWidth=1.5
    )
    zero = alt.Chart(data_of([{"zero": 0}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="zero:Q")
    title = alt.Title(
        f"d_z is above 0 where {view.first} leads", color=MUTED, fontSize=own["size"] - 1, limit=own["width"]
    )
    sides = {"width": own["width"], "height": own["panel"][1]}
    upper = (zero + faint + points + start).properties(title=title, **sides)
    panels = [_matrix(alt, matrix, opened, audit.grid.labels, x, own) for opened in audit.grid.varied]
    return themed(alt.vconcat(upper, *panels, spacing=4), style)


def _matrix(
    alt: Any, matrix: pl.DataFrame, opened: VariedDecision, names: Mapping[str, str], x: Any, own: Mapping[str, Any]
) -> Any:
    """Return which cells have which option of one decision: one row per option, one tick per cell."""
    labels = _labels(opened, names)
    y = alt.Y("option:N", title=None, sort=labels, scale=alt.Scale(domain=labels), axis=alt.Axis(**_NAMES))
    return (
        alt.Chart(data_of(matrix.filter(decision=opened.name).drop("decision")))
        .mark_tick(color=INK, opacity=0.75, thickness=own["width"] / _MOST_CELLS, height=0.5 * own["step"])
        .encode(x=x, y=y)
        .properties(width=own["width"], height={"step": 0.6 * own["step"]})
    )


def _labels(opened: VariedDecision, names: Mapping[str, str]) -> list[str]:
    return [f"{opened.name}: {option_label(opened.name, option, names)}" for option in opened.options]


def _curve_frames(audit: Audit, view: PairView) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the cells of the curve, and one row per cell and decision for the matrix below."""
    grid, universe = audit.grid, audit.grid.universe
    order = np.argsort(view.d_z[universe], kind="stable")
    kept = np.arange(len(order))
    if len(order) > _MOST_CELLS:
        kept = np.unique(np.linspace(0, len(order) - 1, _MOST_CELLS).round().astype(np.int64))
        kept = np.union1d(kept, np.flatnonzero(order == grid.start))
    cells = order[kept]
    own = universe[cells]
    leader = np.array([view.second, "neither", view.first])[view.lead[own] + 1]
    results = [f"{view.second} significantly better", "not significant", f"{view.first} significantly better"]
    numbers = {"d_z": view.d_z[own], "difference": view.difference[own], "p": view.pair.leads.p[own]}
    words = [", ".join(f"{name} {option}" for name, option in grid.words(int(cell)).items()) for cell in cells]
    columns = {"leader": leader, "result": np.array(results)[view.better[own] + 1], "words": words}
    effects = pl.DataFrame({"place": kept, "start": cells == grid.start, **columns, **numbers})
    parts = [
        pl.DataFrame(
            {"place": kept, "decision": opened.name, "option": np.array(_labels(opened, grid.labels))[numbers]}
        )
        for opened, numbers in zip(grid.varied, grid.cells[cells].T)
    ]
    return effects, pl.concat(parts)


def flip_map(audit: Audit, *, first: str | None = None, second: str | None = None, style: Style = "screen") -> Any:
    """Return the flip map: for each option of each decision, the share of its cells in which the first system leads.

    A bar goes from one half to the share, so its side and its colour show which system leads more often. The options of
    the starting point are diamonds.
    """
    alt, own = altair(), look(style)
    view = PairView.of(audit, first, second)
    rows = option_rows(audit, view)
    options = rows["option"].to_list()
    title = f"share of the set-ups that {view.first} leads"
    led = {name: (f"{system} leads", ".0%") for name, system in zip(("leads", "trails"), view.systems)}
    tooltip = tips(option="option", **led, significant=("significant", ".0%"), cells="cells")
    base = alt.Chart(data_of(rows)).encode(y=alt.Y("option:N", title=None, sort=options, axis=alt.Axis(**_NAMES)))
    x = alt.X("leads:Q", title=title, axis=alt.Axis(format=".0%", grid=True), scale=alt.Scale(domain=[0, 1]))
    colour = alt.condition("datum.leads >= 0.5", alt.value(ACCENT), alt.value(WARN))
    bars = base.mark_bar(height={"band": 0.7}).encode(x=x, x2=alt.datum(0.5), color=colour, tooltip=tooltip)
    start = base.transform_filter("datum.start").mark_point(shape="diamond", filled=True, size=70, color=INK, opacity=1)
    marks = start.encode(x="leads:Q", tooltip=tooltip)
    half = alt.Chart(data_of([{"half": 0.5}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="half:Q")
    height = {"step": 0.8 * own["step"]}
    return themed((bars + half + marks).properties(width=own["width"], height=height), style)


def option_rows(audit: Audit, view: PairView) -> pl.DataFrame:
    """Return one row per option of the decisions: the share of its cells in which each system leads."""
    grid = audit.grid
    lead, better = view.lead[grid.universe], view.better[grid.universe]
    rows = []
    for decision, option, mask in grid.by_option():
        if decision.kind == "chance" or not mask.any():
            continue
        weights = grid.weights[mask] / grid.weights[mask].sum()
        shares = (float(weights @ own[mask]) for own in (lead > 0, lead < 0, better != 0))
        rows.append((f"{decision.name}: {option}", *shares, int(mask.sum()), bool(mask[grid.start])))
    return pl.DataFrame(rows, schema=_OPTION_KINDS, orient="row")


_OPTION_KINDS = {
    "option": pl.String, "leads": pl.Float64, "trails": pl.Float64, "significant": pl.Float64, "cells": pl.Int64,
    "start": pl.Boolean,
}  # fmt: skip


def influence(
    audit: Audit, *, first: str | None = None, second: str | None = None, answer: str = "d_z", style: Style = "screen"
) -> Any:
    """Return influence bars: the Shapley share of each decision with its interval, and chance as the noise floor."""
    alt, own = altair(), look(style)
    _checks.one_of("answer", answer, ANSWERS)
    kept = [row for row in PairView.of(audit, first, second).pair.influence if row["answer"] == answer]
    singles = [row for row in kept if row["with_decision"] is None]
    decided = sorted((row for row in singles if row["kind"] != "chance"), key=lambda row: -row["shapley"])
    shares = {"shapley": "share", "main": "alone", "total": "with all interactions", "lower": "from", "upper": "to"}
    columns = ("decision", "kind", *shares)
    kinds = {name: pl.String if name in ("decision", "kind") else pl.Float64 for name in columns}
    rows = pl.DataFrame([{name: row[name] for name in columns} for row in decided], schema=kinds)
    names = [row["decision"] for row in decided]
    variance = "d_z" if answer == "d_z" else "the sign of the lead"
    tooltip = tips(decision="decision", kind="kind", **{name: (title, ".1%") for name, title in shares.items()})
    axis = alt.Axis(format=".0%", grid=True, tickCount=5)
    x = alt.X("shapley:Q", title=f"share of the variance of {variance}", axis=axis, scale=alt.Scale(domainMin=0))
    base = alt.Chart(data_of(rows)).encode(y=alt.Y("decision:N", title=None, sort=names, axis=alt.Axis(**_NAMES)))
    bars = base.mark_bar(color=ACCENT, height={"band": 0.6}).encode(x=x, tooltip=tooltip)
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lower:Q", x2="upper:Q", tooltip=tooltip)
    layers = [bars, ends]
    chance = [row["shapley"] for row in singles if row["kind"] == "chance"]
    if chance:
        label = f"noise floor: chance has {audit_facts.share_text(sum(chance))}"
        floor = alt.Chart(data_of([{"floor": sum(chance), "label": label}]))
        layers.append(floor.mark_rule(color=WARN, strokeDash=[4, 3], strokeWidth=1.5).encode(x="floor:Q"))
        words = floor.mark_text(color=WARN, align="left", dx=4, y=-7, fontSize=own["size"] - 1)
        layers.append(words.encode(x="floor:Q", text="label:N"))
    return themed(alt.layer(*layers).properties(width=own["width"], height={"step": own["step"]}), style)


def ranks(audit: Audit, *, style: Style = "screen") -> Any:
    """Return the rank distribution of every system over all cells, the best on average first."""
    alt, own = altair(), look(style)
    rows = audit.ranks().filter(pl.col("question").is_null()).drop("question")
    mean = rows.group_by("system", maintain_order=True).agg((pl.col("rank") * pl.col("share")).sum().alias("mean"))
    names = mean.sort("mean", maintain_order=True)["system"].to_list()[:_MOST_SYSTEMS]
    n = len(audit.systems)
    rows = rows.filter(pl.col("system").is_in(names) & (pl.col("share") > 0))
    # From dark to light: the order of the ranks is visible without distinguishing hues.
    colours = alt.Scale(domain=list(range(1, n + 1)), range=_shades(n))
    shown = [1, *(rank for rank in range(2, n) if n <= _MOST_SHADES), n]
    legend = alt.Legend(title="rank", orient="top", values=shown, offset=4, **_SYMBOLS)
    tooltip = tips(system="system", rank="rank", share=("share", ".1%"), lower=("from", ".1%"), upper=("to", ".1%"))
    axis = alt.Axis(format=".0%", grid=True)
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(stroke=MUTED, strokeWidth=0.5, height={"band": 0.75})
        .encode(
            x=alt.X("share:Q", title="share of the set-ups", axis=axis, scale=alt.Scale(domain=[0, 1], clamp=True)),
            y=alt.Y("system:N", title=None, sort=names, axis=alt.Axis(**_NAMES)),
            color=alt.Color("rank:O", scale=colours, legend=legend),
            order=alt.Order("rank:Q"),
            tooltip=tooltip,
        )
        .properties(width=own["width"], height={"step": own["step"]})
    )
    return themed(chart, style)


def _shades(n: int) -> list[str]:
    """Return ``n`` blues, from dark to light."""
    dark, light = np.array([0, 68, 136]), np.array([222, 235, 247])
    steps: Floats = np.linspace(0, 1, n) if n > 1 else np.zeros(1)
    return ["#" + "".join(f"{round(part):02x}" for part in dark + step * (light - dark)) for step in steps]


FIGURES: dict[str, Callable[..., Any]] = {"curve": curve, "map": flip_map, "influence": influence, "ranks": ranks}
"""The figures, by name."""

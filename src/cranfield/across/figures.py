"""The figures of a comparison over datasets: forest plot, critical differences, and who leads by each rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield._figures import ACCENT, INK, MUTED, Style, altair, data_of, look, themed, tips
from cranfield._numbers import count_text
from cranfield.across.standing import effect_text, interval_reach
from cranfield.facts import across as across_facts

if TYPE_CHECKING:
    from cranfield.across.comparison import DatasetComparison

_POOLED = ("these datasets", "datasets like these", "a new dataset")
_NAMES = {"grid": False, "domain": False, "ticks": False, "labelColor": INK, "labelPadding": 5}


def forest(comparison: DatasetComparison, *, metric: str | None = None, style: Style = "screen") -> Any:
    """Return the forest plot of the pair of the answer: a row per dataset, then the averages.

    Points are effects with their intervals over users; the diamond is the average with its interval for datasets like
    these, and the thin bar what to expect on a new one. Ratios are on a logarithmic axis. Datasets of a known source
    stand side by side.
    """
    alt, sizes, standing = altair(), look(style), comparison.of_metric(metric)
    table = standing.table
    first, second = standing.answer.systems
    place, sign = standing.pair(first, second)
    is_ratio, pools = table.scales[place] == "ratio", standing.pools
    reach = np.nan_to_num(interval_reach(table.errors, standing.alpha))

    def unit(effect: float) -> float:
        return float(np.exp(np.clip(effect, -16.0, 16.0))) if is_ratio else float(effect)

    order = sorted(range(len(table.datasets)), key=lambda d: standing.known.get(table.datasets[d], "~"))
    rows = []
    for d in order:
        effect = sign * table.effects[place, d]
        if not np.isnan(effect):
            users = f" ({count_text(int(table.users[d]), 'user')})" if table.users[d] else ""
            ends = (effect - reach[place, d], effect + reach[place, d])
            rows.append({"row": f"{table.datasets[d]}{users}", "kind": "dataset", "size": effect, "ends": ends})
    averages = (
        (_POOLED[0], pools.these_mean, pools.these_lower, pools.these_upper),
        (_POOLED[1], pools.mean, pools.lower, pools.upper),
        (_POOLED[2], pools.mean, pools.new_lower, pools.new_upper),
    )
    for name, mean, lower, upper in averages:
        if not np.isnan(lower[place]):
            ends = tuple(sorted((sign * lower[place], sign * upper[place])))
            rows.append({"row": name, "kind": name, "size": sign * mean[place], "ends": ends})
    data = [
        {"row": row["row"], "kind": row["kind"], "size": unit(row["size"]), "lower": unit(row["ends"][0]),
         "upper": unit(row["ends"][1]), "one": unit(0.0),
         "label": effect_text(float(row["size"]), table.scales[place])}
        for row in rows
    ]  # fmt: skip
    names = [row["row"] for row in data]
    scale = alt.Scale(type="log", nice=False) if is_ratio else alt.Scale()
    percents = "datum.value == 1 ? '0 %' : format(100 * (datum.value - 1), '+.3~g') + ' %'"
    axis = alt.Axis(labelExpr=percents, values=_ticks(data), grid=True) if is_ratio else alt.Axis(grid=True)
    x = alt.X("lower:Q", title=f"{first} above {second}", scale=scale, axis=axis)
    y = alt.Y("row:N", sort=names, title=None, axis=alt.Axis(**_NAMES))
    base = alt.Chart(data_of(data)).encode(y=y, tooltip=tips(row="", label=f"{first} above {second}"))
    zero = alt.Chart(data_of(data[:1])).mark_rule(color=INK).encode(x="one:Q")
    pooled_rows, new = f"indexof({json.dumps(_POOLED)}, datum.kind) >= 0", f"datum.kind == {json.dumps(_POOLED[2])}"
    color = alt.condition(pooled_rows, alt.value(ACCENT), alt.value(MUTED))
    thin = alt.condition(new, alt.value(1), alt.value(2.5))
    intervals = base.mark_rule().encode(x=x, x2="upper:Q", color=color, strokeWidth=thin)
    points = base.transform_filter(f"!({pooled_rows})").mark_point(filled=True, size=55, color=INK, opacity=1)
    diamonds = base.transform_filter(f"({pooled_rows}) && !({new})").mark_point(
        shape="diamond", filled=True, size=130, color=ACCENT, opacity=1
    )
    words = base.mark_text(align="left", dx=6, color=INK, fontSize=sizes["size"]).encode(
        x=alt.value("width"), text="label:N"
    )
    layers = [zero, intervals, points.encode(x="size:Q"), diamonds.encode(x="size:Q"), words]
    chart = alt.layer(*layers).properties(width=0.8 * sizes["width"], height={"step": sizes["step"]})
    return themed(chart, style)


_PERCENTS = (-95, -90, -80, -60, -40, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 40, 70, 100, 200, 400, 900, 1900, 4900)


def _ticks(rows: list[dict[str, Any]]) -> list[float]:
    """Return ratios for the ticks of a logarithmic axis: round percentages, from 0 outwards, that do not crowd."""
    low = min([1.0, *(min(row["lower"], row["size"]) for row in rows)])
    high = max([1.0, *(max(row["upper"], row["size"]) for row in rows)])
    ticks = [1.0]
    for percent in sorted(_PERCENTS, key=abs):
        ratio = 1 + percent / 100
        if low <= ratio <= high and min(abs(np.log(ratio / tick)) for tick in ticks) > np.log(high / low) / 8:
            ticks.append(ratio)
    return sorted(ticks)


def critical_differences(comparison: DatasetComparison, *, metric: str | None = None, style: Style = "screen") -> Any:
    """Return the mean rank of each system, with bars over neighbours that Nemenyi's test does not tell apart."""
    alt, sizes, ranks = altair(), look(style), comparison.of_metric(metric).ranks
    averages = {ranks.systems[place]: float(ranks.averages[place]) for place in ranks.order}
    names = [*averages]
    rows = [{"system": name, "rank": rank, "label": f"{rank:.2f}"} for name, rank in averages.items()]
    # A bar has its own row below the systems; rows need names that differ.
    bars = [
        {"system": "not told apart" if k == 0 else " " * k, "lower": averages[bar[0]], "upper": averages[bar[-1]]}
        for k, bar in enumerate(ranks.bars)
    ]
    y = alt.Y("system:N", sort=[*names, *(bar["system"] for bar in bars)], title=None, axis=alt.Axis(**_NAMES))
    title = f"mean rank over {len(ranks.datasets)} datasets (critical difference {ranks.critical:.2f})"
    scale = alt.Scale(domain=[1, len(names)], nice=False)
    x = alt.X("rank:Q", title=title, scale=scale, axis=alt.Axis(tickMinStep=1))
    base = alt.Chart(data_of(rows)).encode(y=y, tooltip=tips(system="system", label="rank"))
    points = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1).encode(x=x)
    words = base.mark_text(align="left", dx=6, color=INK, fontSize=sizes["size"] - 1)
    layers = [points, words.encode(x=alt.value("width"), text="label:N")]
    if bars:
        lines = alt.Chart(data_of(bars)).mark_rule(color=MUTED, strokeWidth=4)
        layers.append(lines.encode(x=alt.X("lower:Q", title=title, scale=scale), x2="upper:Q", y=y))
    return themed(alt.layer(*layers).properties(width=0.8 * sizes["width"], height={"step": sizes["step"]}), style)


def rules(comparison: DatasetComparison, *, metric: str | None = None, style: Style = "screen") -> Any:
    """Return who leads by each rule, and in how many of the tables without one dataset they stay."""
    alt, sizes, standing = altair(), look(style), comparison.of_metric(metric)
    systems = [standing.table.systems[place] for place in standing.order]
    data = [
        {"rule": across_facts.RULES[rule.rule], "system": system, "leads": system in rule.leaders,
         "stays": f"{rule.stays}/{rule.datasets}" if system in rule.leaders else ""}
        for rule in standing.rules for system in systems
    ]  # fmt: skip
    names = [across_facts.RULES[rule.rule] for rule in standing.rules]
    base = alt.Chart(data_of(data)).encode(
        x=alt.X(
            "rule:N",
            sort=names,
            title=None,
            axis=alt.Axis(orient="top", labelAngle=0, labelExpr="split(datum.label, ' ')", domain=False, ticks=False),
        ),
        y=alt.Y("system:N", sort=systems, title=None, axis=alt.Axis(**_NAMES)),
        tooltip=tips(rule="rule", system="system", stays="the lead stays without one dataset"),
    )
    fill = alt.condition("datum.leads", alt.value(ACCENT), alt.value("transparent"))
    points = base.mark_point(size=110, strokeWidth=1, opacity=1, stroke=MUTED).encode(fill=fill)
    words = base.mark_text(align="left", dx=10, color=INK, fontSize=sizes["size"] - 2).encode(text="stays:N")
    chart = alt.layer(points, words).properties(width=0.8 * sizes["width"], height={"step": sizes["step"]})
    return themed(chart, style)


FIGURES: Mapping[str, Callable[..., Any]] = {"forest": forest, "ranks": critical_differences, "rules": rules}
"""The figures, by name."""

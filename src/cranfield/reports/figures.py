"""Figures: one Altair definition each, for the page and for SVG, PDF and PNG; no browser is needed."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import ACCENT, INK, MUTED, RULE, WARN, Style, altair, begin_saving, data_of, look, themed, tips
from cranfield._figures import save as save
from cranfield._terminal import shown
from cranfield.comparisons import Comparison
from cranfield.facts import scores as scores_facts
from cranfield.measures import LEVEL, PLAIN, Averaging, Scores, Segments
from cranfield.reports.tables import best_first

MOST_SYSTEMS = 40  # maximum number of systems in a figure; the best ones are shown
_GAP = 9  # distance of a name from its point
_LETTER = 0.55  # the width of a letter relative to the font size (most are narrower)


def averages(
    scores: Scores, metric: str, *, averaging: Averaging = PLAIN, level: float = LEVEL, style: Style = "screen"
) -> Any:
    """Return the average of every system with its confidence interval at ``level``, best first."""
    alt = altair()
    frame = scores.only([metric]).frame(averaging, level=level)
    lower = averaging.taken_of(scores).lower_is_better[scores.metric(metric)]
    rows = frame.select("system", "mean", "lower", "upper").drop_nulls("mean").drop_nans("mean")
    rows = rows.sort("mean", descending=not lower, maintain_order=True).head(MOST_SYSTEMS)
    y = alt.Y("system:N", sort=rows["system"].to_list(), title=None)
    base = alt.Chart(data_of(rows)).encode(tooltip=_tips_of_interval(metric, level, system="system"))
    return _styled(_points(base, y, metric, color=ACCENT), style)


MOST_DIFFERENCES = 8
_LONGEST_LINE = 28  # letters of a name in a line
_MOST_TIMES = 10  # a difference of more times the reference is shown as it is


def differences(comparison: Comparison, *, most: int = MOST_DIFFERENCES, style: Style = "screen") -> Any:
    """Return the differences of the main metric from the baseline, or from the best system, with their intervals.

    They are relative where every pair has a ratio. The intervals belong to the corrected p-values: they hold for all
    pairs at once. A filled point is significant. The best ``most`` systems are shown.
    """
    alt, sizes, main = altair(), look(style), comparison.main
    assert main is not None  # something was measured
    leads = [main.pair(system, main.reference) for system in main.against][:most]
    relative = leads[0].base > 0 and all(abs(lead.share) <= _MOST_TIMES for lead in leads)
    rows = []
    for lead in leads:
        size, ends = (lead.share, lead.share_interval) if relative else (lead.gain, lead.interval)
        if relative and np.isnan(ends).any():  # without an interval of the ratio: that of the difference, as a share
            least = -np.inf if main.lower_is_better else -1.0
            ends = [max(end / lead.base, least) for end in lead.interval]
        kind = main.against[lead.systems[0]].replace("untold", "undecided")
        numbers = {"size": size, "lower": ends[0], "upper": ends[1], "p": lead.row["p_corrected"]}
        label = lead.signed_in(percent=relative)
        rows.append({"system": lead.systems[0], "shown": kind, "label": label, **numbers})
    form = ".0%" if relative else ".3~g"
    x = alt.X("lower:Q", title=None, axis=alt.Axis(format=form, tickCount=5))
    # A long name takes several lines: cut off, it might be that of another system.
    lines = {shown(row["system"]): textwrap.wrap(shown(row["system"]), _LONGEST_LINE) for row in rows}
    axis = alt.Axis(labelExpr=f"({json.dumps(lines)})[datum.value] || datum.value")
    y = alt.Y("system:N", sort=[row["system"] for row in rows], title=None, axis=axis)
    tooltip = tips(
        system="system", label=f"against {main.reference}", lower=("from", form), upper=("to", form), p=("p", ".3g")
    )
    base = alt.Chart(data_of(rows)).encode(y=y, tooltip=tooltip)
    colour = alt.Scale(domain=["better", "undecided", "worse"], range=[ACCENT, MUTED, WARN])
    color = alt.Color("shown:N", scale=colour, legend=None)
    fill = alt.condition(
        "datum.shown == 'undecided'", alt.value("transparent"), alt.Color("shown:N", scale=colour, legend=None)
    )
    zero = alt.Chart(data_of([{"zero": 0}])).mark_rule(color=INK).encode(x="zero:Q")
    interval = base.mark_rule(strokeWidth=2).encode(x=x, x2="upper:Q", color=color)
    points = base.mark_point(filled=False, size=70, strokeWidth=2, opacity=1).encode(
        x="size:Q", stroke=color, fill=fill
    )
    beside = base.mark_text(align="left", dx=6, color=INK, fontSize=sizes["size"])
    beside = beside.encode(x=alt.value("width"), text="label:N")
    words = {"align": "left", "baseline": "bottom", "color": MUTED, "fontSize": sizes["size"] - 1, "dy": -4}
    sides = [
        alt.Chart(data_of([{"said": word}]))
        .mark_text(**{**words, "align": align})
        .encode(x=x, y=alt.value(0), text="said:N")
        for word, align, x in (("worse", "left", alt.value(0)), ("better", "right", alt.value("width")))
    ]
    step = max(sizes["step"], 1.2 * sizes["size"] * max(map(len, lines.values())) + 4)
    return _styled(alt.layer(zero, interval, points, beside, *sides).properties(height={"step": step}), style)


def segments(
    averaged: Segments, metric: str, *, averaging: Averaging = PLAIN, level: float = LEVEL, style: Style = "screen"
) -> Any:
    """Return every system's average in each group with its interval, best first; the best of a group is coloured."""
    alt = altair()
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
    return _styled(_points(alt.Chart(data_of(rows)).encode(color=colour, tooltip=tooltip), y, metric), style)


def _tips_of_interval(metric: str, level: float, **names: str) -> Any:
    ends = {"lower": (f"{100 * level:g} % from", ".4f"), "upper": ("to", ".4f")}
    return tips(**names, mean=(metric, ".4f"), **ends)


def _points(base: Any, y: Any, metric: str, **marks: Any) -> Any:
    """Return the mean of each row as a point on its interval."""
    alt = altair()
    lower = alt.X("lower:Q", title=metric, scale=alt.Scale(zero=False))
    interval = base.mark_rule(strokeWidth=2, **marks).encode(y=y, x=lower, x2="upper:Q")
    return interval + base.mark_point(filled=True, size=70, opacity=1, **marks).encode(y=y, x="mean:Q")


def distributions(scores: Scores, metric: str, *, averaging: Averaging = PLAIN, style: Style = "screen") -> Any:
    """Return the distribution of values per system: 10 to 90 %, 25 to 75 %, median and average; best first."""
    alt = altair()
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
    return _styled(quantile_bars(base, y, metric, size=0.6 * look(style)["step"]) + mean, style)


def quantile_bars(base: Any, y: Any, title: str, **tick: Any) -> Any:
    """Return rows with quantiles: a line from 10 to 90 %, a bar from 25 to 75 %, and a tick at the median."""
    wide = base.mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y, x=altair().X("q10:Q", title=title), x2="q90:Q")
    narrow = base.mark_bar(color=MUTED, opacity=0.45, height={"band": 0.5}).encode(y=y, x="q25:Q", x2="q75:Q")
    return wide + narrow + base.mark_tick(color=INK, thickness=2.5, **tick).encode(y=y, x="median:Q")


QUANTILES = {"q10": 0.1, "q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9}
"""The columns of the rows that `quantile_bars` takes."""


def wins(comparison: Comparison, metric: str, *, style: Style = "screen") -> Any:
    """Return the shares of users for whom the best system is better than, equal to and worse than each other system."""
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
    colours = alt.Scale(domain=["better", "equal", "worse"], range=[ACCENT, RULE, WARN])
    legend = alt.Legend(orient="top", titleOrient="left")
    chart = (
        alt.Chart(data_of(rows))
        .transform_calculate(part="indexof(['better', 'equal', 'worse'], datum.users)")
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("system:N", sort=shown, title=None),
            x=alt.X("share:Q", title=f"share of users, by {metric}", axis=alt.Axis(format="%"), stack="zero"),
            color=alt.Color("users:N", title=f"{best} is", scale=colours, legend=legend),
            order="part:Q",
            tooltip=tips(system=f"{best} against", users="is", share=("share of users", ".1%")),
        )
    )
    return _styled(chart, style)


def stays_first(counts: scores_facts.ScoredFirst, *, style: Style = "screen") -> Any:
    """Return the share of combinations in which a system is first, for each choice of a decision, one row a decision.

    The choices with the lowest and the highest share are named.
    """
    alt, rows = altair(), []
    for decision, option, first, of in counts.by_option:
        rows.append({"decision": decision, "option": option, "share": first / of, "first": first, "of": of})
    frame = pl.DataFrame(rows).sort("share", maintain_order=True)
    ends = frame.group_by("decision", maintain_order=True)
    order = list(dict.fromkeys(counted[0] for counted in counts.by_option))
    axis = alt.Axis(format="%", tickCount=5)
    share = alt.X("share:Q", title=f"{counts.system} is first", axis=axis, scale=alt.Scale(domain=[0, 1], padding=60))
    y = alt.Y("decision:N", sort=order, title=None)
    tooltip = tips(decision="decision", option="choice", first="first in", of="of")
    points = alt.Chart(data_of(rows)).mark_point(color=ACCENT, filled=True, size=60, opacity=0.8)
    names = [
        alt.Chart(data_of(end.select("decision", "option", "share").to_dicts()))
        .mark_text(align=align, dx=dx, color=INK)
        .encode(y=y, x=share, text="option:N")
        for end, align, dx in ((ends.first(), "right", -7), (ends.last(), "left", 7))
    ]
    return _styled(alt.layer(points.encode(y=y, x=share, tooltip=tooltip), *names), style)


def orders(
    columns: Mapping[str, Mapping[str, float]], highlight: Sequence[str] = (), *, style: Style = "screen"
) -> Any:
    """Return how the order of systems changes between columns of values, one line each; ``highlight`` is coloured."""
    alt = altair()
    sizes = look(style)
    names, rows = list(columns), []
    for name, values in columns.items():
        ranked = sorted(values, key=lambda system: -values[system])
        rows += [{"column": name, "system": system, "place": place} for place, system in enumerate(ranked, start=1)]
    axis = alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False, labelColor=INK, grid=False)
    x = alt.X("column:N", sort=names, title=None, scale=alt.Scale(padding=0.5), axis=axis)
    y = alt.Y("place:Q", scale=alt.Scale(reverse=True, nice=False), axis=None)
    condition = alt.condition(
        alt.FieldOneOfPredicate(field="system", oneOf=list(highlight)),
        alt.Color("system:N", scale=alt.Scale(domain=list(highlight), range=[ACCENT, WARN, INK]), legend=None),
        alt.value(MUTED),
    )
    base = alt.Chart(data_of(rows)).encode(
        x=x, y=y, color=condition, detail="system:N", tooltip=tips(system="system", column="by", place="place")
    )
    lines = base.mark_line(strokeWidth=2.5, opacity=0.75)
    points = base.mark_point(filled=True, size=90, opacity=1)
    ends = [
        base.transform_filter(alt.FieldEqualPredicate(field="column", equal=name))
        .mark_text(align=align, dx=dx, fontSize=sizes["size"], limit=sizes["name"])
        .encode(text="system:N")
        for name, align, dx in ((names[0], "right", -10), (names[-1], "left", 10))
    ]
    chart = alt.layer(lines, points, *ends)
    # Leave enough width for the column headings side by side.
    heading = max(min(_LETTER * sizes["size"] * len(name), sizes["name"]) for name in names)
    width = max(1.5 * sizes["width"], len(names) * (heading + _GAP))
    sides = {"width": width, "height": 1.35 * sizes["step"] * max(map(len, columns.values()))}
    return _styled(chart, style).properties(**sides)


def against_truth(
    measured: Mapping[str, float], truth: Mapping[str, float], name: str, *, style: Style = "screen"
) -> Any:
    """Return measured values against true values, one point per system."""
    alt = altair()
    sizes = look(style)
    width, height = 0.72 * sizes["width"], 0.5 * sizes["width"]
    order = sorted(measured, key=lambda system: truth[system])
    x = _Axis.of([measured[system] for system in order], width)
    y = _Axis.of([truth[system] for system in order], height)
    lengths = [min(_LETTER * sizes["size"] * len(system), sizes["name"]) for system in order]
    places = [(x.place(measured[system]), y.place(truth[system])) for system in order]
    rows = [
        {"system": system, "measured": measured[system], "truth": truth[system], "left": left, "level": y.value(level),
         "edge": x.value(place[0] + (-_GAP if left else _GAP)), "is_moved": level != place[1]}
        for system, place, (left, level) in zip(order, places, _beside(places, lengths, sizes["size"], height))
    ]  # fmt: skip
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("measured:Q", title=name, scale=alt.Scale(domain=[x.low, x.high], nice=False)),
        tooltip=tips(system="system", measured=(f"{name}", ".4f"), truth=("true value", ".4f")),
    )
    scale, axis = alt.Scale(domain=[y.low, y.high], nice=False), alt.Axis(grid=True)
    points = base.mark_point(filled=True, color=ACCENT, size=80, opacity=1).encode(
        y=alt.Y("truth:Q", title="true value", scale=scale, axis=axis)
    )
    names = [
        base.transform_filter(f"datum.left == {str(left).lower()}")
        .mark_text(align=align, dx=dx, color=INK, fontSize=sizes["size"] - 1, limit=sizes["name"])
        .encode(y=alt.Y("level:Q", title="true value", scale=scale, axis=axis), text="system:N")
        for left, align, dx in ((True, "right", -_GAP), (False, "left", _GAP))
    ]
    # A line connects a name to its point if they are at different heights.
    lines = base.transform_filter("datum.is_moved").mark_rule(color=MUTED, strokeWidth=0.8)
    lines = lines.encode(x2="edge:Q", y=alt.Y("truth:Q", title="true value", scale=scale, axis=axis), y2="level:Q")
    return _styled(alt.layer(lines, points, *names), style).properties(width=width, height=height)


@dataclass(frozen=True)
class _Axis:
    """An axis from ``low`` to ``high`` of the given ``length``."""

    low: float
    high: float
    length: float

    @classmethod
    def of(cls, values: Sequence[float], length: float) -> _Axis:
        """Return an axis with a margin around all values."""
        margin = 0.06 * (max(values) - min(values)) or 0.06 * abs(values[0]) or 0.06
        return cls(min(values) - margin, max(values) + margin, length)

    def place(self, value: float) -> float:
        return self.length * (value - self.low) / (self.high - self.low)

    def value(self, place: float) -> float:
        return self.low + (self.high - self.low) * place / self.length


def _beside(
    points: Sequence[tuple[float, float]], lengths: Sequence[float], size: float, height: float
) -> list[tuple[bool, float]]:
    """Return whether each name is left of its point, and its height: the first position that overlaps least."""
    line = 1.15 * size
    taken = [(x - _GAP / 2, x + _GAP / 2, y - _GAP / 2, y + _GAP / 2) for x, y in points]
    labels = []
    for (x, y), length in zip(points, lengths):
        sides = [False] if x - _GAP - length < 0 else [False, True]
        levels = [y + k * line / 2 for k in (0, 1, -1, 2, -2, 3, -3)]
        choices = [(left, level) for level in levels if line / 2 <= level <= height - line / 2 for left in sides]
        boxes = {
            (left, level): (*((x - _GAP - length, x - _GAP) if left else (x + _GAP, x + _GAP + length)),
                            level - line / 2, level + line / 2)
            for left, level in choices or [(False, y)]
        }  # fmt: skip
        best = min(boxes, key=lambda choice: sum(_overlap(boxes[choice], other) for other in taken))
        taken.append(boxes[best])
        labels.append(best)
    return labels


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Return the area shared by two boxes, each given as left, right, bottom and top."""
    return max(0.0, min(a[1], b[1]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[2], b[2]))


def begin_drawing(charts: Mapping[str, Any], folder: Path) -> tuple[list[Path], Callable[[], None]]:
    """Start drawing charts, each under its name; return the files (PDF and SVG) and a function that writes them."""
    files = {(folder / f"{name}.pdf", folder / f"{name}.svg"): chart for name, chart in charts.items()}
    return [path for both in files for path in both], begin_saving(files)


def _styled(chart: Any, style: Style) -> Any:
    """Return a chart of systems with the width, fonts and colours of a style; system names are on the left."""
    sizes = look(style)
    labels = {"labelColor": INK, "labelFontSize": sizes["size"], "labelPadding": 5}
    names = {"grid": False, "domain": False, "ticks": False, **labels}
    return themed(chart.properties(width=sizes["width"]), style).configure_axisY(**names)

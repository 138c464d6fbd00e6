"""Figures: one Altair definition each, for the page and for SVG, PDF and PNG; no browser is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._figures import ACCENT, INK, MUTED, WARN, Style, altair, begin_saving, by_name, data_of, look, tips
from cranfield._figures import save as save
from cranfield.facts import scores as scores_facts

_GAP = 9  # distance of a name from its point
_LETTER = 0.55  # the width of a letter relative to the font size (most are narrower)


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
    return by_name(alt.layer(points.encode(y=y, x=share, tooltip=tooltip), *names), style)


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
    return by_name(chart, style).properties(**sides)


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
    return by_name(alt.layer(lines, points, *names), style).properties(width=width, height=height)


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

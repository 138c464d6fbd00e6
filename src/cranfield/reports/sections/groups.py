"""Results in parts: how values are distributed over users, group by group, and window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import QUANTILES, Style, altair, data_of, look, series, themed, tips
from cranfield._numbers import number_text
from cranfield.comparisons import Comparison, SegmentComparison, leads_frame, window_leads
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import p_text, sentences
from cranfield.measures import PLAIN, Averaging, Scores, Segments
from cranfield.metrics import average_phrase
from cranfield.reports.html_page import Reported, Section, on_page
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, sortable, table, text

# Up to this many values, the page offers all of them as a table to download; above, only quantiles.
_MOST_VALUES = 20_000
_FIGURES = 3


@on_page(40, "scores", "averaging", "comparison")
def users(scores: Scores, averaging: Averaging = PLAIN, comparison: Comparison | None = None) -> Section | None:
    """Return for how many users the best system is better, and how values are distributed; None if there are none."""
    metrics = [name for m, name in enumerate(scores.metrics) if np.isfinite(scores.values[:, m]).any()]
    if not metrics:
        return None
    if averaging.with_kind().taken_of(scores).overall is not scores.overall:
        averaging = averaging.with_(average="mean")  # an average like TRisk has no values per user
    unit = "user" if averaging.by == "user" else scores.unit
    average = average_phrase(str(averaging.average))
    dots = "tick and dot are the median" if average == "median" else f"the tick is the median and the dot the {average}"
    said = (
        f"Thin lines go from the 10 % of {unit}s with the lowest values to the 10 % with the highest, bars hold the "
        f"middle half, {dots}."
    )
    drawn = ""
    for k, metric in enumerate(metrics[:_FIGURES], start=1):
        chart = scores.plot("distributions", metric=metric, averaging=averaging)
        drawn += figure(f"users-{k}", chart, f"{metric} over the {unit}s, by system.")
    tables = {"quantiles": quantiles(scores, averaging)}
    if scores.values.size <= _MOST_VALUES:
        tables["per-user"] = scores.per_user()
    html = _wins(comparison) if comparison is not None else paragraphs([said]) + drawn
    more = downloads(*tables) if comparison is None else paragraphs([said]) + drawn + downloads(*tables)
    return Section("users", "Is it better for most users?", html, more, tables)


def _wins(comparison: Comparison) -> str:
    """Return for how many users the best system, or the baseline, is better than the others."""
    main = comparison.main
    if main is None or not main.against:
        return ""
    best = comparison.baseline or next(iter(main.means))
    nearest = next(system for system in main.means if system != best)
    row = main.pair(best, nearest).row
    wins, losses = ("wins", "losses") if row["system_a"] == best else ("losses", "wins")
    counts = (row[wins], row["ties"], row[losses])
    said = comparison_facts.WinsByUser(main.name, (best, nearest), *counts)
    caption = f"Share of the users for whom {best} is better than, equal to and worse than each system."
    return paragraphs([said]) + figure("users-wins", comparison.plot("wins", metric=main.metric), caption)


def quantiles(scores: Scores, averaging: Averaging = PLAIN) -> pl.DataFrame:
    """Return one row per system and metric: the average, the number of users (or lists), the number of 0, quantiles."""
    rows = []
    averages = scores.average(averaging)
    for s, system in enumerate(scores.systems):
        for m, metric in enumerate(scores.metrics):
            values = scores.averaged_values(s, m, averaging)
            levels = [None] * len(QUANTILES) if not len(values) else np.quantile(values, [*QUANTILES.values()]).tolist()
            rows.append((system, metric, averages[s, m], len(values), int(np.count_nonzero(values == 0)), *levels))
    kinds = {"system": pl.String, "metric": pl.String, "average": pl.Float64, "n": pl.Int64, "zero": pl.Int64}
    named = {f"q{100 * level:.0f}": pl.Float64 for level in QUANTILES.values()}
    return pl.DataFrame(rows, schema={**kinds, **named}, orient="row")


@on_page(45, "segments", "averaging", "level")
def by_group(segments: Sequence[Segments | SegmentComparison], averaging: Averaging, level: float) -> Section | None:
    """Return the averages of each group, with verdicts if systems are compared; None without groups."""
    if not segments:
        return None
    html, more = "", ""
    tables: dict[str, pl.DataFrame] = {}
    for segment in segments:
        averages = segment.averaged.table(averaging, level=level)
        html += paragraphs([segment.reversals] if isinstance(segment, SegmentComparison) else [])
        html += _figure(segment.averaged, averaging, level)
        more += f"<h3>By {text(segment.averaged.name)}</h3>"
        more += _compared(segment) if isinstance(segment, SegmentComparison) else ""
        more += sortable(averages, names=2) + notes(sentences(segment.notes))
        tables |= _tables(segment, averaging, level)
    return Section("segments", "Does it hold in every group?", html, more + downloads(*tables), tables)


def _compared(segment: SegmentComparison) -> str:
    """Return the answer of each group, and the orders that are reversed in one, as tables."""
    columns = [Column("group", numeric=False), Column("users"), Column("answer", numeric=False)]
    answers = [
        [
            Value(text(group.group), group.group),
            Value(group.users),
            Value(text(getattr(group.standing, "answer", group.standing))),
        ]
        for group in segment.groups
    ]
    html = table("How systems stand in each group, by the main metric", columns, answers)
    names = ("group", "metric", "ahead in it", "ahead elsewhere", "p")
    columns = [Column(name, numeric=name == "p") for name in names]
    turned = [
        [*(Value(text(cell), cell) for cell in (reversal.group, reversal.metric, *reversal.ahead)),
         Value(p_text(reversal.p_corrected), reversal.p_corrected)]
        for reversal in segment.reversals.shown
    ]  # fmt: skip
    return html + (table("Orders that are reversed in a group", columns, turned) if turned else "")


def _figure(averaged: Segments, averaging: Averaging, level: float) -> str:
    """Return the figure of the first metric; nothing for a single system."""
    if len(averaged.scores.systems) < 2:
        return ""
    metric = averaged.scores.metrics[0]
    chart = averaged.plot(metric=metric, averaging=averaging, level=level)
    said = (
        f"{metric} by {averaged.name} with its {100 * level:g} % interval, best first; the best of a group in colour."
    )
    return figure(f"segments-{file_name(averaged.name)}", chart, said)


def file_name(name: str) -> str:
    """Return the name of a grouping in a form for file names."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _tables(segment: Segments | SegmentComparison, averaging: Averaging, level: float) -> dict[str, pl.DataFrame]:
    """Return the frames to download, by file name."""
    name = file_name(segment.averaged.name)
    tables = {f"segments-{name}": segment.averaged.frame(averaging, level=level)}
    if isinstance(segment, SegmentComparison):
        tables |= {
            f"segments-{name}-pairs": segment.frame(detail=True),
            f"segments-{name}-interactions": segment.interactions,
        }
    return tables


_BY_WINDOW = (
    "Every system was retrained at the start of each window on the ratings known by then, and tested on what users "
    "rated in the window. In the averages above, all windows count the same, regardless of their number of users."
)


@on_page(35)
def windows(reported: Reported) -> Section | None:
    """Return the averages of each window with their intervals; None if there are no windows."""
    starts = reported.scores.windows
    if not starts:
        return None
    scores = reported.scores
    leads = window_leads(scores, reported.averaging)
    frame = scores.by_group(reported.averaging, level=reported.level)
    frame = frame.select(pl.col("group").alias("window"), "system", "metric", "mean", "lower", "upper", "lists")
    drawn = frame.filter(pl.col("mean").is_not_null() & pl.col("mean").is_not_nan())
    metrics = drawn["metric"].unique(maintain_order=True).to_list()
    drawings = []
    for k, metric in enumerate(metrics[:_FIGURES], start=1):
        caption = f"{metric} of each system in each window, with intervals at confidence level {reported.level:g}."
        drawings.append(figure(f"windows-{k}", over_time(drawn, metric), caption))
    tables = {"windows": frame, "windows-won": leads_frame(leads)} if leads else {"windows": frame}
    html = paragraphs(leads[:1]) + "".join(drawings[:1])
    more = paragraphs([_BY_WINDOW, *leads[1:]]) + "".join(drawings[1:])
    more += _window_table(frame, metrics[0], starts) if metrics else ""
    return Section("windows", "Does it hold over time?", html, more + downloads(*tables), tables)


def over_time(frame: pl.DataFrame, metric: str, *, style: Style = "screen") -> Any:
    """Return a line over windows for every system, with the interval of each average."""
    alt = altair()
    rows = frame.filter(pl.col("metric") == metric)
    names = rows["system"].unique(maintain_order=True).to_list()
    order = rows["window"].unique(maintain_order=True).to_list()
    x = alt.X("window:O", sort=order, title="start of the window", axis=alt.Axis(labelAngle=-30))
    # Side by side, so that the intervals of a window do not cover each other.
    beside = alt.XOffset("system:N", sort=names, scale=alt.Scale(paddingOuter=1, domain=["", *names, " "]))
    numbers = {"mean": (metric, ".4f"), "lower": ("from", ".4f"), "upper": ("to", ".4f")}
    tooltip = tips(system="system", window="window", **numbers)
    base = alt.Chart(data_of(rows)).encode(x=x, xOffset=beside, tooltip=tooltip, **series("system", names))
    y = alt.Y("mean:Q", title=metric, scale=alt.Scale(zero=False))
    interval = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("lower:Q", title=metric), y2="upper:Q")
    chart = interval + base.mark_line(strokeWidth=2).encode(y=y) + base.mark_point(filled=True, opacity=1).encode(y=y)
    return themed(chart.properties(width=look(style)["width"], height=look(style)["panel"][1]), style)


def _window_table(frame: pl.DataFrame, metric: str, windows: tuple[str, ...]) -> str:
    """Return the averages of the first metric: one row per window, one column per system."""
    rows = frame.filter(pl.col("metric") == metric)
    systems = rows["system"].unique(maintain_order=True).to_list()
    columns = [Column("window"), Column("lists", numeric=True), *(Column(name, numeric=True) for name in systems)]
    lines = []
    for start in windows:
        means = dict(rows.filter(pl.col("window") == start).select("system", "mean").iter_rows())
        lists = int(rows.filter(pl.col("window") == start)["lists"].max() or 0)  # type: ignore[arg-type]
        cells = [Value(number_text(means[name]), means[name]) for name in systems]
        lines.append([Value(text(start)), Value(f"{lists:,}", lists), *cells])
    return table(f"{metric} by window", columns, lines)

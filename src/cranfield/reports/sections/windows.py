"""Window by window: how averages changed over time, and whether the winner stayed the same."""

from __future__ import annotations

from typing import Any

import polars as pl

from cranfield._figures import altair, data_of, look, series, themed, tips
from cranfield._numbers import number_text
from cranfield.comparisons import leads_frame, window_leads
from cranfield.measures import window_frame, windows_of
from cranfield.reports import figures
from cranfield.reports.markup import Column, Value, downloads, figure, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_FIGURES = 3

_SAID = (
    "Every system was retrained at the start of each window on the ratings known by then, and tested on what users "
    "rated in the window. In the averages above, all windows count the same, regardless of their number of users."
)


@on_page(35)
def windows(reported: Reported) -> Section | None:
    """Return the averages of each window with their intervals; None if there are no windows."""
    starts = windows_of(reported.scores)
    if not starts:
        return None
    scores = reported.scores
    leads = window_leads(scores, reported.averaging)
    frame = window_frame(scores, reported.averaging, level=reported.level)
    drawn = frame.filter(pl.col("mean").is_not_null() & pl.col("mean").is_not_nan())
    metrics = drawn["metric"].unique(maintain_order=True).to_list()
    html = paragraphs([_SAID, *(lead.sentence for lead in leads)])
    for k, metric in enumerate(metrics[:_FIGURES], start=1):
        caption = f"{metric} of each system in each window, with intervals at confidence level {reported.level:g}."
        html += figure(f"windows-{k}", over_time(drawn, metric), caption)
    tables = {"windows": frame, "windows-won": leads_frame(leads)} if leads else {"windows": frame}
    html += _table(frame, metrics[0], starts) if metrics else ""
    return Section("windows", "Window by window", html + downloads(*tables), tables=tables)


def over_time(frame: pl.DataFrame, metric: str, *, style: figures.Style = "screen") -> Any:
    """Return a line over windows for every system, with the interval of each average."""
    alt = altair()
    rows = frame.filter(pl.col("metric") == metric)
    names = rows["system"].unique(maintain_order=True).to_list()
    order = rows["window"].unique(maintain_order=True).to_list()
    x = alt.X("window:O", sort=order, title="start of the window", axis=alt.Axis(labelAngle=-30))
    # Side by side, so that the intervals of a window do not cover each other.
    beside = alt.XOffset("system:N", sort=names, scale=alt.Scale(paddingOuter=1, domain=["", *names, " "]))
    base = alt.Chart(data_of(rows)).encode(
        x=x,
        xOffset=beside,
        tooltip=tips(
            system="system", window="window", mean=(metric, ".4f"), lower=("from", ".4f"), upper=("to", ".4f")
        ),
        **series("system", names),
    )
    y = alt.Y("mean:Q", title=metric, scale=alt.Scale(zero=False))
    interval = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("lower:Q", title=metric), y2="upper:Q")
    width, height = look(style)["width"], look(style)["panel"][1]
    return themed(
        (interval + base.mark_line(strokeWidth=2).encode(y=y) + base.mark_point(filled=True, opacity=1).encode(y=y))
        .properties(width=width, height=height),
        style,
    )  # fmt: skip


def _table(frame: pl.DataFrame, metric: str, windows: tuple[str, ...]) -> str:
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

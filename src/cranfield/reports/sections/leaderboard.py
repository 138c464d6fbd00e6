"""The leaderboard: averages with intervals, coverage and the share of unjudged items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cranfield._numbers import number_text
from cranfield.comparisons import Comparison
from cranfield.measures import LEVEL, PLAIN, Averaging, Scores, deepest, on_left_out
from cranfield.reports import figures
from cranfield.reports.markup import Column, Value, downloads, figure, notes, percent, table, text
from cranfield.reports.section import Reported, Section, on_page
from cranfield.reports.tables import leaderboard_frame, leaderboard_table, letters_of

_SHOWN = 5
_KEY = '<p class="key">The best value of a metric is blue and bold, the second underlined.</p>'

_PAIRED = (
    '<p class="key">Tests are paired by user: systems with different letters can differ significantly although the '
    "intervals of their averages overlap, because each interval is for its system alone.</p>"
)


def leaderboard(
    scores: Scores,
    comparison: Comparison | None = None,
    *,
    averaging: Averaging = PLAIN,
    level: float = LEVEL,
    name: str = "leaderboard",
    title: str = "Leaderboard",
    data: str = "",
) -> Section:
    """Return the table of all systems and metrics, and a figure of the first metric.

    ``averaging`` is the kind of average and which users count, ``level`` the confidence level of the intervals,
    ``data`` the name of the data.
    """
    frame = leaderboard_frame(scores, comparison, averaging=averaging, level=level)
    rows = {(row["system"], row["metric"]): row for row in frame.iter_rows(named=True)}
    letters, hidden = letters_of(comparison), scores.metrics[_SHOWN:]
    body = [
        [
            Value(text(system), system),
            *(_average(rows[system, metric], letters.get((metric, system), "")) for metric in scores.metrics),
            *_shares(rows[system, deepest(scores.metrics)[0]]),
        ]
        for system in sorted(scores.systems, key=lambda system: _place(rows[system, scores.metrics[0]]))
    ]
    printed = leaderboard_table(scores, comparison, averaging=averaging)
    shown = table(
        f"Averages with {100 * level:g} % intervals. {printed.caption}", _columns(scores), body, hidden=hidden
    )
    drawn = ""
    if len(scores.systems) > 1:
        chart = figures.averages(scores, scores.metrics[0], averaging=averaging, level=level)
        said = f"{scores.metrics[0]} with its {100 * level:g} % interval, best first{_cut(len(scores.systems))}."
        drawn = figure(f"{name}-averages", chart, said)
    files = {f"{name}.tex": printed.titled(data, name).latex(), f"{name}.md": printed.markdown()}
    paired = _PAIRED if letters and comparison is not None and _overlaps(rows, comparison) else ""
    markup = chooser(scores.metrics, hidden) + shown + _KEY + _legend(scores) + paired + drawn
    markup += notes([*scores.notes, *on_left_out(scores, averaging)])
    return Section(name, title, markup + downloads(name, files=files), tables={name: frame}, files=files)


@on_page(20)
def _on_page(reported: Reported) -> Section:
    return leaderboard(
        reported.scores,
        reported.comparison,
        averaging=reported.averaging,
        level=reported.level,
        data=reported.data,
    )


def _overlaps(rows: Mapping[tuple[str, str], dict[str, Any]], comparison: Comparison) -> bool:
    """Return a note if the intervals of two systems overlap although they differ significantly."""
    for metric, *pair in comparison.rows.filter("significant").select("metric", "system_a", "system_b").iter_rows():
        ends = [(rows[system, metric]["lower"], rows[system, metric]["upper"]) for system in pair]
        if all(None not in interval for interval in ends) and ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
            return True
    return False


def _legend(scores: Scores) -> str:
    """Return an explanation of the columns next to the averages."""
    meanings = [f"{column.title}: {column.hint}" for column in _columns(scores) if column.hint and column.group is None]
    return f'<p class="key">{text("; ".join(meanings))}.</p>'


def _columns(scores: Scores) -> list[Column]:
    return [
        Column("system", numeric=False),
        *(
            Column(metric, group=metric, hint="lower is better" if lower else "")
            for metric, lower in zip(scores.metrics, scores.lower_is_better)
        ),
        Column("users served", hint="share of the users who get a list"),
        Column(f"items in {scores.catalogue}", hint="share of these items that is recommended to anyone"),
        Column(f"unjudged{deepest(scores.metrics)[1]}", hint="share of recommended items without a test rating"),
        *(
            []
            if scores.nonexistent is None
            else [Column(f"nonexistent{deepest(scores.metrics)[1]}", hint="share of items outside the catalogue")]
        ),
    ]


def _shares(row: dict[str, Any]) -> list[Value]:
    """Return the shares shown next to a system's averages, from the row of the deepest metric."""
    names = ("coverage", "item_coverage", "unjudged", *(["nonexistent"] if "nonexistent" in row else []))
    shares = [None if row[name] is None or np.isnan(row[name]) else row[name] for name in names]
    return [Value(percent(share), share) for share in shares]


def _place(row: dict[str, Any]) -> float:
    """Return the rank of a row; a system without an average is last."""
    return np.inf if row["place"] is None else float(row["place"])


def _average(row: dict[str, Any], letters: str) -> Value:
    value = row["mean"]
    raised = f"<sup>{text(letters)}</sup>" if letters else ""
    interval = ""
    if row["lower"] is not None and row["upper"] is not None and row["lower"] == row["lower"]:
        interval = f"<small>{number_text(row['lower'])} – {number_text(row['upper'])}</small>"
    if row["spread"] is not None:
        interval += f"<small>sd between repetitions {number_text(row['spread'])}</small>"
    kind = {1: "best", 2: "second"}.get(row["place"], "")
    return Value(f'<span class="average">{number_text(value)}</span>{raised}{interval}', value, kind)


def chooser(metrics: tuple[str, ...], hidden: tuple[str, ...]) -> str:
    """Return checkboxes with which the reader chooses the metrics in the section's tables."""
    if len(metrics) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" data-shows="{text(metric)}"{"" if metric in hidden else " checked"}> '
        f"{text(metric)}</label>"
        for metric in metrics
    )
    return f'<fieldset class="choices"><legend>Metrics shown</legend>{boxes}</fieldset>'


def _cut(systems: int) -> str:
    return f"; the best {figures.MOST_SYSTEMS} of {systems}" if systems > figures.MOST_SYSTEMS else ""

"""Results by group of users, items or test ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from cranfield._table import Cell, Table
from cranfield.comparisons import SegmentComparison
from cranfield.measures import Averaging, Segments
from cranfield.reports import figures
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_SAID = (
    "An average over all users can hide that another system is best for some of them. Averages, intervals and tests "
    "are computed for each group separately."
)


def by_group(segments: Sequence[Segments | SegmentComparison], averaging: Averaging, level: float) -> Section | None:
    """Return the averages of each group, with verdicts if systems are compared; None without groups."""
    if not segments:
        return None
    html = paragraphs([_SAID])
    tables: dict[str, pl.DataFrame] = {}
    for segment in segments:
        averages = segment.averaged.table(averaging, level=level)
        name = segment.averaged.name
        html += f"<h3>By {text(name)}</h3>"
        html += paragraphs(segment.verdict) if isinstance(segment, SegmentComparison) else ""
        html += _html(averages) + _figure(segment.averaged, averaging, level) + notes(segment.notes)
        tables |= _tables(segment, averaging, level)
    return Section("segments", "Group by group", html + downloads(*tables), tables=tables)


@on_page(45)
def _on_page(reported: Reported) -> Section | None:
    return by_group(reported.segments, reported.averaging, reported.level)


def _figure(averaged: Segments, averaging: Averaging, level: float) -> str:
    """Return the figure of the first metric; nothing for a single system."""
    if len(averaged.scores.systems) < 2:
        return ""
    metric = averaged.scores.metrics[0]
    chart = figures.segments(averaged, metric, averaging=averaging, level=level)
    said = (
        f"{metric} by {averaged.name} with its {100 * level:g} % interval, best first; the best of a group in colour."
    )
    return figure(f"segments-{file_name(averaged.name)}", chart, said)


def file_name(name: str) -> str:
    """Return the name of a grouping in a form for file names."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _html(averages: Table) -> str:
    """Return a sortable table of averages; its first two columns are names."""
    columns = [Column(title, numeric=place > 1) for place, title in enumerate(averages.header)]
    rows = [[_value(cell, column) for cell, column in zip(row, columns)] for row in averages.rows]
    return table(averages.caption, columns, rows)


def _value(cell: str | Cell, column: Column) -> Value:
    shown = cell if isinstance(cell, Cell) else Cell(cell)
    html = f"<b>{text(shown.text)}</b>" if shown.best else text(shown.text)
    number = re.match(r"-?[\d.]+", shown.text.replace(",", "")) if column.numeric else None
    return Value(html, float(number[0]) if number else None)


def _tables(segment: Segments | SegmentComparison, averaging: Averaging, level: float) -> dict[str, pl.DataFrame]:
    """Return the frames to download, by file name."""
    name = file_name(segment.averaged.name)
    tables = {f"segments-{name}": segment.averaged.frame(averaging, level=level)}
    if isinstance(segment, SegmentComparison):
        tables |= {f"segments-{name}-pairs": segment.frame(), f"segments-{name}-interactions": segment.interactions}
    return tables

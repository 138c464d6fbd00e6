"""Results by group of users, items or test ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from cranfield._table import Cell, Table
from cranfield.comparisons import SegmentComparison
from cranfield.measures import Averaging, Segments
from cranfield.reports.markup import Column, Value, downloads, notes, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_SAID = (
    "An average over all users can hide that another system is best for some of them. Averages, intervals and tests "
    "are those of each group by itself."
)


def by_group(segments: Sequence[Segments | SegmentComparison], averaging: Averaging, level: float) -> Section | None:
    """Return the averages of each group, with the verdicts where systems are compared; None without groups."""
    if not segments:
        return None
    html = paragraphs([_SAID])
    tables: dict[str, pl.DataFrame] = {}
    for one in segments:
        made = _averaged(one).table(averaging, level=level)
        name = _averaged(one).name
        html += f"<h3>By {text(name)}</h3>"
        html += paragraphs(one.verdict) if isinstance(one, SegmentComparison) else ""
        html += _html(made) + notes(one.notes)
        tables |= _tables(one, averaging, level)
    return Section("segments", "Group by group", html + downloads(*tables), tables=tables)


@on_page(45)
def _on_page(reported: Reported) -> Section | None:
    return by_group(reported.segments, reported.averaging, reported.level)


def _html(made: Table) -> str:
    """Return a table of averages that can be sorted; its first two columns are names."""
    columns = [Column(title, numeric=place > 1) for place, title in enumerate(made.header)]
    rows = [[_value(cell, column) for cell, column in zip(row, columns)] for row in made.rows]
    return table(made.caption, columns, rows)


def _value(cell: str | Cell, column: Column) -> Value:
    shown = cell if isinstance(cell, Cell) else Cell(cell)
    html = f"<b>{text(shown.text)}</b>" if shown.best else text(shown.text)
    number = re.match(r"-?[\d.]+", shown.text.replace(",", "")) if column.numeric else None
    return Value(html, float(number[0]) if number else None)


def _averaged(one: Segments | SegmentComparison) -> Segments:
    return one.averaged if isinstance(one, SegmentComparison) else one


def _tables(one: Segments | SegmentComparison, averaging: Averaging, level: float) -> dict[str, pl.DataFrame]:
    """Return the frames to download, by file name."""
    name = "".join(letter if letter.isalnum() else "-" for letter in _averaged(one).name)
    tables = {f"segments-{name}": _averaged(one).frame(averaging, level=level)}
    if isinstance(one, SegmentComparison):
        tables |= {f"segments-{name}-pairs": one.frame(), f"segments-{name}-interactions": one.interactions}
    return tables

"""Building blocks of HTML; everything from users is escaped."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cranfield._figures import definition, svg_on_page
from cranfield._numbers import percent_text
from cranfield._table import Cell, Table
from cranfield._terminal import shown


def text(value: object) -> str:
    """Escape text for HTML, in an element or an attribute.

    Examples
    --------
    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(shown(value), quote=True)


percent = partial(percent_text, unit=" %")


def paragraphs(sentences: Iterable[object], kind: str = "") -> str:
    """Return a paragraph for each fact or sentence."""
    opened = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{opened}{text(sentence)}</p>" for sentence in sentences)


def notes(sentences: Sequence[object]) -> str:
    """Return a list of remarks; empty if there are none."""
    if not sentences:
        return ""
    return '<ul class="notes">' + "".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "</ul>"


def folded(summary: str, html: str) -> str:
    """Return markup that is folded under a few words; empty if there is none."""
    return f"<details><summary>{text(summary)}</summary>{html}</details>" if html else ""


def downloads(*tables: str, files: Iterable[str] = ()) -> str:
    """Return buttons that save tables as CSV, and other files; the page's script makes them work."""
    buttons = "".join(
        f'<button type="button" data-save-file="{text(name)}">{text(name)}</button>'
        for name in (*(f"{table}.csv" for table in tables), *files)
    )
    return f'<p class="downloads"><span>Download</span> {buttons}</p>' if buttons else ""


def figure(name: str, chart: Any, caption: str) -> str:
    """Return a figure: a chart as an SVG drawing that can be saved, its definition for Vega, and its caption."""
    defined = definition(chart)
    saving = f' <button type="button" data-save-figure="{text(name)}">{text(name)}.svg</button>'
    return _figure(name, defined, caption, f"{DEFINITION}{json_text(defined)}</script>", saving)


def still(name: str, chart: Any, caption: str) -> str:
    """Return a static figure, for readers without scripts."""
    return _figure(name, definition(chart), caption)


def _figure(name: str, defined: Any, caption: str, script: str = "", saving: str = "") -> str:
    return (
        f'<figure><div class="drawing" role="img" aria-label="{text(caption)}">{svg_on_page(defined, text(name))}</div>'
        f"{script}<figcaption>{text(caption)}{saving}</figcaption></figure>"
    )


DEFINITION = '<script type="application/json" class="definition">'
"""The tag before the definition of a figure in a page."""


def json_text(data: Any) -> str:
    r"""Return JSON that is safe inside a script element, whatever strings it contains."""
    # Without "<" nothing can close the element or open a comment. Older JavaScript does not allow these line separators
    # in strings.
    return (
        json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def packed(values: ArrayLike, kind: str) -> str:
    """Return an array of numbers of a kind, such as ``<f4``, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


_LONG_NAME = 18
"""A longer name at the start of a row takes several lines, so that it leaves room for numbers and is not cut."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, whether it holds numbers, and the group with which the reader can hide it."""

    title: str
    numeric: bool = True
    group: str | None = None
    hint: str = ""


@dataclass(frozen=True)
class Value:
    """A cell: its markup (already escaped), its sort key, and its classes."""

    html: str
    key: float | str | None = None
    kind: str = ""


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Value]], *, hidden: Sequence[str] = ()
) -> str:
    """Return a table that can be sorted by clicking its headings; ``hidden`` names groups not shown at first."""
    head = "".join(_heading(column, column.group in hidden) for column in columns)
    body = "".join(
        "<tr>" + "".join(_cell(k, cell, column, hidden) for k, (cell, column) in enumerate(zip(row, columns))) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table class="sortable">'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def sortable(own: Table, names: int | None = None) -> str:
    """Return a table that can be sorted; the first ``names`` columns, or those without numbers, hold text."""
    words = own.of_text() if names is None else [place < names for place in range(len(own.header))]
    columns = [Column(title, numeric=not is_text) for title, is_text in zip(own.header, words)]
    return table(own.caption, columns, [list(map(_value, row, columns)) for row in own.rows])


def _value(cell: str | Cell, column: Column) -> Value:
    shown_cell = cell if isinstance(cell, Cell) else Cell(cell)
    words = shown_cell.text
    html = f"<b>{text(words)}</b>" if shown_cell.best else text(words)
    number = re.match(r"[<>]?([-+]?[\d.]+)", words.replace(",", ""))
    return Value(html, (float(number[1]) if number else None) if column.numeric else words)


def _marks(column: Column, hidden: bool, kind: str = "") -> str:
    classes = " ".join(filter(None, ("number" if column.numeric else "", kind)))
    group = "" if column.group is None else f' data-group="{text(column.group)}"'
    return (f' class="{classes}"' if classes else "") + group + (" hidden" if hidden else "")


def _heading(column: Column, hidden: bool) -> str:
    hint = f' title="{text(column.hint)}"' if column.hint else ""
    return (
        f'<th scope="col" aria-sort="none"{_marks(column, hidden)}>'
        f'<button type="button"{hint}>{text(column.title)}</button></th>'
    )


def _cell(place: int, value: Value, column: Column, hidden: Sequence[str]) -> str:
    key = "" if value.key is None or value.key != value.key else f' data-key="{text(value.key)}"'
    long = "long" if place == 0 and len(str(value.key)) > _LONG_NAME else ""
    marks = _marks(column, column.group in hidden, value.kind or long)
    if place == 0:
        return f'<th scope="row"{marks}{key}>{value.html}</th>'
    return f"<td{marks}{key}>{value.html}</td>"

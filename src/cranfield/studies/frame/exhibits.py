"""Tables and figures of a paper, reproduced from a run, next to the values that the paper prints."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import polars as pl

from cranfield._figures import altair, data_of, series, tips
from cranfield._numbers import DASH
from cranfield._table import Cell, Table

HERE = "this run"
CellRow = Sequence[str | Cell]


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, reproduced from a run."""

    name: str  # its file name without extension: ``table-3``, ``figure-06``
    caption: str  # what it shows
    frame: pl.DataFrame  # its numbers as a tidy frame
    table: Table | None = None  # the readable table, if it is one
    draw: Callable[[], Any] | None = None  # a function that returns it as an Altair chart, if it is a figure

    @property
    def home(self) -> str:
        """The folder of its files."""
        return "tables" if self.draw is None else "figures"


def exhibit(
    name: str,
    caption: str,
    header: Sequence[str],
    rows: Sequence[CellRow],
    notes: Sequence[str] = (),
    frame: pl.DataFrame | None = None,
) -> Exhibit:
    """Return a table; its frame has the texts of the cells (with repeated titles numbered) unless another is given."""
    if frame is None:
        names = [name if header.index(name) == place else f"{name} ({place + 1})" for place, name in enumerate(header)]
        texts = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]
        frame = pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String), orient="row")
    return Exhibit(name, caption, frame, Table(header, rows, caption, notes))


def marked(values: Mapping[Any, float], form: Callable[[float], str], best: Callable[..., float] = max) -> list[Cell]:
    """Return numbers as cells of which the best, the largest unless told otherwise, are marked."""
    first = best(values.values())
    return [Cell(form(value), best=value == first) for value in values.values()]


class Printed:
    """What a paper prints: texts by table, dataset, row and column, from ``printed.csv`` in the folder of its study."""

    def __init__(self, package: str) -> None:
        self._package = package

    @cached_property
    def _values(self) -> dict[tuple[str, ...], str]:
        text = (resources.files(self._package) / "printed.csv").read_text(encoding="utf-8")
        return {tuple(row[:4]): row[4] for row in csv.reader(text.splitlines())}

    def text(self, table: str, data: str | None, row: str, column: str = "") -> str:
        """Return a value as it is printed; a dash if there is none."""
        return self._values.get((table, data or "", row, column), DASH)

    def number(self, table: str, data: str | None, row: str, column: str = "") -> float | None:
        """Return a printed number; None if there is none."""
        value = self._values.get((table, data or "", row, column))
        return None if value is None else float(value)

    def table(self, name: str) -> list[tuple[str, str, str, str]]:
        """Return the dataset, row, column and text of every value of a table, in order."""
        return [(*place[1:], text) for place, text in self._values.items() if place[0] == name]  # type: ignore[misc]


_POINT = {"size": 18, "filled": True}


def curve(
    rows: pl.DataFrame,
    x: tuple[str, str | None],
    y: tuple[str, str | None],
    by: str,
    names: Sequence[str],
    *,
    order: Sequence[Any] | None = None,
    log: bool = False,
    zero: bool = False,
) -> Any:
    """Return one line per name, with a band from ``lowest`` to ``highest``; with an ``order``, ``x`` has labels."""
    alt, across_title = altair(), x[1] or x[0]
    if order is None:
        across = alt.X(f"{x[0]}:Q", title=x[1], scale=alt.Scale(type="log") if log else alt.Scale(zero=zero))
    else:
        across = alt.X(f"{x[0]}:O", title=x[1], sort=list(order), axis=alt.Axis(labelAngle=0))
    scale, lines = alt.Scale(zero=zero), series(by, list(names))
    shown = tips(**{by: by, x[0]: across_title if order else (across_title, ",.4~g"), y[0]: (y[1] or y[0], ".4f")})
    base = alt.Chart(data_of(rows)).encode(x=across)
    line = base.mark_line(point=_POINT).encode(y=alt.Y(f"{y[0]}:Q", title=y[1], scale=scale), tooltip=shown, **lines)
    if "lowest" not in rows.columns:
        return line
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("lowest:Q", title=y[1], scale=scale), y2="highest:Q", color=lines["color"]
    )
    return band + line


def bars(
    rows: pl.DataFrame,
    x: tuple[str, Sequence[str]],
    y: tuple[str, str],
    by: tuple[str, Sequence[str]],
    *,
    ends: tuple[str, str] | None = None,
    crosses: str | None = None,
) -> Any:
    """Return a bar per label of ``x`` and name of ``by``, with rules between two columns (``ends``) and ``crosses``."""
    alt = altair()
    base = alt.Chart(data_of(rows)).encode(x=alt.X(f"{x[0]}:N", sort=list(x[1]), title=None))
    shown: dict[str, str | tuple[str, str]] = {x[0]: x[0], by[0]: by[0], y[0]: (y[1], ".4f")}
    shown |= {column: (column, ".4f") for column in (*(ends or ()), crosses) if column}
    if by[0] != x[0]:
        base = base.encode(xOffset=alt.XOffset(f"{by[0]}:N", sort=list(by[1])))
    layers = base.mark_bar().encode(
        y=alt.Y(f"{y[0]}:Q", title=y[1]), tooltip=tips(**shown), **series(by[0], list(by[1]), mark="point")
    )
    if ends is not None:
        layers += base.mark_rule().encode(y=alt.Y(f"{ends[0]}:Q", title=y[1]), y2=f"{ends[1]}:Q")
    if crosses is not None:
        layers += base.mark_point(shape="cross", color="black", size=30).encode(y=f"{crosses}:Q")
    return layers

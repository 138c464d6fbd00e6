"""`Result`: what every result offers, whatever it is about; and tables of rows in files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._figures import FIGURE_FILES, Style, inline, intervals, save
from cranfield._files import whole_file, write_text
from cranfield._polars import write_csv, write_parquet
from cranfield._table import Table, answer_and_table, csv_of, html_paragraphs

Figures = Mapping[str, Callable[..., Any]]
"""Functions that draw a result, by the kind of figure."""

FRAME_FILES = (".parquet", ".csv", ".tsv", ".json")
"""The endings of files that a frame can be written to."""


class Result:
    """A result: a sentence, a frame, a table, a figure and files.

    A subclass has `facts` (the first is the answer), `frame`, `table`, and either `figures` or the columns of its frame
    that the plain figure shows.
    """

    drawn: ClassVar[tuple[str, ...]] = ()
    """The columns of a point in the plain figure: its value, the two ends of its interval (or none), and its names."""

    def facts(self) -> Sequence[object]:
        """Return the facts of the verdict in the order in which they are said; the first is the answer."""
        raise NotImplementedError

    @cached_property
    def verdict(self) -> list[str]:
        """The result in words; the first sentence is the answer."""
        return [str(fact) for fact in self.facts()]

    def frame(self) -> pl.DataFrame:
        """Return the result as a tidy frame."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return the result as a table for people."""
        raise NotImplementedError

    def overview(self) -> Table:
        """Return the small table that is shown below the answer."""
        return self.table()

    @property
    def figures(self) -> Figures:
        """The kinds of figures that `plot` draws; the first is the one that a notebook would show."""
        return {"intervals": _intervals}

    def plot(self, kind: str | None = None, **options: Any) -> Any:
        """Return a figure as an Altair chart: the first of `figures`, or another kind of them, with its options."""
        figures = self.figures
        return figures[_checks.one_of("kind", kind or next(iter(figures)), tuple(figures))](self, **options)

    def to_latex(self) -> str:
        """Return `table` in LaTeX (booktabs)."""
        return self.table().latex()

    def save(self, path: str | Path, **options: Any) -> list[Path]:
        """Write the result, and return the files.

        A file is written in the format of its ending: the frame (``.csv``, ``.tsv``, ``.json``, ``.parquet``), the
        table (``.tex``, ``.md``), the figure (``.svg``, ``.pdf``, ``.png``), or what a notebook and a terminal show
        (``.html``, ``.txt``). Anything else is a folder for all of it.
        """
        path, ending = Path(path), Path(path).suffix.lower()
        texts: dict[str, Callable[[], str]] = {
            ".tex": self.to_latex, ".md": lambda: self.table().markdown(), ".txt": lambda: str(self),
            ".html": lambda: f'<!doctype html><meta charset="utf-8">{self._repr_html_()}',
        }  # fmt: skip
        if ending in texts:
            write_text(path, texts[ending]().rstrip("\n") + "\n")
        elif ending in FRAME_FILES:
            write_frame(self.frame(), path)
        elif ending in FIGURE_FILES:
            save(self.plot(**options), path)
        else:
            return self._save_all(path, **options)
        return [path]

    def _save_all(self, folder: Path, **options: Any) -> list[Path]:
        """Write everything to a folder."""
        files = [self.save(folder / name) for name in ("verdict.txt", "frame.csv", "table.tex")]
        return [path for written in [*files, self.save(folder / "figure.svg", **options)] for path in written]

    def __str__(self) -> str:
        answer, *remarks = self.verdict
        table = self.overview()
        return answer_and_table(answer, table, [*remarks, *table.notes])

    def _repr_html_(self) -> str:
        shown = self.overview()
        return html_paragraphs(self.verdict[:1]) + (shown.html() if shown.rows else inline(self.plot))


def _intervals(result: Result, *, style: Style = "screen") -> Any:
    value, *others = result.drawn
    ends, names = (others[:2], others[2:]) if "lower" in others else ([], others)
    return intervals(result.frame(), value, ends, names, style=style)


# Frames in files.


def write_frame(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a tidy frame to a file: Parquet, JSON, TSV or CSV, depending on its ending."""
    ending = Path(path).suffix.lower()
    with whole_file(path) as temporary:
        if ending == ".parquet":
            write_parquet(frame, temporary)
        elif ending == ".tsv":
            write_csv(frame, temporary, separator="\t")
        else:
            temporary.write_text(frame_text(frame, "json" if ending == ".json" else "csv"), encoding="utf-8")


def check_frame_file(path: str) -> str:
    """Return the ending of a file that a frame can be written to."""
    ending = Path(path).suffix.lower()
    if ending not in FRAME_FILES and (Path(path).is_file() or not Path(path).exists()):
        raise SettingError(f"{path} does not end in a known format; name it .parquet, .csv, .tsv or .json")
    return ending


def frame_text(frame: pl.DataFrame, format: str) -> str:
    """Return a tidy frame as CSV (in which no cell is a formula) or JSON (a list of rows)."""
    return csv_of(frame) if format == "csv" else as_json(frame.to_dicts())


def as_json(value: Any) -> str:
    """Return a value as JSON text; NaN and infinity are null."""
    return json.dumps(_plain(value), indent=1, default=str, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

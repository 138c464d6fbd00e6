"""Results to the terminal or to a file, in the format that was asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import polars as pl

from cranfield._errors import CranfieldError
from cranfield._files import whole_file, write_text
from cranfield._table import Table, csv_of

Command = TypeVar("Command", bound=Callable[..., Any])


def written(frame: pl.DataFrame, format: str) -> str:
    """Return a tidy frame as CSV (in which no cell is a formula) or JSON (a list of rows; NaN is null)."""
    if format == "csv":
        return csv_of(frame)
    rows = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
    return json.dumps(rows, indent=1, default=str, ensure_ascii=False) + "\n"


def output_options(*formats: str) -> Callable[[Command], Command]:
    """Give a command ``--format``, the first of ``formats`` unless given, and ``--out``."""

    def give(command: Command) -> Command:
        out = click.option("--out", metavar="FILE", help="Write to a file instead.")
        choice = click.Choice(formats)
        how = click.option("--format", type=choice, default=formats[0], show_default=True, help="What is printed.")
        return how(out(command))

    return give


def make_folder(out: str | Path) -> None:
    """Make the folder that results will go to before anything else, so that no work is lost on one that cannot be."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CranfieldError(f"{out} cannot be a folder ({error.strerror}); choose another with --out") from error


def put_table(table: Table, format: str, out: str | None) -> None:
    """Print a table as text, LaTeX or Markdown, or write it to a file."""
    put({"table": table.text, "latex": table.latex, "markdown": table.markdown}[format](), out)


def put(text: str, out: str | None) -> None:
    """Print a text, or write it whole to a file."""
    if out is None:
        click.echo(text.rstrip("\n"))
        return
    write_text(out, text if text.endswith("\n") else text + "\n")


def put_frame(frame: pl.DataFrame, out: str) -> None:
    """Write a tidy frame to a file: Parquet, JSON, TSV or CSV by its ending."""
    ending = Path(out).suffix.lower()
    with whole_file(out) as temporary:
        if ending == ".parquet":
            frame.write_parquet(temporary)
        elif ending == ".json":
            temporary.write_text(written(frame, "json"), encoding="utf-8")
        elif ending == ".tsv":
            frame.write_csv(temporary, separator="\t")
        else:
            temporary.write_text(written(frame, "csv"), encoding="utf-8")

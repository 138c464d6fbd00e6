"""Results to the terminal or to a file, in the format that was asked for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click
import polars as pl

from cranfield._files import whole_file
from cranfield._table import csv_text


def written(frame: pl.DataFrame, format: str) -> str:
    """Return a tidy frame as CSV (in which no cell is a formula) or JSON (a list of rows; NaN is null)."""
    if format == "csv":
        safe = frame.with_columns(
            pl.col(name).map_elements(csv_text, return_dtype=pl.String)
            for name, kind in frame.schema.items()
            if kind == pl.String
        )
        return safe.write_csv()
    rows = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
    return json.dumps(rows, indent=1, default=str, ensure_ascii=False) + "\n"


def put(text: str, out: str | None) -> None:
    """Print a text, or write it whole to a file."""
    if out is None:
        click.echo(text.rstrip("\n"))
        return
    with whole_file(out) as temporary:
        temporary.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


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

"""Writing tables: Parquet, CSV or TSV, depending on the file's extension."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from cranfield._errors import SettingError, suggestion
from cranfield._files import whole_file
from cranfield._polars import write_csv, write_parquet

FORMATS = ("parquet", "csv", "tsv")
"""The formats in which tables are written; each is also a file name extension."""


def check_format(path: str | Path) -> str:
    """Return the format that a file's extension names, or say which ones there are."""
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise SettingError(
            f"{path} does not end in a known format; name it .parquet, .csv or .tsv{suggestion(ending, FORMATS)}"
        )
    return ending


def write_table(table: pl.DataFrame, path: str | Path) -> Path:
    """Write any table, in the format that the extension names."""
    path, form = Path(path), check_format(path)
    with whole_file(path) as temporary:
        if form == "parquet":
            write_parquet(table, temporary)
        else:
            write_csv(_printable(table, path), temporary, separator="," if form == "csv" else "\t")
    return path


def _printable(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return the table with bytes as text, or say that a column cannot be printed."""
    for name, kind in table.schema.items():
        if kind in (pl.Binary, pl.Duration):
            try:
                table = table.with_columns(pl.col(name).cast(pl.String))
            except pl.exceptions.PolarsError as error:
                raise SettingError(
                    f"{path} cannot hold the column {name!r} ({kind}) as text; name the file .parquet"
                ) from error
    return table

"""A column of a file with one row per user, as weights of an average."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, nearest
from cranfield._polars import UNREADABLE, read_parquet, scan_csv
from cranfield.tables import place_by_name


def read_column(path: Path, column: str) -> pl.DataFrame:
    """Return a column of a file with one row per user: ``user``, as text, and ``value``.

    The file is CSV, TSV or Parquet.
    """
    if not path.is_file():
        raise InputError("it is not a file", source=path, remedy="name a file with one row per user, as FILE:COLUMN")
    return _read(path, column, path.stat().st_mtime_ns)


def column_of(place: str, users: pl.Series, tables: Mapping[str, pl.DataFrame]) -> NDArray[np.float64]:
    """Return the values of a file's column for some users, by ``FILE:COLUMN``; ids are matched as text.

    Every user must be in it, with a number of at least 0. ``tables`` are columns that were read before, by
    ``FILE:COLUMN``.
    """
    name, _, column = place.rpartition(":")
    path = Path(name)
    known = tables[place] if place in tables else read_column(path, column)
    joined = pl.DataFrame({"user": users.cast(pl.String)}).join(known, on="user", how="left", maintain_order="left")
    values = joined["value"].to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if len(wrong):
        raise InputError(
            f"user {joined['user'][int(wrong[0])]} has no number of at least 0 in the column {column!r}",
            source=path,
            remedy="give every user of the test set one",
        )
    return values


@lru_cache(maxsize=4)
def _read(path: Path, column: str, _: int) -> pl.DataFrame:
    """Return the columns ``user``, as text, and ``value``; read once for each state of the file."""
    table = _table(path)
    user = place_by_name(table.columns, "user")
    if user is None:
        raise InputError("no column names the user", source=path, remedy="call one of its columns 'user'")
    if column not in table.columns:
        known = f"there is no column {column!r}{nearest(column, table.columns)}"
        raise InputError(known, source=path, remedy="name one of its columns")
    values = table.select(
        user=pl.col(table.columns[user]).cast(pl.String), value=pl.col(column).cast(pl.Float64, strict=False)
    )
    if values["user"].is_duplicated().any():
        twice = values["user"].filter(values["user"].is_duplicated())[0]
        raise InputError(f"user {twice} has more than one row", source=path, remedy="give one row per user")
    return values


def _table(path: Path) -> pl.DataFrame:
    if path.suffix.lower() == ".parquet":
        return read_parquet(path)
    try:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        return scan_csv(path, separator=separator, infer_schema=False).collect()
    except UNREADABLE as error:
        raise InputError("it cannot be read as CSV", source=path, remedy="write columns separated by commas") from error

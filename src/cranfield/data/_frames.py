"""Parquet files and dataframes of any library as tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.data._columns import ROLES, Role
from cranfield.data._values import Fault

_KINDS = "a path, a dataframe (pandas, Polars, PyArrow, DuckDB), a dictionary of columns or a list of tuples"


class FrameTable:
    """The columns of a frame, fetched one at a time, so that a large Parquet file needs little memory."""

    def __init__(self, frame: pl.LazyFrame, label: str, *, named: bool = True) -> None:
        self.label = label
        self._frame = frame
        self._schema = self._collected(frame.head(0)).schema
        self.names = tuple(self._schema) if named else None
        self.width = len(self._schema)
        self._places: Mapping[Role, int] = {}

    @property
    def guess(self) -> dict[Role, int]:
        """The places of the columns where they have no names: user, item, rating, time."""
        return dict(zip(ROLES, range(self.width)))

    def load(self, places: Mapping[Role, int]) -> None:
        """Keep in mind which columns are wanted."""
        self._places = places

    def column(self, role: Role) -> pl.Series:
        """Return the column of ``role``."""
        column = self._collected(self._frame.select(pl.nth(self._places[role]))).to_series()
        if not len(column):
            raise InputError("there are no ratings", source=self.label, remedy="give at least one row")
        return column

    def error(self, fault: Fault, role: Role) -> InputError:
        """Return the error for a fault; the first row of data is row 1."""
        place = self._places[role]
        column = self.names[place] if self.names is not None else str(place + 1)
        return InputError(fault.problem, source=self.label, row=fault.row + 1, column=column, remedy=fault.remedy)

    def lines(self, *rows: int) -> list[int]:
        """Return rows as a person counts them."""
        return [row + 1 for row in rows]

    def _collected(self, frame: pl.LazyFrame) -> pl.DataFrame:
        try:
            return frame.collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(
                f"the data cannot be read ({str(error).splitlines()[0]})",
                source=self.label,
                remedy="a Parquet file that is cut short or damaged must be fetched or written again",
            ) from error


def parquet_table(source: Path | Any, label: str) -> FrameTable:
    """Return the table of a Parquet file, given by its path or open for reading."""
    return FrameTable(pl.scan_parquet(source), label)


def frame_table(source: Any) -> FrameTable:
    """Return the table of a dataframe of any library, a dictionary of columns or a list of tuples."""
    label = "the list" if isinstance(source, list) else f"the {type(source).__name__}"
    try:
        frame, named = _as_polars(source)
    except (pl.exceptions.PolarsError, TypeError, ValueError, ImportError) as error:
        raise InputError(
            f"the data cannot be read ({str(error).splitlines()[0]})", source=label, remedy=f"give {_KINDS}"
        ) from error
    return FrameTable(frame.lazy(), label, named=named)


def _as_polars(source: Any) -> tuple[pl.DataFrame | pl.LazyFrame, bool]:
    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return source, True
    if isinstance(source, Mapping):
        return pl.DataFrame({str(name): _plain(column) for name, column in source.items()}), True
    if isinstance(source, (list, tuple)):
        return pl.DataFrame(source, orient="row", infer_schema_length=None), False
    if isinstance(source, np.ndarray):
        return pl.DataFrame(source), source.dtype.names is not None
    if type(source).__module__.split(".")[0] == "pandas":
        return pl.DataFrame({str(name): _plain(source[name]) for name in source.columns}), True
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source), True
    if hasattr(source, "pl"):
        return source.pl(), True
    if hasattr(source, "__dataframe__"):
        # The older interchange protocol, which PyArrow knows and Polars no longer does.
        from pyarrow.interchange import from_dataframe

        return pl.DataFrame(from_dataframe(source)), True
    raise TypeError(f"{type(source).__name__} holds no ratings")


def _plain(column: Any) -> Any:
    """Return a column in a form Polars reads, with pandas' ways of saying "missing" made null."""
    if type(column).__module__.split(".")[0] != "pandas":
        return column
    try:
        return pl.from_pandas(column, nan_to_null=column.dtype == object)
    except ImportError:
        missing = column.isna().to_numpy()
        return pl.Series([None if gone else value for value, gone in zip(column.tolist(), missing)])

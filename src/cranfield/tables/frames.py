"""Tables from Parquet files and from dataframes of any library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._polars import panics_unheard, scan_parquet
from cranfield.tables.columns import ROLES, Role
from cranfield.tables.compressed import too_large, unpack_limit
from cranfield.tables.parquet import ParquetTable
from cranfield.tables.values import Fault

_KINDS = "a path, a dataframe (pandas, Polars, PyArrow, DuckDB), a dictionary of columns or a list of tuples"
# The errors of Polars and PyArrow for types they do not know.
_UNREADABLE = (
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
    *(TypeError, ValueError, NotImplementedError, OverflowError),
)
SAMPLE = 100
"""Number of rows to inspect for the content of a column."""

# Bytes per value once it is read.
_VALUE = 8
# The units of NumPy's dates that Polars knows.
_UNITS = ("D", "ms", "us", "ns")


class FrameTable:
    """The columns of a frame, collected one at a time, so that a large Parquet file needs little memory."""

    def __init__(self, frame: pl.LazyFrame, label: str, *, named: bool = True) -> None:
        self.label = label
        self._frame = frame
        self._schema = self._collected(frame.head(0)).schema
        self.names = tuple(self._schema) if named else None
        self.width = len(self._schema)
        if not self.width:
            raise self._empty()
        self._places: Mapping[Role, int] = {}

    @property
    def guess(self) -> dict[Role, int]:
        """The positions of the columns if they have no names: user, item, rating, time."""
        return dict(zip(ROLES, range(self.width)))

    def head(self) -> pl.DataFrame:
        """Return the first rows."""
        return self._collected(self._frame.head(SAMPLE))

    def check_size(self, limit: int) -> None:
        """Refuse a table whose rows take more than ``limit`` bytes; its Parquet file may be small if values repeat."""
        rows = self._collected(self._frame.select(pl.len())).item()
        if rows * _VALUE * min(self.width, len(ROLES)) > limit:
            raise too_large(limit, self.label)

    def load(self, places: Mapping[Role, int]) -> None:
        """Remember which columns are wanted."""
        self._places = places

    def column(self, role: Role) -> pl.Series:
        """Return the column of ``role``."""
        column = self._collected(self._frame.select(pl.nth(self._places[role]))).to_series()
        if not len(column):
            raise self._empty()
        return column

    def error(self, fault: Fault, role: Role) -> InputError:
        """Return the error for a fault; the first row of data is row 1."""
        place = self._places[role]
        column = self.names[place] if self.names is not None else str(place + 1)
        return InputError(fault.problem, source=self.label, row=fault.row + 1, column=column, remedy=fault.remedy)

    def lines(self, *rows: int) -> list[int]:
        """Return row numbers counted from 1."""
        return [row + 1 for row in rows]

    def _empty(self) -> InputError:
        return InputError("there are no ratings", source=self.label, remedy="give at least one row")

    def _collected(self, frame: pl.LazyFrame) -> pl.DataFrame:
        try:
            with panics_unheard():
                return frame.collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise InputError(
                f"the data cannot be read ({str(error).splitlines()[0]})",
                source=self.label,
                remedy="fix it; a Parquet file that is cut short or damaged must be fetched or written again",
            ) from error


def parquet_table(source: Path | Any, label: str) -> FrameTable:
    """Return the table of a Parquet file, given by path or as an open file, or of a folder of such files."""
    if isinstance(source, Path) and source.is_dir():
        files = ParquetTable(source)
        table, size = FrameTable(files.frame(), label), files.file_bytes
    else:
        table = FrameTable(scan_parquet(source), label)
        size = source.stat().st_size if isinstance(source, Path) else len(source.getbuffer())
    table.check_size(unpack_limit(size))
    return table


def frame_table(source: Any) -> FrameTable:
    """Return the table of a dataframe of any library, a dictionary of columns, or a list of tuples."""
    label = "the list" if isinstance(source, list) else f"the {type(source).__name__}"
    try:
        frame, named = _as_polars(source, label)
    except (*_UNREADABLE, ImportError) as error:
        raise InputError(
            f"the data cannot be read ({str(error).splitlines()[0]})", source=label, remedy=f"give {_KINDS}"
        ) from error
    return FrameTable(frame.lazy(), label, named=named)


def _as_polars(source: Any, label: str) -> tuple[pl.DataFrame | pl.LazyFrame, bool]:
    """Return the data as a frame, and whether its columns have names."""
    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return source, True
    if isinstance(source, Mapping):
        return pl.DataFrame(_columns(source.items(), label)), True
    if isinstance(source, (list, tuple)):
        return _from_rows(source)
    if isinstance(source, np.ndarray):
        return pl.DataFrame(source), source.dtype.names is not None
    if _is_pandas(source):
        if not hasattr(source, "columns"):
            raise TypeError(f"a {type(source).__name__} of pandas is one column")
        # pandas numbers the columns of a frame that was read without a header.
        named = not all(isinstance(name, Integral) for name in source.columns)
        return pl.DataFrame(_columns(source.items(), label)), named
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source), True
    if hasattr(source, "pl"):
        return source.pl(), True
    if hasattr(source, "__dataframe__"):
        # The older interchange protocol, which PyArrow supports and Polars no longer does.
        from pyarrow.interchange import from_dataframe

        return pl.DataFrame(from_dataframe(source)), True
    raise TypeError(f"{type(source).__name__} holds no ratings")


def _from_rows(rows: list[Any] | tuple[Any, ...]) -> tuple[pl.DataFrame, bool]:
    """Return rows as a frame; dictionaries name their columns."""
    # Polars would take a list of texts, such as the names of files, for a single row.
    odd = next(
        (row for row in rows if isinstance(row, str) or not isinstance(row, (Sequence, Mapping, np.ndarray))), None
    )
    if odd is not None:
        raise TypeError(f"{odd!r} is not a rating")
    return pl.DataFrame(rows, orient="row", infer_schema_length=None), bool(rows) and isinstance(rows[0], Mapping)


def _columns(columns: Iterable[tuple[Any, Any]], label: str) -> dict[str, Any]:
    """Return columns by name, in a form that Polars reads."""
    plain: dict[str, Any] = {}
    for name, column in columns:
        if str(name) in plain:
            raise InputError(f"two columns have the name {str(name)!r}", source=label, remedy="rename one of them")
        try:
            plain[str(name)] = _from_pandas(column) if _is_pandas(column) else _from_numpy(column)
        except _UNREADABLE as error:
            raise InputError(
                f"the column cannot be read ({str(error).splitlines()[0]})",
                source=label,
                column=str(name),
                remedy="give it values of one type, all numbers or all text",
            ) from error
    return plain


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def _from_numpy(column: Any) -> Any:
    """Return a column; an array of dates is converted to a unit that Polars knows."""
    is_date = isinstance(column, np.ndarray) and column.dtype.kind == "M"
    return column.astype("M8[us]") if is_date and np.datetime_data(column.dtype)[0] not in _UNITS else column


def _from_pandas(column: Any) -> Any:
    """Return a pandas column in a form that Polars reads, with missing values as null."""
    if column.dtype == object or getattr(column.dtype, "storage", None) == "python":
        # This is usually text without gaps, which need not go through Arrow; and Arrow would turn UUIDs into bytes.
        with suppress(TypeError):
            direct = pl.Series(column.to_numpy(dtype=object))
            if direct.dtype == pl.String or (len(column) and isinstance(column.iloc[0], UUID)):
                return direct
    # PyArrow may be missing, or may not know the type.
    with suppress(*_UNREADABLE, ImportError):
        return pl.from_pandas(column, nan_to_null=column.dtype == object)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return pl.Series(column.to_numpy()).dt.replace_time_zone("UTC")
    missing = column.isna().to_numpy()
    return pl.Series([None if gone else value for value, gone in zip(column.tolist(), missing)])

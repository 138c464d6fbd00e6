"""Dataframes of any library as tables of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.rankings.table import RunTable, table_of_columns
from cranfield.tables import as_series


def is_frame(source: Any) -> bool:
    """Whether this is a dataframe: of pandas, Polars, or any library that supports Arrow."""
    return isinstance(source, pl.LazyFrame) or hasattr(source, "__arrow_c_stream__") or is_pandas(source)


def is_pandas(frame: Any) -> bool:
    """Whether this is a pandas dataframe."""
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def table_of_tuples(rows: list[tuple[Any, ...]]) -> RunTable:
    """Return the columns of a list of tuples, which have no names."""
    widths = [len(row) for row in rows]
    if len(set(widths)) > 1:
        odd = next(place for place, width in enumerate(widths) if width != widths[0])
        raise InputError(
            f"the tuple has {widths[odd]} entries, but the first has {widths[0]}",
            source="the list",
            row=odd + 1,
            remedy="give tuples of one length",
        )
    columns = {f"column {place + 1}": as_series(list(column)) for place, column in enumerate(zip(*rows))}
    return table_of_columns(columns, "the list", header=False)


def table_of_frame(frame: Any) -> RunTable:
    """Return the columns of a dataframe.

    pandas columns stay pandas columns, since pandas hashes their text faster than it can be converted. Other libraries
    with Arrow support (PyArrow, DuckDB, Narwhals, ...) become Polars columns.
    """
    source = f"the {type(frame).__name__}"
    if is_pandas(frame):
        return _table(_pandas_columns(frame, source), source)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    elif not isinstance(frame, pl.DataFrame):
        frame = pl.DataFrame(frame)
    return _table({name: frame[name] for name in frame.columns}, source)


def _table(columns: dict[str, Any], source: str) -> RunTable:
    # pandas names the columns of a file without a header 0, 1, 2, and Polars column_1, column_2.
    header = not all(name.removeprefix("column_").isdecimal() for name in columns)
    return table_of_columns(columns, source, header=header)


def _pandas_columns(frame: Any, source: str) -> dict[str, Any]:
    named_levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named_levels:
        frame = frame.reset_index(named_levels)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("two columns have this name", source=source, column=twice, remedy="rename one")
    return {name: _unboxed(frame.iloc[:, place]) for place, name in enumerate(names)}


def _unboxed(column: Any) -> Any:
    """Turn a pandas column of Python lists or arrays into a Polars column of lists; leave others unchanged."""
    if column.dtype == object and len(column) and isinstance(column.iloc[0], (list, tuple, np.ndarray)):
        return pl.Series(column.name, [list(value) for value in column])
    return column

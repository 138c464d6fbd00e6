"""Dataframes of any library as tables of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.rank.layouts import Table


def table_of_frame(frame: Any, source: str = "the frame") -> Table | None:
    """Return the columns of a dataframe, or None if this is none.

    pandas columns stay pandas: their text is cheaper to hash where it is. Whatever else speaks Arrow (Polars, PyArrow,
    DuckDB, Narwhals, ...) becomes Polars columns.
    """
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return Table(_pandas_columns(frame, source), source)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    elif not isinstance(frame, pl.DataFrame):
        if not hasattr(frame, "__arrow_c_stream__"):
            return None
        frame = pl.DataFrame(frame)
    return Table({name: frame[name] for name in frame.columns}, source)


def _pandas_columns(frame: Any, source: str) -> dict[str, Any]:
    if any(name is not None for name in frame.index.names):
        kept = [name for name in frame.index.names if name is not None and name not in frame.columns]
        frame = frame.reset_index(kept) if kept else frame
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("two columns have this name", source=source, column=twice, remedy="rename one")
    return {name: _unboxed(frame.iloc[:, place]) for place, name in enumerate(names)}


def _unboxed(column: Any) -> Any:
    """Turn a pandas column of Python lists or arrays into a Polars column of lists; leave others alone."""
    if column.dtype == object and len(column) and isinstance(column.iloc[0], (list, tuple, np.ndarray)):
        return pl.Series(column.name, [list(value) for value in column])
    return column

"""Columns of numbers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.tables import Fault

MISSING = ("", "nan", "na", "n/a", "null", "none")
"""Texts of missing numbers, in lower case."""


def numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as float64, with NaN for missing values; text that is not a number is a fault with its row.

    Examples
    --------
    >>> numbers(pl.Series(["1", "", "-inf"])).tolist()
    [1.0, nan, -inf]
    """
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "iufb":
        # A copy, since the user may change the frame.
        return np.array(column, dtype=np.float64)
    series = column if isinstance(column, pl.Series) else pl.Series(column, strict=False)
    if series.dtype == pl.Object:
        series = pl.Series(series.to_list(), strict=False)
    if series.dtype != pl.String:
        if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
            raise Fault(0, f"{series.head(1).to_list()[0]!r} is not a number", "name the right column")
        return series.cast(pl.Float64).to_numpy()
    text = series.str.strip_chars()
    values = text.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & ~text.str.to_lowercase().is_in(MISSING)).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise Fault(row, f"{series[row]!r} is not a number", "fix it, or name the right column")
    return values.to_numpy()

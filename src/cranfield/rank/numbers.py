"""Columns of numbers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError

_MISSING = ("", "nan", "na", "n/a", "null", "none", "-")


def numbers(column: Any, *, source: str, column_name: str, first_row: int) -> NDArray[np.float64]:
    """Return a column as float64, NaN where it holds nothing; text that is no number is an error with its row.

    Examples
    --------
    >>> numbers(pl.Series(["1", "", "inf"]), source="r.tsv", column_name="score", first_row=1).tolist()
    [1.0, nan, inf]
    """
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "iufb":
        # A copy: the frame is the user's to change.
        return np.array(column, dtype=np.float64)
    series = column if isinstance(column, pl.Series) else pl.Series(column)
    if series.dtype == pl.Object:
        series = pl.Series(series.to_list(), strict=False)
    if series.dtype != pl.String:
        return series.cast(pl.Float64).to_numpy(writable=False)
    text = series.str.strip_chars()
    values = text.cast(pl.Float64, strict=False)
    wrong = values.is_null() & text.is_not_null() & ~text.str.to_lowercase().is_in(_MISSING)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(
            f"{series[row]!r} is not a number",
            source=source,
            row=row + first_row,
            column=column_name,
            remedy="mend it, or name the right column",
        )
    return values.to_numpy(writable=False)

"""Encoding of ids: the vocabulary of a column and the code of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.tables import UNKNOWN, Vocabulary, as_series, check_exact

# Number of objects to check before testing whether all come in runs.
_PROMISE = 1000


def encode(ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the vocabulary of ``ids`` and the code of each, `UNKNOWN` where an id is missing.

    Like `Vocabulary.encode`, but for raw columns: ids may be missing, pandas hashes its own text, and ids that come in
    runs, such as the users in a file of lists, are looked up once per run.

    Examples
    --------
    >>> vocabulary, codes = encode(["b", "a", "b"])
    >>> vocabulary.all.to_list(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    if hasattr(ids, "factorize") and not _is_numeric(ids.dtype):
        # pandas hashes its own columns of text and objects faster than they can be converted.
        starts = _object_run_starts(ids.to_numpy()) if ids.dtype == object else None
        vocabulary, codes = _factorized(ids if starts is None else ids.take(starts))
    else:
        ids = _plain(ids)
        starts = _run_starts(ids)
        vocabulary, codes = _encode(ids if starts is None else ids.gather(starts))
    if starts is not None:
        codes = np.repeat(codes, np.diff(starts, append=len(ids)))
    return vocabulary, codes


def _is_numeric(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "iuf"


def _factorized(ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
    try:
        codes, distinct = ids.factorize()
    except TypeError as error:
        raise InputError(f"the ids cannot be read ({error})", remedy="use numbers, text or dates") from error
    try:
        vocabulary, code_of = _sorted(_plain(distinct.tolist()))
    except InputError as error:  # its row is one of the distinct ids
        raise InputError(error.problem, remedy=error.remedy) from None
    # factorize marks a missing id with -1, which selects the appended cell.
    return vocabulary, np.append(code_of, np.int32(UNKNOWN))[codes]


def _sorted(distinct: pl.Series) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the vocabulary of distinct ids, and the code of each."""
    if distinct.dtype != pl.String:
        return _encode(distinct)
    order = distinct.arg_sort()
    codes = np.empty(len(distinct), dtype=np.int32)
    codes[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
    return Vocabulary(distinct.gather(order)), codes


def _plain(ids: Any) -> pl.Series:
    """Convert ids to one of a few types; integers and whole floats become Int64."""
    try:
        series = as_series(ids)
    except InputError as error:
        raise InputError("the ids are of several types", remedy=error.remedy) from error
    kind = series.dtype
    if kind.is_nested() or kind == pl.Object:
        raise InputError(f"{series.head(1).to_list()[0]!r} cannot be an id", remedy="use numbers, text or dates")
    check_exact(series)
    if kind.is_float():
        known = series.fill_nan(None)
        whole = known.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == known.null_count() and bool((whole == known).all()) else known
    if kind.is_integer() and kind not in (pl.Int64, pl.UInt64):
        return series.cast(pl.Int64)
    return series


def _run_starts(series: pl.Series) -> NDArray[np.int64] | None:
    """Return the starts of runs of equal ids, or None if the runs are too short to be worth it."""
    if len(series) < 2:
        return None
    if series.dtype.is_integer() and not series.null_count():
        values = series.to_numpy()
        changes = values[1:] != values[:-1]
    else:
        changes = series.slice(1).ne_missing(series.slice(0, len(series) - 1)).to_numpy()
    return _starts(changes)


def _object_run_starts(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """Do what `_run_starts` does for Python objects. They are slow to compare, so the first ones are tested alone."""
    try:
        for some in (values[:_PROMISE], values):
            starts = _starts(some[1:] != some[:-1])
            if starts is None:
                return None
    except TypeError:
        # pandas.NA cannot be compared.
        return None
    return starts


def _starts(changes: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    if 4 * np.count_nonzero(changes) >= len(changes):
        return None
    return np.append(0, np.flatnonzero(changes) + 1)


def _encode(series: pl.Series) -> tuple[Vocabulary, NDArray[np.int32]]:
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if not series.null_count():
        return Vocabulary.encode(series)
    vocabulary = Vocabulary.of(series.drop_nulls())
    return vocabulary, vocabulary.codes(series)

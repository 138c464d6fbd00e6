"""Ids of any type on the outside, codes 0, 1, 2, ... on the inside."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError

UNKNOWN = -1
"""The code of an id that a vocabulary does not hold."""

# A table from integer id to code may have this many empty cells for each full one, and this many in any case.
_TABLE_SLACK, _TABLE_ROOM = 16, 1 << 20


class Vocabulary:
    """The distinct ids of users or of items, sorted; a code is an id's place in that order.

    Being sorted, a vocabulary does not depend on the order in which the ids were met, and neither does anything
    that is drawn at random by code.

    Parameters
    ----------
    ids
        The distinct ids in ascending order. Use `Vocabulary.of` for ids that are not.

    Examples
    --------
    >>> items = Vocabulary.of(["b", "a", "b"])
    >>> len(items), items.codes(["a", "b", "z"]).tolist(), items.ids([1, 0]).to_list()
    (2, [0, 1, -1], ['b', 'a'])
    """

    def __init__(self, ids: pl.Series) -> None:
        if len(ids) >= 2**31:
            raise InputError(f"{len(ids):,} distinct ids are more than cranfield can hold (2,147,483,647)")
        self._ids = ids.alias("id")

    @classmethod
    def of(cls, ids: Any) -> Vocabulary:
        """Make the vocabulary of ``ids``, given in any order and with repetitions."""
        series = as_series(ids)
        return cls(series.unique().sort() if len(series) else series)

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        shown = ", ".join(repr(one) for one in self._ids.head(3))
        return f"Vocabulary({len(self):,} ids: {shown}{', ...' if len(self) > 3 else ''})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vocabulary) or len(self) != len(other):
            return False
        return self._ids.dtype == other._ids.dtype and self._ids.equals(other._ids)

    __hash__ = None  # type: ignore[assignment]

    @property
    def dtype(self) -> pl.DataType:
        """The type of the ids."""
        return self._ids.dtype

    @property
    def all(self) -> pl.Series:
        """Every id, in the order of the codes."""
        return self._ids

    def ids(self, codes: Any) -> pl.Series:
        """Return the ids that stand behind ``codes``."""
        return self._ids.gather(np.asarray(codes, dtype=np.int64))

    def codes(self, ids: Any) -> NDArray[np.int32]:
        """Return the code of each of ``ids``, `UNKNOWN` for one that is not here.

        Ids written as text and ids that are integers meet: ``"12"`` finds 12, and 12 finds ``"12"``.
        """
        series = as_series(ids)
        if len(series) == 0 or len(self) == 0:
            return np.full(len(series), UNKNOWN, dtype=np.int32)
        series = _like(series, self._ids.dtype)
        if self._ids.dtype.is_integer():
            return self._integer_codes(series)
        if self._ids.dtype == pl.String:
            codes = series.cast(self._enum, strict=False).to_physical()
        else:
            table = pl.DataFrame({"id": self._ids, "code": np.arange(len(self), dtype=np.int32)})
            codes = series.alias("id").to_frame().join(table, on="id", how="left", maintain_order="left")["code"]
        return codes.cast(pl.Int32).fill_null(UNKNOWN).to_numpy(writable=True)

    def code(self, one: Any) -> int:
        """Return the code of a single id, or raise `KeyError`."""
        code = int(self.codes([one])[0])
        if code == UNKNOWN:
            raise KeyError(one)
        return code

    def __contains__(self, one: Any) -> bool:
        return int(self.codes([one])[0]) != UNKNOWN

    @cached_property
    def string_order(self) -> NDArray[np.int32]:
        """The place of each id when ids are ordered as text (byte by byte), as trec_eval orders them."""
        order = np.argsort(self._ids.cast(pl.String).arg_sort().to_numpy(), kind="stable")
        return order.astype(np.int32)

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(self._ids)

    def _integer_codes(self, series: pl.Series) -> NDArray[np.int32]:
        missing = series.is_null().to_numpy() if series.null_count() else None
        values = series.fill_null(0).to_numpy() if missing is not None else series.to_numpy()
        known = self._ids.to_numpy()
        low, high = int(known[0]), int(known[-1])
        outside = (values < low) | (values > high)
        if high - low + 1 <= _TABLE_SLACK * len(known) + _TABLE_ROOM:
            table = np.full(high - low + 1, UNKNOWN, dtype=np.int32)
            table[known - low] = np.arange(len(known), dtype=np.int32)
            codes = table[np.where(outside, low, values) - low]
        else:
            place = np.minimum(np.searchsorted(known, values), len(known) - 1)
            codes = np.where(known[place] == values, place, UNKNOWN).astype(np.int32)
        codes[outside] = UNKNOWN
        if missing is not None:
            codes[missing] = UNKNOWN
        found: NDArray[np.int32] = codes
        return found


def as_series(ids: Any) -> pl.Series:
    """Return ``ids`` (a list, an array, a Series of any library) as a Polars Series."""
    if isinstance(ids, pl.Series):
        return ids
    try:
        return pl.Series("id", ids)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the ids cannot be read ({error})", remedy="use ids of one type: all numbers or all text"
        ) from error


def _like(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Cast ids to the vocabulary's type; what cannot be cast becomes null, hence unknown."""
    if series.dtype == dtype:
        return series
    if dtype.is_integer() and series.dtype.is_float():
        whole = series.cast(pl.Int64, strict=False)
        return pl.select(pl.when(whole.cast(pl.Float64) == series).then(whole)).to_series()
    if dtype.is_integer():
        return series.cast(pl.Int64, strict=False) if series.dtype != pl.UInt64 else series
    return series.cast(dtype, strict=False)

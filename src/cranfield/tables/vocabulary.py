"""Ids of any type outside, codes 0, 1, 2, ... inside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import finalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._streams import Keys, id_keys

UNKNOWN = -1
"""The code of an id that is not in the vocabulary."""

# A table from integer id to code may have this many cells per id, and this many in any case.
_TABLE_SLACK, _TABLE_ROOM = 16, 1 << 20
# Tables are read in blocks, because NumPy copies an index that is not int64.
_BLOCK = 1 << 18
_TRANSLATIONS: dict[tuple[int, int], NDArray[np.int32] | None] = {}
"""Cached results of `Vocabulary.translation`, by the `id` of both vocabularies; dropped when either is deleted."""


class Vocabulary:
    """The distinct ids of users or of items, sorted; a code is the position of an id in that order.

    Because it is sorted, a vocabulary does not depend on the original order of the ids, and neither does anything drawn
    at random by code.

    Parameters
    ----------
    ids
        The distinct ids in ascending order. Use `Vocabulary.of` for ids in any order.

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

    @classmethod
    def union(cls, vocabularies: Sequence[Vocabulary]) -> Vocabulary:
        """Return the vocabulary of all ids in several others; ids become text if those of any of them are text.

        Numbers of different types become whole numbers if all are, otherwise floats, if no two of them become the same.

        Examples
        --------
        >>> Vocabulary.union([Vocabulary.of([2, 1]), Vocabulary.of([3, 1])]).all.to_list()
        [1, 2, 3]
        >>> Vocabulary.union([Vocabulary.of([2]), Vocabulary.of(["a"])]).all.to_list()
        ['2', 'a']
        >>> Vocabulary.union([Vocabulary.of([2**53 + 1, 2**53]), Vocabulary.of([5.0])]).all.to_list()
        [5, 9007199254740992, 9007199254740993]
        """
        if all(vocabulary == vocabularies[0] for vocabulary in vocabularies):
            return vocabularies[0]
        if any(vocabulary.dtype == pl.String for vocabulary in vocabularies):
            return cls.of(pl.concat([vocabulary.text for vocabulary in vocabularies]))
        dtype = vocabularies[0].dtype
        if _is_integer(dtype) and all(vocabulary.dtype == dtype for vocabulary in vocabularies):
            # A stable sort merges sorted runs in linear time.
            ids = np.sort(np.concatenate([vocabulary.all.to_numpy() for vocabulary in vocabularies]), kind="stable")
            return cls(pl.Series(ids[np.append(True, ids[1:] != ids[:-1])[: len(ids)]], dtype=dtype))
        for kind in (pl.Int64(), pl.Int128(), pl.Float64()):
            alike = [_like(vocabulary.all, kind) for vocabulary in vocabularies if vocabulary.dtype.is_numeric()]
            if len(alike) == len(vocabularies) and not any(ids.null_count() for ids in alike):
                return cls.of(pl.concat(alike))
        # Polars can concatenate frames, but not series, with ids of different types.
        frames = [vocabulary.all.to_frame() for vocabulary in vocabularies]
        return cls.of(pl.concat(frames, how="vertical_relaxed").to_series())

    @classmethod
    def encode(cls, ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
        """Make the vocabulary of ``ids`` and the code of each of them; none may be missing.

        Examples
        --------
        >>> items, codes = Vocabulary.encode([30, 10, 30])
        >>> items.all.to_list(), codes.tolist()
        ([10, 30], [1, 0, 1])
        """
        series = as_series(ids)
        if _is_integer(series.dtype) and len(series):
            low, high = int(series.min()), int(series.max())  # type: ignore[arg-type]
            if _is_dense(low, high, len(series)):
                return cls._from_dense(series, 0 if low > 0 and _is_dense(0, high, len(series)) else low, high)
        vocabulary = cls.of(series)
        return vocabulary, vocabulary.codes(series)

    @classmethod
    def _from_dense(cls, series: pl.Series, low: int, high: int) -> tuple[Vocabulary, NDArray[np.int32]]:
        """Encode integers by marking them in a table, and counting the marks."""
        # A series of several chunks would be copied into one array.
        parts = [chunk.to_numpy() for chunk in series.get_chunks()]
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        for part in parts:
            for start in range(0, len(part), _BLOCK):
                seen[_offsets(part[start : start + _BLOCK], low)] = True
        table = np.cumsum(seen, dtype=np.int32)
        table -= 1
        codes = np.empty(len(series), dtype=np.int32)
        place = 0
        for part in parts:
            _look_up(table, part, low, codes[place : place + len(part)])
            place += len(part)
        return cls(_integers(np.flatnonzero(seen), low, series.dtype)), codes

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        shown = ", ".join(repr(identifier) for identifier in self._ids.head(3))
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

    @property
    def text(self) -> pl.Series:
        """Every id as text, in the order of the codes; bytes that are not text are shown in hexadecimal."""
        if self.dtype == pl.Duration:
            return self._ids.to_physical().cast(pl.String)
        try:
            return self._ids.cast(pl.String)
        except pl.exceptions.ComputeError:
            return self._ids.bin.encode("hex")

    def ids(self, codes: Any) -> pl.Series:
        """Return the ids of ``codes``."""
        return self._ids.gather(np.asarray(codes, dtype=np.int64))

    def codes(self, ids: Any) -> NDArray[np.int32]:
        """Return the code of each of ``ids``, or `UNKNOWN` if it is not in the vocabulary.

        Ids written as text match ids that are integers or dates: ``"12"`` finds 12, and 12 finds ``"12"``.
        """
        series = as_series(ids)
        if len(series) == 0 or len(self) == 0:
            return np.full(len(series), UNKNOWN, dtype=np.int32)
        known = self.text if series.dtype == pl.String and self.dtype.is_temporal() else self._ids
        series = _like(series, known.dtype)
        if self.dtype == pl.String:
            codes = series.cast(self._enum, strict=False).to_physical()
        elif self._has_table:
            return self._table_codes(series)
        else:
            table = pl.DataFrame({"id": known, "code": np.arange(len(self), dtype=np.int32)})
            codes = series.alias("id").to_frame().join(table, on="id", how="left", maintain_order="left")["code"]
        return codes.cast(pl.Int32).fill_null(UNKNOWN).to_numpy(writable=True)

    def translation(self, other: Vocabulary) -> NDArray[np.int32] | None:
        """Return the code here of each code of another vocabulary, or None if both hold the same ids.

        It is computed once per pair of vocabularies, and cached as long as both exist.

        Examples
        --------
        >>> items = Vocabulary.of(["a", "b"])
        >>> items.translation(Vocabulary.of(["b", "z"])).tolist(), items.translation(Vocabulary.of(["b", "a"]))
        ([1, -1], None)
        """
        key = id(self), id(other)
        if key not in _TRANSLATIONS:
            codes = None if self == other else self.codes(other.all)
            if codes is not None:
                codes.flags.writeable = False
            _TRANSLATIONS[key] = codes
            for vocabulary in (self, other):
                finalize(vocabulary, _TRANSLATIONS.pop, key, None).atexit = False
        return _TRANSLATIONS[key]

    def recoded(self, codes: NDArray[Any], other: Vocabulary) -> NDArray[Any]:
        """Return codes of another vocabulary as codes of this one, or `UNKNOWN` for ids that it does not have."""
        table = self.translation(other)
        return codes if table is None else table[codes]

    def code(self, identifier: Any) -> int:
        """Return the code of a single id, or raise `KeyError`."""
        if identifier not in self:
            raise KeyError(identifier)
        return int(self.codes([identifier])[0])

    def __contains__(self, identifier: Any) -> bool:
        return int(self.codes([identifier])[0]) != UNKNOWN

    @cached_property
    def string_order(self) -> NDArray[np.int32]:
        """The position of each id when ids are sorted as text (byte by byte), as in trec_eval."""
        return np.argsort(self.text.arg_sort().to_numpy(), kind="stable").astype(np.int32)

    @cached_property
    def keys(self) -> Keys:
        """A number for each id that depends only on the id; see `cranfield._streams.id_keys`."""
        return id_keys(self._ids)

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(self._ids)

    @property
    def _has_table(self) -> bool:
        """Whether the ids are integers dense enough for a table from id to code to be worth its memory."""
        return _is_integer(self._ids.dtype) and _is_dense(self._ids[0], self._ids[-1], len(self))

    def _table_codes(self, series: pl.Series) -> NDArray[np.int32]:
        known, values = self._ids.to_numpy(), series.fill_null(self._ids[0]).to_numpy()
        low, high = int(known[0]), int(known[-1])
        table = np.full(high - low + 1, UNKNOWN, dtype=np.int32)
        table[_offsets(known, low)] = np.arange(len(known), dtype=np.int32)
        outside = (values < low) | (values > high) | series.is_null().to_numpy()
        codes = np.empty(len(values), dtype=np.int32)
        _look_up(table, np.where(outside, known[0], values), low, codes)
        codes[outside] = UNKNOWN
        return codes


def as_series(ids: Any) -> pl.Series:
    """Return ``ids`` (a list, an array, a Series of any library) as a Polars Series."""
    if isinstance(ids, pl.Series):
        return ids
    try:
        return pl.Series("id", ids)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the ids cannot be read ({str(error).splitlines()[0]})",
            remedy="use ids of one type: all numbers or all text",
        ) from error


def check_exact(ids: pl.Series) -> None:
    """Refuse floats so large that several whole numbers round to them; they may be different ids."""
    if not ids.dtype.is_float():
        return
    bits = 53 if ids.dtype == pl.Float64 else 24 if ids.dtype == pl.Float32 else 11
    large = ids.is_not_nan() & (ids.abs() >= 2.0**bits)
    if large.any():
        row = int(large.arg_max() or 0)
        raise InputError(
            f"{ids[row]} is a float of 2^{bits} or more, to which several whole numbers round",
            row=row + 1,
            remedy="write ids as whole numbers or as text",
        )


def _like(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Cast ids to the vocabulary's type; ids that do not survive the cast become null, hence unknown."""
    if series.dtype == dtype:
        return series
    try:
        cast = series.cast(dtype, strict=False)
        if dtype == pl.String or (dtype.is_integer() and series.dtype.is_integer()):
            return cast
        return pl.select(pl.when(cast.cast(series.dtype, strict=False) == series).then(cast)).to_series()
    except (pl.exceptions.InvalidOperationError, pl.exceptions.ComputeError):
        return pl.Series([None], dtype=dtype).extend_constant(None, len(series) - 1)


def _is_integer(dtype: pl.DataType) -> bool:
    """Whether a type is an integer that NumPy has too: 128-bit integers are not."""
    return dtype.is_integer() and "128" not in str(dtype)


def _is_dense(low: int, high: int, count: int) -> bool:
    return high - low < _TABLE_SLACK * count + _TABLE_ROOM


def _offsets(values: NDArray[Any], low: int) -> NDArray[np.int64]:
    """Return ``values - low`` without overflow, for values at least ``low`` and not far above it."""
    if values.dtype == np.uint64:
        return (values - np.uint64(low)).astype(np.int64)
    wide = values.astype(np.int64, copy=False)
    return wide if low == 0 else wide - low


def _integers(offsets: NDArray[np.int64], low: int, dtype: pl.DataType) -> pl.Series:
    if dtype == pl.UInt64:
        return pl.Series(offsets.astype(np.uint64) + np.uint64(low))
    return pl.Series(offsets + low).cast(dtype)


def _look_up(table: NDArray[np.int32], values: NDArray[Any], low: int, codes: NDArray[np.int32]) -> None:
    """Write the table's entry for each value into ``codes``; the table starts at ``low``."""
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.take(table, _offsets(values[block], low), out=codes[block], mode="clip")

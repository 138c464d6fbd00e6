"""Columns of any type converted to ids, ratings and times, with the row of the first value that is not valid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.tables.columns import ROLES, Role
from cranfield.tables.vocabulary import Vocabulary, check_exact

# The first whole number too large to be a time in seconds (the year 5138). It and its multiples by a thousand are taken
# for milliseconds, microseconds and nanoseconds.
_TOO_LATE = 10**11
# The usual range of times in seconds: from 1973 to 2096.
_USUAL, _UNUSUAL = 10**8, 4 * 10**9
_ISO = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
_ID_REMEDY = "use numbers, text or dates"
# Types of other libraries that Polars has a name for and passes on.
_EXTENSION: Any = getattr(pl, "BaseExtension", ())
_BLOCK = 1 << 18  # Times are checked in blocks, to save memory.
_SHOWN = 60  # the maximum length of a value in a message
_TOO_FAR = 2**63  # seconds that do not fit in 64 bits


class Fault(Exception):
    """A value that cannot be used: its row in the column, counted from 0, what is wrong and what to do."""

    def __init__(self, row: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.row, self.problem, self.remedy = row, problem, remedy


class ColumnTable:
    """Rows of which some columns are users, items, ratings and times."""

    label: str
    names: tuple[str, ...] | None
    width: int
    _places: Mapping[Role, int]

    @property
    def guess(self) -> dict[Role, int]:
        """The positions of the columns if they have no names."""
        return dict(zip(ROLES, range(self.width)))

    def load(self, places: Mapping[Role, int]) -> None:
        """Say in which columns the roles are, before columns are taken."""
        self._places = places

    def column(self, role: Role) -> pl.Series:
        """Return the column of ``role``; it may be taken only once."""
        raise NotImplementedError

    def lines(self, *rows: int) -> list[int]:
        """Return the numbers of rows, counted from 1; of a text, the lines that they start on."""
        return [row + 1 for row in rows]

    def error(self, fault: Fault, role: Role) -> InputError:
        """Return the error for a fault, with its row or line."""
        return self._located(fault, role, fault.row + 1)

    def _located(self, fault: Fault, role: Role, line: int) -> InputError:
        place = self._places[role]
        column = self.names[place] if self.names is not None else str(place + 1)
        return InputError(fault.problem, source=self.label, row=line, column=column, remedy=fault.remedy)

    def values(self, role: Role) -> Any:
        """Return the column of ``role`` as a vocabulary and codes (`encoded`), as `ratings` or as `times`."""
        try:
            column = self.column(role)
            return times(column) if role == "time" else ratings(column) if role == "rating" else encoded(column, role)
        except Fault as fault:
            raise self.error(fault, role) from fault


def encoded(column: pl.Series, role: Role) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the vocabulary of a column of ids, and the code of each of them."""
    needed = "a user and an item" if role in ("user", "item") else f"a {role}"
    remedy = f"give every rating {needed}, or leave the row out"
    if column.null_count():
        raise Fault(_first(column.is_null()), f"the {role} is missing", remedy)
    column = _uuids_as_text(_categories_as_text(column))
    if column.dtype.is_nested() or isinstance(column.dtype, _EXTENSION):
        raise Fault(0, f"{_shown(column[0])} cannot be an id", _ID_REMEDY)
    try:
        check_exact(column)
    except InputError as error:
        raise Fault((error.row or 1) - 1, error.problem, str(error.remedy)) from None
    vocabulary, codes = Vocabulary.encode(column)
    if column.dtype == pl.String and (blank := vocabulary.all.str.strip_chars() == "").any():
        raise Fault(int(np.argmax(np.isin(codes, blank.arg_true()))), f"the {role} is missing", remedy)
    if column.dtype.is_float() and column.is_nan().any():
        raise Fault(_first(column.is_nan()), f"the {role} is missing (NaN)", remedy)
    return vocabulary, codes


def _categories_as_text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column


def _uuids_as_text(column: pl.Series) -> pl.Series:
    """Return a column of Python objects as text if they are UUIDs, for which Polars has no type."""
    if column.dtype != pl.Object:
        return column
    odd = next((row for row, value in enumerate(column) if not isinstance(value, UUID)), None)
    if odd is not None:
        raise Fault(odd, f"{_shown(column[odd])} cannot be an id", _ID_REMEDY)
    return pl.Series([str(value) for value in column])


def ratings(column: pl.Series) -> NDArray[Any]:
    """Return a column of ratings as finite numbers."""
    remedy = "write a number or leave the row out"
    column = numbers = _categories_as_text(column)
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        broken = (numbers.is_null() & (text != "")).fill_null(False)
        if broken.any():
            row = _first(broken)
            comma = " (with a decimal point)" if "," in column[row] else ""
            raise Fault(row, f"{_shown(column[row])} is not a number", f"write a number{comma} or leave the row out")
    elif not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        problem = f"{_shown(column[0])} is not a number"
        raise Fault(0, problem, "choose the column of the ratings, or rating=False for none")
    if numbers.null_count():
        raise Fault(_first(numbers.is_null()), "the rating is missing", remedy)
    values = _singles(numbers) if len(numbers) else None
    if values is None:
        values = numbers.cast(pl.Float64).to_numpy()
        if not (finite := np.isfinite(values)).all():
            row = int(np.argmin(finite))
            raise Fault(row, f"{values[row]} is not a finite number", remedy)
    return values


def _singles(numbers: pl.Series) -> NDArray[np.float32] | None:
    """Return the numbers as float32, or None if that changes one of them or one is not finite."""
    single = np.empty(len(numbers), dtype=np.float32)
    start = 0
    for chunk in numbers.get_chunks():
        wide = chunk.cast(pl.Float64).to_numpy()
        part = single[start : start + len(wide)]
        with np.errstate(over="ignore"):
            part[:] = wide
        if not (part == wide).all() or not np.isfinite(part).all():
            return None
        start += len(wide)
    return single


def times(column: pl.Series) -> NDArray[np.int64]:
    """Return a column of times as whole seconds since 1970 (UTC).

    Whole numbers whose largest is 10¹¹ or more are milliseconds, 10¹⁴ microseconds and 10¹⁷ nanoseconds; numbers
    clearly in another unit than most are refused. They are dates if every one of them is written as one: 20011231.
    """
    remedy = "write seconds, milliseconds or an ISO date in every row, or read without times (time=False)"
    column = _categories_as_text(column)
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = _from_text(text)
        broken = (column.is_null() & (text != "")).fill_null(False)
        if broken.any():
            row = _first(broken)
            raise Fault(row, f"{_shown(text[row])} is not a time", remedy)
    if column.null_count():
        raise Fault(_first(column.is_null()), "the time is missing", remedy)
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        return _since_1970(column)
    if not column.dtype.is_numeric():
        raise Fault(0, f"{_shown(column[0])} is not a time", remedy)
    # Numbers that are not finite, or too large for an integer, become null.
    whole = (column if column.dtype.is_integer() else _within_64_bits(column.floor())).cast(pl.Int64, strict=False)
    if whole.null_count():
        row = _first(whole.is_null())
        raise Fault(row, f"{column[row]} is not a time", remedy)
    dates = _basic_dates(whole)
    return _seconds(whole.to_numpy()) if dates is None else _since_1970(dates)


def _within_64_bits(numbers: pl.Series) -> pl.Series:
    """Return null for numbers that may not fit: the float -2⁶³ may be any of the integers near it."""
    return pl.select(pl.when(numbers.is_between(-(2.0**63), 2.0**63, closed="none")).then(numbers)).to_series()


def _since_1970(dates: pl.Series) -> NDArray[np.int64]:
    return dates.cast(pl.Datetime("us")).dt.epoch("s").cast(pl.Int64).to_numpy()


def _basic_dates(numbers: pl.Series) -> pl.Series | None:
    """Return whole numbers as dates if each is one in ISO 8601's basic form; as seconds they would be in 1970."""
    if not numbers.is_between(19_000_101, 21_001_231).all():
        return None
    dates = numbers.cast(pl.String).str.to_date("%Y%m%d", strict=False)
    return None if dates.null_count() or not len(dates) else dates


def _seconds(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(numbers):
        return numbers
    latest = max(abs(int(numbers.max())), abs(int(numbers.min())))
    scale = 1
    while latest >= _TOO_LATE * scale and scale < 10**9:
        scale *= 1000
    if scale == 1:
        return numbers
    _refuse_two_units(numbers, scale)
    return numbers // scale


def _refuse_two_units(numbers: NDArray[np.int64], scale: int) -> None:
    """Refuse times of which some are usual in a coarser unit, but in early 1970 in the unit of the largest.

    If others are in between, they may come from a clock that started at 0, and nothing is refused.
    """
    coarser = scale // 1000
    while coarser:
        counts = np.zeros(4, dtype=np.int64)
        for _, sizes in _sizes(numbers, coarser):
            counts += np.bincount(sizes, minlength=4)
        _, usual, between, finer = counts
        if usual and not between:
            rare = 1 if usual <= finer else 3
            matches = ((start, sizes == rare) for start, sizes in _sizes(numbers, coarser))
            row = next(start + int(np.argmax(these)) for start, these in matches if these.any())
            raise Fault(
                row,
                f"{numbers[row]} is a time in a different unit from most",
                "write all times in seconds or all in milliseconds, or read without times (time=False)",
            )
        coarser //= 1000


def _sizes(numbers: NDArray[np.int64], unit: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield blocks that say whether times are too small for a unit (0), usual (1), late (2) or too late (3)."""
    edges = np.array([_USUAL, _UNUSUAL, _TOO_LATE], dtype=np.uint64) * np.uint64(unit)
    for start in range(0, len(numbers), _BLOCK):
        # The absolute value of the smallest signed number does not fit in a signed one.
        sizes = np.abs(numbers[start : start + _BLOCK]).view(np.uint64)
        yield start, np.searchsorted(edges, sizes, side="right")


def _from_text(text: pl.Series) -> pl.Series:
    """Read text as numbers, or as ISO dates with or without time of day and zone, whichever fits more rows."""
    if text.null_count() == len(text):
        return text.cast(pl.Int64)
    for kind in (pl.Int64, pl.Float64):
        numbers = text.cast(kind, strict=False)
        if numbers.null_count() == text.null_count():
            return numbers
    text = text.str.replace(" ", "T", literal=True).str.replace(r"\s*(?:UTC|GMT)$", "Z")
    readings = [
        text.str.to_datetime(form + "%#z", strict=False, time_unit="us", time_zone="UTC").dt.replace_time_zone(None)
        for form in _ISO
    ]
    readings += [text.str.to_datetime(form, strict=False, time_unit="us") for form in _ISO]
    readings.append(text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
    dates = pl.select(pl.coalesce(readings)).to_series()
    return numbers if numbers.null_count() <= dates.null_count() else dates


def _shown(value: object) -> str:
    """Return a value as text for a message: on one line, and cut if it is long."""
    value = value.to_list() if isinstance(value, pl.Series) else value
    text = " ".join(repr(value).split()) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _first(mask: pl.Series) -> int:
    return mask.arg_max() or 0


def seconds(name: str, moment: object) -> int:
    """Return a date, a datetime, an ISO text or a number of seconds as whole seconds since 1970.

    Without a time zone it is UTC, and a date alone is its first second. A fraction of a second is rounded up: among
    times in whole seconds, those before 2.5 are those before 3.
    """
    if isinstance(moment, int) and abs(moment) >= _TOO_FAR:
        raise SettingError(f"{name} is out of range; give a date, an ISO text or seconds since 1970")
    if not isinstance(moment, bool) and isinstance(moment, Real) and abs(float(moment)) < _TOO_FAR:
        return math.ceil(float(moment))
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise SettingError(
                f"{name}={moment!r} is not a moment; write a date such as 2001-12-31, or 2001-12-31T18:00, "
                "or seconds since 1970"
            ) from error
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise SettingError(f"{name}={moment!r} is not a moment; give a date, an ISO text or seconds since 1970")
    return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def day(moment: float) -> str:
    """Return seconds since 1970 as a readable UTC date and time: ``2001-01-01 00:00:00``."""
    try:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"second {int(moment)}"

"""Text files as tables: read fast and typed if the file is good, slowly and exactly if it is not."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.tables.columns import Role
from cranfield.tables.layout import Layout, as_utf8, find_layout, is_date, is_number, records
from cranfield.tables.values import ColumnTable, Fault

_SPARE = b"\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06"
_BEHIND = b"behind the end"
_BLOCK = 1 << 17
_POLARS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_OPEN_QUOTE = "a quote that is not closed is the usual cause: fix it, or treat quotes as text with quote=None"


class TextTable(ColumnTable):
    """The columns of a text file, given as its bytes and their layout.

    All rows decide whether a column of ids holds integers or text: it holds integers if every id is written like one,
    without a leading zero, plus or space; otherwise all of them are text.
    """

    def __init__(self, data: bytes, layout: Layout, label: str) -> None:
        self.label, self.layout, self.names, self.width = label, layout, layout.names, layout.width
        if layout.start and layout.first_line > 2:
            # Blank lines before the first row are rare enough to be worth a copy.
            data, self.layout = data[layout.start :], replace(layout, start=0)
        self._data = data.rstrip(b"\r\n") if data.endswith((b"\n\n", b"\n\r\n")) else data
        self._columns: dict[Role, pl.Series] = {}
        self._may_be_uneven = False

    @classmethod
    def of(cls, data: bytes, label: str, *, encoding: str = "utf-8", **layout: Any) -> TextTable:
        """Return the table of a text, given what is known of its layout; see `find_layout`."""
        data = as_utf8(data, encoding, label)
        return cls(data, find_layout(data, label, **layout), label)

    @staticmethod
    def ids(text: pl.Series) -> pl.Series:
        """Return text ids as integers if each is written as Polars would write that integer, else unchanged."""
        numbers = text.cast(pl.Int64, strict=False)
        same = numbers.null_count() == text.null_count() and (numbers.cast(pl.String) == text).all()
        return numbers if same else text

    @property
    def guess(self) -> dict[Role, int]:
        """The positions of the columns if they have no names: user, item, rating, time."""
        guess: dict[Role, int] = {"user": 0, "item": 1}
        if self.width == 3 and self._looks_like_time(2):
            return {**guess, "time": 2}
        if self.width > 2:
            guess["rating"] = 2
        if self.width > 3 and (self._looks_like_time(3) or self._mostly(3, is_number)):
            guess["time"] = 3
        return guess

    def _field(self, place: int) -> list[str]:
        return [row[place].strip() for row in self.layout.sample]

    def _looks_like_time(self, place: int) -> bool:
        """Whether the column holds dates, or whole numbers that would be odd ratings but are usual times."""
        return self._mostly(place, lambda field: (field.isdecimal() and len(field.lstrip("0")) > 8) or is_date(field))

    def _mostly(self, place: int, test: Callable[[str], bool]) -> bool:
        """Whether more than half of the first rows pass a test, so that one faulty row does not hide the column."""
        fields = self._field(place)
        return 2 * sum(map(test, fields)) > len(fields)

    def load(self, places: Mapping[Role, int]) -> None:
        """Read the columns at ``places``."""
        self._places = places
        if len(self._data) <= self.layout.start:
            raise InputError("there are no ratings under the header", source=self.label, remedy="check the file")
        if self._ends_inside_quotes():
            raise self._unreadable("the last quote is not closed")
        with ThreadPoolExecutor(1) as meanwhile:
            hides_text_ids = meanwhile.submit(self._hides_text_ids)
            try:
                frame = self._typed()
            except _POLARS:
                frame = None
        if frame is None or hides_text_ids.result():
            frame = self._as_text()
        if any(frame[role].null_count() for role in ("user", "item")):
            frame = self._without_blank_rows(frame)
        if self._may_be_uneven:
            self._check_widths()
        self._columns = {role: frame[role] for role in places}

    def column(self, role: Role) -> pl.Series:
        """Return the column of ``role`` and forget it."""
        return self._columns.pop(role)

    def error(self, fault: Fault, role: Role) -> InputError:
        """Return the error for a fault, with its line; if the row lacks fields, that is reported instead."""
        for number, (line, fields) in enumerate(self._records()):
            if len(fields) != self.width:
                return self._misshapen(line, fields)
            if number == fault.row:
                break
        return self._located(fault, role, line)

    def lines(self, *rows: int) -> list[int]:
        """Return the lines on which rows start."""
        numbered = enumerate(islice(self._records(), max(rows) + 1))
        line_of = {number: line for number, (line, _) in numbered if number in rows}
        return [line_of[row] for row in rows]

    def _records(self, behind: bytes = b"") -> Iterator[tuple[int, list[str]]]:
        body = self._data[self.layout.start :] + behind
        return records(body, self.layout.separator, self.layout.quote, self.layout.first_line)

    def _misshapen(self, line: int, fields: list[str]) -> InputError:
        problem = f"the row has {len(fields)} field{'s' * (len(fields) != 1)} instead of {self.width}"
        remedy = _OPEN_QUOTE if any("\n" in field for field in fields) else "fix the row or leave it out"
        return InputError(problem, source=self.label, row=line, remedy=remedy)

    def _kind(self, role: Role) -> pl.DataType:
        """Return the type that the first rows suggest for a column."""
        if all(_is_integer(field) for field in self._field(self._places[role])):
            return pl.Int64()
        return pl.Float64() if role == "rating" else pl.String()

    def _typed(self) -> pl.DataFrame:
        """Read straight into the types that the first rows suggest; Polars refuses values that do not fit."""
        kinds = {role: self._kind(role) for role in self._places}
        try:
            return self._of_kinds(kinds)
        except _POLARS:
            if kinds.get("rating") != pl.Int64():
                raise
        # Half stars may follow whole ones. Whole numbers are faster to read, so they are tried first.
        return self._of_kinds({**kinds, "rating": pl.Float64()})

    def _of_kinds(self, kinds: Mapping[Role, pl.DataType]) -> pl.DataFrame:
        separator = self.layout.separator
        if len(separator) == 2 and separator[0] == separator[1] and _only_pairs(self._data, separator[0].encode()):
            # "::" is read as ":" with an empty column in between, so no byte is moved.
            return self._parsed(self._data, separator[0], 2, kinds)
        data, single = self._single_separator()
        return self._parsed(data, single, 1, kinds)

    def _as_text(self) -> pl.DataFrame:
        """Read everything as text, then convert ids to integers if all of them are."""
        data, single = self._single_separator()
        try:
            frame = self._parsed(data, single, 1, dict.fromkeys(self._places, pl.String()))
        except _POLARS as error:
            raise self._unreadable(str(error).splitlines()[0]) from error
        ids = [role for role in ("user", "item", "basket") if role in frame.columns]
        return frame.with_columns(self.ids(frame[role]).alias(role) for role in ids)

    def _single_separator(self) -> tuple[bytes, str]:
        """Return the text with a separator of one byte, which Polars needs."""
        separator = self.layout.separator.encode()
        if len(separator) == 1:
            return self._data, self.layout.separator
        spare = next((bytes([byte]) for byte in _SPARE if byte not in self._data), None)
        if spare is None:
            raise InputError("the file has control characters throughout", source=self.label, remedy="clean it first")
        return self._data.replace(separator, spare), spare.decode()

    def _parsed(self, data: bytes, separator: str, step: int, kinds: Mapping[Role, pl.DataType]) -> pl.DataFrame:
        """Read the columns of ``kinds`` from a text whose fields are ``step`` columns apart."""
        total = (self.width - 1) * step + 1
        at = {self._places[role] * step: kind for role, kind in kinds.items()}
        at.setdefault(total - 1, pl.String())
        # Polars refuses a row with too many fields only if it reads every column, and never one with too few.
        is_partial = self.layout.quote is None and len(at) < total
        frame = pl.read_csv(
            data,
            has_header=False,
            # Skip lines, not rows: a quote in a column name must not open a field that swallows rows.
            skip_lines=1 if self.layout.start else 0,
            separator=separator,
            quote_char=self.layout.quote,
            schema={f"column_{place}": at.get(place, pl.String()) for place in range(total)},
            columns=[f"column_{place}" for place in sorted(at)] if is_partial else None,
        )
        self._may_be_uneven = frame[f"column_{total - 1}"].null_count() > 0
        if is_partial:
            begin = data.find(b"\n") + 1 if self.layout.start else 0
            self._may_be_uneven |= _count(data, separator.encode(), begin) != frame.height * (total - 1)
        return frame.select(pl.col(f"column_{place * step}").alias(role) for role, place in self._places.items())

    def _hides_text_ids(self) -> bool:
        """Whether ids that seem to be integers may be written in another way, such as 007."""
        if not any(self._kind(role) == pl.Int64 for role in ("user", "item")):
            return False
        leads = [self.layout.separator.encode()[-1:], b"\n"]
        if self.layout.quote is not None:
            leads.append(self.layout.quote.encode())
        return _has_odd_number(self._data, leads, self.layout.start)

    def _without_blank_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Leave out the rows that Polars makes from blank lines; a row of separators is not blank."""
        is_blank = pl.all_horizontal(pl.all().cast(pl.String).str.strip_chars().fill_null("") == "")
        blank = frame.select(is_blank).to_series()
        if not blank.any():
            return frame
        for number, (line, fields) in enumerate(self._records()):
            if len(fields) != self.width:
                raise self._misshapen(line, fields)
            if not any(fields[place].strip() for place in self._places.values()):
                raise self.error(Fault(number, "the user is missing", "fix the row or leave it out"), "user")
        return frame.filter(~blank)

    def _ends_inside_quotes(self) -> bool:
        """Whether the text ends inside a quoted field; Polars would take its last byte for the closing quote."""
        if self.layout.quote is None or self._data.count(self.layout.quote.encode()) % 2 == 0:
            return False
        # A line appended at the end is a separate row unless it is inside the quotes.
        *_, (_, last) = self._records(b"\n" + _BEHIND)
        return last != [_BEHIND.decode()]

    def _check_widths(self) -> None:
        """Refuse rows with too few or too many fields."""
        separator = self.layout.separator.encode()
        lines = io.BytesIO(self._data[self.layout.start :])
        if self.layout.quote is None and all(
            line.count(separator) == self.width - 1 for line in lines if not line.isspace()
        ):
            return
        for line, fields in self._records():
            if len(fields) != self.width:
                raise self._misshapen(line, fields)

    def _unreadable(self, problem: str) -> InputError:
        begins = self.layout.first_line
        try:
            for line, fields in self._records():
                begins = line
                if len(fields) != self.width:
                    return self._misshapen(line, fields)
        except csv.Error:
            pass
        problem = f"the rows cannot be told apart from here on ({problem})"
        return InputError(problem, source=self.label, row=begins, remedy=_OPEN_QUOTE)


def refuse_text_options(
    label: str, separator: str | None, header: bool | None, quote: str | None, encoding: str
) -> None:
    """Refuse options of text files for a source that is not text."""
    given = {
        "separator": separator is not None,
        "header": header is not None,
        "quote": quote != '"',
        "encoding": encoding != "utf-8",
    }
    name = next((name for name, is_given in given.items() if is_given), None)
    if name is not None:
        raise SettingError(f"{label} is not a text file, and {name}=... is only for text; leave it out")


def _is_integer(field: str) -> bool:
    digits = field.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and (digits[0] != "0" or field == "0")


def _count(text: bytes, byte: bytes, begin: int) -> int:
    """Count a byte from ``begin`` onwards."""
    data, mark = np.frombuffer(text, dtype=np.uint8, offset=begin), ord(byte)
    return sum(int(np.count_nonzero(data[start : start + _BLOCK] == mark)) for start in range(0, len(data), _BLOCK))


def _only_pairs(text: bytes, byte: bytes) -> bool:
    """Whether the byte always occurs exactly twice in a row."""
    data = np.frombuffer(text, dtype=np.uint8)
    for start in range(0, len(data), _BLOCK):
        # One byte before the block and two after it show where a run starts and ends.
        mark = np.zeros(min(_BLOCK, len(data) - start) + 3, dtype=np.bool_)
        low, high = max(start - 1, 0), min(start + _BLOCK + 2, len(data))
        np.equal(data[low:high], ord(byte), out=mark[low - start + 1 : high - start + 1])
        begins = mark[1:-2] > mark[:-3]
        if (begins & (mark[2:-1] <= mark[3:])).any():
            return False
    return True


def _has_odd_number(text: bytes, leads: list[bytes], begin: int) -> bool:
    """Whether a field after ``begin`` may start with a zero before a digit, a plus, a space or -0."""
    for first in (b"+", b" ", b"-0"):
        if text.find(first[:1], begin) < 0:
            continue
        if text.startswith(first, begin) or any(text.find(lead + first, begin) >= 0 for lead in leads):
            return True
    if text[begin : begin + 1] == b"0" and text[begin + 1 : begin + 2].isdigit():
        return True
    data = np.frombuffer(text, dtype=np.uint8, offset=begin)
    # Blocks overlap by two bytes, because each position needs the two after it.
    return any(_has_leading_zero(data[start : start + _BLOCK + 2], leads) for start in range(0, len(data), _BLOCK))


def _has_leading_zero(block: NDArray[np.uint8], leads: list[bytes]) -> bool:
    """Whether a zero follows one of ``leads`` and precedes a digit."""
    digits = block - np.uint8(ord("0"))
    is_none = digits > 9
    suspects = is_none[:-2] > is_none[2:]
    suspects &= digits[1:-1] == 0
    # The remaining suspects are rare, such as the .05 of 3.05.
    return bool(suspects.any()) and bool(np.isin(block[:-2][suspects], np.frombuffer(b"".join(leads), np.uint8)).any())

"""The layout of a text file: its separator, its quotes, and whether its first row names the columns."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from cranfield._errors import InputError, SettingError
from cranfield.tables.columns import ROLES, place_by_name

_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 100
# In order of preference if several divide the rows evenly.
_SEPARATORS = ("\t", "::", ",", ";", "|", " ")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Layout:
    """The layout of a text file."""

    separator: str
    quote: str | None  # the character that may enclose a field
    names: tuple[str, ...] | None  # of the columns, if the file has a header
    width: int  # fields in a row
    start: int  # the byte and the line, counted from 1, of the first row after the header
    first_line: int
    sample: tuple[tuple[str, ...], ...]  # the first rows after the header


def as_utf8(data: bytes, encoding: str, label: str) -> bytes:
    """Return text as UTF-8 without a byte order mark and with line feeds, or say which row cannot be read."""
    try:
        kind = codecs.lookup(encoding).name
        "a".encode(encoding)  # codecs such as base64 do not encode text
    except (LookupError, ValueError) as error:
        raise SettingError(
            f"the encoding {encoding!r} is not known; use utf-8, latin-1, cp1252, utf-16, ..."
        ) from error
    if kind in ("utf-8", "utf-8-sig", "ascii"):
        data = data.removeprefix(_BOM)
        if not data.isascii():
            _decoded(data, "utf-8", label)
    else:
        data = _decoded(data, encoding, label).removeprefix("\ufeff").encode()
    if b"\n" not in data:
        return data.replace(b"\r", b"\n")
    # If line ends were converted to Windows' form twice, the start of the text shows it.
    return data.replace(b"\r\r\n", b"\r\n") if b"\r\r\n" in data[:_SAMPLE_BYTES] else data


def _decoded(data: bytes, encoding: str, label: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        if b"\0" in data[:_SAMPLE_BYTES] and not wide:
            raise _not_text(label) from error
        other = "utf-16" if wide else "latin-1"
        raise InputError(
            f"byte 0x{data[error.start]:02x} is not {encoding}",
            source=label,
            row=None if wide else data.count(b"\n", 0, error.start) + 1,
            remedy=f"say how the file is written with encoding='{other}'",
        ) from error
    except UnicodeError as error:
        problem = f"the text is not {encoding} ({error})"
        raise InputError(problem, source=label, remedy="try another encoding") from error


def _not_text(label: str) -> InputError:
    return InputError("the file is not text", source=label, remedy="give CSV, TSV, other text, or Parquet")


def find_layout(
    data: bytes,
    label: str,
    *,
    separator: str | None = None,
    header: bool | None = None,
    quote: str | None = '"',
    wanted: Sequence[str] = (),
) -> Layout:
    """Find the layout of ``data``; the caller's options override what the first rows suggest.

    ``wanted`` are column names given by the caller: a first row that holds one of them is a header.
    """
    sample = _whole_lines(data)
    if not sample.strip():
        raise InputError("the file is empty", source=label, remedy="check that it was written completely")
    if b"\0" in sample:
        raise _not_text(label)
    if sample.lstrip().startswith((b'{"', b'[{"')):
        raise InputError(
            "the file is JSON", source=label, remedy="give CSV, TSV, other text, or Parquet, or read it as a dataframe"
        )
    if quote is not None and len(quote.encode()) != 1:
        raise SettingError(f"the quote {quote!r} is not a single character; use '\"' or \"'\", or None for none")
    remedy = f"{separator!r} does not divide it; leave separator=... out to detect it"
    if separator is None:
        separator = _likeliest_separator(sample, quote)
        remedy = "say what divides the fields with separator='...'"
    if not isinstance(separator, str) or separator == "" or "\n" in separator:
        raise SettingError(f"the separator {separator!r} cannot divide fields; use ',' or ';' or '::' or a tab, ...")
    if len(separator.encode()) > 1 or (quote is not None and not _encloses(data, separator, quote)):
        quote = None
    numbered = list(islice(records(sample, separator, quote), _SAMPLE_ROWS))
    rows = [fields for _, fields in numbered]
    if not rows:
        raise InputError("the file has no rows", source=label, remedy="check that it was written completely")
    if header is None:
        header = _is_header(rows, wanted)
    # Without a header the first row is an ordinary one, and may be the faulty one.
    width = len(rows[0]) if header else Counter(map(len, rows)).most_common(1)[0][0]
    narrow = next((number for number, fields in numbered if len(fields) < 2), None)
    if narrow is not None and min(len(rows[0]), width) < 2:
        problem = "the row has only one field, and a user and an item are needed"
        raise InputError(problem, source=label, row=narrow, remedy=remedy)
    rest = numbered[1:] if header else numbered
    # Blank lines are skipped, because Polars counts the columns of the first line it sees.
    first_line = rest[0][0] if rest else numbered[0][0] + 1
    names = tuple(name.strip() for name in rows[0]) if header else None
    start = sum(map(len, islice(io.BytesIO(sample), first_line - 1)))
    return Layout(
        separator, quote, names, width, start, first_line, tuple(tuple(row) for _, row in rest if len(row) == width)
    )


def records(data: bytes, separator: str, quote: str | None, first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line it starts on.

    This is the slow and exact reader: it inspects the start of a file, and finds the line of a faulty row. Like the
    fast one it only ends lines at a line feed; a carriage return elsewhere counts as a space.
    """
    lines = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")
    text = (line.replace("\r\n", "\n").replace("\r", " ") for line in lines)
    if quote is None:
        for number, line in enumerate(text, first_line):
            if line.strip():
                yield number, line.rstrip("\r\n").split(separator)
        return
    # A field may be as long as the file, but the csv module's limit is a setting of the whole process.
    limit = csv.field_size_limit(max(len(data), csv.field_size_limit()))
    try:
        reader = csv.reader(text, delimiter=separator, quotechar=quote)
        begins = first_line
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield begins, fields
            begins = first_line + reader.line_num
    finally:
        csv.field_size_limit(limit)


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_date(text: str) -> bool:
    """Whether a field starts like an ISO date."""
    return len(text) >= 10 and text[4:8:3] == "--" and text[:4].isdecimal()


def _whole_lines(data: bytes) -> bytes:
    sample = data[:_SAMPLE_BYTES]
    if len(data) == len(sample):
        return sample
    # The end of the sample may cut a quoted field in two, but never a character.
    return sample[: sample.rfind(b"\n") + 1] or sample.decode(errors="ignore").encode()


def _likeliest_separator(sample: bytes, quote: str | None) -> str:
    best, best_share = ",", 0.0
    for candidate in _SEPARATORS:
        rows = records(sample, candidate, quote if len(candidate) == 1 else None)
        widths = Counter(len(fields) for _, fields in islice(rows, _SAMPLE_ROWS))
        share = max((count for width, count in widths.items() if width > 1), default=0) / max(widths.total(), 1)
        if share > best_share + 0.05:
            best, best_share = candidate, share
    return best


def _encloses(data: bytes, separator: str, quote: str) -> bool:
    """Whether any field starts with the quote; if none does, quotes are ordinary characters."""
    mark = quote.encode()
    return mark in data and (data.startswith(mark) or b"\n" + mark in data or separator.encode() + mark in data)


def _is_header(rows: Sequence[Sequence[str]], wanted: Sequence[str]) -> bool:
    first = [name.strip() for name in rows[0]]
    if any(name in first for name in wanted):
        return True
    for place in (place_by_name(first, role) for role in ROLES):
        # A name that occurs again further down is an id: there are books and people called "book" and "user".
        if place is not None and all(len(row) <= place or row[place].strip() != first[place] for row in rows[1:]):
            return True
    if any(is_number(field) or is_date(field) for field in first):
        return False
    # Words above numbers are names; words above words may be ids.
    return any(len(row) == len(first) and any(is_number(field) for field in row) for row in rows[1:])

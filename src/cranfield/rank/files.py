"""Files of ranked lists as tables of columns: text, Parquet, Arrow or JSON, plain or compressed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.data._compressed import unpacked
from cranfield.data._frames import FrameTable
from cranfield.data._layout import Layout, as_utf8, find_layout, is_number
from cranfield.data._text import TextTable
from cranfield.data._values import Fault
from cranfield.data.read import _contents, _file
from cranfield.rank.roles import find_roles
from cranfield.rank.table import Roles, Table

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_KINDS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".arrow", ".ipc", ".feather", ".json")
_SAMPLE, _BLOCK = 1 << 16, 1 << 20
_HABITS = (".run", ".trec", ".recs", ".res", ".out", ".inter", ".qrels", ".qrel")


def system_name(path: Path) -> str:
    """Return the name of a file without its endings.

    Examples
    --------
    >>> system_name(Path("runs/knn(k=0.5).tsv.gz"))
    'knn(k=0.5)'
    """
    name = path.name
    while Path(name).suffix.lower() in _COMPRESSED + _KINDS + _HABITS:
        name = Path(name).stem
    return name


def open_file(
    path: Path, *, separator: str | None = None, header: bool | None = None, wanted: Sequence[str] = ()
) -> Table | Mapping[str, Any]:
    """Return the table in a file, or the dictionary if it is JSON; ``wanted`` are names that a header would hold.

    A folder of parts (``part-00000``, ...), as Spark and Mahout write, is one table.
    """
    if path.is_dir() and (parts := sorted(path.glob("part-*"))):
        bodies = [unpacked(_contents(part), str(part))[0] for part in parts]
        if bodies[0].startswith(_PARQUET):
            frames = [pl.read_parquet(io.BytesIO(body)) for body in bodies]
            return _of_frame(pl.concat(frames).lazy(), str(path))
        return _of_text(b"\n".join(bodies), str(path), separator, header, wanted)
    text = file_text(path)
    if text is None:
        return _of_frame(pl.scan_parquet(path), str(path))
    data, label = text
    if data.startswith(_PARQUET):
        return _of_frame(pl.scan_parquet(io.BytesIO(data)), label)
    if data.startswith(_ARROW):
        return _of_frame(pl.scan_ipc(io.BytesIO(data)), label)
    lists = json_lists(data, label)
    return _of_text(data, label, separator, header, wanted) if lists is None else lists


def file_text(path: Path) -> tuple[bytes, str] | None:
    """Return what is in a file, unpacked, and what to call it; None for Parquet, which nobody need hold in memory."""
    path, member = _file(path)
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) == _PARQUET:
            return None
    return unpacked(_contents(path), str(path), member)


def has_qrels(data: bytes) -> bool:
    """Whether a text holds TREC judgments: rows of four words, the second 0 or Q0, the last a number.

    Examples
    --------
    >>> has_qrels(b"ann 0 x 1"), has_qrels(b"ann x 4.5 881250949")
    (True, False)
    """
    words = _first_words(data)
    return all(len(fields) == 4 and fields[1] in (b"0", b"Q0") for fields in words) and bool(words) and _is_trec(words)


def json_lists(data: bytes, label: str) -> Mapping[str, Any] | None:
    """Return the dictionary that a text holds as JSON, or None if it is other text."""
    if data[:1000].lstrip()[:1] != b"{":
        return None
    try:
        lists: Mapping[str, Any] = json.loads(data)
    except ValueError as error:
        raise InputError(f"the JSON cannot be read ({error})", source=label, remedy="write it again") from error
    return lists


def _of_frame(frame: pl.LazyFrame, label: str) -> Table:
    table = FrameTable(frame, label)
    head = frame.head(1).collect()
    return Table(head.to_dict(), label, True, *_access(table, head.columns))


def _of_text(data: bytes, label: str, separator: str | None, header: bool | None, wanted: Sequence[str]) -> Table:
    data = as_utf8(data, "utf-8", label)
    layout = find_layout(data, label, separator, header, '"', wanted)
    if separator is None and layout.separator in " \t":
        tidy = tidy_columns(data)
        if tidy is not None:
            data = tidy
            layout = find_layout(data, label, "\t", header, None, wanted)
    if header is None and _has_header(layout, wanted) != (layout.names is not None):
        layout = find_layout(data, label, layout.separator, layout.names is None, layout.quote, wanted)
    if not layout.sample:
        raise InputError("there are no rows", source=label, remedy="give a run with at least one list")
    names = layout.names or [f"column {place + 1}" for place in range(layout.width)]
    head = {name: [row[place] for row in layout.sample] for place, name in enumerate(names)}
    return Table(head, label, layout.names is not None, *_access(TextTable(data, layout, label), list(names)))


def _has_header(layout: Layout, wanted: Sequence[str]) -> bool:
    """Whether the first row names the columns: it holds no number, and names, or words above numbers."""
    first = [field.strip() for field in layout.names or layout.sample[0]]
    if any(name in first for name in wanted):
        return True
    if any(is_number(field) for field in first):
        return False
    return layout.names is not None or {"user", "item"} <= find_roles(first, {}, "").keys()


def tidy_columns(data: bytes) -> bytes | None:
    """Return text whose columns stand apart by white space of any kind with single tabs; None if it is tidy or other.

    In a file with tabs a field may hold spaces, unless its words are those of a TREC run or of TREC judgments.
    """
    words = _first_words(data)
    if len({len(fields) for fields in words}) != 1 or (b"\t" in data and not _is_trec(words)):
        return None
    if not (b" " in data and b"\t" in data) and not data[:1].isspace() and not _has_wide_gaps(data):
        return None
    data = data.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ").replace(b" ", b"\t")


def _has_wide_gaps(data: bytes) -> bool:
    """Whether a space or a tab stands beside other white space, the end of a line included."""
    for start in range(0, len(data), _BLOCK):
        block = np.frombuffer(data[start : start + _BLOCK + 1], dtype=np.uint8)
        blank = (block == ord(" ")) | (block == ord("\t"))
        white = blank | (block == ord("\n")) | (block == ord("\r"))
        if ((blank[1:] & white[:-1]) | (white[1:] & blank[:-1])).any():
            return True
    return False


def _first_words(data: bytes) -> list[list[bytes]]:
    lines = data[:_SAMPLE].splitlines()
    if len(data) > _SAMPLE:
        lines.pop()
    return [fields for fields in map(bytes.split, lines[:100]) if fields]


def _is_trec(words: Sequence[Sequence[bytes]]) -> bool:
    numeric = {6: (3, 4), 4: (3,)}.get(len(words[0]), ())
    return bool(numeric) and all(
        is_number(fields[place].decode(errors="replace")) for fields in words for place in numeric
    )


def _access(table: TextTable | FrameTable, names: Sequence[str]) -> tuple[Any, Any]:
    """Return how to fetch the columns of roles from a table of ratings, and how it places a fault."""

    def called(role: str) -> Any:
        # The one column that a text of ratings reads as numbers at once.
        return "rating" if role == "score" else role

    def fetch(roles: Roles) -> dict[str, pl.Series]:
        table.load({called(role): names.index(name) for role, name in roles.items()})
        columns = {role: table.column(called(role)) for role in roles}
        if isinstance(table, TextTable):
            for role, column in columns.items():
                if role not in ("user", "item") and column.null_count():
                    _check_widths(table, called(role), column)
        return columns

    def error(fault: Fault, role: str) -> InputError:
        return table.error(fault, called(role))

    return fetch, error


def _check_widths(table: TextTable, role: Any, column: pl.Series) -> None:
    """Refuse a row that has no value because it is too short; an empty field is a missing value."""
    last = len(column) - 1 - int(column.is_null().reverse().arg_max() or 0)
    found = table.error(Fault(last, "empty", ""), role)
    if found.problem != "empty":
        raise found

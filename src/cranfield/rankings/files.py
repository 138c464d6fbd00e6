"""Files of ranked lists as tables of columns: text, Parquet, Arrow or JSON, plain or compressed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._errors import InputError
from cranfield._files import meant
from cranfield._record import check_unchanged
from cranfield._terminal import shown
from cranfield.rankings.cells import find_cells
from cranfield.rankings.roles import find_roles
from cranfield.rankings.table import Roles, RunTable
from cranfield.rankings.trec import gap, has_wide_gaps, single_tabs, tidy_trec
from cranfield.tables import (
    PARQUET,
    Fault,
    FrameTable,
    Layout,
    TextTable,
    as_utf8,
    contents,
    file_and_member,
    is_number,
    is_parquet,
    is_parquet_folder,
    parquet_table,
    refuse_text_options,
    text_table,
    unpacked,
)

_ARROW = b"ARROW1"
_LZ4 = b"\x04\x22\x4d\x18"  # ranx's own files
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_KINDS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".arrow", ".ipc", ".feather", ".json")
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
    # A file name may contain any character, but the name of a system is printed.
    return shown(name)


@dataclass(frozen=True)
class TextOptions:
    """Format of a text file, where it is not detected; ``wanted`` are names that a header would contain."""

    separator: str | None = None
    header: bool | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    wanted: Sequence[str] = ()

    def refuse(self, label: str, option: str = "--run-") -> None:
        """Refuse text options for a source that is not text; the names of options begin with ``option``."""
        refuse_text_options(label, self.separator, self.header, self.quote, self.encoding, option)


PLAIN_TEXT = TextOptions()


def open_file(path: Path, options: TextOptions = PLAIN_TEXT) -> RunTable | Mapping[str, Any]:
    """Return the table in a file, or the dictionary if it is JSON.

    A folder of parts (``part-00000``, ...), as Spark and Mahout write, is one table.
    """
    path = meant(path)
    if path.is_dir() and not is_parquet_folder(path) and (parts := sorted(path.glob("part-*"))):
        texts = [file_text(part) for part in parts]
        return _of_text(b"\n".join(text[0] for text in texts if text), str(path), options)
    text = file_text(path)
    if text is None:
        options.refuse(str(path))
        return _of_table(parquet_table(path, str(path)))
    return open_bytes(*text, options)


def open_bytes(data: bytes, label: str, options: TextOptions = PLAIN_TEXT) -> RunTable | Mapping[str, Any]:
    """Return the table in the content of a file, or the dictionary if it is JSON."""
    if data.startswith((PARQUET, _ARROW)):
        options.refuse(label)
        if data.startswith(PARQUET):
            return _of_table(parquet_table(io.BytesIO(data), label))
        return _of_table(FrameTable(pl.scan_ipc(io.BytesIO(data)), label))
    lists = json_lists(data, label)
    return _of_text(data, label, options) if lists is None else lists


def file_text(path: Path) -> tuple[bytes, str] | None:
    """Return the decompressed content of a file and its label; None for Parquet, which need not be in memory."""
    if is_parquet_folder(path := meant(path)):
        return None
    path, member = file_and_member(path)
    check_unchanged(path)
    if is_parquet(path):
        return None
    data, label = unpacked(contents(path), str(path), member)
    if data.startswith(_LZ4):
        raise InputError("LZ4 is not read", source=label, remedy="save it as .json, .trec or .parquet instead")
    return data, label


def json_lists(data: bytes, label: str) -> Mapping[str, Any] | None:
    """Return the dictionary if the text is JSON, otherwise None."""
    if data[:1000].lstrip()[:1] != b"{":
        return None
    try:
        lists: Mapping[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the JSON cannot be read ({error})", source=label, remedy="write one object, {user: {item: score}}"
        ) from error
    return lists


def _of_table(table: FrameTable) -> RunTable:
    head = table.head()
    return RunTable(head.to_dict(), table.label, True, *_access(table, head.columns))


def _of_text(data: bytes, label: str, options: TextOptions) -> RunTable:
    separator, header, wanted = options.separator, options.header, options.wanted
    data = as_utf8(data, options.encoding, label)
    tidy = tidy_trec(data, 6) if separator is None else None
    quote = options.quote if tidy is None else None  # TREC has no quotes
    if tidy is not None:
        data, separator = tidy, gap(tidy)
    elif separator is None:
        data, separator = find_cells(data)
    body = data.lstrip(b"\r\n")
    above = data.count(b"\n", 0, len(data) - len(body))
    table = text_table(body, label, separator=separator, header=header, quote=quote, wanted=wanted)
    if separator is None and tidy is None and table.layout.separator == " " and has_wide_gaps(body):
        body, separator = single_tabs(body), "\t"
        table = text_table(body, label, separator=separator, header=header, quote=quote, wanted=wanted)
    if header is None and _has_header(table.layout, wanted) != (table.layout.names is not None):
        named = table.layout.names is None
        table = text_table(body, label, separator=separator, header=named, quote=quote, wanted=wanted)
    table.layout = layout = replace(table.layout, first_line=table.layout.first_line + above)
    if not layout.sample:
        raise InputError("there are no rows", source=label, remedy="give a run with at least one list")
    if layout.names and len(set(layout.names)) < len(layout.names):
        twice = next(name for name in layout.names if layout.names.count(name) > 1)
        raise InputError("two columns have this name", source=label, column=twice, remedy="rename one")
    names = layout.names or [f"column {place + 1}" for place in range(layout.width)]
    head = {name: [row[place] for row in layout.sample] for place, name in enumerate(names)}
    return RunTable(head, label, layout.names is not None, *_access(table, list(names)))


def _has_header(layout: Layout, wanted: Sequence[str]) -> bool:
    """Whether the first row names the columns: it has no number, and known names, or words above numbers."""
    first = [field.strip() for field in layout.names or layout.sample[0]]
    if any(name in first for name in wanted):
        return True
    if any(is_number(field) or field.startswith("[") for field in first):
        return False
    return layout.names is not None or {"user", "item"} <= find_roles(first, {}, "").keys()


def _access(table: TextTable | FrameTable, names: Sequence[str]) -> tuple[Any, Any]:
    """Return functions that fetch the columns of roles from a table of ratings, and that locate a fault in it."""

    def called(role: str) -> Any:
        # The rating is the only column of a text file that is parsed as numbers.
        return "rating" if role == "score" else role

    def fetch(roles: Roles) -> dict[str, pl.Series]:
        table.load({called(role): names.index(name) for role, name in roles.items()})
        return {role: table.column(called(role)) for role in roles}

    def error(fault: Fault, role: str) -> InputError:
        return table.error(fault, called(role))

    return fetch, error

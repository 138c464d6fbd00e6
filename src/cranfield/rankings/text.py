"""Text of ranked lists: TREC files, and lists that are written in one cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from cranfield.rankings.columns import find_roles
from cranfield.tables import is_number, records

_SAMPLE, _BLOCK = 1 << 16, 1 << 20
_NUMERIC = {6: (3, 4), 4: (3,)}  # the places of numbers in a run and in judgments
_ITERATION = re.compile(rb"Q?0+")
_COMMENT = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)


def has_trec(data: bytes, width: int) -> bool:
    """Whether a text contains a TREC run (of width 6) or judgments (4): the second word of each row is 0 (00, Q0)."""
    words = _first_words(data)
    return _is_trec(words, width) and all(_ITERATION.fullmatch(fields[1]) for fields in words)


def tidy_trec(data: bytes, width: int) -> bytes | None:
    """Return a TREC run (of width 6) or judgments (4) with single tabs and blank comments; None for other text.

    Lines keep their numbers, so that a fault is reported on the line that an editor shows.
    """
    if not _is_trec(_first_words(data), width):
        return None
    if b"#" in data and (data[:1] == b"#" or b"\n#" in data):
        return single_tabs(_COMMENT.sub(b"", data))
    return single_tabs(data) if (b" " in data and b"\t" in data) or has_wide_gaps(data) else data


def gap(data: bytes) -> str:
    """Return the separator of tidy TREC text, whatever characters its ids contain."""
    return "\t" if b"\t" in data else " "


def single_tabs(data: bytes) -> bytes:
    """Replace each run of spaces and tabs by one tab, and remove those at the ends of lines."""
    data = data.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ").replace(b" ", b"\t")


def has_wide_gaps(data: bytes) -> bool:
    """Whether a space or a tab is next to other white space, or at either end."""
    if data[:1] in (b" ", b"\t") or data[-1:] in (b" ", b"\t"):
        return True
    for start in range(0, len(data), _BLOCK):
        block = np.frombuffer(data[start : start + _BLOCK + 1], dtype=np.uint8)
        blank = (block == ord(" ")) | (block == ord("\t"))
        white = blank | (block == ord("\n")) | (block == ord("\r"))
        if ((blank[1:] & white[:-1]) | (white[1:] & blank[:-1])).any():
            return True
    return False


def _first_lines(data: bytes) -> list[bytes]:
    """Return the first lines that are not blank."""
    lines = data[:_SAMPLE].splitlines()
    if len(data) > _SAMPLE:
        lines.pop()
    return [line for line in lines if line.strip()][:100]


def _first_words(data: bytes) -> list[list[bytes]]:
    return [fields for fields in map(bytes.split, _first_lines(data)) if not fields[0].startswith(b"#")]


def _is_trec(words: Sequence[Sequence[bytes]], width: int) -> bool:
    """Whether all rows have this many words, and most have numbers where TREC has them; one bad row is a fault."""
    if not words or any(len(fields) != width for fields in words):
        return False
    numeric = [all(is_number(fields[place].decode(errors="replace")) for place in _NUMERIC[width]) for fields in words]
    return 2 * sum(numeric) > len(words)


_INNER = ("|", ";", ",")
_BRACKETED = re.compile(rb"\[[^\[\]\n]*\]")
_FIRST_GAP = re.compile(r'^(?:"[^"\n]*"|[^"\s,;|][^\s,;|]*)([\t,;| ])')
_ENDS = "[](){} \t"
_PLURALS = ("items", "itemids", "itemlist", "recommendations", "recommendeditems", "recs", "movies", "products")


def find_cells(data: bytes) -> tuple[bytes, str | None]:
    r"""Return text in which each list in a cell is one field, and the separator; None if there are no such cells.

    If the separator of the file also separates the items of a list, the list is quoted.
    """
    sample, lines = data[:_SAMPLE], [line.decode(errors="replace") for line in _first_lines(data)]
    # A header contains no lists, and the rows show the separator as well.
    body = lines[1:] or lines
    gap = _first_gap(body)
    if gap is None:
        return data, None
    if gap != "\t" and b"[" in sample and not re.search(rb'"\s*\[', sample) and all("[" in line for line in body):
        return _BRACKETED.sub(lambda cell: b'"' + cell[0].replace(b'"', b"") + b'"', data), gap
    if _has_wide_rows(lines, gap):
        header, newline, rows = data.partition(b"\n")
        row = re.compile(rb"^([^\n]+?)(" + re.escape(gap.encode()) + rb")([^\r\n]*)", re.MULTILINE)
        return header + newline + row.sub(rb'\1\2"\3"', rows), gap
    return data, gap if _has_inner_gaps(body, gap) else None


def _first_gap(lines: Sequence[str]) -> str | None:
    """Return the separator after the first field of every line; a tab, if every line has one."""
    if lines and all("\t" in line for line in lines):
        return "\t"
    gaps = {match[1] if (match := _FIRST_GAP.match(line)) else None for line in lines}
    return next(iter(gaps)) if len(gaps) == 1 else None


def _has_wide_rows(lines: Sequence[str], gap: str) -> bool:
    """Whether a header names a user and a list of items, and rows have more fields than the header."""
    if len(lines) < 2 or any('"' in line for line in lines):
        return False
    names = [name.strip() for name in lines[0].split(gap)]
    if len(names) != 2 or not _is_plural(names[1]) or find_roles(names, {}, "").get("user") != names[0]:
        return False
    return any(line.count(gap) > 1 for line in lines[1:])


def _has_inner_gaps(lines: Sequence[str], gap: str) -> bool:
    """Whether every row has two or three fields, and all but the first contain several words."""
    rows = [fields for _, fields in records("\n".join(lines).encode(), gap, '"')]
    if {len(fields) for fields in rows} not in ({2}, {3}):
        return False
    lists = [field for fields in rows for field in fields[1:]]
    # A space may be part of a name; between integers it is a separator.
    return all(map(_has_gap, lists)) and (gap != " " or all(map(_are_whole, lists)))


def _has_gap(cell: str) -> bool:
    inside = cell.strip(_ENDS)
    return any(mark in inside for mark in (*_INNER, " ", "\t"))


def _are_whole(cell: str) -> bool:
    return all(word.isdecimal() for word in re.split(r"[\s,;|]+", cell.strip(_ENDS)))


def are_lists(cells: Sequence[object], users: Sequence[object], name: str) -> bool:
    """Whether the cells of a column contain lists of items, not single items.

    Brackets mark lists. Without brackets, some cell must contain several words. These must be integers, or every cell
    must contain several words and each user have one row or the column a name such as items.
    """
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    if not texts or len(texts) < sum(cell is not None and cell != "" for cell in cells):
        return False
    if in_brackets(texts):
        return True
    if not any(map(_has_gap, texts)):
        return False
    if all(map(_are_whole, texts)):
        return True
    single = len(users) > 1 and len(set(users)) == len(users)
    return all(map(_has_gap, texts)) and (_is_plural(name) or single)


def _is_plural(name: str) -> bool:
    """Whether a column's name says that it contains several items."""
    return name.lower().replace("_", "").replace(" ", "") in _PLURALS


def are_several(cells: Sequence[object]) -> bool:
    """Whether some cell contains several words, or all are in brackets: scores that belong to lists of items."""
    return any(isinstance(cell, str) and _has_gap(cell) for cell in cells) or in_brackets(cells)


def in_brackets(cells: Sequence[object]) -> bool:
    """Whether all cells with text are in brackets, and there are some."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    return bool(texts) and all(text[0] == "[" and text[-1] == "]" for text in texts)


def taken_apart(column: pl.Series) -> pl.Series:
    """Split cells into lists of words, without brackets and quotes."""
    inside = column.cast(pl.String).fill_null("").str.strip_chars(_ENDS)
    mark = next((mark for mark in _INNER if inside.str.contains(mark, literal=True).any()), None)
    if mark is None:
        inside, mark = inside.str.replace_all(r"\s+", " "), " "
    words = pl.element().str.strip_chars(" \t'\"")
    return inside.str.split(mark).list.eval(words.filter(words != ""))


def have_scores(cells: Sequence[object]) -> bool:
    """Whether the words of cells are items with scores, as in ``181:0.9``."""
    words = taken_apart(pl.Series([cell for cell in cells if isinstance(cell, str)], dtype=pl.String)).explode()
    pairs = [(word or "").rpartition(":") for word in words]
    return bool(pairs) and all(mark and is_number(score) for _, mark, score in pairs)

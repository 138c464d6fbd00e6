"""TREC text files: words separated by any white space, comments after a hash."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cranfield.tables import is_number

_SAMPLE, _BLOCK = 1 << 16, 1 << 20
_NUMERIC = {6: (3, 4), 4: (3,)}
_ITERATION = re.compile(rb"Q?0+")
_COMMENT = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)


def has_qrels(data: bytes) -> bool:
    """Whether a text contains TREC judgments: rows of four words, the second 0 (00, Q0), the last a number.

    Examples
    --------
    >>> has_qrels(b"ann 0 x 1"), has_qrels(b"ann x 4.5 881250949")
    (True, False)
    """
    words = _first_words(data)
    return _is_trec(words, 4) and all(_ITERATION.fullmatch(fields[1]) for fields in words)


def has_run(data: bytes) -> bool:
    """Whether a text contains a TREC run: rows of six words, the second Q0 (0), the fourth and fifth numbers.

    Examples
    --------
    >>> has_run(b"ann Q0 x 1 0.5 knn"), has_run(b"ann x 4.5 881250949 0 1")
    (True, False)
    """
    words = _first_words(data)
    return _is_trec(words, 6) and all(_ITERATION.fullmatch(fields[1]) for fields in words)


def tidy_trec(data: bytes, width: int) -> bytes | None:
    r"""Return a TREC run (of width 6) or judgments (4) with single tabs and blank comments; None for other text.

    Text that is already tidy is returned unchanged. Lines keep their numbers, so that a fault is reported on the line
    that an editor shows.

    Examples
    --------
    >>> tidy_trec(b"# mine\nann Q0  x 1 0.5 knn", 6)
    b'\nann\tQ0\tx\t1\t0.5\tknn'
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


def _first_words(data: bytes) -> list[list[bytes]]:
    lines = data[:_SAMPLE].splitlines()
    if len(data) > _SAMPLE:
        lines.pop()
    return [fields for fields in map(bytes.split, lines[:100]) if fields and not fields[0].startswith(b"#")]


def _is_trec(words: Sequence[Sequence[bytes]], width: int) -> bool:
    """Whether all rows have this many words, and most have numbers where TREC has them; one bad row is a fault."""
    if not words or any(len(fields) != width for fields in words):
        return False
    numeric = [all(is_number(fields[place].decode(errors="replace")) for place in _NUMERIC[width]) for fields in words]
    return 2 * sum(numeric) > len(words)

"""The two fonts of all figures, so that a figure is the same on any machine, whatever fonts it has.

The fonts have names that no other font has, and figures name them first. Their letters are as wide as those of Arial
and Times New Roman, which a program that shows an SVG file may use instead. README.md beside this file says where they
come from.
"""

from __future__ import annotations

import base64
import functools
import struct
import unicodedata
from pathlib import Path

SANS = "Cranfield Sans, Arial, Liberation Sans, sans-serif"
SERIF = "Cranfield Serif, Times New Roman, Liberation Serif, serif"

_FOLDER = Path(__file__).resolve().parent
FOLDER = str(_FOLDER)

# Code points for private use: empty glyphs of our fonts, as wide as an ideograph, as most letters, and without width.
_WIDE, _NARROW, _NO_WIDTH = range(0xE000, 0xF000), range(0xF000, 0xF800), range(0xF800, 0xF900)


def style_sheet() -> str:
    """Return the rule that brings the font of screens to a page, inside it."""
    font = base64.b64encode((_FOLDER / "CranfieldSans-Regular.woff2").read_bytes()).decode()
    return f'@font-face {{ font-family: "Cranfield Sans"; src: url(data:font/woff2;base64,{font}) format("woff2"); }}\n'


def stand_ins(text: str) -> dict[int, int]:
    """Return a table for `str.translate`: what stands in, while a figure is measured, for characters our fonts lack.

    Without it, vl-convert would measure such a character with whichever font of the machine has it.

    Examples
    --------
    >>> stand_ins("nDCG ≥ τ"), stand_ins("日本") == {ord("日"): 0xE000, ord("本"): 0xE001}
    ({}, True)
    """
    taken = {places: iter(places) for places in (_WIDE, _NARROW, _NO_WIDTH)}
    table = {}
    for letter in sorted(set(text)):
        place = None if ord(letter) in _covered() else next(taken[_width_of(letter)], None)
        if place is not None:
            table[ord(letter)] = place
    return table


def boxes(text: str) -> dict[int, str]:
    """Return a table for `str.translate`: a box for each character that our fonts lack, nothing for marks on others.

    Examples
    --------
    >>> "日本 τ".translate(boxes("日本 τ"))
    '□□ τ'
    """
    lacking = {letter for letter in set(text) if ord(letter) not in _covered() and not letter.isspace()}
    return {ord(letter): "" if _width_of(letter) is _NO_WIDTH else "□" for letter in lacking}


def _width_of(letter: str) -> range:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return _NO_WIDTH
    return _WIDE if unicodedata.east_asian_width(letter) in "WF" else _NARROW


@functools.cache
def _covered() -> frozenset[int]:
    """Return the code points that both fonts draw; those for private use stand in for others and are not among them."""
    font = (_FOLDER / "CranfieldSans-Regular.ttf").read_bytes()
    tables = struct.unpack_from(">H", font, 4)[0]
    starts = {tag: start for tag, _, start, _ in struct.iter_unpack(">4sIII", font[12 : 12 + 16 * tables])}
    # The file has one subtable, of format 4: pairs of the first and last code point of each run.
    subtable = starts[b"cmap"] + struct.unpack_from(">I", font, starts[b"cmap"] + 8)[0]
    runs = struct.unpack_from(">H", font, subtable + 6)[0] // 2
    last = struct.unpack_from(f">{runs}H", font, subtable + 14)
    first = struct.unpack_from(f">{runs}H", font, subtable + 16 + 2 * runs)
    codes = {code for a, b in zip(first, last) for code in range(a, b + 1)}
    return frozenset(codes - {*_WIDE, *_NARROW, *_NO_WIDTH})

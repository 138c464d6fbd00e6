"""Numbers of tests in words: p-values, intervals and relative differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cranfield._numbers import DASH, number_text, percent_text, rounded


def p_text(p: float | None) -> str:
    """Return a p-value as people write it."""
    if p is None or np.isnan(p):
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.3g}"


def p_equals(p: float | None) -> str:
    """Return a p-value with its sign, to follow the letter p."""
    text = p_text(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


def ends_text(lower: float | None, upper: float | None, digits: int = 4) -> str:
    """Return an interval in brackets, or a dash if there is none."""
    if lower is None or upper is None or np.isnan([lower, upper]).any():
        return DASH
    return f"[{number_text(lower, digits, sign='+')}, {number_text(upper, digits, sign='+')}]"


def share_text(row: Mapping[str, Any]) -> str:
    """Return the relative difference of a row of `Comparison.frame` with its interval, in percent."""
    share = percent_text(row["relative"], " %", sign="+")
    lower, upper = (None if end is None else 100 * end for end in (row["relative_lower"], row["relative_upper"]))
    ends = ends_text(lower, upper, 1)
    return share if ends == DASH else f"{share} {ends}"


def gain_percent(share: float, sign: str = "") -> str:
    """Return a relative gain in percent: whole percents from 10 % on."""
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{rounded(100 * share, digits):{sign}.{digits}f} %"


def gain_range(ends: Sequence[float]) -> str:
    """Return the interval of a relative gain in percent, such as -3 to 19 %."""
    # An end near 0 must not be printed as 0: what matters is on which side of 0 it lies.
    digits = 0 if max(map(abs, ends)) >= 0.0995 and not any(0 < abs(end) < 0.005 for end in ends) else 1
    return f"{' to '.join(f'{rounded(100 * end, digits):.{digits}f}' for end in ends)} %"


MOST_WORDS = 25
"""Maximum number of words of the first sentence of a result."""


def fitting(wordings: Iterable[str], most: int = MOST_WORDS) -> str:
    """Return the first of several wordings, from long to short, with at most so many words; else the last."""
    wording = ""
    for wording in wordings:
        if len(wording.split()) <= most:
            break
    return wording


_WORDS = dict(enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), start=1))


def word_of(number: int) -> str:
    """Return a small number as a word."""
    return _WORDS.get(number, f"{number}")


def exact_percent(count: int, total: int) -> str:
    """Return a share in percent; 0 and 100 only if they are exact."""
    percent = 100 * count / total
    digits = next((n for n in range(4) if 0 < round(percent, n) < 100), 4) if 0 < count < total else 0
    return f"{percent:.{digits}f} %"


def decimals(largest: float) -> int:
    """Return how many decimals show three digits of a number, four at least and twelve at the most."""
    return 4 if not 0 < largest < 0.001 else min(12, 2 - int(np.floor(np.log10(largest))))

"""Numbers: shares rounded as their decimals read, and numbers and names as text.

Wherever a share of users, items or ratings is taken (samples, splits, filters, subsets, smaller test sets), it is
rounded to the nearest whole number, halves up: 0.29 of 50 is 14.5, and is rounded to 15. Only ``uniform_test`` rounds
differently, as its paper does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GIB, _MIB = 1 << 30, 1 << 20


def share_of(counts: NDArray[np.integer[Any]] | int, share: float) -> NDArray[np.float64]:
    """Return the share of each count, rounded to a millionth, so that halves and whole numbers are exact.

    Examples
    --------
    >>> 0.29 * 50, share_of(50, 0.29).item()
    (14.499999999999998, 14.5)
    >>> 0.07 * 100, share_of(100, 0.07).item()
    (7.000000000000001, 7.0)
    """
    return np.asarray(np.round(share * np.asarray(counts), 6))


def nearest_count(share: float, counts: NDArray[np.integer[Any]] | int) -> NDArray[np.int64]:
    """Return the share of each count, rounded to the nearest whole number, halves up."""
    rounded: NDArray[np.int64] = np.floor(share_of(counts, share) + 0.5).astype(np.int64)
    return rounded


def to_decimals(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Return the values rounded to ``decimals`` decimals; numbers too large to have decimals are unchanged."""
    without_decimals = np.abs(values) >= 2.0**53
    return np.where(without_decimals, values, np.round(np.where(without_decimals, 0.0, values), decimals))


DASH = "–"


def number_text(value: float | None, digits: int = 4, sign: str = "") -> str:
    """Return a number with ``digits`` decimals, and with its sign if ``sign`` is ``"+"``."""
    return DASH if value is None or math.isnan(value) else f"{rounded(value, digits):{sign}.{digits}f}"


def percent_text(value: float | None, unit: str = "%", sign: str = "") -> str:
    """Return a share as a percentage with one decimal, and with its sign if ``sign`` is ``"+"``."""
    return DASH if value is None or math.isnan(value) else f"{rounded(100 * value, 1):{sign}.1f}{unit}"


def rounded(value: float, digits: int) -> float:
    """Return a number rounded to ``digits`` decimals, and never -0."""
    return round(value, digits) + 0.0


def count_text(number: int, thing: str) -> str:
    """Return a count and its noun, in the plural if needed."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def amount_text(value: float) -> str:
    """Return a number with thousands separators, and at most three decimals unless it is tiny."""
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.3f}".rstrip("0") if abs(value) >= 0.01 else f"{value:.3g}"


def size_text(bytes: float) -> str:
    """Return a number of bytes as readable text."""
    return f"{bytes / _GIB:,.1f} GiB" if bytes >= _GIB else f"{bytes / _MIB:,.0f} MiB"


def listed(names: Sequence[str]) -> str:
    """Return names joined as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def few(names: Sequence[Any], most: int) -> str:
    """Return at most so many names joined as in a sentence, with the number of the others."""
    return listed([*names] if len(names) <= most else [*names[:most], f"{len(names) - most} more"])


def all_systems(n: int) -> str:
    """Return all of n systems in words."""
    return "both systems" if n == 2 else f"all {n} systems"


def time_text(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return "unknown"
    if seconds < 1:
        return "under a second"
    if seconds < 100:
        return f"{float(f'{seconds:.1g}'):g} s" if seconds >= 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"

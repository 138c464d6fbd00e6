"""Rounding of numbers as they read in decimals: 0.29 of 50 is 14.5, and is rounded to 15.

Wherever a share of users, items or ratings is taken (samples, splits, filters, subsets, smaller test sets), this module
rounds it to the nearest whole number, halves up. Only ``uniform_test`` rounds differently, as its paper does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    """Return the share of each count, rounded to the nearest whole number, halves up.

    Examples
    --------
    >>> nearest_count(0.7, np.array([45, 10])).tolist()
    [32, 7]
    """
    rounded: NDArray[np.int64] = np.floor(share_of(counts, share) + 0.5).astype(np.int64)
    return rounded


def to_decimals(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Return the values rounded to ``decimals`` decimals; numbers too large to have decimals are unchanged.

    Examples
    --------
    >>> to_decimals(np.array([0.123, 1e300]), 2).tolist()
    [0.12, 1e+300]
    """
    without_decimals = np.abs(values) >= 2.0**53
    return np.where(without_decimals, values, np.round(np.where(without_decimals, 0.0, values), decimals))

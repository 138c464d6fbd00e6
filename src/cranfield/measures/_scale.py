"""Huge and tiny values, brought by a power of two to where their sums and squares can be held."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Beyond 2^±400 a square is near the end of what a number can hold.
_FAR = 400


def power_of_two(largest: Any) -> NDArray[np.int32]:
    """Return the exponents to divide by: 0 for what is 0, not finite or of an ordinary size.

    They are even, so that the square root of such a power is a power of two as well.

    Examples
    --------
    >>> power_of_two([5.0, 0.0, 2.0**1000, 2.0**-900, np.inf, np.nan]).tolist()
    [0, 0, 1000, -900, 0, 0]
    """
    largest = np.asarray(largest, dtype=np.float64)
    ordinary = ~np.isfinite(largest) | (largest == 0.0)
    exponents = np.frexp(np.where(ordinary, 1.0, largest))[1]
    return np.where(np.abs(exponents) <= _FAR, 0, exponents // 2 * 2).astype(np.int32)


def power_for(values: NDArray[np.float64]) -> int:
    """Return the exponent to divide all of some values by, NaN aside."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    # As `power_of_two`, without arrays: every average calls it.
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    exponent = math.frexp(largest)[1]
    return 0 if abs(exponent) <= _FAR else exponent // 2 * 2

"""Scaling of huge and tiny values by a power of two, so that sums and squares neither overflow nor underflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Squares of values beyond 2^±400 come close to the limits of a float.
_FAR = 400


def power_of_two(largest: Any) -> NDArray[np.int32]:
    """Return the exponents to divide by: 0 for values that are 0, not finite or of ordinary size.

    They are even, so that the square root of such a power is also a power of two.

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
    """Return one exponent to divide all values by; NaN is ignored."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    # Like `power_of_two`, but without arrays, since every average calls it.
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    exponent = math.frexp(largest)[1]
    return 0 if abs(exponent) <= _FAR else exponent // 2 * 2

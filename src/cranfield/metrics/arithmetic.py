"""Arithmetic on arrays that many metrics share: ratios, scaling against overflow, and blocks of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Values:
    """Divide list by list; NaN if the denominator is 0, where the metric is undefined."""
    return np.divide(numerator, denominator, out=np.full(len(denominator), np.nan), where=denominator > 0)


# Squares of values beyond 2^±400 come close to the limits of a float.
_FAR = 400


def power_of_two(largest: Any) -> NDArray[np.int32]:
    """Return the exponents to divide by: 0 for values that are 0, not finite or of ordinary size.

    They are even, so that the square root of such a power is also a power of two.
    """
    largest = np.asarray(largest, dtype=np.float64)
    ordinary = ~np.isfinite(largest) | (largest == 0.0)
    exponents = np.frexp(np.where(ordinary, 1.0, largest))[1]
    return np.where(np.abs(exponents) <= _FAR, 0, exponents // 2 * 2).astype(np.int32)


def power_for(values: Values) -> int:
    """Return one exponent to divide all values by; NaN is ignored."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    # Like `power_of_two`, but without arrays, since every average calls it.
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    exponent = math.frexp(largest)[1]
    return 0 if abs(exponent) <= _FAR else exponent // 2 * 2


# Approximate number of cells per block.
_CELLS = 1 << 20


def expanded(times: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    """Repeat each place ``times`` times: yields a block of places, the repeated places, and a count from 0 for each."""
    ends = np.append(0, np.cumsum(times, dtype=np.int64))
    first = 0
    while first < len(times):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _CELLS, side="right")) - 1)
        places = np.repeat(np.arange(first, last), times[first:last])
        yield slice(first, last), places, np.arange(len(places)) - (ends[places] - ends[first])
        first = last

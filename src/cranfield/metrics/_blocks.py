"""Blocks for work that grows faster than its input, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Approximate number of cells per block.
_CELLS = 1 << 20


def expanded(times: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    """Repeat each place ``times`` times: yields a block of places, the repeated places, and a count from 0 for each.

    Examples
    --------
    >>> [(places.tolist(), count.tolist()) for _, places, count in expanded(np.array([2, 0, 3]))]
    [([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])]
    """
    ends = np.append(0, np.cumsum(times, dtype=np.int64))
    first = 0
    while first < len(times):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _CELLS, side="right")) - 1)
        places = np.repeat(np.arange(first, last), times[first:last])
        yield slice(first, last), places, np.arange(len(places)) - (ends[places] - ends[first])
        first = last

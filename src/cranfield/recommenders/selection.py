"""The k largest entries of each row, ties to the left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.recommenders.work import kernels


def largest(block: NDArray[Any], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the columns of the ``k`` largest entries of each row, best first, and these entries.

    Among equal entries, those further left are kept, and come first. NaN comes last.

    Examples
    --------
    >>> columns, values = largest(np.array([[1.0, 3.0, 3.0, np.nan, 2.0]]), 3)
    >>> columns.tolist(), values.tolist()
    ([[1, 2, 4]], [[3.0, 3.0, 2.0]])
    """
    rows, width = block.shape
    k = min(k, width)
    compiled = kernels(block.size, if_loaded=True) if k else None
    if compiled is not None:
        columns, values = np.empty((rows, k), dtype=np.int64), np.empty((rows, k), dtype=block.dtype)
        compiled.largest(block, columns, values)
        return columns, values
    keys = np.negative(block)  # NaN sorts last, so the smallest keys are the largest entries
    if k == 0:
        return np.zeros((rows, 0), dtype=np.int64), block[:, :0]
    if k < width:
        keep = _smallest(keys, k)
        columns = np.nonzero(keep)[1].reshape(rows, k)
        keys = keys[keep].reshape(rows, k)
    else:
        columns = np.broadcast_to(np.arange(width), (rows, width))
    order = np.argsort(keys, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    return columns, np.take_along_axis(block, columns, axis=1)


def _smallest(keys: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """Mark exactly ``k`` entries of each row: the smallest, and of equal ones those further left."""
    limit = np.partition(keys, k - 1, axis=1)[:, k - 1 : k]
    keep = keys <= limit
    missing = np.isnan(limit[:, 0])
    keep[missing] = True  # all numbers are kept in these rows, since the limit is NaN
    crowded = np.flatnonzero(np.count_nonzero(keep, axis=1) > k)
    if len(crowded):
        some = keys[crowded]
        at_limit = (some == limit[crowded]) | (np.isnan(some) & missing[crowded, None])
        room = k - np.count_nonzero(keep[crowded] & ~at_limit, axis=1)
        keep[crowded] &= ~at_limit | (np.cumsum(at_limit, axis=1) <= room[:, None])
    return keep

"""The canonical order of ratings: by user, then by item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 18


def canonical_order(users: NDArray[np.int32], items: NDArray[np.int32], n_items: int) -> NDArray[np.int64] | None:
    """Return the stable permutation that sorts by (user, item), or None if they are sorted already.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_order(np.array([1, 0, 0], np.int32), np.array([0, 1, 0], np.int32), 2).tolist()
    [2, 1, 0]
    """
    if len(users) < 2 or _is_sorted(users, items):
        return None
    row_bits, item_bits = (len(users) - 1).bit_length(), max(n_items - 1, 0).bit_length()
    key = users.astype(np.int64)
    key <<= item_bits
    key |= items
    if int(users.max()).bit_length() + item_bits + row_bits > 63:
        return np.argsort(key, kind="stable")
    # With the row in the lowest bits no two keys are equal, so a plain sort is stable, and it is many times faster
    # than an argsort; the row is then read back from the sorted keys.
    key <<= row_bits
    key |= np.arange(len(key))
    key.sort()
    key &= (1 << row_bits) - 1
    return key


def _is_sorted(users: NDArray[np.int32], items: NDArray[np.int32]) -> bool:
    """Tell whether the pairs ascend; in blocks, to stop at the first step down and to need little memory."""
    for start in range(0, len(users) - 1, _BLOCK):
        u, i = users[start : start + _BLOCK + 1], items[start : start + _BLOCK + 1]
        down = (u[1:] < u[:-1]) | ((u[1:] == u[:-1]) & (i[1:] < i[:-1]))
        if down.any():
            return False
    return True

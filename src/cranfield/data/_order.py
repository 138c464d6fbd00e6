"""The canonical order of ratings: by user, then by item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    key = users.astype(np.int64) * n_items + items
    return np.argsort(key, kind="stable")


def _is_sorted(users: NDArray[np.int32], items: NDArray[np.int32]) -> bool:
    step = users[1:] - users[:-1]
    if (step < 0).any():
        return False
    return not ((step == 0) & (items[1:] < items[:-1])).any()

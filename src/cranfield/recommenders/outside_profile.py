"""Items drawn from outside a profile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings


class OutsideProfile:
    """Draws items that a user has not rated, all equally likely.

    The r-th item outside a profile is r + k, where k is the number of profile items before it. For the j-th item of the
    sorted profile, item − j is the number of items outside the profile that come before it. These differences ascend,
    so a binary search finds k.
    """

    def __init__(self, train: Ratings) -> None:
        self._n_items, self._indptr = train.n_items, train.indptr
        self._left = train.n_items - train.user_counts
        before = np.arange(len(train)) - np.repeat(train.indptr[:-1], train.user_counts)
        self._keys = train.users.astype(np.int64) * (train.n_items + 1) + (train.items - before)

    def drawn(self, users: NDArray[Any], draw: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return an item for each user, and a mask of the users for whom there is one."""
        left = self._left[users]
        rank = np.minimum((draw.random(len(users)) * left).astype(np.int64), np.maximum(left - 1, 0))
        key = users.astype(np.int64) * (self._n_items + 1) + rank
        before = np.searchsorted(self._keys, key, side="right") - self._indptr[users]
        return (rank + before).astype(np.int32), left > 0

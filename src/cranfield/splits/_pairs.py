"""(user, item) pairs as numbers, to find those that are in two sets of ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings


def pairs_of(ratings: Ratings) -> NDArray[np.int64]:
    """Return each (user, item) pair as one ascending number."""
    return ratings.users.astype(np.int64) * ratings.n_items + ratings.items


def among(pairs: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the pairs are among ``others``; both are ascending."""
    place = np.minimum(np.searchsorted(others, pairs), len(others) - 1)
    common: NDArray[np.bool_] = others[place] == pairs
    return common

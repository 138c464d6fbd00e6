"""Random pairs of users and items with given numbers of ratings per item and per user."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield._terminal import progress
from cranfield.simulate.counts import CountArray

# The weights of a user who must take every remaining item, and of one whose profile is already full.
_MUST, _FULL = 1e150, 1e-150


def pairs_with_margins(
    item_counts: CountArray, profile_sizes: CountArray, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    r"""Draw distinct (user, item) pairs with the given counts; return their users and items.

    Items are processed in order, the most popular first. Each draws its users without replacement, with weights
    :math:`r / (m - r)`, where :math:`r` is the number of ratings a user's profile still lacks and :math:`m` the number
    of remaining items (Chen, Diaconis, Holmes and Liu 2005): a user who lacks as many as remain is always drawn.

    Item counts are always met exactly. Profile sizes are met exactly too, unless the two are incompatible, or only
    just compatible, and the draw reaches a dead end. Then a user's profile may be larger than requested, because no
    other user was left for an item, and another's smaller.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> users, items = pairs_with_margins(np.array([3, 1]), np.array([1, 2, 1]), rng)
    >>> sorted(zip(users.tolist(), items.tolist()))
    [(0, 0), (1, 0), (1, 1), (2, 0)]
    """
    lacking = profile_sizes.astype(np.float64)
    takers = []
    by_popularity = np.argsort(-item_counts, kind="stable")
    with progress("Drawing ratings", total=len(item_counts), unit="items") as bar:
        for served, item in enumerate(by_popularity.tolist()):
            left = len(item_counts) - served
            with np.errstate(divide="ignore"):
                weights = lacking / (left - lacking)
            weights[lacking >= left] = _MUST
            weights[lacking <= 0] = _FULL
            taken = _weighted_sample(weights, int(item_counts[item]), rng)
            lacking[taken] -= 1
            takers.append(taken.astype(np.int32))
            bar.advance()
    users = np.concatenate(takers) if takers else np.empty(0, dtype=np.int32)
    items = np.repeat(by_popularity.astype(np.int32), item_counts[by_popularity])
    return users, items


def _weighted_sample(weights: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``size`` positions without replacement, ascending: the smallest exponential keys with rates ``weights``."""
    keys = -np.log1p(-rng.random(len(weights))) / weights
    if size >= len(keys):
        return np.arange(len(keys))
    # Sorted, because a partition returns positions in an order that differs between processors.
    return np.sort(np.argpartition(keys, size)[:size])

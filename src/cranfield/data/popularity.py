"""Items from the most to the least popular."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import nearest_count, share_of
from cranfield.data.ratings import Ratings


def by_popularity(ratings: Ratings) -> NDArray[np.int64]:
    """Return the codes of the rated items by decreasing |R(i)|; among equally popular items the smaller id comes first.

    Examples
    --------
    >>> by_popularity(Ratings.of([1, 2, 1, 1], ["b", "b", "c", "a"])).tolist()
    [1, 0, 2]
    """
    counts = ratings.item_counts
    order: NDArray[np.int64] = np.argsort(-counts, kind="stable")
    return order[: np.count_nonzero(counts)]


def head_items(ratings: Ratings, share: float = 0.1, of: str = "items") -> NDArray[np.bool_]:
    """Return whether each item code is in the head, the most popular items.

    Parameters
    ----------
    ratings
        The ratings that define popularity |R(i)|: give those before the split.
    share, of
        As for the filter `drop_head`: that share of the items, or the fewest items that hold that share of the ratings.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2, 1, 1], ["a", "a", "a", "b", "b", "c", "d"])
    >>> head_items(ratings, 0.5).tolist()
    [True, True, False, False]
    """
    order = by_popularity(ratings)
    if of == "items":
        count = int(nearest_count(share, len(order)))
    else:
        count = int(np.searchsorted(np.cumsum(ratings.item_counts[order]), share_of(len(ratings), share))) + 1
    head = np.zeros(ratings.n_items, dtype=np.bool_)
    head[order[:count]] = True
    return head

"""Items from the most to the least popular."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.data.ratings import Ratings


def by_popularity(ratings: Ratings) -> NDArray[np.int64]:
    """Return the codes of the rated items by decreasing |R(i)|; of equally popular ones the smaller id comes first.

    Examples
    --------
    >>> by_popularity(Ratings.of([1, 2, 1, 1], ["b", "b", "c", "a"])).tolist()
    [1, 0, 2]
    """
    counts = ratings.item_counts
    order: NDArray[np.int64] = np.argsort(-counts, kind="stable")
    return order[: np.count_nonzero(counts)]

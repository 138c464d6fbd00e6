"""From a block of scores to ranked lists: the n best of each row, ties broken as trec_eval breaks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Vocabulary
from cranfield.recommenders.largest import largest


@dataclass(frozen=True, eq=False)
class TieOrder:
    """The order of items of equal score: by id as text, descending, as in trec_eval ("9" before "10")."""

    item_ids: Vocabulary

    @cached_property
    def place(self) -> NDArray[np.int32]:
        """The place of each item: of two tied items the one with the smaller place comes first."""
        last = np.int32(len(self.item_ids) - 1)
        return np.asarray(last - self.item_ids.string_order)

    @cached_property
    def items(self) -> NDArray[np.int32]:
        """The items by their places."""
        return np.argsort(self.place, kind="stable").astype(np.int32)


def top(
    scores: NDArray[np.float64], n: int, ties: TieOrder
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the length of each row's list, and the items and scores of all lists, one after the other.

    NaN is not listed, so a list may be shorter than ``n``.

    Examples
    --------
    >>> order = TieOrder(Vocabulary.of([9, 10, 11]))
    >>> sizes, items, scores = top(np.array([[1.0, 1.0, np.nan]]), 2, order)
    >>> sizes.tolist(), order.item_ids.ids(items).to_list()
    ([2], [9, 10])
    """
    columns, values = largest(np.take(scores, ties.items, axis=1), n)  # in rows, as an index would not be
    listed = ~np.isnan(values)
    return np.count_nonzero(listed, axis=1), ties.items[columns[listed]], values[listed]


def ranks_among(
    scores: NDArray[np.float64],
    pool: NDArray[np.bool_],
    rows: NDArray[np.int64],
    items: NDArray[np.int32],
    ties: TieOrder,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rank of each (row, item) among the row's pool, and the length of that list.

    The rank is a count: one plus the pool's items that score higher, or the same with a smaller place in the order of
    ties. It is 0 for an item without a score.

    Parameters
    ----------
    scores, pool
        Users × items: the scores, and which items the asked one is ranked among.
    rows, items
        What to rank; no item of its own pool.
    """
    pooled = np.where(pool, scores, np.nan)
    known = np.count_nonzero(~np.isnan(pooled), axis=1)
    ranks = np.zeros(len(rows), dtype=np.int32)
    # A few pairs at a time: each is one comparison of its score with the row's pool.
    step = max(1, (1 << 20) // max(scores.shape[1], 1))
    for start in range(0, len(rows), step):
        row, item = rows[start : start + step], items[start : start + step]
        own = scores[row, item][:, None]
        others = pooled[row]
        tied_before = (others == own) & (ties.place[None, :] < ties.place[item][:, None])
        above = np.count_nonzero((others > own) | tied_before, axis=1)
        ranks[start : start + step] = np.where(np.isnan(own[:, 0]), 0, above + 1)
    return ranks, (known[rows] + (ranks > 0)).astype(np.int32)

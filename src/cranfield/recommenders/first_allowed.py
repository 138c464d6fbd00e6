"""The best allowed items of a known order, without scoring all items for every user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.recommenders.work import blocks
from cranfield.tables import Vocabulary


def best_first(scores: NDArray[np.float64], item_ids: Vocabulary) -> NDArray[np.int32]:
    """Return the items with a score, best first, ties by id as text, descending, as in trec_eval.

    Examples
    --------
    >>> best_first(np.array([1.0, 2.0, np.nan, 1.0]), Vocabulary.of(["a", "b", "c", "d"])).tolist()
    [1, 3, 0]
    """
    order = np.lexsort((-item_ids.string_order, -scores))
    return order[: len(scores) - np.count_nonzero(np.isnan(scores))].astype(np.int32)


def first_allowed(
    best: Callable[[NDArray[np.int64], int], NDArray[Any]], most: int, users: NDArray[Any], n: int, targets: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first ``n`` items of each user's order that the targets allow, and their positions in it.

    If there are fewer, both are −1.

    Parameters
    ----------
    best
        ``best(rows, wanted)`` gives the first ``wanted`` items of the order of each row of ``users``; −1 means no item,
        and does not count as a position.
    most
        The length of these orders.
    users, n, targets
        As for `GivesLists.top`.
    """
    items, places = np.full((len(users), n), -1, dtype=np.int64), np.full((len(users), n), -1, dtype=np.int64)
    rows, wanted = np.arange(len(users)), min(most, n + 64)
    while len(rows):
        short = []
        for part in blocks(len(rows), wanted):
            some = rows[part]
            candidates = best(some, wanted)
            keep = targets.contain(users[some], candidates)
            column = np.cumsum(keep, axis=1) - 1
            keep &= column < n
            row, place = np.nonzero(keep)
            items[some[row], column[row, place]] = candidates[row, place]
            places[some[row], column[row, place]] = (np.cumsum(candidates >= 0, axis=1) - 1)[row, place]
            short.append(some[np.count_nonzero(keep, axis=1) < n])
        if wanted == most:
            break
        rows, wanted = np.concatenate(short), min(most, 4 * wanted)
    return items, places

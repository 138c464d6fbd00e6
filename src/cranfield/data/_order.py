"""The canonical order of ratings: by user, then by item."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Large arrays are processed in blocks that fit the processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class SortedPairs:
    """Pairs of user and item codes in canonical order.

    Parameters
    ----------
    order
        The stable permutation that sorts them, or None if they were already sorted.
    indptr
        The items of user ``u`` are the slice ``indptr[u]:indptr[u + 1]`` of ``items``.
    items
        The sorted item codes.
    again
        Which of the sorted pairs equal the one before them, or None if all pairs are different.
    """

    order: NDArray[np.int64] | None
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    again: NDArray[np.bool_] | None

    def arranged(
        self, values: NDArray[Any], times: NDArray[np.int64] | None
    ) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Bring the ratings of the pairs, and their times, into the order of the pairs."""
        if self.order is None:
            return values, times
        if times is None:
            return values.take(self.order), None
        with ThreadPoolExecutor(1) as meanwhile:
            arranged = meanwhile.submit(times.take, self.order)
            return values.take(self.order), arranged.result()


def sort_pairs(users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> SortedPairs:
    """Sort pairs of codes by user, then by item; equal pairs keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = sort_pairs(np.array([1, 0, 0], np.int32), np.array([0, 1, 0], np.int32), 2, 2)
    >>> pairs.order.tolist(), pairs.indptr.tolist(), pairs.items.tolist()
    ([2, 1, 0], [0, 2, 3], [0, 1, 0])
    """
    row_bits, item_bits = max(len(users) - 1, 0).bit_length(), max(n_items - 1, 0).bit_length()
    if _is_sorted(users, items):
        return _as_they_are(None, users, items, n_users)
    if max(n_users - 1, 0).bit_length() + item_bits + row_bits > 63:
        order = np.lexsort((items, users))
        return _as_they_are(order, users[order], items[order], n_users)
    # With the row in the lowest bits no two keys are equal, so a plain sort is stable. It is many times faster than an
    # argsort; items and rows are then read back from the sorted keys.
    key = np.empty(len(users), dtype=np.int64)
    for block in _blocks(len(key)):
        part = users[block].astype(np.int64)
        part <<= item_bits
        part |= items[block]
        part <<= row_bits
        part |= np.arange(block.start, block.start + len(part))
        key[block] = part
    key.sort()
    indptr = np.searchsorted(key, np.arange(n_users + 1, dtype=np.int64) << (item_bits + row_bits))
    return _unpacked(key, indptr, item_bits, row_bits)


def _unpacked(key: NDArray[np.int64], indptr: NDArray[np.int64], item_bits: int, row_bits: int) -> SortedPairs:
    """Unpack sorted keys in place; only the row remains in them."""
    items = np.empty(len(key), dtype=np.int32)
    again = np.zeros(len(key), dtype=np.bool_)
    before = -1
    for block in _blocks(len(key)):
        pair = key[block] >> row_bits
        again[block.start] = pair[0] == before
        np.equal(pair[1:], pair[:-1], out=again[block][1:])
        before = pair[-1]
        pair &= (1 << item_bits) - 1
        items[block] = pair
        key[block] &= (1 << row_bits) - 1
    return SortedPairs(key, indptr.astype(np.int64, copy=False), items, again if again.any() else None)


def _as_they_are(
    order: NDArray[np.int64] | None, users: NDArray[np.int32], items: NDArray[np.int32], n_users: int
) -> SortedPairs:
    indptr = np.searchsorted(users, np.arange(n_users + 1, dtype=np.int32)).astype(np.int64)
    again = np.zeros(len(users), dtype=np.bool_)
    np.equal(users[1:], users[:-1], out=again[1:])
    again[1:] &= items[1:] == items[:-1]
    return SortedPairs(order, indptr, items, again if again.any() else None)


def _is_sorted(users: NDArray[np.int32], items: NDArray[np.int32]) -> bool:
    for block in _blocks(len(users) - 1):
        u, i = users[block.start : block.stop + 1], items[block.start : block.stop + 1]
        if ((u[1:] < u[:-1]) | ((u[1:] == u[:-1]) & (i[1:] < i[:-1]))).any():
            return False
    return True


def _blocks(length: int) -> Iterator[slice]:
    for start in range(0, length, _BLOCK):
        yield slice(start, start + _BLOCK)

"""Pairs of users and items: their canonical order, and what to do when a pair occurs more than once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError, nearest
from cranfield.tables import Vocabulary, as_polars

# Large arrays are processed in blocks that fit the processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class SortedPairs:
    """Pairs of user and item codes in canonical order."""

    order: NDArray[np.int64] | None  # the stable permutation that sorts them, None if they were sorted
    indptr: NDArray[np.int64]  # the items of user u are the slice indptr[u]:indptr[u + 1] of items
    items: NDArray[np.int32]
    again: NDArray[np.bool_] | None  # which pairs equal the one before them, None if all are different

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
    """Sort pairs of codes by user, then by item; equal pairs keep their order."""
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


Repeated = Literal["error", "last", "first", "mean", "max", "sum"]

REMEDY = "keep one rating of each pair with repeated='last', 'first', 'mean', 'max' or 'sum' (--repeated last, ...)"


class RepeatedPairError(InputError):
    """A (user, item) pair that occurs more than once.

    ``place`` and ``earlier`` are positions in the arrays as given, counted from 0: where a pair first occurs again, and
    where it was before. ``count`` is the total number of repeated ratings.
    """

    def __init__(self, user: object, item: object, place: int, earlier: int, count: int) -> None:
        many = f"{count:,} repeated rating{'s' if count > 1 else ''} in all"
        super().__init__(f"user {user!r} rates item {item!r} more than once ({many})", row=place + 1, remedy=REMEDY)
        self.pair, self.place, self.earlier, self.count = (user, item), place, earlier, count

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.pair, self.place, self.earlier, self.count)

    @classmethod
    def of(
        cls, pairs: SortedPairs, again: NDArray[np.bool_], user_ids: Vocabulary, item_ids: Vocabulary
    ) -> RepeatedPairError:
        """Return the error for the pair that is the first to occur ``again`` in the given order."""
        repeats = np.flatnonzero(again)
        rows = np.arange(len(pairs.items)) if pairs.order is None else pairs.order
        at = int(repeats[np.argmin(rows[repeats])])
        user = user_ids.all[int(np.searchsorted(pairs.indptr, at, side="right")) - 1]
        return cls(user, item_ids.all[int(pairs.items[at])], int(rows[at]), int(rows[at - 1]), len(repeats))


def check_policy(repeated: str) -> None:
    """Refuse an unknown policy."""
    if repeated not in get_args(Repeated):
        raise SettingError(f"repeated={repeated!r} is not known{nearest(repeated, get_args(Repeated))}")


def merge(
    again: NDArray[np.bool_], values: NDArray[Any], times: NDArray[np.int64] | None, repeated: str
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64] | None]:
    """Merge each run of equal pairs into one rating; return the start of each run, the values and the times.

    ``first`` and ``last`` go by time if times are known; equal times and ratings without times go by the order of the
    rows. ``mean``, ``max`` and ``sum`` take the latest time of the run.
    """
    starts = np.flatnonzero(~again)
    if repeated in ("first", "last"):
        chosen = _chosen(again, starts, times, last=repeated == "last")
        return starts, values[chosen], None if times is None else times[chosen]
    wide = values.astype(np.float64)
    with np.errstate(over="ignore"):
        merged = (np.maximum if repeated == "max" else np.add).reduceat(wide, starts)
    if repeated == "mean":
        merged /= np.diff(starts, append=len(again))
    if not np.isfinite(merged).all():
        problem = f"the {repeated} of repeated ratings is too large for a number"
        raise InputError(problem, remedy="merge them with repeated='max'")
    return starts, merged, None if times is None else np.maximum.reduceat(times, starts)


def _chosen(
    again: NDArray[np.bool_], starts: NDArray[np.int64], times: NDArray[np.int64] | None, *, last: bool
) -> NDArray[np.int64]:
    ends = np.append(starts[1:], len(again)) - 1
    if times is None:
        return ends if last else starts
    chosen = starts.copy()
    runs = np.flatnonzero(ends > starts)
    lengths = ends[runs] - starts[runs] + 1
    run = np.repeat(np.arange(len(runs)), lengths)
    places = starts[runs][run] + np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    by_time = places[np.lexsort((times[places], run))]
    bounds = np.cumsum(lengths)
    chosen[runs] = by_time[bounds - 1] if last else by_time[bounds - lengths]
    return chosen


def repeated_pair(pairs: Any) -> RepeatedPairError | None:
    """Return the error for the first ``user`` and ``item`` of a dataframe that occur more than once, if any do."""
    again = pairs.groupBy("user", "item").count().filter("count > 1")
    first = as_polars(again.orderBy("user", "item").limit(1))
    if first.is_empty():
        return None
    repeats = as_polars(again.selectExpr("sum(count - 1) as repeats")).item()
    return RepeatedPairError(first["user"][0], first["item"][0], 0, 0, repeats)

"""Pairs of users and items: their canonical order, and what to do when a pair occurs more than once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.data.events import Merging
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


Repeated = str
"""``auto``, ``error``, or how repeated ratings are merged: see `Merging.of`."""

REMEDY = "say how they become one rating with repeated='last', 'max' or 'sum', for instance"


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
    if repeated not in ("error", "auto"):
        Merging.of(repeated)


def test_policy(repeated: str) -> str:
    """Return how repeated ratings of a test set that is read by itself become one: they are an error by default."""
    return "error" if repeated in ("error", "auto") else Merging.of(repeated).test


def merge(
    again: NDArray[np.bool_], values: NDArray[Any], times: NDArray[np.int64] | None, repeated: str
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64] | None]:
    """Merge each run of equal pairs into one rating; return the start of each run, the values and the times.

    ``first`` and ``last`` go by time, and among equal times by value; ratings without times by the order of the rows.
    The others take the latest time of the run. Values are added up in ascending order, in double precision, and the sum
    is rounded once to single precision, so that ten times 0.1 is 1.
    """
    starts = np.flatnonzero(~again)
    if repeated in ("first", "last"):
        chosen = _chosen(again, starts, values, times, last=repeated == "last")
        return starts, values[chosen], None if times is None else times[chosen]
    latest = None if times is None else np.maximum.reduceat(times, starts)
    counts = np.diff(starts, append=len(again))
    if repeated in ("count", "binary"):
        return starts, (counts if repeated == "count" else np.ones(len(starts))).astype(np.float32), latest
    wide = values.astype(np.float64)
    if repeated != "max" and (again[1:] & (wide[1:] < wide[:-1])).any():
        places, run = _repeated_places(starts, counts)
        wide[places] = wide[places[np.lexsort((wide[places], run))]]
    with np.errstate(over="ignore"):
        merged = (np.maximum if repeated == "max" else np.add).reduceat(wide, starts)
    if repeated == "mean":
        merged /= counts
    if not np.isfinite(merged).all():
        problem = f"the {repeated} of repeated ratings is too large for a number"
        raise InputError(problem, remedy="merge them with repeated='max'")
    return starts, _rounded(merged, values) if repeated == "sum" else merged, latest


def _rounded(merged: NDArray[np.float64], values: NDArray[Any]) -> NDArray[Any]:
    """Return sums in single precision, if the values are exact in it."""
    with np.errstate(over="ignore"):
        single = merged.astype(np.float32)
    return single if values.dtype == np.float32 and np.isfinite(single).all() else merged


def _repeated_places(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the places of all ratings that are not alone in their run, and their runs."""
    runs = np.flatnonzero(counts > 1)
    lengths = counts[runs]
    run = np.repeat(np.arange(len(runs)), lengths)
    return starts[runs][run] + np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths), run


def in_order(
    starts: NDArray[np.int64], values: NDArray[Any], times: NDArray[np.int64], baskets: NDArray[Any] | None
) -> NDArray[np.int64]:
    """Return the order of ratings in which each run goes by time, among equal times by value, and then by basket."""
    order = np.arange(len(values))
    is_first = np.zeros(len(values), dtype=np.bool_)
    is_first[starts] = True
    earlier, same = times[1:] < times[:-1], times[1:] == times[:-1]
    smaller = values[1:] < values[:-1]
    if baskets is not None:
        smaller |= (values[1:] == values[:-1]) & (baskets[1:] < baskets[:-1])
    if not (~is_first[1:] & (earlier | (same & smaller))).any():
        return order  # as most logs are written
    places, run = _repeated_places(starts, np.diff(starts, append=len(values)))
    last = () if baskets is None else (baskets[places],)
    order[places] = places[np.lexsort((*last, values[places], times[places], run))]
    return order


def _chosen(
    again: NDArray[np.bool_],
    starts: NDArray[np.int64],
    values: NDArray[Any],
    times: NDArray[np.int64] | None,
    *,
    last: bool,
) -> NDArray[np.int64]:
    ends = np.append(starts[1:], len(again)) - 1
    chosen = ends if last else starts
    return chosen if times is None else in_order(starts, values, times, None)[chosen]


def repeated_pair(pairs: Any) -> RepeatedPairError | None:
    """Return the error for the first ``user`` and ``item`` of a dataframe that occur more than once, if any do."""
    again = pairs.groupBy("user", "item").count().filter("count > 1")
    first = as_polars(again.orderBy("user", "item").limit(1))
    if first.is_empty():
        return None
    repeats = as_polars(again.selectExpr("sum(count - 1) as repeats")).item()
    return RepeatedPairError(first["user"][0], first["item"][0], 0, 0, repeats)

"""Events: what happened when, of which a pair of user and item may have several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError, nearest

POLICIES = ("sum", "max", "last", "first", "mean", "count", "binary", "to_ratings")
"""How the events of a pair become one rating; ``to_ratings`` adds them up and makes ratings of the user's counts."""


class Merging(NamedTuple):
    """How the events of a pair become a rating, in training and elsewhere; every part is merged by itself.

    The test part takes the largest value by default: with clicks worth 1 and purchases worth 5, five clicks are not a
    purchase.
    """

    train: str = "sum"
    test: str = "max"

    @classmethod
    def of(cls, repeated: str) -> Merging:
        """Return the merging that is spelled: one policy for all parts, or two with a slash, for training and test.

        Examples
        --------
        >>> Merging.of("max"), Merging.of("sum/last")
        (Merging(train='max', test='max'), Merging(train='sum', test='last'))
        """
        train, slash, test = repeated.partition("/")
        for policy in (train, test) if slash else (train,):
            if policy not in POLICIES:
                raise SettingError(f"repeated={repeated!r} is not known{nearest(policy, POLICIES)}")
        return cls(train, test if slash else train)

    def __str__(self) -> str:
        return self.train if self.train == self.test else f"{self.train}/{self.test}"


DEFAULT_MERGING = Merging()


@dataclass(frozen=True, eq=False)
class Events:
    """The events behind ratings that were merged from them, pair after pair, and within a pair in the order of time.

    Among events of a pair at the same time the smaller value comes first, so that nothing depends on the order of rows.
    """

    starts: NDArray[np.int64]  # the events of rating r are the slice starts[r]:starts[r + 1] of the arrays below
    values: NDArray[Any]
    times: NDArray[np.int64]
    baskets: NDArray[np.int32] | None = None  # the basket or session of each event; codes ascend by time
    merging: Merging = DEFAULT_MERGING

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of events of each rating."""
        return np.diff(self.starts)

    @property
    def least(self) -> float | None:
        """The smallest value above 0, that of an event that counts at all; None if there is none, or a scale."""
        on_scale = self.merging.test == "to_ratings"
        return None if on_scale or not (self.values > 0).any() else float(self.values[self.values > 0].min())

    @property
    def nbytes(self) -> int:
        """The memory of the events in bytes."""
        arrays = (self.starts, self.values, self.times, self.baskets)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def basket_times(self) -> NDArray[np.int64]:
        """The time of each event: that of the last event of its basket, if there are baskets."""
        if self.baskets is None:
            return self.times
        latest = np.full(int(self.baskets.max(initial=0)) + 1, np.iinfo(np.int64).min)
        np.maximum.at(latest, self.baskets, self.times)
        return latest[self.baskets]

    def keep(self, ratings: NDArray[np.bool_]) -> Events:
        """Return the events of the ratings where the mask is true."""
        counts = self.counts
        return self.of_rows(np.repeat(ratings, counts), counts[ratings])

    def between(self, start: int, stop: int) -> Events:
        """Return the events of a slice of the ratings."""
        first, last = int(self.starts[start]), int(self.starts[stop])
        return self.of_rows(slice(first, last), self.counts[start:stop])

    def take(self, ratings: NDArray[np.int64]) -> Events:
        """Return the events of the ratings in another order."""
        counts = self.counts[ratings]
        ends = np.cumsum(counts)
        rows = np.arange(int(counts.sum())) + np.repeat(self.starts[ratings] - (ends - counts), counts)
        return self.of_rows(rows, counts)

    def hashed(self, digest: Any) -> None:
        """Add the events to a hash."""
        for array, kind in ((self.starts, "<i8"), (self.values, "<f8"), (self.times, "<i8")):
            digest.update(array.astype(kind).tobytes())
        if self.baskets is not None:  # which of the events go together, whatever their numbers
            digest.update(np.unique(self.baskets, return_inverse=True)[1].astype("<i8").tobytes())

    def of_rows(self, rows: Any, counts: NDArray[np.int64]) -> Events:
        """Return some of the events, given how many each remaining rating has."""
        starts = np.append(np.int64(0), np.cumsum(counts))
        baskets = None if self.baskets is None else self.baskets[rows]
        return Events(starts, self.values[rows], self.times[rows], baskets, self.merging)


def basket_codes(users: NDArray[Any], baskets: NDArray[Any], times: NDArray[np.int64]) -> NDArray[np.int32]:
    """Number the baskets of all users: by user, and for each user by the time of their last event, then by id.

    Baskets of different users are different, even if they have the same id.

    Examples
    --------
    >>> basket_codes(np.array([1, 0, 0, 0]), np.array([7, 7, 3, 7]), np.array([5, 1, 2, 1])).tolist()
    [2, 0, 1, 0]
    """
    first, place, latest = _baskets(users, baskets, times)
    codes = np.empty(len(first), dtype=np.int32)
    codes[np.lexsort((baskets[first], latest, users[first]))] = np.arange(len(first), dtype=np.int32)
    return codes[place]


def out_of_order(users: NDArray[Any], baskets: NDArray[Any], times: NDArray[np.int64]) -> tuple[int, int]:
    """Count the users with baskets at the same time, and those whose basket of a larger id is earlier.

    Examples
    --------
    >>> out_of_order(np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2]), np.array([5, 5, 9, 3]))
    (1, 1)
    """
    first, _, latest = _baskets(users, baskets, times)  # by user, and then by id
    owners = users[first][1:]
    same, steps = owners == users[first][:-1], np.diff(latest)
    of_user = np.lexsort((latest, users[first]))
    tied = (np.diff(latest[of_user]) == 0) & same  # the owners of neighbours are the same in both orders
    return len(np.unique(owners[tied])), len(np.unique(owners[same & (steps < 0)]))


def _baskets(users: NDArray[Any], baskets: NDArray[Any], times: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Return an event of each basket, by user and id, the basket of each event, and the time of its last one."""
    keys = users.astype(np.int64) * (int(baskets.max(initial=0)) + 1) + baskets
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    latest = np.full(len(first), np.iinfo(np.int64).min)
    np.maximum.at(latest, place, times)
    return first, place, latest


def session_codes(users: NDArray[Any], times: NDArray[np.int64], gap: int) -> NDArray[np.int32]:
    """Number the sessions of all users, as `basket_codes` does: a pause of more than ``gap`` seconds starts a new one.

    Examples
    --------
    >>> session_codes(np.array([0, 0, 0, 1]), np.array([0, 100, 20, 20]), 60).tolist()
    [0, 1, 0, 2]
    """
    order = np.lexsort((times, users))
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (np.diff(users[order]) != 0) | (np.diff(times[order]) > gap)
    codes = np.empty(len(order), dtype=np.int32)
    codes[order] = np.cumsum(starts, dtype=np.int32) - np.int32(1)
    return codes

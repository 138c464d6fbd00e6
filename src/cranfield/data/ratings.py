"""`Ratings`: who rated what, how, and when."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from cranfield._errors import InputError, SettingError
from cranfield._numbers import nearest_count, share_of
from cranfield._record import Step
from cranfield._table import Table
from cranfield.data.events import DEFAULT_MERGING, Events, Merging
from cranfield.data.features import Features
from cranfield.data.pairs import Repeated, RepeatedPairError, check_policy, in_order, merge, sort_pairs
from cranfield.tables import Vocabulary, as_series, check_exact

_SHOWN = 5  # ratings, in a notebook
_BLOCK = 1 << 20  # of ratings, for `keep` and the fingerprint


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings as arrays, sorted by user and then by item, so that a user's profile is a slice.

    Nothing in it depends on the original order of the ratings: the vocabularies are sorted, and so are the ratings. A
    (user, item) pair occurs at most once.

    Parameters
    ----------
    user_ids, item_ids
        The vocabularies. They may hold users and items without ratings, as when a training and a test set share them.
    indptr
        The profile of user ``u`` is the slice ``indptr[u]:indptr[u + 1]`` of the arrays below.
    items
        Item codes (int32).
    values
        The ratings: float32 if that is exact, else float64.
    times
        Seconds since 1970 (int64), or None if the data have no times.
    name
        The name of these ratings in tables and messages.
    history
        Every step since they were read.
    user_features, item_features
        Features of users and items, for systems that use them. Filters and splits pass them on.
    events
        The events that the ratings were merged from, if pairs repeat and their order in time is known, or if there are
        baskets; None otherwise. Splits divide the events, and merge each part by itself.

    Examples
    --------
    >>> ratings = Ratings.of(["ann", "bob", "ann"], ["x", "x", "y"], [5, 3, 4])
    >>> ratings
    Ratings(2 users, 2 items, 3 ratings)
    >>> ratings.frame().rows()
    [('ann', 'x', 5.0), ('ann', 'y', 4.0), ('bob', 'x', 3.0)]
    """

    user_ids: Vocabulary
    item_ids: Vocabulary
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[Any]
    times: NDArray[np.int64] | None = None
    name: str | None = None
    history: tuple[Step, ...] = field(default=())
    user_features: Features | None = None
    item_features: Features | None = None
    events: Events | None = None

    def __post_init__(self) -> None:
        for field_name in ("indptr", "items", "values", "times"):
            array = getattr(self, field_name)
            if array is not None:
                # A view, so that the caller's array stays writeable.
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, field_name, view)

    @classmethod
    def of(cls, users: Any, items: Any, values: ArrayLike | None = None, times: ArrayLike | None = None) -> Ratings:
        """Make ratings by hand from ids; without ``values`` every rating is 1 (implicit feedback).

        Times are whole seconds since 1970; `read` also takes dates.
        """
        user_ids, user_codes = Vocabulary.encode(_complete("user", users))
        item_ids, item_codes = Vocabulary.encode(_complete("item", items))
        given: dict[str, NDArray[Any]] = {"users": user_codes, "items": item_codes}
        given["values"] = np.ones(len(user_codes)) if values is None else _finite("value", values)
        if times is not None:
            given["times"] = _finite("time", times).astype(np.int64)
        if len({len(column) for column in given.values()}) > 1:
            counts = ", ".join(f"{len(column):,} {name}" for name, column in given.items())
            raise InputError(f"there are {counts}", remedy="give one of each for every rating")
        return cls.from_codes(user_ids, item_ids, user_codes, item_codes, given["values"], given.get("times"))

    @classmethod
    def from_codes(
        cls,
        user_ids: Vocabulary,
        item_ids: Vocabulary,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        values: NDArray[Any],
        times: NDArray[np.int64] | None = None,
        *,
        repeated: Repeated = "error",
        baskets: NDArray[np.int32] | None = None,
        name: str | None = None,
        history: tuple[Step, ...] = (),
    ) -> Ratings:
        """Make ratings from codes in any order.

        A repeated (user, item) pair is an error, or becomes one rating as set by ``repeated`` (see `read`). If times
        are known, or rather baskets, whose codes ascend by time, the repeated ones are kept as events.
        """
        check_policy(repeated)
        pairs = sort_pairs(users, items, len(user_ids), len(item_ids))
        items, indptr = pairs.items, pairs.indptr
        values, times = pairs.arranged(_compact(values), times)
        if pairs.again is not None and repeated == "error":
            raise RepeatedPairError.of(pairs, pairs.again, user_ids, item_ids)
        items = np.ascontiguousarray(items, dtype=np.int32)
        times = None if times is None else np.ascontiguousarray(times, dtype=np.int64)
        rows = cls(user_ids, item_ids, indptr, items, values, times, name, history)
        if baskets is not None and pairs.order is not None:
            baskets = baskets[pairs.order]
        merging = DEFAULT_MERGING if repeated in ("error", "auto") else Merging.of(repeated)
        if pairs.again is None and baskets is None:
            ones = np.ones(len(values), dtype=np.float32)
            return replace(rows, values=ones) if repeated.startswith(("count", "binary")) else rows
        return rows.merged(merging.train, merging, baskets)

    def merged(self, policy: str, merging: Merging, baskets: NDArray[np.int32] | None = None) -> Ratings:
        """Return rows that may repeat pairs, as `rows` makes them, with one rating for each pair.

        ``baskets`` are those of the rows. The rows are kept as events if their order in time is known.
        """

        def block(first: int, last: int) -> Ratings:
            rows = slice(int(self.indptr[first]), int(self.indptr[last]))
            return self.of_consecutive(first, last)._merged(policy, merging, None if baskets is None else baskets[rows])

        return self._in_blocks(block, self.indptr, merging)

    def keep_rows(self, mask: NDArray[np.bool_], *, of_train: bool = True) -> Ratings:
        """Return what the `rows` where the mask is true make, merged by the rule of training or of the other parts."""
        if self.events is None:
            return self.keep(mask)
        merging, ends = self.events.merging, self.events.starts[self.indptr]

        def block(first: int, last: int) -> Ratings:
            part, kept = self.of_consecutive(first, last), mask[int(ends[first]) : int(ends[last])]
            assert part.events is not None
            baskets = None if part.events.baskets is None else part.events.baskets[kept]
            return part.rows().keep(kept)._merged(merging.train if of_train else merging.test, merging, baskets)

        return self._in_blocks(block, ends, merging)

    def _in_blocks(self, make: Callable[[int, int], Ratings], ends: NDArray[np.int64], merging: Merging) -> Ratings:
        """Return what is made of blocks of users, whose rows end at ``ends``; a block bounds the memory."""
        columns: dict[str, list[Any]] = {}
        first = 0
        while first < self.n_users or not columns:
            last = int(np.searchsorted(ends, ends[first] + 4 * _BLOCK, side="right")) - 1
            last = min(max(last, first + 1), self.n_users)
            part = make(first, last)
            arrays = {"size": part.user_counts, "items": part.items, "values": part.values, "times": part.times}
            if part.events is not None:
                events = {name: getattr(part.events, name) for name in ("counts", "values", "times", "baskets")}
                arrays |= {f"event {name}": array for name, array in events.items()}
            for name, array in arrays.items():
                if array is not None:
                    columns.setdefault(name, []).append(array)
            first = last
        # One column after the other, so that few of them are in memory twice.
        return self._of_columns({name: np.concatenate(columns.pop(name)) for name in list(columns)}, merging)

    def _of_columns(self, columns: Mapping[str, Any], merging: Merging) -> Ratings:
        """Return ratings over the same vocabularies, given the columns that `merged` makes."""
        indptr, events = np.append(np.int64(0), np.cumsum(columns["size"])), None
        if "event counts" in columns:
            starts = np.append(np.int64(0), np.cumsum(columns["event counts"]))
            baskets = columns.get("event baskets")
            events = Events(starts, columns["event values"], columns["event times"], baskets, merging)
        items, values, times = columns["items"], columns["values"], columns.get("times")
        return replace(self, indptr=indptr, items=items, values=values, times=times, events=events)

    def _merged(self, policy: str, merging: Merging, baskets: NDArray[np.int32] | None) -> Ratings:
        if policy == "to_ratings":
            from cranfield.data.scale import grades_of_counts

            counted = self._merged("sum", merging, baskets)
            return replace(counted, values=grades_of_counts(counted))
        again = np.zeros(len(self), dtype=np.bool_)
        np.equal(self.items[1:], self.items[:-1], out=again[1:])
        again[self.indptr[:-1][self.user_counts > 0]] = False
        starts, values, times = merge(again, self.values, self.times, policy)
        events = None
        if self.times is not None:
            order = in_order(starts, self.values, self.times, baskets)
            of_rows = None if baskets is None else baskets[order]
            begins = np.append(starts, len(self))
            events = Events(begins, self.values[order], self.times[order], of_rows, merging)
        indptr = np.searchsorted(starts, self.indptr).astype(np.int64)
        return replace(
            self, indptr=indptr, items=self.items[starts], values=_compact(values), times=times, events=events
        )

    def rows(self) -> Ratings:
        """Return the events as rows, in which pairs may repeat, for a split to divide; without events the ratings."""
        if self.events is None:
            return self
        events = self.events
        return replace(
            self,
            indptr=events.starts[self.indptr],
            items=np.repeat(self.items, events.counts),
            values=events.values,
            times=events.times,
            events=None,
        )

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        users, items = np.count_nonzero(self.user_counts), np.count_nonzero(self.item_counts)
        return f"Ratings({name}{users:,} users, {items:,} items, {len(self):,} ratings)"

    def _repr_html_(self) -> str:
        first = np.searchsorted(self.indptr, np.arange(min(_SHOWN, len(self))), side="right") - 1
        columns = [self.user_ids.ids(first), self.item_ids.ids(self.items[:_SHOWN]), self.values[:_SHOWN].tolist()]
        header = ["user", "item", "rating"]
        if self.times is not None:
            columns, header = [*columns, self.times[:_SHOWN].tolist()], [*header, "time"]
        more = [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return Table(header, [[f"{cell}" for cell in row] for row in zip(*columns)], repr(self), more).html()

    @property
    def n_users(self) -> int:
        """The size of the user vocabulary."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The size of the item vocabulary."""
        return len(self.item_ids)

    @property
    def users(self) -> NDArray[np.int32]:
        """The user code of each rating (not stored, but computed at each call)."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.user_counts)

    @property
    def user_counts(self) -> NDArray[np.int64]:
        """The number of ratings of each user: |R(u)|."""
        return np.diff(self.indptr)

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """The number of ratings of each item, its popularity: |R(i)|."""
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def grades(self) -> NDArray[np.float64]:
        """The distinct ratings, ascending."""
        return np.unique(self.values).astype(np.float64)

    @property
    def pairs(self) -> NDArray[np.int64]:
        """A number for each (user, item) pair, ascending: user code · number of items + item code."""
        return self.users.astype(np.int64) * self.n_items + self.items

    def places(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the rating of each pair of codes; -1 if there is none, or if a code is unknown."""
        # The first number is that of no pair, so that there is one to look at even without ratings.
        known = np.append(-2, self.pairs)
        wanted = np.where((users < 0) | (items < 0), -1, users.astype(np.int64) * self.n_items + items)
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[places] == wanted, places - 1, -1)

    @property
    def nbytes(self) -> int:
        """The memory of the ratings in bytes, without the vocabularies."""
        arrays = (self.indptr, self.items, self.values, self.times, self.events)
        return sum(array.nbytes for array in arrays if array is not None)

    def profile(self, user: int) -> slice:
        """Return the slice of a user's ratings."""
        return slice(int(self.indptr[user]), int(self.indptr[user + 1]))

    def frame(self) -> pl.DataFrame:
        """Return the ratings with their ids: columns user, item, rating and, if known, time."""
        columns = {
            "user": self.user_ids.ids(self.users),
            "item": self.item_ids.ids(self.items),
            "rating": pl.Series(self.values),
        }
        if self.times is not None:
            columns["time"] = pl.Series(self.times)
        return pl.DataFrame(columns)

    def matrix(self, values: NDArray[Any] | None = None) -> Any:
        """Return a users × items SciPy CSR array of the ratings, or of other ``values`` in the same cells."""
        from scipy import sparse

        data = self.values if values is None else values
        return sparse.csr_array(
            (data, self.items, self.indptr), shape=(self.n_users, self.n_items), dtype=np.asarray(data).dtype
        )

    def keep(self, mask: NDArray[np.bool_], step: Step | None = None) -> Ratings:
        """Return the ratings where ``mask`` is true, over the same vocabularies."""
        if mask.shape != (len(self),):
            raise SettingError(f"the mask has {mask.shape} entries for {len(self):,} ratings; give one for each")
        indptr, size, end = np.empty_like(self.indptr), int(np.count_nonzero(mask)), 0
        arrays = {"items": self.items, "values": self.values, **({} if self.times is None else {"times": self.times})}
        kept: dict[str, Any] = {name: np.empty(size, dtype=array.dtype) for name, array in arrays.items()}
        # Positions are faster than a mask; blocks keep them from taking much memory.
        for start in range(0, len(self) + 1, _BLOCK):
            places = np.flatnonzero(mask[start : start + _BLOCK])
            first, last = np.searchsorted(self.indptr, (start, start + _BLOCK))
            indptr[first:last] = end + np.searchsorted(places, self.indptr[first:last] - start)
            for name, array in arrays.items():
                kept[name][end : end + len(places)] = array[start : start + _BLOCK][places]
            end += len(places)
        events = None if self.events is None else self.events.keep(mask)
        history = self.history if step is None else (*self.history, step)
        return replace(self, indptr=indptr, **kept, history=history, events=events)

    def of_consecutive(self, first: int, last: int) -> Ratings:
        """Return the ratings of the users with codes from ``first`` up to ``last``, over a vocabulary of these users.

        Examples
        --------
        >>> ratings = Ratings.of(["ann", "bob", "cid"], ["x", "y", "x"])
        >>> ratings.of_consecutive(1, 3).frame().rows()
        [('bob', 'y', 1.0), ('cid', 'x', 1.0)]
        """
        start, stop = int(self.indptr[first]), int(self.indptr[last])
        return replace(
            self,
            user_ids=Vocabulary(self.user_ids.all.slice(first, last - first)),
            indptr=self.indptr[first : last + 1] - start,
            items=self.items[start:stop],
            values=self.values[start:stop],
            times=None if self.times is None else self.times[start:stop],
            events=None if self.events is None else self.events.between(start, stop),
        )

    def of_users(self, users: NDArray[Any]) -> Ratings:
        """Return the ratings of users, given by their codes, over a vocabulary of these users in this order.

        Examples
        --------
        >>> Ratings.of(["ann", "bob", "cid"], ["x", "y", "x"]).of_users(np.array([0, 2])).frame().rows()
        [('ann', 'x', 1.0), ('cid', 'x', 1.0)]
        """
        counts = self.user_counts[users]
        indptr = np.append(np.int64(0), np.cumsum(counts))
        rows = np.arange(int(indptr[-1])) + np.repeat(self.indptr[users] - indptr[:-1], counts)
        return replace(
            self,
            user_ids=Vocabulary(self.user_ids.ids(users)),
            indptr=indptr,
            items=self.items[rows],
            values=self.values[rows],
            times=None if self.times is None else self.times[rows],
            events=None if self.events is None else self.events.take(rows),
        )

    def compact(self) -> Ratings:
        """Return the same ratings, with users and items without ratings removed from the vocabularies."""
        some_user, some_item = self.user_counts > 0, self.item_counts > 0
        if some_user.all() and some_item.all():
            return self
        new_code = np.cumsum(some_item, dtype=np.int32) - np.int32(1)
        return replace(
            self,
            user_ids=Vocabulary(self.user_ids.all.filter(pl.Series(some_user))),
            item_ids=Vocabulary(self.item_ids.all.filter(pl.Series(some_item))),
            indptr=np.append(np.int64(0), self.indptr[1:][some_user]),
            items=new_code[self.items],
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the ids, ratings and times: equal for equal data, whatever their file or order."""
        digest = hashlib.sha256()
        compact = self.compact()
        for vocabulary in (compact.user_ids, compact.item_ids):
            digest.update("\x1f".join(vocabulary.text.to_list()).encode() + b"\x1e")
        digest.update(compact.indptr.astype("<i8").tobytes())
        digest.update(compact.items.astype("<i4").tobytes())
        for start in range(0, len(compact), _BLOCK):
            digest.update(compact.values[start : start + _BLOCK].astype("<f8").tobytes())
        if compact.times is not None:
            digest.update(compact.times.astype("<i8").tobytes())
        if compact.events is not None:
            compact.events.hashed(digest)
        return digest.hexdigest()[:16]


def check_ratings(data: object) -> None:
    """Refuse data that are not `Ratings`, and say how to convert them."""
    if not isinstance(data, Ratings):
        raise SettingError(f"{type(data).__name__} is not Ratings; make them from a file or a dataframe with cf.read")


def _complete(what: str, ids: Any) -> pl.Series:
    series = as_series(ids)
    if series.null_count():
        raise InputError(f"the {what} is missing", row=int(series.is_null().arg_max() or 0) + 1, remedy="give an id")
    check_exact(series)
    return series


def _finite(what: str, numbers: ArrayLike) -> NDArray[Any]:
    given = np.asarray(numbers)
    if given.dtype == object:
        with suppress(TypeError, ValueError):
            given = given.astype(np.float64)
    if given.dtype.kind not in "biuf":
        raise InputError(f"the {what}s are not numbers ({given.dtype})", remedy="give numbers, or use cf.read")
    finite = np.isfinite(given)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{given[row]} is not a finite {what}", row=row + 1, remedy="give a number")
    return given


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values as float32 if that changes none of them, else as float64."""
    if values.dtype == np.float32:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values) else np.ascontiguousarray(values, dtype=np.float64)


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
    """Return whether each item code is in the head, the most popular items by the ratings before the split.

    ``share`` and ``of`` are those of the filter `drop_head`.

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

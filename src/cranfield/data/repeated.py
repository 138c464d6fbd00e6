"""What to do when a user rates an item more than once."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError, nearest
from cranfield.data._order import SortedPairs
from cranfield.tables import Vocabulary, as_polars

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

    Examples
    --------
    >>> import numpy as np
    >>> starts, values, _ = merge(np.array([False, True, False]), np.array([1.0, 3.0, 5.0]), None, "mean")
    >>> starts.tolist(), values.tolist()
    ([0, 2], [2.0, 5.0])
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
        raise InputError(
            f"the {repeated} of repeated ratings is too large for a number", remedy="merge them with repeated='max'"
        )
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

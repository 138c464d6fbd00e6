"""From rows in any order to ranked lists: grouped by user, best first, ties broken, no item twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError, nearest
from cranfield.rankings.columns import numbers
from cranfield.tables import Fault, Vocabulary

Ties = Literal["trec_eval", "input", "average"]
"""How items of equal score are ordered: by id as in trec_eval, as in the input, or averaged over all orders."""

Gaps = Literal["keep", "close"]
"""What ranks mean that leave places out: places with an unknown item, or only an order."""

LAST_PLACE = 10_000_000
"""The largest rank that is a place; tables of discounts are as long as the longest list."""

Positions = NDArray[np.int64]
Floats = NDArray[np.float64]

# Maximum number of cells sorted at once, so that a block stays in the processor's cache.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ListEntries:
    """Rows of a run as codes: one recommended item per row, in input order."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    scores: NDArray[np.float64] | None = None
    ranks: NDArray[np.float64] | None = None
    predictions: NDArray[np.float64] | None = None

    def take(self, which: NDArray[Any] | None) -> ListEntries:
        """Return the rows at positions or of a mask; None for all rows."""
        if which is None:
            return self
        taken: dict[str, Any] = {name: None if column is None else column[which] for name, column in vars(self).items()}
        return ListEntries(**taken)


@dataclass(frozen=True)
class Lists:
    """One list per user code."""

    indptr: NDArray[np.int64]  # the entries of each list, best first
    entries: ListEntries
    counts: dict[str, int]  # of what was changed
    places: NDArray[np.int32] | None = None  # the ranks of the entries, if some list leaves places out


@dataclass(frozen=True)
class ListOrder:
    """How the rows of a source become ordered lists; ``ties`` and ``gaps`` as for `read_run`."""

    ties: Ties = "trec_eval"
    gaps: Gaps = "keep"
    by: Literal["score", "rank"] | None = None  # if there are both; None: scores, unless none of them is a number
    first_rank: int | None = None  # the rank of the first place, 0 or 1; None: it follows from the ranks

    def __post_init__(self) -> None:
        for name, what, choices in (("ties", "ties", get_args(Ties)), ("gaps", "gaps between ranks", get_args(Gaps))):
            value = getattr(self, name)
            if value not in choices:
                raise SettingError(f"{name}={value!r} is not a rule for {what}{nearest(str(value), choices)}")

    def decided(self, scores: Floats | None, ranks: Floats | None) -> tuple[Floats | None, int | None]:
        """Return the scores if they order the lists; if ranks do, the first place's rank, unless gaps are closed."""
        if ranks is None:
            return scores, None
        if self.by == "score" or (self.by is None and scores is not None and not np.isnan(scores).all()):
            return scores, None
        low, high = ranks.min(initial=1.0), ranks.max(initial=1.0)
        if np.isnan(low):
            raise Fault(int(np.argmax(np.isnan(ranks))), "the rank is missing", "fill it in, or give scores")
        if self.gaps == "close":
            return None, None
        if low < 0 or high > LAST_PLACE or not np.array_equal(ranks, ranks.astype(np.int32)):
            row = int(np.argmax(~((ranks >= 0) & (ranks <= LAST_PLACE) & (ranks == np.floor(ranks)))))
            raise Fault(
                row,
                f"{ranks[row]:.15g} is not a place in a list, a whole number from 0 to {LAST_PLACE:,}",
                "fix it, or take ranks only as an order with gaps='close'",
            )
        return None, int(low != 0) if self.first_rank is None else self.first_rank


def first_rank(column: Any) -> int:
    """Return the rank of the first place, given the ranks of all lists: 0 if any of them is 0, otherwise 1."""
    with suppress(Fault):  # reading the rows reports a rank that is not a number
        return 1 if column is None or (numbers(column) != 0).all() else 0
    return 1


def arrange(
    entries: ListEntries,
    user_ids: Vocabulary,
    item_ids: Vocabulary,
    ties: Ties = "trec_eval",
    first_rank: int | None = None,
) -> Lists:
    """Order the entries into one list per user.

    A list is ordered by descending score; without scores by ascending rank; without either it stays in input order.
    Entries of equal score (or rank) are ordered by item id as text, descending, as trec_eval orders them, or with
    ``ties="input"`` stay in input order. Entries whose score is NaN are dropped, as pairs that the system could not
    score. If an item occurs twice in a list, only the best ranked is kept.

    If ranks order the lists and ``first_rank`` is given, the rank of the first place (0 or 1), a rank is a place: an
    entry has the place of its rank, or the next free one if other entries have it.

    The counts are: dropped ``nan_scores`` and ``duplicate_items``, ``tied_items`` (entries with the same score as
    another of the list), ``rank_disagreements`` (lists whose scores and ranks give different orders), ``empty_lists``,
    and, if ranks are places, ``missing_ranks`` (places without an entry) and ``lists_with_gaps``.
    """
    counts: dict[str, int] = {"nan_scores": 0, "duplicate_items": 0, "tied_items": 0, "rank_disagreements": 0}
    if entries.scores is not None:
        unknown = np.isnan(entries.scores)
        counts["nan_scores"] = int(np.count_nonzero(unknown))
        if counts["nan_scores"]:
            entries = entries.take(~unknown)
    entries = entries.take(_by_user(entries.users))
    indptr = _pointers(entries.users, len(user_ids))
    value = _worth(entries)
    if value is not None:
        order = _best_first(value, indptr, entries.items, item_ids, ties)
        entries = entries.take(order)
    if _has_repeated(entries.items, indptr):
        again = _repeated(entries.users, entries.items, len(item_ids))
        counts["duplicate_items"] = int(np.count_nonzero(again))
        entries = entries.take(~again)
        indptr = _pointers(entries.users, len(user_ids))
    counts.update(_remarks(entries, indptr))
    places = None
    if entries.scores is None and entries.ranks is not None and first_rank is not None:
        places = _places(entries.ranks.astype(np.int32) - np.int32(first_rank - 1), indptr)
    if places is not None:
        gaps = lengths_of(places, indptr) - np.diff(indptr)
        counts |= {"missing_ranks": int(gaps.sum()), "lists_with_gaps": int(np.count_nonzero(gaps))}
    if ties == "average" and entries.scores is None:
        # Averages over tied groups find the groups by their scores.
        entries = replace(entries, scores=_worth(entries))
    return Lists(indptr, entries, counts, places)


def ranks_of_whole(indptr: Positions) -> NDArray[np.int32]:
    """Return the rank of each entry, 1, 2, 3, ..., in lists that leave no place out."""
    ranks = np.ones(indptr[-1], dtype=np.int32)
    sizes = np.diff(indptr)
    starts, sizes = indptr[:-1][sizes > 0], sizes[sizes > 0]
    ranks[starts[1:]] -= sizes[:-1].astype(np.int32)
    return np.cumsum(ranks, out=ranks)


def lengths_of(places: NDArray[np.int32], indptr: Positions) -> NDArray[np.int32]:
    """Return the last place of each list, given the places of its entries; 0 for an empty list."""
    # An empty list ends where the list before it ends; before the first one there is nothing.
    return np.where(np.diff(indptr) > 0, np.append(places, 0)[indptr[1:] - 1], 0).astype(np.int32)


def _places(ranks: NDArray[np.int32], indptr: Positions) -> NDArray[np.int32] | None:
    """Return the place of each entry of lists with ascending ranks; None if no list leaves a place out."""
    places = ranks_of_whole(indptr)
    ahead = np.maximum(ranks - places, 0)
    if not ahead.any():
        return None
    # An entry is as far ahead as any above it. What is added keeps lists apart.
    apart = np.repeat(np.arange(len(indptr) - 1) * (LAST_PLACE + 1), np.diff(indptr))
    places += (np.maximum.accumulate(ahead + apart) - apart).astype(np.int32)
    return places


def _worth(entries: ListEntries) -> NDArray[np.float64] | None:
    """Return the values that lists are ordered by; larger is better."""
    if entries.scores is not None:
        return entries.scores
    return None if entries.ranks is None else -entries.ranks


def _pointers(users: NDArray[np.int32], n_users: int) -> Positions:
    """Return the start of each user's list among ascending users."""
    return np.searchsorted(users, np.arange(n_users + 1, dtype=np.int32))


def _by_user(users: NDArray[np.int32]) -> Positions | None:
    """Return the stable order by user, or None if users already ascend; moves whole lists where possible."""
    if len(users) < 2 or bool((users[1:] >= users[:-1]).all()):
        return None
    starts = np.append(0, np.flatnonzero(users[1:] != users[:-1]) + 1)
    heads = users[starts]
    if len(np.unique(heads)) < len(heads):
        return stable_argsort(users)
    moved = np.argsort(heads)
    sizes = np.diff(starts, append=len(users))[moved]
    ends = np.cumsum(sizes)
    return np.arange(len(users)) + np.repeat(starts[moved] - (ends - sizes), sizes)


def stable_argsort(codes: NDArray[Any]) -> Positions:
    """Return the stable order of non-negative codes: (code, position) packed into one integer sorts fastest."""
    bits = max(len(codes) - 1, 0).bit_length()
    packed = (codes.astype(np.int64) << bits) | np.arange(len(codes))
    packed.sort()
    return packed & ((1 << bits) - 1)


def _follows(test: Callable[[Any, Any], NDArray[np.bool_]], value: NDArray[Any], indptr: Positions) -> Positions:
    """Return the positions where ``test`` holds for a value and the one before it in the same list."""
    holds = test(value[1:], value[:-1])
    first = indptr[1:-1]
    holds[first[(first > 0) & (first < len(value))] - 1] = False
    return np.flatnonzero(holds) + 1


def _best_first(
    value: NDArray[np.float64], indptr: Positions, items: NDArray[np.int32], item_ids: Vocabulary, ties: Ties
) -> Positions | None:
    """Return the order of each list by descending value, ties broken; None if the lists are already in this order."""
    misplaced = _follows(np.greater, value, indptr)
    order = None
    if len(misplaced):
        lists = np.unique(np.searchsorted(indptr, misplaced, side="right") - 1)
        order = _sort_lists(value, indptr, lists)
        value = value[order]
    equal = _follows(np.equal, value, indptr)
    if len(equal) == 0 or (ties == "input" and order is None):
        return order
    tied, group = _tied_groups(equal)
    where = tied if order is None else order[tied]
    tie_break = where if ties == "input" else len(item_ids) - 1 - item_ids.string_order[items[where]].astype(np.int64)
    key = (group << 32) | tie_break
    if bool((key[1:] > key[:-1]).all()):
        return order
    order = np.arange(len(value)) if order is None else order
    sorted_keys = np.argsort(key)
    if not bool((np.diff(key[sorted_keys]) > 0).all()):
        # If an item occurs twice with the same score, the first in the input comes first.
        sorted_keys = np.lexsort((where, key))
    order[tied] = where[sorted_keys]
    return order


def _tied_groups(equal: Positions) -> tuple[Positions, Positions]:
    """Return every position in a tied group, and its group, given the positions that equal the one before."""
    opens = np.append(True, equal[1:] != equal[:-1] + 1)
    tied = np.insert(equal, np.flatnonzero(opens), equal[opens] - 1)
    begins = np.zeros(len(tied), dtype=np.int64)
    begins[np.flatnonzero(opens) + np.arange(np.count_nonzero(opens))] = 1
    return tied, np.cumsum(begins)


def _blocks(indptr: Positions, lists: Positions) -> Iterator[tuple[Positions, NDArray[np.bool_]]]:
    """Yield lists of similar length as matrices: the position of each cell, and whether it is inside its list."""
    sizes = indptr[lists + 1] - indptr[lists]
    magnitude = np.frexp(sizes)[1]
    for exponent in np.unique(magnitude):
        alike, width = lists[magnitude == exponent], int(sizes[magnitude == exponent].max())
        for block in np.array_split(alike, -(-len(alike) * width // _BLOCK)) if width else ():
            column = np.arange(width)
            yield indptr[block, None] + column, column < (indptr[block + 1] - indptr[block])[:, None]


def _sort_lists(value: NDArray[np.float64], indptr: Positions, lists: Positions) -> Positions:
    """Return an order that sorts the given lists by descending value; NaN, the padding of a matrix, sorts last."""
    order = np.arange(len(value))
    for places, inside in _blocks(indptr, lists):
        cells = np.where(inside, -value[np.minimum(places, len(value) - 1)], np.nan)
        order[places[inside]] = (places[:, :1] + np.argsort(cells, axis=1))[inside]
    return order


def _has_repeated(items: NDArray[np.int32], indptr: Positions) -> bool:
    """Whether a list contains an item twice; sorting many short rows is much faster than sorting one long column."""
    sizes = np.diff(indptr)
    if len(sizes) and sizes[0] and (sizes == sizes[0]).all():
        return _has_equal(items.reshape(-1, int(sizes[0])))
    # The padding is negative and different in each cell of a row.
    return any(
        _has_equal(np.where(inside, items[np.minimum(places, len(items) - 1)], -1 - np.arange(places.shape[1])))
        for places, inside in _blocks(indptr, np.flatnonzero(sizes > 1))
    )


def _has_equal(rows: NDArray[Any]) -> bool:
    """Whether a row has two equal cells."""
    step = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        cells = np.sort(rows[start : start + step], axis=1)
        if (cells[:, 1:] == cells[:, :-1]).any():
            return True
    return False


def _repeated(users: NDArray[np.int32], items: NDArray[np.int32], n_items: int) -> NDArray[np.bool_]:
    """Return a mask of the entries whose item occurs earlier in the same list."""
    pair = users.astype(np.int64) * n_items + items
    order = np.argsort(pair, kind="stable")
    again = np.zeros(len(pair), dtype=np.bool_)
    again[order[1:]] = pair[order[1:]] == pair[order[:-1]]
    return again


def _remarks(entries: ListEntries, indptr: Positions) -> dict[str, int]:
    """Count the ties, the empty lists, and the lists whose ranks contradict their scores."""
    remarks = {"empty_lists": int(np.count_nonzero(indptr[1:] == indptr[:-1]))}
    value = _worth(entries)
    if value is None or len(value) == 0:
        return remarks
    equal = _follows(np.equal, value, indptr)
    if len(equal):
        remarks["tied_items"] = len(_tied_groups(equal)[0])
    if entries.scores is not None and entries.ranks is not None and len(_follows(np.less, entries.ranks, indptr)):
        remarks["rank_disagreements"] = _disagreements(entries, entries.ranks, equal)
    return remarks


def _disagreements(entries: ListEntries, ranks: NDArray[np.float64], equal: Positions) -> int:
    """Count the lists in which an item has a worse rank than one with a lower score; ties may have any ranks."""
    begins = np.ones(len(ranks), dtype=np.bool_)
    begins[equal] = False
    groups = np.flatnonzero(begins)
    worst, best = np.maximum.reduceat(ranks, groups), np.minimum.reduceat(ranks, groups)
    users = entries.users[groups]
    contrary = (users[1:] == users[:-1]) & (worst[:-1] > best[1:])
    return len(np.unique(users[1:][contrary]))

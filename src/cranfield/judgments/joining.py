"""The join of a run with a test set: which entries of its lists are judged, and by which judgment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.judgments.context import RunFacts
from cranfield.judgments.judgments import Judgments
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN


@dataclass(frozen=True, eq=False)
class Join:
    """The join of a run with a test set, without references to either."""

    fields: Mapping[str, Any]  # the fields of `Judged` that follow from it
    # For one-relevant lists, the position of each list's test rating among all judgments, ascending; otherwise None.
    chosen: NDArray[np.int64] | None = None


def join(run: Run, judgments: Judgments) -> Join:
    """Find the entries of a run that are judged.

    Lists of users without a test rating are left out; test users without a list have one of length 0. Items that the
    test set does not know are counted in the lists of users who have test ratings, and in no others.
    """
    if run.one_relevant:
        return _join_one_relevant(run, judgments)
    users, list_of_user = _users_and_lists(run, judgments)
    numbers = list_of_user[users]
    rows = _in_order(run, numbers)
    lists = _Lists.of(run, numbers, rows)
    item_codes = judgments.item_ids.translation(run.item_ids)

    lengths = np.zeros(judgments.n_lists, dtype=np.int32)
    lengths[lists.number] = run.list_lengths if rows is None else run.list_lengths[rows]
    offsets = np.zeros(judgments.n_lists, dtype=np.int64)
    offsets[lists.number] = lists.starts
    hits, hit_rows, pointers = _hits(lists, item_codes, judgments)
    places = hits + (lists.starts - lists.indptr[:-1])[hit_rows]
    tied_from, tied_to = tied_ranks(run, places)
    groups = None
    if run.groups is not None:
        groups = np.full(judgments.n_lists, UNKNOWN, dtype=np.int16)
        groups[lists.number] = run.groups if rows is None else run.groups[rows]
    fields = {
        "lists": lists.number[hit_rows],
        "ranks": (hits - lists.indptr[hit_rows] + 1).astype(np.int32) if run.ranks is None else run.ranks[places],
        "pointers": pointers,
        "lengths": lengths,
        "tied_from": tied_from,
        "tied_to": tied_to,
        "places": places,
        "offsets": offsets,
        "pooled_above": _pooled_above(lists, item_codes, judgments, hits, hit_rows),
        "groups": groups,
        "counts": _strangers(users, list_of_user, item_codes, lists.items),
        "ranked": RunFacts.of(run, judgments.item_ids),
    }
    return Join(fields)


def count_hits(run: Run, judgments: Judgments) -> int:
    """Return the number of entries of a run that are judged; `join` returns which."""
    users, list_of_user = _users_and_lists(run, judgments)
    numbers = list_of_user[users]
    lists = _Lists.of(run, numbers, _in_order(run, numbers))
    return len(_hits(lists, judgments.item_ids.translation(run.item_ids), judgments)[0])


def _users_and_lists(run: Run, judgments: Judgments) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the user of each list of a run as a code of the judgments, and the judgments' list of each such code."""
    user_codes = judgments.user_ids.translation(run.user_ids)
    list_of_user = np.full(len(judgments.user_ids) + 1, UNKNOWN, dtype=np.int32)
    list_of_user[judgments.users] = np.arange(judgments.n_lists, dtype=np.int32)
    return run.users if user_codes is None else user_codes[run.users], list_of_user


@dataclass(frozen=True, eq=False)
class _Lists:
    """The lists of a run that are measured, in the order of the judgments.

    ``number`` is the number of the list in the judgments, ``starts`` its start in the run, and ``indptr`` its start in
    ``items``.
    """

    number: NDArray[np.int32]
    starts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]

    @classmethod
    def of(cls, run: Run, number: NDArray[np.int32], rows: NDArray[np.int64] | None) -> _Lists:
        if rows is None:
            return cls(number, run.indptr[:-1], run.indptr, run.items)
        sizes = np.diff(run.indptr)[rows]
        indptr = np.append(0, np.cumsum(sizes))
        entries = np.repeat(run.indptr[:-1][rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return cls(number[rows], run.indptr[:-1][rows], indptr, run.items[entries])


def _in_order(run: Run, number: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the positions of the measured lists in the order of the judgments; None if all lists are in that order."""
    measured = number != UNKNOWN
    if measured.all() and (number[1:] > number[:-1]).all():
        return None
    order = np.flatnonzero(measured)
    order = order[np.argsort(number[order], kind="stable")]
    if (np.diff(number[order]) == 0).any():
        twice = order[np.flatnonzero(np.diff(number[order]) == 0)[:1]]
        raise InputError(
            f"the run {run.name} has more than one list for user {run.user_ids.ids(run.users[twice])[0]}",
            remedy="give one list per user",
        )
    return order


def _hits(
    lists: _Lists, item_codes: NDArray[np.int32] | None, judgments: Judgments
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the judged entries, the measured list of each, and its judgment.

    Works in blocks of lists: a table of block × items holds the position of each judgment and is read for every entry.
    It is cleared through the same judgments, so the cost does not grow with the catalogue.
    """
    width, block, number = judgments.width, judgments.block, lists.number
    table = np.full(block * width, UNKNOWN, dtype=np.int32)
    first_of_block = np.arange(0, judgments.n_lists + block, block)
    judgment_bounds = judgments.indptr[np.minimum(first_of_block, judgments.n_lists)]
    row_bounds = np.searchsorted(number, first_of_block)
    entry_bounds = lists.indptr[row_bounds]
    column = None if item_codes is None else np.where(item_codes == UNKNOWN, width - 1, item_codes).astype(np.intp)
    sizes = np.diff(lists.indptr)
    even = int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else 0
    found_places, found_rows, found_pointers = [], [], []
    for b, first in enumerate(first_of_block[:-1]):
        start, stop = judgment_bounds[b], judgment_bounds[b + 1]
        entries = slice(entry_bounds[b], entry_bounds[b + 1])
        if entries.start == entries.stop:
            continue
        rows = slice(row_bounds[b], row_bounds[b + 1])
        cells = judgments.cells[start:stop]
        table[cells] = np.arange(stop - start, dtype=np.int32)
        base = (number[rows] - first).astype(np.intp) * width
        items = lists.items[entries] if column is None else column[lists.items[entries].astype(np.intp)]
        # If all lists are equally long, the row of each entry need not be kept.
        row = np.zeros(0, dtype=np.int64) if even else np.repeat(np.arange(len(base)), sizes[rows])
        looked_up = (base[:, None] + items.reshape(-1, even)).ravel() if even else base[row] + items
        pointers = table.take(looked_up, mode="clip")
        hits = np.flatnonzero(pointers != UNKNOWN)
        found_places.append(hits + entries.start)
        found_rows.append((hits // even if even else row[hits]) + rows.start)
        found_pointers.append(pointers[hits].astype(np.int64) + start)
        table[cells] = UNKNOWN
    if not found_places:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    return np.concatenate(found_places), np.concatenate(found_rows), np.concatenate(found_pointers)


def _pooled_above(
    lists: _Lists,
    item_codes: NDArray[np.int32] | None,
    judgments: Judgments,
    hits: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """Return the number of pooled items without a judgment above each hit; None if nothing is pooled."""
    if judgments.pool is None:
        return None
    users = np.repeat(judgments.users[lists.number].astype(np.int64), np.diff(lists.indptr))
    items = lists.items if item_codes is None else item_codes[lists.items]
    pooled = np.isin(users * len(judgments.item_ids) + items, judgments.pool) & (items != UNKNOWN)
    before = np.append(0, np.cumsum(pooled))
    return before[hits] - before[lists.indptr[rows]]


def tied_ranks(run: Run, places: NDArray[np.int64]) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
    """Return the first and last rank of the tied group of each position; None unless ties are averaged."""
    if run.ties != "average" or run.scores is None:
        return None, None
    starts, ranks = run.tied_starts, run.entry_ranks
    group = np.searchsorted(starts, places, side="right") - 1
    return ranks[starts[group]], ranks[starts[group + 1] - 1]


def _strangers(
    users: NDArray[np.int32],
    list_of_user: NDArray[np.int32],
    item_codes: NDArray[np.int32] | None,
    items: NDArray[np.int32],
) -> Mapping[str, int]:
    """Count the users that are not in the test set or not in the run, and the unknown items of the measured lists."""
    unknown_items = 0
    if item_codes is not None and (item_codes == UNKNOWN).any():
        unknown_items = int((item_codes[items] == UNKNOWN).sum())
    return {
        "users without test ratings": int((list_of_user[users] == UNKNOWN).sum()),
        "test users without a list": int((list_of_user[:-1] != UNKNOWN).sum() - (list_of_user[users] != UNKNOWN).sum()),
        "recommended items unknown to the test set": unknown_items,
    }


def one_relevant(judgments: Judgments, chosen: NDArray[np.int64]) -> Judgments:
    """Return the judgments of one-relevant lists: for each list only the test rating that it was made for.

    Bellogín et al. (2017), equation (1): a metric is averaged over the lists T_u^r, not over users.
    """
    return judgments.changed(
        users=judgments.users[judgments.lists[chosen]],
        indptr=np.arange(len(chosen) + 1, dtype=np.int64),
        items=judgments.items[chosen],
        grades=judgments.grades[chosen],
    )


def _judgments_of_lists(run: Run, judgments: Judgments) -> NDArray[np.int64]:
    """Return the position of each one-relevant list's item among the judgments; `UNKNOWN` if it is not there."""
    user_codes = judgments.user_ids.translation(run.user_ids)
    item_codes = judgments.item_ids.translation(run.item_ids)
    users = run.users if user_codes is None else user_codes[run.users]
    items = run.items if item_codes is None else item_codes[run.items]
    keys = users.astype(np.int64) * len(judgments.item_ids) + items
    place = np.searchsorted(judgments.keys, keys)
    known = (users != UNKNOWN) & (items != UNKNOWN) & (np.append(judgments.keys, UNKNOWN)[place] == keys)
    return np.where(known, place, UNKNOWN)


def _join_one_relevant(run: Run, judgments: Judgments) -> Join:
    """Find the test rating of each one-relevant list; a list whose item the system could not rank has no hit."""
    test_ratings = _judgments_of_lists(run, judgments)
    strange = int(np.count_nonzero(test_ratings == UNKNOWN))
    if strange:
        raise InputError(
            f"the run {run.name} holds {strange:,} one-relevant lists whose item is not in the test set",
            remedy="measure with the test set that the lists were made for",
        )
    order = np.argsort(test_ratings, kind="stable")
    chosen = test_ratings[order]
    if (np.diff(chosen) == 0).any():
        raise InputError(f"the run {run.name} has several lists for one user and item", remedy="give each list once")
    assert run.ranks is not None  # every one-relevant run has them
    ranks = run.ranks[order]
    ranked = np.flatnonzero(ranks > 0)  # rank 0: the system could not rank the item
    fields = {
        "lists": ranked.astype(np.int32),
        "ranks": ranks[ranked],
        "pointers": ranked,
        "lengths": run.list_lengths[order],
        "places": order[ranked],
        "groups": None if run.groups is None else run.groups[order],
        "counts": {"lists whose relevant item was not ranked": len(run) - len(ranked)},
        "ranked": RunFacts.of(run, judgments.item_ids),
    }
    return Join(fields, chosen)

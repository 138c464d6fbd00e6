"""Meeting a run with a test set: the join that makes `Judged` lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.data import UNKNOWN, Vocabulary
from cranfield.measures.context import Context
from cranfield.measures.judged import Judged
from cranfield.measures.judgments import Judgments
from cranfield.rankings.run import Run


def judge(run: Run, judgments: Judgments, context: Context | None = None) -> tuple[Judged, Mapping[str, int]]:
    """Meet the lists of a run with the judgments of a test set.

    Returns the judged lists, and how many users and items of the run the test set does not know. Lists of users
    without a test rating are not measured; test users without a list have one of length 0.
    """
    context = context or Context()
    if run.one_relevant:
        return _judge_one_relevant(run, judgments, context)
    user_codes = _translation(run.user_ids, judgments.user_ids)
    list_of_user = np.full(len(judgments.user_ids) + 1, UNKNOWN, dtype=np.int32)
    list_of_user[judgments.users] = np.arange(judgments.n_lists, dtype=np.int32)
    users = run.users if user_codes is None else user_codes[run.users]
    number = list_of_user[users]
    run, number = _in_order(run, number)
    item_codes = _translation(run.item_ids, judgments.item_ids)

    sizes = np.diff(run.indptr)
    lengths = np.zeros(judgments.n_lists, dtype=np.int32)
    lengths[number] = sizes
    offsets = np.zeros(judgments.n_lists, dtype=np.int64)
    offsets[number] = run.indptr[:-1]
    places, rows, pointers = _hits(run, number, item_codes, judgments)
    tied_from, tied_to = tied_ranks(run, places)
    judged = Judged(
        judgments=judgments,
        lists=number[rows],
        ranks=(places - run.indptr[rows] + 1).astype(np.int32),
        pointers=pointers,
        lengths=lengths,
        tied_from=tied_from,
        tied_to=tied_to,
        run=run,
        places=places,
        offsets=offsets,
        pooled_above=_pooled_above(run, number, item_codes, judgments, places, rows),
        context=context,
    )
    return judged, _strangers(users, list_of_user, item_codes, run)


def _translation(own: Vocabulary, theirs: Vocabulary) -> NDArray[np.int32] | None:
    """Return the test set's code for each code of the run, or None if they are the same."""
    return None if own == theirs else theirs.codes(own.all)


def _in_order(run: Run, number: NDArray[np.int32]) -> tuple[Run, NDArray[np.int32]]:
    """Return the measured lists in the order of the judgments."""
    measured = number != UNKNOWN
    if measured.all() and (number[1:] > number[:-1]).all():
        return run, number
    order = np.flatnonzero(measured)
    order = order[np.argsort(number[order], kind="stable")]
    if (np.diff(number[order]) == 0).any():
        twice = order[np.flatnonzero(np.diff(number[order]) == 0)[:1]]
        raise InputError(
            f"the run {run.name} has more than one list for user {run.user_ids.ids(run.users[twice])[0]}",
            remedy="give one list a user",
        )
    sizes = np.diff(run.indptr)[order]
    indptr = np.append(0, np.cumsum(sizes))
    entries = np.repeat(run.indptr[:-1][order] - indptr[:-1], sizes) + np.arange(indptr[-1])

    def taken(values: Any) -> Any:
        return None if values is None else values[entries]

    ordered = replace(
        run,
        users=run.users[order],
        indptr=indptr,
        items=run.items[entries],
        scores=taken(run.scores),
        predictions=taken(run.predictions),
    )
    return ordered, number[order]


def _hits(
    run: Run, number: NDArray[np.int32], item_codes: NDArray[np.int32] | None, judgments: Judgments
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the entries of the run that are judged, the list of the run that holds each, and its judgment.

    Works by blocks of lists: a table of block × items holds the place of each judgment, is asked for every entry, and
    is emptied again by the same judgments, so its cost does not grow with the catalogue.
    """
    width, block = judgments.width, judgments.block
    table = np.full(block * width, UNKNOWN, dtype=np.int32)
    first_of_block = np.arange(0, judgments.n_lists + block, block)
    judgment_bounds = judgments.indptr[np.minimum(first_of_block, judgments.n_lists)]
    row_bounds = np.searchsorted(number, first_of_block)
    entry_bounds = run.indptr[row_bounds]
    column = None if item_codes is None else np.where(item_codes == UNKNOWN, width - 1, item_codes).astype(np.intp)
    sizes = np.diff(run.indptr)
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
        items = run.items[entries] if column is None else column[run.items[entries].astype(np.intp)]
        found, row = _asked(table, base, items, sizes[rows], even)
        hits = np.flatnonzero(found != UNKNOWN)
        found_places.append(hits + entries.start)
        found_rows.append((row[hits] if row is not None else hits // even) + rows.start)
        found_pointers.append(found[hits].astype(np.int64) + start)
        table[cells] = UNKNOWN
    if not found_places:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    return np.concatenate(found_places), np.concatenate(found_rows), np.concatenate(found_pointers)


def _asked(
    table: NDArray[np.int32],
    base: NDArray[np.intp],
    items: NDArray[Any],
    sizes: NDArray[np.int64],
    even: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
    """Ask the table for every entry of a block; also the row of each entry, unless all lists are ``even`` long."""
    if even:
        return table.take((base[:, None] + items.reshape(-1, even)).ravel(), mode="clip"), None
    row = np.repeat(np.arange(len(base)), sizes)
    return table.take(base[row] + items, mode="clip"), row


def _pooled_above(
    run: Run,
    number: NDArray[np.int32],
    item_codes: NDArray[np.int32] | None,
    judgments: Judgments,
    places: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """Return how many pooled items without a judgment stand above each hit, None if nothing is pooled."""
    if judgments.pool is None:
        return None
    users = np.repeat(judgments.users[number].astype(np.int64), np.diff(run.indptr))
    items = run.items if item_codes is None else item_codes[run.items]
    pooled = np.isin(users * len(judgments.item_ids) + items, judgments.pool) & (items != UNKNOWN)
    before = np.append(0, np.cumsum(pooled))
    return before[places] - before[run.indptr[rows]]


def tied_ranks(run: Run, places: NDArray[np.int64]) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
    """Return first and last rank of the group of equal scores around each place, None unless ties are averaged."""
    if run.ties != "average" or run.scores is None:
        return None, None
    new = np.ones(len(run.scores) + 1, dtype=bool)
    new[1:-1] = run.scores[1:] != run.scores[:-1]
    new[run.indptr] = True
    starts = np.flatnonzero(new)
    rows = np.searchsorted(run.indptr, places, side="right") - 1
    group = np.searchsorted(starts, places, side="right") - 1
    first, last = starts[group] - run.indptr[rows] + 1, starts[group + 1] - run.indptr[rows]
    return first.astype(np.int32), last.astype(np.int32)


def _strangers(
    users: NDArray[np.int32],
    list_of_user: NDArray[np.int32],
    item_codes: NDArray[np.int32] | None,
    run: Run,
) -> Mapping[str, int]:
    unknown_items = 0
    if item_codes is not None and (item_codes == UNKNOWN).any():
        unknown_items = int((item_codes[run.items] == UNKNOWN).sum())
    return {
        "users without test ratings": int((list_of_user[users] == UNKNOWN).sum()),
        "test users without a list": int((list_of_user[:-1] != UNKNOWN).sum() - (list_of_user[users] != UNKNOWN).sum()),
        "recommended items unknown to the test set": unknown_items,
    }


def one_relevant_judgments(run: Run, judgments: Judgments) -> Judgments:
    """Return the judgments of one-relevant lists: for each list only the test rating it was made for.

    Bellogín et al. (2017), equation (1): a metric is averaged over the lists T_u^r, not over users.
    """
    found = _judgments_of_lists(run, judgments)
    strange = int(np.count_nonzero(found == UNKNOWN))
    if strange:
        raise InputError(
            f"the run {run.name} holds {strange:,} one-relevant lists whose item is not in the test set",
            remedy="measure with the test set that the lists were made for",
        )
    place = np.unique(found)
    if len(place) < len(found):
        raise InputError(f"the run {run.name} has several lists for one user and item", remedy="give each list once")
    return replace(
        judgments,
        users=judgments.users[judgments.lists[place]],
        indptr=np.arange(len(place) + 1, dtype=np.int64),
        items=judgments.items[place],
        grades=judgments.grades[place],
        _sorted_gains={},
    )


def _judgments_of_lists(run: Run, judgments: Judgments) -> NDArray[np.int64]:
    """Return the place of each one-relevant list's item among the judgments, `UNKNOWN` for one that is not there."""
    user_codes = _translation(run.user_ids, judgments.user_ids)
    item_codes = _translation(run.item_ids, judgments.item_ids)
    users = run.users if user_codes is None else user_codes[run.users]
    items = run.items if item_codes is None else item_codes[run.items]
    keys = users.astype(np.int64) * len(judgments.item_ids) + items
    place = np.searchsorted(judgments.keys, keys)
    known = (users != UNKNOWN) & (items != UNKNOWN) & (np.append(judgments.keys, UNKNOWN)[place] == keys)
    return np.where(known, place, UNKNOWN)


def _judge_one_relevant(run: Run, judgments: Judgments, context: Context) -> tuple[Judged, Mapping[str, int]]:
    """Meet one-relevant lists with their judgments; a list whose item the system could not rank (rank 0) has no hit."""
    found = _judgments_of_lists(run, judgments)
    order = np.argsort(found)
    if not np.array_equal(found[order], np.arange(judgments.n_lists)):
        raise InputError(
            f"the run {run.name} has other lists than the first one-relevant run",
            remedy="make all runs with the same targets and seed",
        )
    assert run.ranks is not None  # every one-relevant run has them
    ranks = run.ranks[order]
    ranked = np.flatnonzero(ranks > 0)
    judged = Judged(
        judgments=judgments,
        lists=ranked.astype(np.int32),
        ranks=ranks[ranked],
        pointers=ranked,
        lengths=run.list_lengths[order],
        run=run,
        places=order[ranked],
        context=context,
    )
    return judged, {"lists whose relevant item was not ranked": len(run) - len(ranked)}

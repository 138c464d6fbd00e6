"""From a block of scores to ranked lists: gaps filled, the n best of each row, ties broken as in trec_eval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.rankings.targets import Targets
from cranfield.recommenders import Model, Recommender, as_array, as_recommender, checked_scores, largest
from cranfield.tables import Vocabulary


def fill_system(fill: Any, seed: int) -> Recommender | None:
    """Return the unfitted system that orders the gaps; None if gaps are left out (None or ``"none"``)."""
    if fill is None or (isinstance(fill, str) and fill == "none"):
        return None
    return as_recommender(fill, seed)


def filled(scores: NDArray[Any], fill: Recommender, users: NDArray[np.int32]) -> NDArray[Any]:
    """Return the scores with every NaN replaced, so that filled items come after all computed ones.

    Filled items are ordered by the scores of ``fill``, shifted below the lowest computed score of the row: s' = low − d
    (1 + (max f − f) / (max f − min f)) with d = max(1, |low|). If ``fill`` has no score either, NaN stays.
    """
    gaps = np.isnan(scores)
    if not gaps.any():
        return scores
    ordering = fill.fill_scores(users) if isinstance(fill, Model) else fill.score(users)
    second = checked_scores("the fill", ordering, (len(users), scores.shape[1]))
    scores, second = (block.astype(np.float64, copy=False) for block in (scores, second))
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(scores), scores, np.inf).min(axis=1, initial=np.inf)
        low = np.where(np.isinf(low), 0.0, low)[:, None]
        best = np.where(np.isnan(second), -np.inf, second).max(axis=1, initial=-np.inf)[:, None]
        worst = np.where(np.isnan(second), np.inf, second).min(axis=1, initial=np.inf)[:, None]
        span = np.where(best > worst, best - worst, 1.0)
        below = low - np.maximum(1.0, np.abs(low)) * (1.0 + (best - second) / span)
    return np.where(gaps, below, scores)


@dataclass(frozen=True, eq=False)
class TieOrder:
    """The order of items of equal score: by id as text, descending, as in trec_eval ("9" before "10")."""

    item_ids: Vocabulary

    @cached_property
    def place(self) -> NDArray[np.int32]:
        """The place of each item; of two tied items, the one with the smaller place comes first."""
        last = np.int32(len(self.item_ids) - 1)
        return np.asarray(last - self.item_ids.string_order)

    @cached_property
    def items(self) -> NDArray[np.int32]:
        """The items in the order of their places."""
        return np.argsort(self.place, kind="stable").astype(np.int32)


TopLists = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
"""The length of each list, and the items and scores of all lists, one after the other."""


def top(scores: NDArray[Any], n: int, ties: TieOrder) -> TopLists:
    """Return the ``n`` best items of each row; those with score NaN are left out, so a list may be shorter."""
    columns, values = largest(np.take(scores, ties.items, axis=1), n)  # take gives C order; indexing would not
    listed = ~np.isnan(values)
    return np.count_nonzero(listed, axis=1), ties.items[columns[listed]], values[listed].astype(np.float64, copy=False)


def own_top(name: str, system: Any, users: NDArray[np.int32], n: int, targets: Targets, ties: TieOrder) -> TopLists:
    """Return the lists that a system makes itself with ``top(users, n, targets)``, in any order, checked and sorted."""
    items, scores = _checked_lists(name, system.top(users, n, targets), len(users), n)
    listed = (items >= 0) & ~np.isnan(scores) & (scores != -np.inf)
    items = np.where(listed, items, -1)
    _refuse(name, "which must not contain it", items, listed & ~targets.contain(users, items), users, targets)
    in_order = np.sort(items, axis=1)
    again = np.zeros(items.shape, dtype=np.bool_)
    again[:, 1:] = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    _refuse(name, "twice", in_order, again, users, targets)
    row, values, codes = np.nonzero(listed)[0], scores[listed].astype(np.float64), items[listed].astype(np.int32)
    order = np.lexsort((ties.place[codes], -values, row))
    return np.count_nonzero(listed, axis=1), codes[order], values[order]


def _checked_lists(name: str, answer: Any, users: int, n: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the items and scores of a system's own lists, or raise an error if they are invalid."""
    try:
        items, scores = (as_array(part) for part in answer)
        kinds = (items.dtype.kind in "iu" or items.size == 0) and scores.dtype.kind in "biuf"
        fits = items.shape == scores.shape and items.ndim == 2 and len(items) == users and items.shape[1] <= n
    except (TypeError, ValueError):
        kinds = fits = False
    if not (kinds and fits):
        raise InputError(
            f"top of {name} did not return item codes and scores, two arrays of {users} rows and at most {n} columns",
            remedy="return one row per user, with the code -1 where a list is shorter",
        )
    return items.astype(np.int64), scores


def _refuse(
    name: str, why: str, items: NDArray[Any], wrong: NDArray[np.bool_], users: NDArray[Any], targets: Targets
) -> None:
    if not wrong.any():
        return
    row, column = (int(place[0]) for place in np.nonzero(wrong))
    code, train = int(items[row, column]), targets.train
    item = repr(train.item_ids.all[code]) if code < train.n_items else f"code {code}"
    raise InputError(
        f"top of {name} put the item {item} into the list of the user {train.user_ids.all[int(users[row])]!r}, {why}",
        remedy="list each item once, and only items that targets.allowed(users) allows",
    )


def ranks_among(
    scores: NDArray[Any],
    pool: NDArray[Any],
    rows: NDArray[np.int64],
    items: NDArray[np.int32],
    ties: TieOrder,
    groups: NDArray[np.int16] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rank of each (row, item) among the row's pool, and the length of that list.

    The rank is one plus the number of pool items with a higher score, or with the same score and a smaller place in the
    order of ties. It is 0 for an item without a score. ``scores`` and ``pool``, a mask, are users × items; a small pool
    may be given as the items in each row, -1 for no item. Rows ascend. An item that is in its own pool is counted twice
    in the length. With ``groups``, those of all items, an item is ranked only among the items of its own group.
    """
    if pool.dtype == np.bool_:
        members, inside = np.arange(scores.shape[1])[None, :], pool[rows, items]
        pooled = np.where(pool, scores, np.nan)
    else:
        members, inside = pool, np.zeros(len(rows), dtype=np.bool_)
        chosen = np.take_along_axis(scores, np.maximum(pool, 0).astype(np.int64), axis=1)
        pooled = np.where(pool >= 0, chosen, np.nan)
    if groups is None:
        return _ranks(scores, pooled, ties.place[members], inside, rows, items, ties)
    ranks, lengths = np.zeros(len(rows), dtype=np.int32), np.zeros(len(rows), dtype=np.int32)
    for group in np.unique(groups[items]):
        own, alike = groups[items] == group, groups[members] == group
        if len(members) == 1:
            others, places = pooled[:, alike[0]], ties.place[members[:, alike[0]]]
        else:
            others, places = np.where(alike, pooled, np.nan), ties.place[members]
        ranks[own], lengths[own] = _ranks(scores, others, places, inside[own], rows[own], items[own], ties)
    return ranks, lengths


def _ranks(
    scores: NDArray[Any],
    pooled: NDArray[Any],
    places: NDArray[np.int32],
    inside: NDArray[np.bool_],
    rows: NDArray[np.int64],
    items: NDArray[np.int32],
    ties: TieOrder,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Find each score in its sorted row, which is faster than comparing it with every item; only ties are compared.

    ``places`` has one row for all users, or one per user. ``inside`` says whether an item is in its own pool.
    """
    ordered = np.sort(pooled, axis=1)
    known = pooled.shape[1] - np.count_nonzero(np.isnan(pooled), axis=1)
    own = scores[rows, items]
    above, equal = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    bounds = np.searchsorted(rows, np.arange(len(scores) + 1))
    for row in np.flatnonzero(np.diff(bounds)):
        part, values = slice(bounds[row], bounds[row + 1]), ordered[row, : known[row]]
        last = np.searchsorted(values, own[part], side="right")
        equal[part] = last - np.searchsorted(values, own[part], side="left")
        above[part] = len(values) - last
    ranks = np.where(np.isnan(own), 0, above + 1).astype(np.int32)
    tied = np.flatnonzero((equal > inside) & (ranks > 0))
    step = max(1, (1 << 18) // max(pooled.shape[1], 1))
    for start in range(0, len(tied), step):
        pairs = tied[start : start + step]
        others = places if len(places) == 1 else places[rows[pairs]]
        before = others < ties.place[items[pairs]][:, None]
        ranks[pairs] += np.count_nonzero((pooled[rows[pairs]] == own[pairs][:, None]) & before, axis=1)
    return ranks, (known[rows] + (ranks > 0)).astype(np.int32)

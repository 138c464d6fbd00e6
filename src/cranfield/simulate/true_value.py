"""The true quality of ranked lists: measured on every item, with no unjudged items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError, nearest
from cranfield._registry import Spelling, parse
from cranfield.tables import UNKNOWN, Vocabulary

METRICS = ("P", "Recall", "nDCG")


def parse_metric(text: str) -> Spelling:
    """Read ``P@10``, ``Recall@10`` or ``nDCG@10``."""
    spelling = parse(text)
    if spelling.name not in METRICS:
        raise SettingError(f"the true value of {spelling.name!r} is not known{nearest(spelling.name, METRICS)}")
    if spelling.cutoff is None or spelling.parameters:
        raise SettingError(f"{text!r} is not a metric with a cut-off and no parameters; write {spelling.name}@10")
    return spelling


def lists_as_codes(
    lists: Any, user_ids: Vocabulary, item_ids: Vocabulary
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the users, ``indptr`` and items of ranked lists as codes of the given vocabularies.

    Lists are a `Run` (or anything with its ``users``, ``indptr``, ``items``, ``user_ids`` and ``item_ids``), or a
    mapping of user ids to item ids, best first.
    """
    if isinstance(lists, Mapping):
        lengths = [len(ranked) for ranked in lists.values()]
        users = user_ids.codes(list(lists))
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        listed = [item for ranked in lists.values() for item in ranked]
        items = item_ids.codes(listed)
        names: tuple[Any, Any] = (list(lists), listed)
    elif all(hasattr(lists, name) for name in ("users", "indptr", "items", "user_ids", "item_ids")):
        if getattr(lists, "one_relevant", False):
            raise SettingError("lists made for one relevant item each have no true value; rank all items instead")
        users, indptr, items = lists.users, lists.indptr, lists.items
        names = (lists.user_ids.ids(users), lists.item_ids.ids(items))
        users = users if lists.user_ids == user_ids else user_ids.codes(names[0])
        items = items if lists.item_ids == item_ids else item_ids.codes(names[1])
    else:
        raise SettingError(f"{type(lists).__name__} is not ranked lists; give a Run or {{user: [item, ...]}}")
    for what, codes, ids in (("user", users, names[0]), ("item", items, names[1])):
        if (codes == UNKNOWN).any():
            stranger = ids[int(np.flatnonzero(codes == UNKNOWN)[0])]
            raise SettingError(f"{what} {stranger!r} of the lists is not in this world; use lists over its {what}s")
    return users, indptr, items


def list_values(
    metric: Spelling,
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    grades: NDArray[np.float32],
    threshold: float,
    excluded: NDArray[np.bool_],
) -> NDArray[np.float64]:
    r"""Return the value of each list, given its user's true grades of all items as a row.

    - ``P@n``: the share of relevant items among the first *n* positions; missing items of shorter lists count as not
      relevant.
    - ``Recall@n``: the share of the user's relevant items that are among the first *n* positions.
    - ``nDCG@n``: :math:`\sum_{k \le n} g_k / \log_2(k + 1)` divided by that of the best possible list; the gain is the
      grade itself, or 0 for a grade below 0.

    Excluded items are not candidates: they have neither relevance nor gain. NaN if a user has no relevant candidate
    (Recall) or no gain is possible (nDCG).
    """
    cutoff = metric.cutoff or 0
    worth = np.maximum(grades, 0.0) if metric.name == "nDCG" else grades >= threshold
    gains = np.where(excluded, 0.0, worth)
    depth = min(cutoff, gains.shape[1])
    places = indptr[:-1, None] + np.arange(depth)
    inside = places < indptr[1:, None]
    listed = items[np.where(inside, places, 0)] if len(items) else np.zeros(places.shape, dtype=np.int32)
    got = np.where(inside, np.take_along_axis(gains, listed.astype(np.int64), axis=1), 0.0)
    if metric.name == "P":
        return np.asarray(got.sum(axis=1) / cutoff)
    if metric.name == "Recall":
        return _ratio(got.sum(axis=1), gains.sum(axis=1))
    discount = 1.0 / np.log2(np.arange(2, depth + 2))
    best = -np.sort(np.partition(-gains, depth - 1, axis=1)[:, :depth], axis=1)
    return _ratio((got * discount).sum(axis=1), (best * discount).sum(axis=1))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def repeated_entry(
    users: NDArray[np.int32], indptr: NDArray[np.int64], items: NDArray[np.int32], n_items: int
) -> int | None:
    """Return a position in a list whose item occurs earlier in the same list, or None."""
    lists = np.repeat(np.arange(len(users), dtype=np.int64), np.diff(indptr))
    again = pl.Series(lists * n_items + items).is_first_distinct().not_().arg_true()
    return int(again[0]) if len(again) else None

"""Several ratings together: over one vocabulary, or as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cranfield.data.events import basket_codes
from cranfield.data.pairs import sort_pairs
from cranfield.data.ratings import Ratings
from cranfield.tables import Vocabulary


def over_one_vocabulary(parts: Sequence[Ratings]) -> list[Ratings]:
    """Return the parts over the union of their vocabularies."""
    users = Vocabulary.union([part.user_ids for part in parts])
    items = Vocabulary.union([part.item_ids for part in parts])
    return _in_own_baskets([_recoded(part, users, items) for part in parts])


def _in_own_baskets(parts: list[Ratings]) -> list[Ratings]:
    """Number the baskets of parts that were numbered apart, so that none is in two parts."""
    known = [
        (part.rows(), part.events.baskets)
        for part in parts
        if part.events is not None and part.events.baskets is not None
    ]
    if len(known) < 2 or _of_one_split([part for part, _ in known]):
        return parts
    ends = np.cumsum([0, *(int(baskets.max(initial=-1)) + 1 for _, baskets in known)])
    codes = basket_codes(
        np.concatenate([part.users for part, _ in known]),
        np.concatenate([baskets + np.int64(end) for (_, baskets), end in zip(known, ends)]),
        np.concatenate([part.times for part, _ in known if part.times is not None]),
    )
    of_part = iter(np.split(codes, np.cumsum([len(part) for part, _ in known])[:-1]))
    return [
        replace(part, events=replace(part.events, baskets=next(of_part)))
        if part.events is not None and part.events.baskets is not None
        else part
        for part in parts
    ]


def _of_one_split(parts: Sequence[Ratings]) -> bool:
    """Whether the baskets of parts have the numbers of one split, from which they come or were written."""
    if not all(part.history for part in parts):
        return False
    written = all("baskets" in part.history[0].settings for part in parts)
    last = [part.history[-1] for part in parts]
    return written or (last[0].action.startswith("split.") and all(step == last[0] for step in last))


def _recoded(part: Ratings, users: Vocabulary, items: Vocabulary) -> Ratings:
    """Return ratings over larger vocabularies."""
    if part.user_ids == users and part.item_ids == items:
        return replace(part, user_ids=users, item_ids=items)
    user_codes = np.repeat(users.codes(part.user_ids.all), part.user_counts)
    item_codes = items.codes(part.item_ids.all)[part.items]
    pairs = sort_pairs(user_codes, item_codes, len(users), len(items))
    values, times = pairs.arranged(part.values, part.times)
    events = part.events if part.events is None or pairs.order is None else part.events.take(pairs.order)
    recoded = replace(part, user_ids=users, item_ids=items, indptr=pairs.indptr, items=pairs.items)
    return replace(recoded, values=values, times=times, events=events)


def together(parts: Sequence[Ratings], repeated: str | None = None) -> Ratings:
    """Return the ratings of parts that share one vocabulary; name and features are those of the first.

    If the parts are events, so that they may share pairs, all events are merged again, by the rule of the training
    part. ``repeated`` is their `Merging` as text, in case no part by itself repeats a pair.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    rule = next((str(part.events.merging) for part in parts if part.events is not None), repeated)
    rows = [part.rows() for part in parts]
    users, items, values = (
        np.concatenate([getattr(part, name) for part in rows]) for name in ("users", "items", "values")
    )
    known = [part.times for part in rows if part.times is not None]
    times = np.concatenate(known) if len(known) == len(parts) else None
    in_baskets = [part.events.baskets for part in parts if part.events is not None and part.events.baskets is not None]
    how: dict[str, Any] = {"repeated": "error" if rule is None else rule, "name": first.name}
    if len(in_baskets) == len(parts):
        how["baskets"] = np.concatenate(in_baskets)
    whole = Ratings.from_codes(first.user_ids, first.item_ids, users, items, values, times, **how)
    return replace(whole, user_features=first.user_features, item_features=first.item_features)

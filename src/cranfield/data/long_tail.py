"""Play counts as ratings, after Celma and Herrera (2008)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cranfield._errors import InputError
from cranfield._record import Step
from cranfield.data.ratings import Ratings

_GRADES = 5


def celma(ratings: Ratings) -> Ratings:
    """Return play counts as ratings from 1 to 5, by the fifth of the user's plays in which an item starts.

    For each user the items are sorted by descending count c. The rating of an item depends on the share of the user's
    plays that went to items played more often:

        r(u, i) = 5 − ⌊5 · Σ_{j : c(u,j) > c(u,i)} c(u, j) / Σ_j c(u, j)⌋

    so that items within the first 20 % of the plays get 5, up to 40 % get 4, and those in the last 20 % get 1. Items
    with equal counts get the same, better rating, and a user's most played item always gets 5. An item with a count of
    0 gets 1 (unless all counts of the user are 0: then it gets 5).

    References
    ----------
    Ò. Celma and P. Herrera, "A new approach to evaluating novel recommendations", RecSys 2008.

    Examples
    --------
    >>> plays = Ratings.of(["ann"] * 4, ["a", "b", "c", "d"], [50, 30, 15, 5])
    >>> celma(plays).frame()["rating"].to_list()
    [5.0, 3.0, 1.0, 1.0]
    """
    counts = ratings.values.astype(np.float64)
    if (counts < 0).any():
        place = int(np.argmax(counts < 0))
        raise InputError(
            f"a play count of {counts[place]:g} is negative "
            f"(user {ratings.user_ids.all[int(ratings.users[place])]!r}, "
            f"item {ratings.item_ids.all[int(ratings.items[place])]!r})",
            remedy="leave such rows out, or keep the numbers as they are with counts='keep'",
        )
    users = ratings.users
    order = np.lexsort((-counts, users))
    sorted_counts = counts[order]
    # Whole numbers add up exactly below 2^53, so the running sum over all users is exact.
    plays_before = np.concatenate(([0.0], np.cumsum(sorted_counts)))
    total = np.diff(plays_before[ratings.indptr])
    leader = np.ones(len(order), dtype=np.bool_)
    leader[1:] = (sorted_counts[1:] != sorted_counts[:-1]) | (np.diff(users) != 0)
    tie_start = np.maximum.accumulate(np.where(leader, np.arange(len(order)), 0))
    before = plays_before[tie_start] - plays_before[ratings.indptr[users]]
    fifth = np.floor_divide(_GRADES * before, np.maximum(total, np.finfo(float).tiny)[users])
    grades = np.empty(len(order), dtype=np.float32)
    grades[order] = _GRADES - np.clip(fifth, 0, _GRADES - 1)
    return replace(ratings, values=grades, history=(*ratings.history, Step("celma", {"grades": _GRADES})))

"""Resample which items people know: discovery independent of relevance, or of the item."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings, over_one_vocabulary

Variant = Literal["actual", "relevance-independent", "item-independent"]
VARIANTS: tuple[Variant, ...] = ("actual", "relevance-independent", "item-independent")
JUDGED_PAIRS, ALL_PAIRS = "judged pairs", "all pairs"
"""Which pairs can become known when discovery is resampled."""


def discovery(
    known: Ratings, judged: Ratings, variant: Variant, threshold: float, seed: int, *, unrated: bool
) -> NDArray[np.float64]:
    """Return users × items: the probability that a user discovers an item in a variant of the paper.

    Both arguments share one vocabulary. *Relevance-independent* (c): the share of known judgments of each item is that
    of an item drawn at random (a permutation), the same for all users. *Item-independent* (d): P(known | relevant) and
    P(known | not relevant) over the judged pairs; with ``unrated`` over all pairs, and pairs without a judgment count
    as not relevant.
    """
    shape = (judged.n_users, judged.n_items)
    if variant == "relevance-independent":
        order = np.argsort(stream(seed, "discovery", "items").random(judged.n_items), kind="stable")
        shares = known.item_counts / np.maximum(judged.item_counts, 1)
        return np.broadcast_to(shares[order], shape).copy()
    liked = np.zeros(shape, dtype=np.bool_)
    relevant = judged.values >= threshold
    liked[judged.users[relevant], judged.items[relevant]] = True
    discovered = int((known.values >= threshold).sum())
    of_liked = discovered / max(int(relevant.sum()), 1)
    others = (liked.size if unrated else len(judged)) - int(relevant.sum())
    of_others = (len(known) - discovered) / max(others, 1)
    return np.where(liked, of_liked, of_others)


def resampled(
    known: Ratings, judged: Ratings, variant: Variant, threshold: float, seed: int, *, unrated: bool
) -> tuple[Ratings, Ratings]:
    """Draw the known pairs in a variant of the paper; return them with the judgments.

    With ``unrated``, pairs without a judgment can become known too. They are observed with a rating of 0 and are added
    to the judgments that are returned. Otherwise only judged pairs can become known, and the judgments do not change:
    they remain a random sample.
    """
    known, judged = over_one_vocabulary([known, judged])
    if variant == "actual":
        return known, judged
    chances = discovery(known, judged, variant, threshold, seed, unrated=unrated)
    drawn = stream(seed, "discovery", "pairs").random(chances.shape) < chances
    if not unrated:
        return judged.keep(drawn[judged.users, judged.items]), judged
    grades = np.full(chances.shape, -1.0)
    grades[drawn] = 0.0
    grades[judged.users, judged.items] = judged.values
    users, items = np.nonzero(grades >= 0)
    values = grades[users, items].astype(np.float32)
    everything = Ratings.from_codes(
        judged.user_ids, judged.item_ids, users.astype(np.int32), items.astype(np.int32), values, name=judged.name
    )
    return everything.keep(drawn[everything.users, everything.items]), everything

"""Popularity percentiles: groups of items that are about equally popular."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._streams import stream
from cranfield.data import Ratings, by_popularity, check_ratings
from cranfield.splits._parts import coins, divide, some, validation_share
from cranfield.splits.methods import registry
from cranfield.splits.split import Split

NO_GROUP = -1
"""The group of an item without ratings."""


def popularity_groups(ratings: Ratings, groups: int = 10) -> NDArray[np.int16]:
    """Partition the items into popularity percentiles of equal size.

    Parameters
    ----------
    ratings
        The ratings that define popularity |R(i)|: give those before the split.
    groups
        m, the number of groups. Their sizes differ by at most one item; the more popular groups are the larger ones.

    Returns
    -------
    array
        The group of each item code: 0 for the most popular items, m - 1 for the least, `NO_GROUP` (-1) for an item
        without ratings. If items at a border are equally popular, those with the smaller id are in the more popular
        group.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2, 1, 1], ["a", "a", "a", "b", "b", "c", "d"])
    >>> popularity_groups(ratings, 2).tolist()
    [0, 0, 1, 1]
    """
    check_ratings(ratings)
    groups = check.whole("groups", groups, at_least=2)
    order = by_popularity(ratings)
    if groups > min(len(order), np.iinfo(np.int16).max):
        raise ImpossibleSplitError(
            f"{len(order):,} rated items do not fill {groups:,} popularity groups; choose fewer groups"
        )
    group = np.full(ratings.n_items, NO_GROUP, dtype=np.int16)
    for number, members in enumerate(np.array_split(order, groups)):
        group[members] = number
    return group


@registry.register
def percentiles(
    ratings: Ratings, *, groups: int = 10, train: float = 0.8, seed: int = 0, validation: float | None = None
) -> Split:
    """Split at random, and record the popularity percentile of each item (the design P1R).

    The ratings are split as in `random`, with a coin toss for each. The rest of the design comes later: each list is
    drawn from the items of one group only, a metric is computed for each group, and the ``groups`` values are averaged.
    Within a group popular items have little advantage over the others (Bellogín et al., 2017).

    Parameters
    ----------
    ratings
        The ratings to split.
    groups
        m, the number of percentiles; a list then has candidates from at most ``|I| / m`` items.
    train, seed, validation
        As for `random`.

    Returns
    -------
    Split
        With ``item_groups``, the group of each item (see `popularity_groups`).

    References
    ----------
    A. Bellogín, P. Castells, I. Cantador (2017). Statistical biases in information retrieval metrics for recommender
    systems. Information Retrieval Journal 20, section 6.1.

    Examples
    --------
    >>> users, items = zip(*[(u, i) for i in range(6) for u in range(12 - 2 * i)])
    >>> percentiles(Ratings.of(users, items), groups=3).item_groups.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    some(ratings)
    train, share = check.share("train", train), validation_share(validation)
    group = popularity_groups(ratings, groups)
    generator = stream(check.whole("seed", seed, at_least=0), "split", "percentiles")
    parts = coins(len(ratings), train, share, generator)
    rated = group != NO_GROUP
    of_group = np.bincount(group[rated], weights=ratings.item_counts[rated], minlength=groups)
    settings = {"groups": groups, "train": train, "seed": seed, "validation": validation}
    effect = {
        "items_by_group": np.bincount(group[rated]).tolist(),
        "ratings_by_group": of_group.astype(int).tolist(),
    }
    group.flags.writeable = False
    return divide(ratings, parts, "percentiles", settings, effect=effect, item_groups=group)

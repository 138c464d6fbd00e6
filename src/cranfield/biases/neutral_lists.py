"""Designs that take popularity's advantage away, on ranked lists that are there already.

The lists stay as they are: a design chooses test ratings, and which items of a list compete. Since a list is the top
of a ranking, all items above one of its items are known, and so is the rank of this item among any of them. A relevant
item that is not in the list counts as missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._random import stream
from cranfield.data import UNKNOWN, Ratings
from cranfield.rankings.run import Run


@dataclass(frozen=True, eq=False)
class UniformTest:
    """Test ratings of which every item has the same number.

    Parameters
    ----------
    test
        The test ratings that are kept.
    is_target
        Whether each item of the vocabulary has any: the set T.
    each
        How many every one has: η.
    """

    test: Ratings
    is_target: NDArray[np.bool_]
    each: int


def thinned_uniformly(test: Ratings, seed: int = 0) -> UniformTest:
    """Keep the same number η of test ratings of each item that has as many, and none of the others.

    η is the number that keeps most ratings. Which ones stay is drawn at random.

    Examples
    --------
    >>> test = Ratings.of([1, 2, 3, 1, 2, 1], ["a", "a", "a", "b", "b", "c"])
    >>> thin = thinned_uniformly(test)
    >>> thin.each, thin.test.item_counts.tolist()
    (2, [2, 2, 0])
    """
    counts = test.item_counts
    descending = np.sort(counts[counts > 0])[::-1]
    if len(descending) == 0:
        raise SettingError("the test set holds no rating; there is nothing to thin")
    kept = descending * np.arange(1, len(descending) + 1)
    each = int(descending[int(np.argmax(kept))])
    is_target = counts >= each
    keys = stream(seed, "uniform thinning").random(len(test))
    order = np.lexsort((keys, test.items))
    starts = np.cumsum(counts) - counts
    place = np.empty(len(test), dtype=np.int64)
    place[order] = np.arange(len(test)) - starts[test.items[order]]
    return UniformTest(test.keep(is_target[test.items] & (place < each)), is_target, each)


def only_items(run: Run, is_target: NDArray[np.bool_], test: Ratings) -> Run:
    """Return the lists without the items that are not targets; ``is_target`` is over the items of the test set."""
    codes = test.item_ids.translation(run.item_ids)
    known = run.items if codes is None else codes[run.items]
    keep = (known != UNKNOWN) & np.append(is_target, False)[known]
    kept = np.append(np.int64(0), np.cumsum(keep, dtype=np.int64))
    return replace(
        run,
        items=run.items[keep],
        indptr=kept[run.indptr],
        scores=None if run.scores is None else run.scores[keep],
        predictions=None if run.predictions is None else run.predictions[keep],
    )


def each_relevant_alone(
    run: Run,
    test: Ratings,
    relevant: NDArray[np.bool_],
    group_of_item: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    names: Sequence[str] = (),
) -> Run:
    """Return a list for each chosen relevant test rating, in which its item competes with its group alone.

    The rank is 1 + the number of items of the same group above it in the user's list that are not relevant to the user
    (N_u leaves all relevant test items out); 0 where the item is not in the list.

    Parameters
    ----------
    run
        The lists.
    test, relevant
        The test ratings, and which of them are relevant.
    group_of_item
        The group of each item of the test set's vocabulary; -1 for an item that competes with none.
    chosen
        The test ratings that a list is made for.
    names
        The names of the groups, where results are to be averaged by group.
    """
    if run.ranks is not None:
        raise SettingError("a one-relevant run keeps no lists; give lists of all targets")
    codes = test.item_ids.translation(run.item_ids)
    items = (run.items if codes is None else codes[run.items]).astype(np.int64)
    user_codes = test.user_ids.translation(run.user_ids)
    users = (run.users if user_codes is None else user_codes[run.users]).astype(np.int64)
    owners = np.repeat(users, np.diff(run.indptr))
    width = np.int64(test.n_items)
    keys = test.users.astype(np.int64) * width + test.items
    known = (items != UNKNOWN) & (owners != UNKNOWN)
    wanted = np.where(known, owners * width + items, -1)
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    rated = keys[place] == wanted
    liked = rated & relevant[place]
    group = np.where(known, np.append(group_of_item, -1)[items], -1)
    above = _above_in_group(np.repeat(np.arange(len(run)), np.diff(run.indptr)), group, ~liked)
    ranks = np.zeros(len(test), dtype=np.int64)
    held = liked & (group >= 0)
    ranks[place[held]] = above[held] + 1
    made = np.flatnonzero(chosen & relevant & (group_of_item[test.items] >= 0))
    sizes = np.bincount(group_of_item[group_of_item >= 0])
    lengths = np.maximum(sizes[group_of_item[test.items[made]]], ranks[made])
    return Run(
        name=run.name,
        user_ids=test.user_ids,
        item_ids=test.item_ids,
        users=test.users[made].astype(np.int32),
        indptr=np.arange(len(made) + 1, dtype=np.int64),
        items=test.items[made],
        ranks=ranks[made].astype(np.int32),
        lengths=lengths.astype(np.int32),
        groups=group_of_item[test.items[made]].astype(np.int16) if names else None,
        group_names=tuple(names),
        one_relevant=True,
        draws=run.draws,
    )


def _above_in_group(lists: NDArray[np.int64], group: NDArray[np.int64], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each entry how many counted entries of its group stand above it in its list; entries are in order."""
    keys = lists * (int(group.max(initial=0)) + 2) + group + 1
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    totals = np.append(0, np.cumsum(counts[order]))[:-1]
    first = np.searchsorted(ordered, ordered, side="left")
    above = np.empty(len(keys), dtype=np.int64)
    above[order] = totals - totals[first]
    return above

"""Given lists under a protocol: which test ratings and which items of a list count, without ranking again.

A protocol selects test ratings and the items of a list that compete. Since a list is the top of a ranking, all items
above one of its items are known, and so is its rank among any subset of them. Candidates that are not in the list are
assumed to follow in random order: counting them as missed would penalise a list that contains only popular items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield.biases.random_rankings import random_ranks
from cranfield.data import Ratings
from cranfield.judgments import Draw, Judged, Judgments, RunFacts, one_relevant
from cranfield.rankings import Run
from cranfield.splits import Split
from cranfield.tables import UNKNOWN

LongCodes = NDArray[np.int64]


class UniformTest(NamedTuple):
    """Test ratings with the same number for every item."""

    kept: NDArray[np.bool_]  # which of the test ratings are kept
    is_target: NDArray[np.bool_]  # whether each item of the vocabulary has any: the set T
    each: int  # the number of test ratings of each of these items: η


def uniform_thinning(test: Ratings, seed: int = 0) -> UniformTest:
    """Keep η test ratings of each item that has at least η, and none of the others.

    η is the number that keeps the most ratings. Which ratings are kept is random.
    """
    counts = test.item_counts
    descending = np.sort(counts[counts > 0])[::-1]
    if len(descending) == 0:
        raise SettingError("the test set holds no rating; there is nothing to thin")
    each = int(descending[int(np.argmax(descending * np.arange(1, len(descending) + 1)))])
    is_target = counts >= each
    keys = stream(seed, "uniform thinning").random(len(test))
    order = np.lexsort((keys, test.items))
    place = np.empty(len(test), dtype=np.int64)
    place[order] = np.arange(len(test)) - (np.cumsum(counts) - counts)[test.items[order]]
    return UniformTest(is_target[test.items] & (place < each), is_target, each)


@dataclass(frozen=True, eq=False)
class CodedLists:
    """The lists of a system in the codes of a split, with the test ratings of their items."""

    judged: Judged
    run: Run
    split: Split

    @classmethod
    def of(cls, judged: Judged, split: Split) -> CodedLists:
        """Make coded lists from judged lists, which must be whole rankings or the top of them."""
        run = judged.run
        if run is None or judged.is_condensed:
            raise SettingError("these judged lists do not contain their unjudged items; judge the whole lists")
        if run.one_relevant:
            raise SettingError("a one-relevant run keeps no lists; give lists of all targets")
        run.refuse_gaps("a neutral protocol")
        return cls(judged, run, split)

    @cached_property
    def owners(self) -> LongCodes:
        """The user of each list, in the codes of the split."""
        return self.split.test.user_ids.recoded(self.run.users, self.run.user_ids).astype(np.int64)

    @cached_property
    def rows(self) -> LongCodes:
        """The list of each entry."""
        return np.repeat(np.arange(len(self.run)), np.diff(self.run.indptr))

    @cached_property
    def users(self) -> LongCodes:
        """The user of each entry."""
        return self.owners[self.rows]

    @cached_property
    def items(self) -> LongCodes:
        """The item of each entry."""
        return self.split.test.item_ids.recoded(self.run.items, self.run.item_ids).astype(np.int64)

    @cached_property
    def places(self) -> LongCodes:
        """The index of each entry's test rating, -1 if it has none; judgments are in the order of the test ratings."""
        places = np.full(len(self.run.items), -1, dtype=np.int64)
        places[self.judged.places] = self.judged.pointers
        return places

    @cached_property
    def has_list(self) -> NDArray[np.bool_]:
        """Whether each user of the split has a list with an item."""
        served = np.zeros(self.split.test.n_users + 1, dtype=np.bool_)
        served[self.owners[np.diff(self.run.indptr) > 0]] = True
        return served[:-1]

    def competing(self, group_of_item: LongCodes, kept: NDArray[np.bool_]) -> LongCodes:
        """Return the group of each entry, -1 if it does not compete: no group, or a test rating that is not kept."""
        group = np.where(self.items == UNKNOWN, -1, np.append(group_of_item, -1)[self.items])
        return np.where((self.places >= 0) & ~np.append(kept, True)[self.places], -1, group)

    def tied(
        self, judgments: Judgments, hits: tuple[NDArray[Any], ...], lengths: LongCodes, *, alone: bool = False
    ) -> Judged:
        """Return judged lists from the list, pointer, first and last rank of each hit; ranks between are as likely."""
        lists, pointers, first, last = hits
        name, longest, draws = self.run.name, int(lengths.max(initial=0)), self.run.draws
        return Judged(
            judgments=judgments,
            lists=lists.astype(np.int32),
            ranks=first.astype(np.int32),
            pointers=pointers,
            lengths=lengths.astype(np.int32),
            tied_from=first.astype(np.int32),
            tied_to=last.astype(np.int32),
            ranked=RunFacts(name, ties="average", one_relevant=alone, longest=longest, shares_items=True, draws=draws),
        )


def candidates_by_group(split: Split, group_of_item: LongCodes, excluded: NDArray[np.bool_]) -> LongCodes:
    """Return users × groups: the number of items of a group without a training or excluded test rating by the user."""
    n_groups, users = int(group_of_item.max(initial=0)) + 1, split.test.n_users
    sizes = np.tile(np.bincount(group_of_item[group_of_item >= 0], minlength=n_groups), (users, 1))
    for ratings, out in ((split.train, None), (split.test, excluded)):
        group = group_of_item[ratings.items]
        gone = (group >= 0) if out is None else (group >= 0) & out
        cells = ratings.users[gone].astype(np.int64) * n_groups + group[gone]
        sizes = sizes - np.bincount(cells, minlength=users * n_groups).reshape(users, n_groups)
    return np.maximum(sizes, 0)


def each_relevant_alone(
    lists: CodedLists, group_of_item: LongCodes, kept: NDArray[np.bool_], names: Sequence[str] = ()
) -> Judged:
    """Return a list for each kept relevant test rating, in which its item competes only with its group.

    The rank is 1 + the number of items of the same group above it in the user's list that are not relevant to the user.
    An item that is not in the list has each rank below the listed items of its group with equal probability. An item in
    no group (-1) does not compete, and items of test ratings that are not kept are not candidates for their user. With
    the names of the groups, results are averaged by group.
    """
    split, judgments = lists.split, lists.judged.judgments
    test, relevant = split.test, judgments.relevant
    group = lists.competing(group_of_item, kept)
    liked = (lists.places >= 0) & np.append(relevant, False)[lists.places]
    above = _above_in_group(lists.rows, group, ~liked)
    ranks = np.zeros(len(test), dtype=np.int64)
    held = liked & (group >= 0)
    ranks[lists.places[held]] = above[held] + 1
    chosen = np.flatnonzero(kept & relevant & (group_of_item[test.items] >= 0))
    owner, own_group = test.users[chosen], group_of_item[test.items[chosen]]
    n_groups = int(group_of_item.max(initial=0)) + 1
    counted = (group >= 0) & ~liked & (lists.users != UNKNOWN)
    cells = lists.users[counted] * n_groups + group[counted]
    listed = np.bincount(cells, minlength=test.n_users * n_groups)[owner * np.int64(n_groups) + own_group]
    open_items = candidates_by_group(split, group_of_item, relevant | ~kept)[owner, own_group]
    last = np.maximum(open_items, listed) + 1
    rank = ranks[chosen]
    served = lists.has_list[owner]
    hits = np.flatnonzero(served)
    first, end = np.where(rank > 0, rank, listed + 1)[hits], np.where(rank > 0, rank, last)[hits]
    lengths = np.where(served, last, 0)
    judged = lists.tied(one_relevant(judgments, chosen), (hits, hits, first, end), lengths, alone=True)
    return replace(judged, groups=own_group.astype(np.int16), group_names=tuple(names)) if names else judged


def among_targets(lists: CodedLists, thin: UniformTest) -> Judged:
    """Return one list per user of the items with test ratings, judged by the kept ones; the rest follow at random."""
    split, kept = lists.split, thin.kept
    group = np.where(thin.is_target, 0, -1).astype(np.int64)
    competing = lists.competing(group, kept) >= 0
    before = np.append(0, np.cumsum(competing))
    rank = before[1:] - before[lists.run.indptr[:-1]][lists.rows]
    small, place, _ = lists.judged.judgments.only(kept)
    hit = competing & (lists.places >= 0)
    listed = np.zeros(len(small), dtype=np.int64)
    listed[place[lists.places[hit]]] = rank[hit]
    shown = np.zeros(split.test.n_users + 1, dtype=np.int64)
    shown[lists.owners] = before[lists.run.indptr[1:]] - before[lists.run.indptr[:-1]]
    shown = shown[small.users]
    # Lists may hold training items, which are no candidates; the targets that they do not hold still follow them.
    missing = np.bincount(small.lists[listed == 0], minlength=len(small.users))
    size = np.maximum(candidates_by_group(split, group, ~kept)[small.users, 0], shown + missing)
    served = lists.has_list[small.users]
    hits = np.flatnonzero(served[small.lists])
    of_list = small.lists[hits]
    known = listed[hits] > 0
    first = np.where(known, listed[hits], shown[of_list] + 1)
    order = np.lexsort((first, of_list))
    last, lengths = np.where(known, listed[hits], size[of_list]), np.where(served, size, 0)
    return lists.tied(small, (of_list[order], hits[order], first[order], last[order]), lengths)


def _above_in_group(lists: LongCodes, group: LongCodes, counts: NDArray[np.bool_]) -> LongCodes:
    """Return, for each entry, the number of counted entries of its group above it in its list; entries are in order."""
    keys = lists * (int(group.max(initial=0)) + 2) + group + 1
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    totals = np.append(0, np.cumsum(counts[order]))[:-1]
    first = np.searchsorted(ordered, ordered, side="left")
    above = np.empty(len(keys), dtype=np.int64)
    above[order] = totals - totals[first]
    return above


def over_draws(judged: Judged, number: int, seed: int) -> Judged:
    """Return lists for the expectation over all draws of ``number`` non-relevant candidates.

    A rank that is not known is drawn once from those that are possible; the lists then rank all candidates.
    """
    assert judged.tied_from is not None
    assert judged.tied_to is not None
    ranks, possible = judged.tied_from.astype(np.int64), (judged.tied_to - judged.tied_from + 1).astype(np.int64)
    unknown = np.flatnonzero(possible > 1)
    of_list = np.zeros(judged.n_lists, dtype=np.int64)
    of_list[judged.lists[unknown]] = possible[unknown]
    rng = stream(seed, "bias", "unlisted", judged.known_run.name)
    ranks[unknown] += random_ranks(judged.lists[unknown], of_list, rng) - 1
    order = np.lexsort((ranks, judged.lists))
    lists, pointers, drawn = judged.lists[order], judged.pointers[order], ranks[order].astype(np.int32)
    draw = Draw(number, judged.lengths.astype(np.int64))
    return judged.fresh(lists=lists, pointers=pointers, ranks=drawn, tied_from=None, tied_to=None, draw=draw)

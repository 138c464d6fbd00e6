"""The same systems under a protocol in which popular items have an advantage, and under neutral ones.

* AR: all relevant items of a user in one list, among all items that the user has not rated in training.
* P1R: each relevant item among the items of its popularity percentile; the percentiles are averaged.
* U1R: each relevant item separately, with the same number of test ratings for every item.
* UAR: all relevant items in one list, with the same test ratings as U1R, among the items that have them.

Bellogín, Castells and Cantador (2017), sections 3 and 6.

Given lists do not change: a protocol selects test ratings and the items of a list that compete. Since a list is the top
of a ranking, all items above one of its items are known, and so is its rank among any subset of them. Candidates that
are not in the list are assumed to follow in random order, and metrics are expectations over that order: counting them
as missed would penalise a list that contains only popular items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, ImpossibleSplitError, SettingError
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.facts import comparison as comparison_facts
from cranfield.judgments import Context, Judged, Judgments, RunFacts, as_judged, as_runs, one_relevant
from cranfield.measures import Averaging, Measuring, Scores, measure, measure_judged
from cranfield.rankings import Ranking, Run, fit_each, rank_under
from cranfield.recommenders import named_systems
from cranfield.splits import Split, popularity_groups, random, uniform_test
from cranfield.tables import UNKNOWN

LongCodes = NDArray[np.int64]

_PLAIN = Averaging(by="user")
_BY_GROUP = Averaging(by="user", groups="equal")
_UNIFORM = ("U1R", "UAR")


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
    size = np.maximum(candidates_by_group(split, group, ~kept)[small.users, 0], shown)
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


class Protocol(NamedTuple):
    """Systems measured under one protocol, and how the lists are averaged."""

    name: str
    scores: Scores
    averaging: Averaging


@dataclass(frozen=True, eq=False)
class Protocols:
    """Systems under all protocols that the ratings allow, and notes on those they do not allow."""

    every: tuple[Protocol, ...]  # the chosen one first
    split: Split  # of the chosen one
    judged: tuple[Judged, ...]  # its lists
    notes: tuple[Fact, ...]

    @property
    def runs(self) -> list[Run]:
        """The lists of the chosen protocol."""
        return as_runs(self.judged)


def protocols_of_lists(
    judged: Sequence[Judged], split: Split, metric: str, groups: int, seed: int, strict: bool
) -> Protocols:
    """Measure judged lists under each protocol, without training; unlisted candidates follow in random order."""
    test, threshold = split.test, judged[0].judgments.threshold
    scores = measure(list(judged), test, metric, strict=strict)
    chosen = Protocol(bias_facts.CHOSEN, scores, _PLAIN)
    notes: list[Fact] = [comparison_facts.Warned(warning) for warning in scores.warnings]
    measuring = Measuring(metrics=[metric], threshold=threshold)
    if not measuring.wanted[0].definition.averages_ties:
        reason = f"{metric} has no expectation over the unknown order below a list"
        return Protocols((chosen,), split, tuple(judged), (*notes, bias_facts.NoteOn((), reason)))
    protocols = [chosen]
    lists = [CodedLists.of(given, split) for given in judged]
    cutoff, smallest = measuring.wanted[0].cutoff or 1, int(np.count_nonzero(split.train.item_counts)) // groups
    if smallest > cutoff:
        percentile = popularity_groups(split.train, groups).astype(np.int64)
        names = [str(group) for group in range(groups)]
        every = np.ones(len(test), dtype=np.bool_)
        alone = [each_relevant_alone(given, percentile, every, names) for given in lists]
        protocols.append(Protocol("P1R", measure_judged(alone, measuring), _BY_GROUP))
    else:
        notes.append(bias_facts.GroupsTooSmall(groups, smallest, cutoff, drawn=False))
    thin = uniform_thinning(test, seed)
    if not (thin.kept & (test.values >= threshold)).any():
        reason = "no relevant test rating is left when every item has the same number"
        notes.append(bias_facts.NoteOn(_UNIFORM, reason))
        return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))
    target = np.where(thin.is_target, 0, -1).astype(np.int64)
    alone = [each_relevant_alone(given, target, thin.kept) for given in lists]
    together = [among_targets(given, thin) for given in lists]
    protocols.append(Protocol("U1R", measure_judged(alone, measuring), _PLAIN))
    protocols.append(Protocol("UAR", measure_judged(together, measuring), _PLAIN))
    targets, kept = int(thin.is_target.sum()), int(thin.kept.sum())
    notes.append(bias_facts.UniformRatings(thin.each, targets, kept, len(test)))
    return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))


def protocols_of_data(
    data: Ratings, systems: Any, metric: str, level: float, groups: int, nonrelevant: int, seed: int, jobs: int | None
) -> Protocols:
    """Train systems on 80 % of the ratings and measure lists of 100 items under each protocol."""
    train, length = 0.8, 100
    split = random(data, train=train, seed=seed)
    notes: list[Fact] = []
    rankings = {"AR": Ranking(length=length, threshold=level)}
    smallest = data.n_items // groups
    if smallest > nonrelevant:
        split = replace(split, item_groups=popularity_groups(data, groups))
        rankings["P1R"] = Ranking(
            relevant="one", candidates="group", nonrelevant=nonrelevant, length="all", threshold=level
        )
    else:
        notes.append(bias_facts.GroupsTooSmall(groups, smallest, nonrelevant + 1, drawn=True))
    lists = _ranked(split, systems, rankings, seed, jobs)
    tests = dict.fromkeys(rankings, split.test)
    try:
        uniform = uniform_test(data, sigma=1.0 - train, epsilon=0.2, seed=seed)
    except ImpossibleSplitError as error:
        notes.append(bias_facts.NoteOn(_UNIFORM, str(error)))
    else:
        wanted = {
            "U1R": Ranking(relevant="one", candidates="test", nonrelevant=nonrelevant, length="all", threshold=level),
            "UAR": Ranking(candidates="test", length=length, threshold=level),
        }
        lists |= _ranked(uniform, systems, wanted, seed, jobs)
        tests |= dict.fromkeys(wanted, uniform.test)
        notes += [bias_facts.NoteOn(_UNIFORM, note, left_out=False) for note in uniform.notes]
    protocols = []
    for name, runs_under in lists.items():
        known = split.train if name == bias_facts.CHOSEN else None
        try:
            scores = measure(runs_under, tests[name], metric, threshold=level, train=known)
            protocols.append(Protocol(name, scores, _BY_GROUP if name == "P1R" else _PLAIN))
        except CranfieldError as error:
            if name == bias_facts.CHOSEN:
                raise
            notes.append(bias_facts.NoteOn((name,), str(error)))
    judged = as_judged(lists[bias_facts.CHOSEN], split.test, level, Context(split.train))
    return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))


def _ranked(
    split: Split, systems: Any, rankings: dict[str, Ranking], seed: int, jobs: int | None
) -> dict[str, list[Run]]:
    """Train each system once, and rank under each ranking."""
    names = list(named_systems(systems, seed))
    by_place: dict[int, list[Run]] = {}
    for done in fit_each(split.train, systems, seed=seed, jobs=jobs):
        name = names[done.place]
        by_place[done.place] = rank_under(done.result, split, list(rankings.values()), seed=seed, name=name)
    if not by_place:
        raise SettingError("no system is given; name at least one, such as popularity")
    return {name: [by_place[place][k] for place in sorted(by_place)] for k, name in enumerate(rankings)}

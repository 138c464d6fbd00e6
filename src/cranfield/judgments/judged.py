"""`Judged`: a run joined with a test set. All metrics are computed on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.judgments.context import Context, Draw, RunFacts
from cranfield.judgments.judgments import Judgments, V, once
from cranfield.rankings import Run


@dataclass(frozen=True, eq=False)
class Entries:
    """The known items of all lists, list after list, best first; a list may leave places out."""

    lists: NDArray[np.int32]  # the list of each entry
    items: NDArray[np.int32]  # its item, in the codes of the run
    ranks: NDArray[np.int32]  # its rank in the list, from 1
    places: NDArray[np.int64]  # its position among the entries of the run

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first entry of each list that has any."""
        return np.flatnonzero(np.append(True, self.lists[1:] != self.lists[:-1])[: len(self.lists)])

    def only(self, mask: NDArray[np.bool_]) -> Entries:
        """Return some of the entries."""
        return Entries(self.lists[mask], self.items[mask], self.ranks[mask], self.places[mask])

    @property
    def above(self) -> NDArray[np.int64]:
        """The number of entries above each entry in its list."""
        sizes = np.diff(self._starts, append=len(self.lists))
        return np.arange(len(self.lists)) - np.repeat(self._starts, sizes)

    def total(self, values: NDArray[Any], n_lists: int) -> NDArray[np.float64]:
        """Return the sum over each list of one value per entry."""
        sums = np.zeros(n_lists)
        if len(values):
            sums[self.lists[self._starts]] = np.add.reduceat(values, self._starts)
        return sums


@dataclass(frozen=True, eq=False)
class Judged:
    """For each list, only the positions with a judged item, with a pointer to its judgment.

    Real lists are 1 to 5 % judged, so this is 20 to 100 times smaller than the run; a metric is a function of it. An
    entry of the arrays below is a *hit*: a judged item in a list, relevant or not. Hits are in the order of the
    lists, and in ranked order within a list.

    Parameters
    ----------
    judgments
        What is known of each list.
    lists
        The list of each hit.
    ranks
        The rank of each hit, from 1.
    pointers
        The position of each hit in the judgments.
    lengths
        The number of items of each list; 0 if the system gives no list.
    tied_from, tied_to
        First and last rank of the tied group of each hit; None unless ties are to be averaged.
    source
        The run, or a function that reads it, for metrics that need all items of a list.
    places
        The position of each hit among the entries of the run.
    offsets
        The position of each list's first entry among the entries of the run (arbitrary for a missing list).
    pooled_above
        The number of pooled but unjudged items above each hit; None if there are no such items.
    is_condensed
        Whether items without a test rating were removed from the lists.
    context
        The training ratings and the item similarity, for metrics that need them.
    groups, group_names
        The group of each list as an index of ``group_names``, or -1; None if the lists are not grouped.
    counts
        The numbers of users and items of the run that are not in the test set, by name.
    ranked
        Facts about the run that do not require reading it: its name, its counts, its ties.
    draw
        What is drawn, if metrics are expectations over draws of candidates; the lists then rank all candidates.
    files
        What keeps the files that arrays are mapped from; None if they are in memory.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> run = cf.read_run({"user": ["ann"], "item": ["x"], "score": [1.0]}, name="mine")
    >>> len(cf.judge(run, test).judgments.users)
    3
    """

    judgments: Judgments
    lists: NDArray[np.int32]
    ranks: NDArray[np.int32]
    pointers: NDArray[np.int64]
    lengths: NDArray[np.int32]
    tied_from: NDArray[np.int32] | None = None
    tied_to: NDArray[np.int32] | None = None
    source: Run | Callable[[], Run] | None = None
    places: NDArray[np.int64] | None = None
    offsets: NDArray[np.int64] | None = None
    pooled_above: NDArray[np.int64] | None = None
    is_condensed: bool = False
    context: Context = field(default_factory=Context)
    groups: NDArray[np.int16] | None = None
    group_names: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    ranked: RunFacts | None = None
    draw: Draw | None = None
    files: Any = field(default=None, repr=False)
    _views: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def run(self) -> Run | None:
        """The run of the lists, which is read at the first access."""
        return self.source() if callable(self.source) else self.source

    @property
    def known_run(self) -> RunFacts:
        """The facts about the run; an error if they are not known."""
        if self.ranked is None:
            raise SettingError("these judged lists do not say which run they belong to; make them with judge")
        return self.ranked

    @property
    def n_lists(self) -> int:
        """The number of lists, including those that the system does not give."""
        return self.judgments.n_lists

    @cached_property
    def grades(self) -> NDArray[np.float64]:
        """The rating of each hit."""
        return self.judgments.grades[self.pointers]

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Whether each hit is relevant."""
        return self.judgments.relevant[self.pointers]

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """R: the number of relevant items of each list's user in the test set."""
        return self.judgments.n_relevant

    @property
    def n_nonrelevant(self) -> NDArray[np.int64]:
        """N: the number of judged items of each list's user that are not relevant."""
        return self.judgments.n_nonrelevant

    @cached_property
    def n_hits(self) -> NDArray[np.float64]:
        """The number of relevant items in each list (its expectation if ties are averaged)."""
        return self.discounted(np.ones(self.depth), self.relevant)

    @property
    def depth(self) -> int:
        """The length of the longest list."""
        return int(self.lengths.max(initial=0))

    @cached_property
    def entries(self) -> Entries:
        """Every item of the lists, judged or not, for metrics of whole lists."""
        run = None if self.places is None or self.offsets is None else self.run
        if run is None or self.places is None or self.offsets is None or run.one_relevant:
            raise SettingError(
                "this metric looks at whole lists, and a one-relevant list keeps only its test item; "
                "measure it on lists of all targets"
            )
        if self.is_condensed:
            stored = self.with_ties_broken()
            assert stored.places is not None
            return Entries(stored.lists, run.items[stored.places], stored.ranks, stored.places)
        if run.ranks is not None:
            return self._known_entries(run, run.ranks)
        lists = np.repeat(np.arange(self.n_lists, dtype=np.int32), self.lengths)
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        places = np.arange(len(lists))
        ranks = (places - before[lists] + 1).astype(np.int32)
        filled = self.lengths > 0
        if len(lists) == len(run.items) and np.array_equal(before[filled], self.offsets[filled]):
            return Entries(lists, run.items, ranks, places)  # all entries of the run, in its order
        places += (self.offsets - before)[lists]
        return Entries(lists, run.items[places], ranks, places)

    def _known_entries(self, run: Run, ranks: NDArray[np.int32]) -> Entries:
        """Return the items of lists that leave places out, as far as they are known."""
        assert self.offsets is not None
        filled = np.flatnonzero(self.lengths > 0).astype(np.int32)
        start = self.offsets[filled]
        # Of lists that start at the same entry, all but the last are empty.
        size = run.indptr[np.searchsorted(run.indptr, start, side="right")] - start
        lists = np.repeat(filled, size)
        places = np.arange(len(lists)) + np.repeat(start - (np.cumsum(size) - size), size)
        inside = ranks[places] <= self.lengths[lists]
        lists, places = lists[inside], places[inside]
        return Entries(lists, run.items[places], ranks[places], places)

    def total(self, values: NDArray[Any] | None = None, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the sum over each list of one value per hit (of 1 without values), of the hits in ``where``."""
        if values is None:
            values = np.ones(len(self)) if where is None else where
        elif where is not None:
            values = np.where(where, values, 0.0)
        # A list without hits starts at the first hit of the next list; the last may start after the end.
        sums = np.add.reduceat(np.append(values, 0.0), self.starts) if self.n_lists else np.zeros(0)
        return np.where(self._counts > 0, sums, 0.0)

    def above(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the number of flagged hits above each hit in its list."""
        counts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(flags, out=counts[1:])
        return counts[:-1] - counts[self.starts][self.lists]

    @cached_property
    def relevant_above(self) -> NDArray[np.int64]:
        """The number of relevant hits above each hit in its list."""
        return self.above(self.relevant)

    @cached_property
    def nonrelevant_above(self) -> NDArray[np.int64]:
        """The number of non-relevant hits above each hit in its list."""
        return self.above(~self.relevant)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first hit of each list."""
        return np.cumsum(self._counts) - self._counts

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The number of hits of each list."""
        return np.bincount(self.lists, minlength=self.n_lists)

    def weights(self, discount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the discount of each hit's rank, averaged over tied ranks; 0 beyond the end of ``discount``."""
        if self.tied_from is None or self.tied_to is None:
            return np.append(discount, 0.0)[np.minimum(self.ranks - 1, len(discount))]
        upto = np.append(0.0, np.cumsum(discount))
        first, last = np.minimum(self.tied_from - 1, len(discount)), np.minimum(self.tied_to, len(discount))
        return (upto[last] - upto[first]) / (self.tied_to - self.tied_from + 1)

    def discounted(self, discount: NDArray[np.float64], gains: NDArray[Any]) -> NDArray[np.float64]:
        """Return for each list the sum of its hits' gains, discounted by rank."""
        if gains.dtype == np.bool_:
            return self.total(self.weights(discount), where=gains)
        return self.total(self.weights(discount) * gains)

    def cut(self, n: int) -> Judged:
        """Return the lists cut at rank ``n``."""
        if self.draw is not None:  # which items are among the first n depends on the draw
            return self.fresh(draw=self.draw.cut(n))
        if n >= self.depth:
            return self

        def make() -> Judged:
            first = self.ranks if self.tied_from is None else self.tied_from
            return replace(self._part(first <= n), lengths=np.minimum(self.lengths, n).astype(np.int32))

        return self.once(("cut", n), make)

    def at(self, threshold: float) -> Judged:
        """Return the same lists under another threshold of relevance."""
        if threshold == self.judgments.threshold:
            return self
        return self.once(("at", threshold), lambda: self.fresh(judgments=self.judgments.at(threshold)))

    def rated_from(self, level: float) -> Judged:
        """Return condensed lists of the items rated ``level`` or more, which are relevant, for all users.

        Other items are removed from the lists, so that a cut-off counts items of the level.
        """

        def make() -> Judged:
            part = self._part(self.grades >= level)
            return replace(part, judgments=self.judgments.at(level), is_condensed=False).condensed()

        return self.once(("rated from", level), make)

    def gaining_from(self, level: float) -> Judged:
        """Return the same lists under another threshold; items below it count as rated 0, without gain."""
        return self.once(("gaining from", level), lambda: self.fresh(judgments=self.judgments.gaining_from(level)))

    def condensed(self) -> Judged:
        """Return the lists without the items that have no test rating (Cañamares 2020, decision C1)."""

        def make() -> Judged:
            ranks = self.above(np.ones(len(self), dtype=bool)).astype(np.int32) + np.int32(1)
            lengths = self.total().astype(np.int32)
            tied_from, tied_to = self._condensed_ties(ranks)
            return replace(
                self,
                ranks=ranks,
                lengths=lengths,
                tied_from=tied_from,
                tied_to=tied_to,
                pooled_above=None,
                is_condensed=True,
                draw=None,  # items without a test rating are removed, drawn or not
                _views={},
            )

        return self if self.is_condensed else self.once("condensed", make)

    def with_ties_broken(self) -> Judged:
        """Return the lists in stored order, without ties, for metrics without a closed form over tied orders."""
        if self.tied_from is None:
            return self
        return self.once("broken", lambda: replace(self._inside(), tied_from=None, tied_to=None))

    def with_ends_broken(self) -> Judged:
        """Return the lists with ties across their ends broken in stored order; other ties stay."""
        if self.tied_to is None:
            return self

        def make() -> Judged:
            part = self._inside()
            assert part.tied_to is not None
            return replace(part, tied_to=np.minimum(part.tied_to, part.lengths[part.lists]))

        return self.once("ends", make)

    def _inside(self) -> Judged:
        """Return the lists without the hits whose stored rank is beyond the end of their list."""
        return self._part(self.ranks <= self.lengths[self.lists])

    def only(self, mask: NDArray[np.bool_]) -> Judged:
        """Return the lists judged only by the judgments in ``mask``, as if the test set had no others.

        Condensed lists are condensed again, so take the mask before a cut-off.
        """
        judgments, place, number = self.judgments.only(mask)
        if self.draw is not None and not np.array_equal(judgments.n_judged, self.judgments.n_judged[number >= 0]):
            # An unjudged test item should be drawn at random, but here it is in every list.
            raise SettingError(
                "draws='exact' has no results for a part of a list's test items; set draws='sampled', or relevant='one'"
            )
        part = self._part(mask[self.pointers])
        smaller = replace(
            part,
            judgments=judgments,
            lists=number[part.lists].astype(np.int32),
            pointers=place[part.pointers],
            lengths=self.lengths[number >= 0],
            offsets=None if self.offsets is None else self.offsets[number >= 0],
            groups=None if self.groups is None else self.groups[number >= 0],
            draw=None if self.draw is None else self.draw.of_lists(number >= 0),
            is_condensed=False,
        )
        return smaller.condensed() if self.is_condensed else smaller

    def _part(self, keep: NDArray[np.bool_]) -> Judged:
        def some(values: Any) -> Any:
            return None if values is None else values[keep]

        return replace(
            self,
            lists=self.lists[keep],
            ranks=self.ranks[keep],
            pointers=self.pointers[keep],
            tied_from=some(self.tied_from),
            tied_to=some(self.tied_to),
            places=some(self.places),
            pooled_above=some(self.pooled_above),
            _views={},
        )

    def _condensed_ties(self, ranks: NDArray[np.int32]) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
        if self.tied_from is None or len(self) == 0:
            return self.tied_from, self.tied_to
        new = np.ones(len(self), dtype=bool)
        new[1:] = (self.lists[1:] != self.lists[:-1]) | (self.tied_from[1:] != self.tied_from[:-1])
        group = np.cumsum(new) - 1
        first = ranks[new]
        last = first + np.bincount(group).astype(np.int32) - np.int32(1)
        return first[group], last[group]

    def fresh(self, **changes: Any) -> Judged:
        """Return the same lists with an empty cache, so that views live no longer than their use."""
        return replace(self, **changes, _views={})

    def once(self, key: Any, make: Callable[[], V]) -> V:
        """Return the result of ``make``, cached under ``key``: for views, and values that metrics share."""
        return once(self._views, key, make)

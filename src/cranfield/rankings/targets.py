"""The items that a user's list may hold (decision C1; Bellogín, Castells and Cantador 2017, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings, Relevance
from cranfield.rankings.decisions import Ranking
from cranfield.recommenders import blocks

ItemCells = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class Targets:
    r"""The items that the lists of each user may hold.

    .. math:: T_u = N_u \cup PR_{test}(u), \qquad N_u \subset C \setminus PR_{test}(u) \setminus R_{train}(u)

    Parameters
    ----------
    train, test
        The split; ``test`` may be None if nothing below needs it.
    ranking
        The decisions. ``candidates`` is C: ``"all"`` items of the vocabulary, those that have a ``"test"`` rating, or
        the ``"group"`` of the list's relevant item. ``relevant="all"`` makes one list per user, with all relevant
        items, and ``relevant="one"`` a list for each relevant item r, over N_u ∪ {r}. ``nonrelevant`` is \|N_u\|, drawn
        at random for each user (and group), the same for every system. ``unrated`` makes a list of all test items of
        the user and of N_u, this many items that the user rated neither in training nor in the test set (Cañamares and
        Castells 2020); the draw of a smaller number is part of that of a larger one. Condensed ``lists`` keep only
        items that the user rated in the test set. ``keep_seen`` leaves R_train(u) in. ``threshold`` is the lowest test
        rating of a relevant item.
    seed
        Seed of the draw.
    item_groups
        The popularity group of each item (`Split.item_groups`); None if there are no groups.
    drawn
        The N_u of the users who are served, if they are drawn; see `drawn_for`.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> targets = Targets(train)
    >>> targets.allowed(np.array([0, 1])).tolist()
    [[False, True], [False, False]]
    >>> targets.contain(np.array([0, 1]), np.array([[1, 0], [1, -1]])).tolist()
    [[True, False], [False, False]]
    """

    train: Ratings
    test: Ratings | None = None
    ranking: Ranking = field(default_factory=Ranking)
    seed: int = 0
    item_groups: NDArray[np.int16] | None = None
    drawn: Drawn | None = None

    def __post_init__(self) -> None:
        needs = self.ranking.needs_test
        if needs and self.test is None:
            raise SettingError(f"{needs} needs the test ratings; give a split, or test=...")
        needed = self.test is not None and self.ranking.needs_relevance
        threshold = Relevance.of(self._test, self.ranking.threshold, self.train).threshold if needed else None
        object.__setattr__(self, "ranking", self.ranking.with_(threshold=threshold))
        if self.ranking.candidates != "group":
            return
        if self.item_groups is None:
            raise SettingError(
                "candidates='group' needs items in popularity groups; split with percentiles, or set candidates='all'"
            )
        wanted, sizes = self.ranking.nonrelevant, np.bincount(self.item_groups[self.item_groups >= 0])
        smallest = int(sizes.min())
        if not isinstance(wanted, str) and wanted + 1 > smallest:  # |T_u| ≤ |I| / m
            raise SettingError(
                f"nonrelevant={wanted} asks for lists of {wanted + 1:,} items, and the smallest of the {len(sizes):,} "
                f"popularity groups holds {smallest:,}; set nonrelevant={smallest - 1} or less, or use fewer groups"
            )

    @property
    def step(self) -> Step:
        """The choices, for the record."""
        names = ("candidates", "relevant", "nonrelevant", "unrated", "lists", "repeats", "keep_seen", "threshold")
        kind = "non-relevant" if self.ranking.unrated == "all" else "unrated"
        short = {} if self.drawn is None else {f"users with fewer {kind} items than asked": self.drawn.short}
        return Step("targets", {name: getattr(self.ranking, name) for name in names} | {"seed": self.seed}, short)

    def relevant_cells(self, users: NDArray[Any]) -> ItemCells:
        """Return row (index in ``users``) and item of the relevant test items, both ascending."""
        rows, entries = _profiles(self._test.indptr, users)
        keep = self._test.values[entries] >= self.ranking.threshold
        return rows[keep], self._test.items[entries[keep]]

    def pool(self, users: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a users × items mask of N_u, which are the drawn items if items are drawn."""
        if self.drawn is not None:
            return self.drawn.mask(users, self.train.n_items)
        allowed = self._open(users)
        if self.ranking.needs_relevance or self.ranking.drawn is not None:
            allowed[self._always(users)] = False
        return allowed

    def _always(self, users: NDArray[Any]) -> ItemCells:
        """Return row and item of the test items that are always in a list: the relevant ones, or all of them."""
        return self.relevant_cells(users) if self.ranking.unrated == "all" else rated_cells(self._test, users)

    def allowed(self, users: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a users × items mask of the items that the one list of each user may hold."""
        if self.drawn is None:
            return self._open(users)
        allowed = self.drawn.mask(users, self.train.n_items)
        allowed[self._always(users)] = True
        return allowed

    def sizes(self, users: NDArray[Any], items: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """Return the number of items that the list of each user may hold; with ``items``, of each relevant item."""
        sizes = np.zeros(len(users), dtype=np.int64)
        for block in blocks(len(users), self.train.n_items):
            distinct, rows = np.unique(users[block], return_inverse=True)
            if items is None:
                sizes[block] = self.allowed(distinct).sum(axis=1)[rows]
            elif self.ranking.candidates != "group":
                sizes[block] = self.pool(distinct).sum(axis=1)[rows] + 1
            else:
                row, item = np.nonzero(self.pool(distinct))
                group = self._groups.astype(np.int64) + 1  # 0 for an item without a group
                width = int(group.max()) + 1
                counts = np.bincount(row * width + group[item], minlength=len(distinct) * width)
                sizes[block] = counts[rows * width + group[items[block]]] + 1
        return sizes

    def contain(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether the one list of each user may hold the items in its row; −1 means no item.

        The same as `allowed`, without a dense users × items block.
        """
        if self.drawn is not None:
            return self._among(items, *self.drawn.cells(users)) | self._among(items, *self._always(users))
        within = (items >= 0) & (items < self.train.n_items)
        if self.ranking.lists == "condensed":
            within &= self._among(items, *rated_cells(self._test, users))
        elif self.ranking.candidates == "test":
            within &= (self._test.item_counts > 0)[np.where(within, items, 0)]
        if self.ranking.offered != "all":
            seen = self._among(items, *rated_cells(self.train, users))
            within &= seen if self.ranking.offered == "seen" else ~seen
        return within

    def _among(self, items: NDArray[Any], rows: NDArray[Any], members: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which entries of ``items`` are members of their row; cells ascend by row and member."""
        width = self.train.n_items
        known = rows.astype(np.int64) * width + members
        wanted = np.arange(len(items))[:, None] * width + items
        place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        inside = (items >= 0) & (items < width)
        return inside & (known[place] == wanted) if len(known) else np.zeros(items.shape, dtype=np.bool_)

    @property
    def _test(self) -> Ratings:
        assert self.test is not None
        return self.test

    def _open(self, users: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the items of C that may be offered to each user, condensed if the lists are condensed."""
        shape = len(users), self.train.n_items
        if self.ranking.lists == "condensed":
            allowed = np.zeros(shape, dtype=np.bool_)
            allowed[rated_cells(self._test, users)] = True
        elif self.ranking.candidates == "test":
            allowed = np.repeat((self._test.item_counts > 0)[None, :], len(users), axis=0)
        else:
            allowed = np.ones(shape, dtype=np.bool_)
        seen = rated_cells(self.train, users)
        if self.ranking.offered == "new":
            allowed[seen] = False
        elif self.ranking.offered == "seen":
            among = np.zeros(shape, dtype=np.bool_)
            among[seen] = True
            allowed &= among
        return allowed

    def drawn_for(self, users: NDArray[np.int32]) -> Targets:
        """Return the targets with the N_u of these ascending users; the same targets if nothing is drawn."""
        wanted = self.ranking.drawn
        if wanted is None:
            return self
        parts = []
        with progress("Drawing targets", total=len(users), unit="users") as bar:
            for block in blocks(len(users), self.train.n_items):
                for part in self._draws(users[block], wanted):
                    parts.append(part)
                    bar.advance()
        drawn, places, short = zip(*parts) if parts else ((), (), ())
        indptr = np.append(np.int64(0), np.cumsum([len(items) for items in drawn], dtype=np.int64))
        nothing = np.zeros(0, dtype=np.int32)
        items, order = (np.concatenate([nothing, *columns]) for columns in (drawn, places))
        return replace(self, drawn=Drawn(users, indptr, items, order, sum(short)))

    def _draws(
        self, users: NDArray[np.int32], wanted: int
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], bool]]:
        """Yield the N_u of each user, drawn from each group that has one of the user's relevant items, if grouped.

        These are the items, the position of each in the draw, and whether there were too few.
        """
        pool, grouped = self.pool(users), self.ranking.candidates == "group"
        rows, relevant = self.relevant_cells(users) if grouped else (users[:0], users[:0])
        for row, user in enumerate(users):
            candidates = np.flatnonzero(pool[row])
            # Each user has its own random stream, so that the draw does not depend on which users are served.
            keys = stream(self.seed, "targets", int(user)).random(self.train.n_items)
            parts = [candidates]
            if grouped:
                own = relevant[np.searchsorted(rows, row) : np.searchsorted(rows, row, side="right")]
                groups = np.unique(self._groups[own])
                parts = [candidates[self._groups[candidates] == group] for group in groups]
            parts = [_first(part, keys[part], wanted) for part in parts]
            chosen = np.concatenate([candidates[:0], *parts])
            places = np.concatenate([candidates[:0], *(np.arange(len(part)) for part in parts)])
            ascending = np.argsort(chosen)  # needs no stable sort, since no item is drawn twice
            short = any(len(part) < wanted for part in parts)
            yield chosen[ascending].astype(np.int32), places[ascending].astype(np.int32), short

    @property
    def _groups(self) -> NDArray[np.int16]:
        assert self.item_groups is not None
        return self.item_groups


@dataclass(frozen=True, eq=False)
class Drawn:
    """The drawn items of each of the ascending ``users``: ``indptr`` into ``items``, which also ascend."""

    users: NDArray[np.int32]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    places: NDArray[np.int32]  # the position of each item in the draw, from 0
    short: int  # the number of users with fewer items than were to be drawn

    def first(self, wanted: int | NDArray[np.integer[Any]]) -> Drawn:
        """Return the first ``wanted`` items of each user, as a smaller draw without groups would return them.

        ``wanted`` is one number, or one per user.
        """
        early = self.places < np.repeat(np.broadcast_to(wanted, len(self.users)), np.diff(self.indptr))
        indptr = np.append(np.int64(0), np.cumsum(early, dtype=np.int64))[self.indptr].astype(np.int64)
        short = int(np.count_nonzero(np.diff(indptr) < wanted))
        return Drawn(self.users, indptr, self.items[early], self.places[early], short)

    def cells(self, users: NDArray[Any]) -> ItemCells:
        """Return row (index in ``users``) and item of the drawn items."""
        rows, entries = _profiles(self.indptr, np.searchsorted(self.users, users))
        return rows, self.items[entries]

    def padded(self, users: NDArray[Any]) -> NDArray[np.int32]:
        """Return one row per user: the drawn items, padded with -1."""
        rows, items = self.cells(users)
        sizes = np.bincount(rows, minlength=len(users))
        table = np.full((len(users), int(sizes.max(initial=0))), -1, dtype=np.int32)
        table[rows, np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]] = items
        return table

    def mask(self, users: NDArray[Any], width: int) -> NDArray[np.bool_]:
        """Return a users × items mask of the drawn items."""
        mask = np.zeros((len(users), width), dtype=np.bool_)
        mask[self.cells(users)] = True
        return mask


def _first(items: NDArray[np.int64], keys: NDArray[np.float64], wanted: int) -> NDArray[np.int64]:
    """Return the ``wanted`` items with the smallest keys, in the order of the keys."""
    if 0 < wanted < len(items):  # sort only the drawn items
        smallest = np.argpartition(keys, wanted - 1)[:wanted]
        items, keys = items[smallest], keys[smallest]
    return items[np.argsort(keys, kind="stable")[:wanted]]


def rated_cells(ratings: Ratings, users: NDArray[Any]) -> ItemCells:
    """Return row (index in ``users``) and item of the ratings of these users."""
    rows, entries = _profiles(ratings.indptr, users)
    return rows, ratings.items[entries]


def _profiles(indptr: NDArray[np.int64], places: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row (index in ``places``) and position of every entry of these slices."""
    starts = indptr[places]
    sizes = indptr[np.asarray(places) + 1] - starts
    ends = np.cumsum(sizes)
    rows = np.repeat(np.arange(len(places)), sizes)
    entries = np.arange(int(sizes.sum())) + np.repeat(starts - (ends - sizes), sizes)
    return rows, entries

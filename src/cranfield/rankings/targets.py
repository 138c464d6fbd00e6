"""Decision C1: which items a user's list may hold (Bellogín, Castells and Cantador 2017, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._progress import progress
from cranfield._random import stream
from cranfield._record import Step
from cranfield.data import Ratings

Candidates = Literal["all", "test"]
Relevant = Literal["all", "one"]

Cells = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class Targets:
    r"""The items that the lists of each user may hold.

    .. math:: T_u = N_u \cup PR_{test}(u), \qquad N_u \subset C \setminus PR_{test}(u) \setminus R_{train}(u)

    Parameters
    ----------
    train, test
        The split; ``test`` may be None where nothing below needs it.
    candidates
        C: ``"all"`` items of the vocabulary, or those that have a ``"test"`` rating.
    relevant
        ``"all"``: one list a user, with all relevant items. ``"one"``: a list for each relevant item r of the
        user, over N_u ∪ {r}.
    nonrelevant
        |N_u|, drawn at random for each user, the same for every system; None for all of them.
    condensed
        Whether only items that the user rated in the test set are kept.
    keep_seen
        Whether the user's training items may be recommended again.
    threshold
        The least test rating of a relevant item.
    seed
        Fixes the draw.
    """

    train: Ratings
    test: Ratings | None = None
    candidates: Candidates = "all"
    relevant: Relevant = "all"
    nonrelevant: int | None = None
    condensed: bool = False
    keep_seen: bool = False
    threshold: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check.one_of("candidates", self.candidates, ("all", "test"))
        check.one_of("relevant", self.relevant, ("all", "one"))
        checked = {
            "nonrelevant": None if self.nonrelevant is None else check.whole("nonrelevant", self.nonrelevant),
            "condensed": check.flag("condensed", self.condensed),
            "keep_seen": check.flag("keep_seen", self.keep_seen),
            "threshold": None if self.threshold is None else check.number("threshold", self.threshold),
            "seed": check.whole("seed", self.seed, at_least=0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        needs_test = {
            "candidates='test'": self.candidates == "test",
            "relevant='one'": self.relevant == "one",
            "nonrelevant": self.nonrelevant is not None,
            "condensed lists": self.condensed,
        }
        for name, asked in needs_test.items():
            if asked and self.test is None:
                raise SettingError(f"{name} needs the test ratings; give a split, or --test")
        if self._asks_for_relevant and self.threshold is None:
            raise SettingError("which test items are relevant is not said; give the threshold, such as threshold=4")

    @property
    def step(self) -> Step:
        """The choices, for the record."""
        names = ("candidates", "relevant", "nonrelevant", "condensed", "keep_seen", "threshold", "seed")
        return Step("targets", {name: getattr(self, name) for name in names})

    def relevant_cells(self, users: NDArray[np.int32]) -> Cells:
        """Return row (place in ``users``) and item of the relevant test items, ascending in both."""
        assert self.test is not None
        rows, entries = _profiles(self.test, users)
        keep = self.test.values[entries] >= self.threshold
        return rows[keep], self.test.items[entries[keep]]

    def pool(self, users: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return users × items: which items are N_u, before any is drawn."""
        allowed = self._open(users)
        if self._asks_for_relevant:
            allowed[self.relevant_cells(users)] = False
        return allowed

    @property
    def _asks_for_relevant(self) -> bool:
        return self.relevant == "one" or self.nonrelevant is not None

    def _open(self, users: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return C without what the user has seen, condensed if so asked."""
        shape = len(users), self.train.n_items
        if self.condensed:
            assert self.test is not None
            allowed = np.zeros(shape, dtype=np.bool_)
            rows, entries = _profiles(self.test, users)
            allowed[rows, self.test.items[entries]] = True
        elif self.candidates == "test":
            assert self.test is not None
            allowed = np.repeat((self.test.item_counts > 0)[None, :], len(users), axis=0)
        else:
            allowed = np.ones(shape, dtype=np.bool_)
        if not self.keep_seen:
            rows, entries = _profiles(self.train, users)
            allowed[rows, self.train.items[entries]] = False
        return allowed

    def draw(self, users: NDArray[np.int32]) -> Drawn | None:
        """Draw the N_u of these users; None if all non-relevant items are taken."""
        if self.nonrelevant is None:
            return None
        drawn: list[NDArray[np.int32]] = []
        with progress("Drawing targets", total=len(users), unit="users") as bar:
            for user in users:
                candidates = np.flatnonzero(self.pool(np.array([user], dtype=np.int32))[0])
                # A stream of its own for each user: the draw is the same whoever else is served.
                keys = stream(self.seed, "targets", int(user)).random(self.train.n_items)[candidates]
                chosen = candidates[np.argsort(keys, kind="stable")[: self.nonrelevant]]
                drawn.append(np.sort(chosen).astype(np.int32))
                bar.advance()
        sizes = np.array([len(one) for one in drawn], dtype=np.int64)
        return Drawn(
            np.append(np.int64(0), np.cumsum(sizes)),
            np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int32),
            int(np.count_nonzero(sizes < self.nonrelevant)),
        )

    def allowed(self, users: NDArray[np.int32], drawn: Drawn | None, first: int) -> NDArray[np.bool_]:
        """Return users × items: which items the one list of each user may hold.

        ``first`` is the place of ``users`` among those that ``drawn`` was drawn for.
        """
        if drawn is None:
            return self._open(users)
        allowed = drawn.mask(slice(first, first + len(users)), self.train.n_items)
        allowed[self.relevant_cells(users)] = True
        return allowed


@dataclass(frozen=True, eq=False)
class Drawn:
    """The drawn non-relevant items of each served user: ``indptr`` into ``items``; ``short`` users have fewer."""

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    short: int

    def mask(self, rows: slice, width: int) -> NDArray[np.bool_]:
        """Return rows × items: which items were drawn."""
        sizes = np.diff(self.indptr[rows.start : rows.stop + 1])
        mask = np.zeros((len(sizes), width), dtype=np.bool_)
        inside = slice(int(self.indptr[rows.start]), int(self.indptr[rows.stop]))
        mask[np.repeat(np.arange(len(sizes)), sizes), self.items[inside]] = True
        return mask


def _profiles(ratings: Ratings, users: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row (place in ``users``) and position of every rating of these users."""
    sizes = ratings.user_counts[users]
    ends = np.cumsum(sizes)
    rows = np.repeat(np.arange(len(users)), sizes)
    entries = np.arange(int(sizes.sum())) + np.repeat(ratings.indptr[users] - (ends - sizes), sizes)
    return rows, entries

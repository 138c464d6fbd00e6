"""Which ratings after a cut in time are test ratings: of which users and items, and how many per user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits.parts import Mask, by_profile, places
from cranfield.tables import day

_TARGETS = ("all", "first", "last", "random")
_UNKNOWN = ("keep", "drop", "apart")


@dataclass(frozen=True)
class AfterCut:
    """The rule that selects test ratings from the ratings after a cut.

    Parameters
    ----------
    target
        ``all`` of each user's ratings, the ``first``, the ``last``, a ``random`` one, or a number: that many next ones.
    new_users, new_items
        What to do with users and items without a rating before the cut: ``keep`` them, ``drop`` their ratings, or keep
        them and count them ``apart``.
    seed
        Seed of the random rating, and of the order of ratings in the same second.
    """

    target: str | int = "all"
    new_users: str = "keep"
    new_items: str = "keep"
    seed: int = 0

    @classmethod
    def checked(cls, target: Any, new_users: Any, new_items: Any, seed: Any) -> AfterCut:
        """Return the rule with these settings, or say which of them is wrong."""
        if not (isinstance(target, str) and target in _TARGETS):
            try:
                target = check.whole("target", target)
            except SettingError:
                raise SettingError(
                    f"target={target!r} is neither {', '.join(_TARGETS)} nor a whole number of at least 1"
                ) from None
        for name, value in (("new_users", new_users), ("new_items", new_items)):
            check.one_of(name, value, _UNKNOWN)
        return cls(target, new_users, new_items, check.whole("seed", seed, at_least=0))

    def settings(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, so that the record of a plain split stays short."""
        stated = {"target": self.target, "new_users": self.new_users, "new_items": self.new_items}
        usual = vars(AfterCut())
        differing = {name: value for name, value in stated.items() if value != usual[name]}
        return differing if self.target == "all" else {**differing, "seed": self.seed}

    @property
    def wanted(self) -> str:
        """The test ratings of a user, in words."""
        if isinstance(self.target, int):
            return f"each user's first {self.target} ratings"
        return {"all": "all ratings", "random": "a random rating of each user"}.get(
            self.target, f"each user's {self.target} rating"
        )

    def choose(self, ratings: Ratings, before: Mask, after: Mask, cut: int) -> Chosen:
        """Return which ratings after the cut are test ratings.

        Parameters
        ----------
        ratings
            All ratings; they have times.
        before, after
            Whether a rating is in the training period, and whether it is in the test period.
        cut
            The moment between the two, for messages and the random choice.
        """
        new_user, new_item = self._new(ratings, before, after)
        kept = after.copy()
        if self.new_users == "drop":
            kept &= ~new_user
        if self.new_items == "drop":
            kept &= ~new_item
        self._check_some(ratings, kept, after, cut)
        test, short = self._targets(ratings, kept, cut)
        return Chosen(self, ratings, cut, after, kept, test, new_user, new_item, short)

    def _new(self, ratings: Ratings, before: Mask, after: Mask) -> tuple[Mask, Mask]:
        """Return which ratings after the cut are from new users, and of new items, if that matters."""
        nobody = np.zeros(len(ratings), dtype=bool)
        if self.new_users == "keep" and self.new_items == "keep":
            return nobody, nobody
        # Use masks: copying the ratings before the cut, most of all ratings, would double the memory.
        known_user = np.zeros(ratings.n_users, dtype=bool)
        known_user[ratings.user_counts > 0] = by_profile(ratings, np.logical_or, before)
        known_item = np.zeros(ratings.n_items, dtype=bool)
        known_item[ratings.items[before]] = True
        new_user = np.repeat(~known_user, ratings.user_counts) & after
        new_item = ~known_item[ratings.items] & after
        return new_user, new_item

    def _check_some(self, ratings: Ratings, kept: Mask, after: Mask, cut: int) -> None:
        if kept.any():
            return
        users = len(np.unique(ratings.users[after]))
        raise ImpossibleSplitError(
            f"no test rating is left after {day(cut)}: the ratings of the {count_text(users, 'user')} there are "
            "dropped, because these users or the items have no earlier rating; keep them with new_users=keep and "
            "new_items=keep, or choose a later cut"
        )

    def _targets(self, ratings: Ratings, kept: Mask, cut: int) -> tuple[Mask, int]:
        """Return the test ratings, and how many users have fewer than the target."""
        if self.target == "all":
            return kept, 0
        candidates = ratings.keep(kept)
        generator = stream(self.seed, "split", "after cut", str(self.target), cut)
        times = None if self.target == "random" else candidates.times
        place, size = places(candidates.indptr, generator, times), candidates.user_counts
        if self.target == "last":
            chosen = place == np.repeat(size - 1, size)
        else:
            chosen = place < (self.target if isinstance(self.target, int) else 1)
        short = int(np.count_nonzero((size > 0) & (size < self.target))) if isinstance(self.target, int) else 0
        some = int(np.count_nonzero(size))
        if short == some:
            raise ImpossibleSplitError(
                f"target={self.target}: none of the {count_text(some, 'user')} with ratings after {day(cut)} has "
                f"{self.target} of them; choose target={int(size.max())} or less, or an earlier cut"
            )
        test = kept.copy()
        test[kept] = chosen
        return test, short


@dataclass(frozen=True, eq=False)
class Chosen:
    """The test ratings after a cut, and what happened to the others."""

    rule: AfterCut
    ratings: Ratings
    cut: int
    after: Mask
    kept: Mask
    test: Mask
    new_user: Mask
    new_item: Mask
    short: int

    def effect(self) -> dict[str, Any]:
        """Return the counts for the record of a split, only those that the settings call for."""
        effect: dict[str, Any] = {}
        if self.rule.new_users != "keep":
            effect["ratings_of_new_users"] = int(np.count_nonzero(self.new_user))
        if self.rule.new_items != "keep":
            effect["ratings_of_new_items"] = int(np.count_nonzero(self.new_item))
        if "drop" in (self.rule.new_users, self.rule.new_items):
            effect["dropped"] = int(np.count_nonzero(self.after & ~self.kept))
        if self.rule.target != "all":
            effect["unused"] = int(np.count_nonzero(self.kept & ~self.test))
        return effect

    def notes(self) -> Iterator[str]:
        """Yield the sentences that a reader should see."""
        for what, policy, mask, codes in (
            ("users", self.rule.new_users, self.new_user, self.ratings.users),
            ("items", self.rule.new_items, self.new_item, self.ratings.items),
        ):
            if policy != "keep" and mask.any():
                done = "dropped" if policy == "drop" else f"kept; show them separately with the segment cold_{what}"
                number = len(np.unique(codes[mask]))
                yield (
                    f"{count_text(number, what[:-1])} {'has' if number == 1 else 'have'} no rating before "
                    f"{day(self.cut)}; their {count_text(int(np.count_nonzero(mask)), 'later rating')}: {done}"
                )
        if self.rule.target != "all":
            others = count_text(int(np.count_nonzero(self.kept & ~self.test)), "other rating")
            yield f"test part: {self.rule.wanted} from {day(self.cut)} on; {others} in no part"
        if self.short:
            yield (
                f"{count_text(self.short, 'user')} with fewer than {self.rule.target} ratings from {day(self.cut)} on; "
                "all of these are test ratings"
            )

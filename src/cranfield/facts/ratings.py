"""Facts of ratings: how they were read, filtered and simulated."""

from __future__ import annotations

from cranfield._numbers import count_text
from cranfield.facts.fact import Fact


class RatingsInNumbers(Fact):
    """The size of a set of ratings."""

    name: str | None
    ratings: int
    users: int
    items: int
    density: float  # the share of pairs of a user and an item that have a rating

    def _said(self) -> str:
        of_name = f"{self.name}: " if self.name else ""
        items, users = count_text(self.items, "item"), count_text(self.users, "user")
        share = f"{100 * self.density:.3g} % of all pairs"
        return f"{of_name}{count_text(self.ratings, 'rating')} of {items} by {users} ({share})."


class ImplicitFeedback(Fact):
    """There is no column of ratings, so that every rating is 1."""

    def _said(self) -> str:
        return "There is no rating column: every rating is 1 (implicit feedback)."


class MergedRepeats(Fact):
    """Ratings of pairs that had one already, and how they were merged."""

    count: int
    repeated: str

    def _said(self) -> str:
        repeats = "1 repeated rating was" if self.count == 1 else f"{self.count:,} repeated ratings were"
        return f"{repeats} merged (repeated={self.repeated!r})."


class KeptEvents(Fact):
    """Events that were read, and how their pairs become ratings in training and in the other parts of a split."""

    events: int
    pairs: int
    train: str
    test: str

    def _said(self) -> str:
        how = self.train if self.train == self.test else f"{self.train} in training, {self.test} elsewhere"
        return (
            f"{self.events:,} events of {self.pairs:,} pairs of user and item: splits divide the events, and merge "
            f"each part by itself ({how})."
        )


class TiedBaskets(Fact):
    """Users with several baskets at the same time, whose order is that of their ids."""

    users: int

    def _said(self) -> str:
        return f"{count_text(self.users, 'user')} with several baskets at the same time: these are in the order of ids."


class BasketsAgainstTime(Fact):
    """Users with a basket that has a larger number than a later one."""

    users: int

    def _said(self) -> str:
        return (
            f"{count_text(self.users, 'user')} with baskets whose numbers run against their times: the order is that "
            "of the times."
        )


class WithoutFeatures(Fact):
    """Users or items that the file of features does not describe."""

    missing: int
    of: int
    about: str  # user or item

    def _said(self) -> str:
        return f"There are no features for {self.missing:,} of the {self.of:,} {self.about}s."


class FewRatings(Fact):
    """Users or items that have too few ratings after a filter that was not repeated."""

    count: int
    kind: str  # users or items
    least: int

    def _said(self) -> str:
        return (
            f"{self.count:,} {self.kind} have fewer than {self.least} ratings after the filter, because it removed "
            "others; repeat=true repeats the filter until there are none"
        )


class UnknownIds(Fact):
    """Users or items that were asked for and have no rating."""

    count: int
    kind: str

    def _said(self) -> str:
        return f"{self.count:,} of the given {self.kind} are not in the ratings"


class OtherProfiles(Fact):
    """Simulated users whose profiles could not have the size that was asked for."""

    users: int

    def _said(self) -> str:
        return f"{self.users:,} users have profiles of a different size than requested: the item counts leave no room"

"""Facts of groups of users or items and of windows of time: how they are made, and where orders are reversed."""

from __future__ import annotations

from cranfield._numbers import listed
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import p_equals, p_text

FEWEST_WINDOWS = 6
"""With fewer windows, even a lead in all of them has a p-value above .05, so none is reported."""


class ByActivity(Fact):
    """New, light and heavy users: the fewest training ratings of a light one, and the most."""

    new: int
    limit: float

    def _said(self) -> str:
        return (
            f"new users have fewer than {self.new} training ratings, light ones {self.new} to {self.limit:.0f}, and "
            f"heavy ones more than {self.limit:.0f}"
        )


class ByPopularity(Fact):
    """Items from most to least popular, in groups with shares of the training ratings or items."""

    shares: tuple[tuple[str, float], ...]
    of: str

    def _said(self) -> str:
        parts = listed([f"{name} {100 * share:.0f} %" for name, share in self.shares])
        return f"items are grouped from most to least popular by their share of the training {self.of}: {parts}"


class ByPeriod(Fact):
    """Test ratings by time: the names of the periods, and their first and last days."""

    periods: tuple[tuple[str, str, str], ...]

    def _said(self) -> str:
        spans = listed([f"{name} from {first} to {last}" for name, first, last in self.periods])
        return f"test ratings are grouped by their time (UTC): {spans}"


class ByRepeats(Fact):
    """Test items that their users had before, in training, and the others."""

    repeated: int
    of: int

    def _said(self) -> str:
        share = 100 * self.repeated / max(self.of, 1)
        return f"repeated items are in their user's training ratings: {self.repeated:,} of {self.of:,} ({share:.1f} %)"


class WarmAndCold(Fact):
    """Users or items that are cold, with at most so many training ratings, and the others."""

    of: str
    most: int

    def _said(self) -> str:
        few = "no training rating" if self.most == 0 else f"{self.most} training ratings or fewer"
        return f"cold {self.of} have {few}, warm ones more"


class WithoutGroup(Fact):
    """Users (of lists) or items (of test ratings) that a segment does not mention."""

    segment: str
    things: str
    count: int
    of: int

    def _said(self) -> str:
        counted = "lists have users" if self.things == "users" else "test ratings have items"
        many = f"{self.count:,} of {self.of:,} {counted}"
        return f"{many} without a group in {self.segment}: they are in the group unknown"


class RatingsOfGroup(Fact):
    """The lists of a group of items or test ratings are measured by its ratings only."""

    def _said(self) -> str:
        return "lists are measured as if the test set held only the ratings of the group"


class InGroup(Fact):
    """How the systems stand in a group, by the main metric; None if nothing is measured there."""

    segment: str
    group: str
    users: str
    standing: Fact | None

    def _said(self) -> str:
        group = f"{self.segment}, {self.group} ({self.users} {'user' if self.users == '1' else 'users'})"
        return f"{group}: {self.standing or 'nothing can be said, since nothing is measured there.'}"


class ReversedOrder(Fact):
    """Two systems whose order is significantly reversed in a group."""

    segment: str  # where, by which metric, and which two systems
    group: str
    metric: str
    systems: tuple[str, str]
    ahead: tuple[str, str]  # the system that is ahead in the group, and the one that is ahead elsewhere
    inside: float
    outside: float
    p: float  # the test of the interaction
    p_corrected: float  # over all groups and pairs of the metric
    test: str

    def _said(self) -> str:
        how = f"{self.metric}, p {p_equals(self.p_corrected)}"
        return f"{self.ahead[0]} leads {self.ahead[1]} in {self.group}, not elsewhere ({how})"


class Reversals(Fact):
    """Whether the order of two systems is reversed in a group: what a segment is looked at for."""

    segment: str
    groups: int
    shown: tuple[ReversedOrder, ...]  # those that are significant, the main metric first
    by_chance: int  # the number of those that are not
    # The smallest corrected p-value of those that are not; None if there are too few users to test any.
    smallest_p: float | None = None
    main: str = ""  # the main metric

    def _said(self) -> str:
        by, groups = f"By {self.segment}", "both groups" if self.groups == 2 else f"all {self.groups} groups"
        pairs = list(dict.fromkeys(order.systems for order in self.shown if order.metric == self.main))
        if len(pairs) == 1:
            return f"{by}, {self.shown[0]}."
        if pairs:
            return f"{by}, {self._changing(pairs)} by {self.main}."
        if self.shown:
            metrics = list(dict.fromkeys(order.metric for order in self.shown))
            return f"{by}, no order by {self.main} is shown to be reversed in a group; by {listed(metrics)} some are."
        if not self.by_chance:
            return f"{by}, systems have the same order in {groups}."
        why = "too few users to test it" if self.smallest_p is None else f"smallest p {p_text(self.smallest_p)}"
        return f"{by}, no order is shown to be reversed in a group ({why})."

    @staticmethod
    def _changing(pairs: list[tuple[str, str]]) -> str:
        """Return which systems change places between groups: those that one system changes with, or how many pairs."""
        in_all = [system for system in pairs[0] if all(system in pair for pair in pairs)]
        if not in_all:
            return f"{len(pairs)} pairs of systems change places between groups"
        others = [system for pair in pairs for system in pair if system != in_all[0]]
        return f"{in_all[0]} changes places with {listed(others)} between groups"


class WindowLeads(Fact):
    """The system that leads in each window of time by a metric."""

    metric: str  # the metric, and when each window starts
    windows: tuple[str, ...]
    best: str  # the system that leads over all windows, by the mean of the windows' averages
    leaders: tuple[str, ...]  # the system that leads in each window
    second: str  # the system that comes second over all windows
    won: int  # the numbers of windows in which the best system is ahead of the second and behind it
    lost: int
    p: float | None  # the p-value of the two-sided sign test over windows; None with fewer than `FEWEST_WINDOWS`

    def _said(self) -> str:
        number, latest = len(self.windows), self.leaders[-1]
        led = self.leaders.count(self.best)
        if led == number:
            said = f"the winner is stable: {self.best} leads in {'both' if number == 2 else f'all {number}'} windows"
        elif latest != self.best:
            said = (
                f"the latest window disagrees: {self.best} leads over all windows and in {led} of {number}, but "
                f"{latest} leads from {self.windows[-1]} on"
            )
        else:
            said = f"the winner is not stable: {self.best} leads in {led} of {number} windows, including the latest"
        tested = (
            f"no p-value with fewer than {FEWEST_WINDOWS} windows" if self.p is None else f"sign test p = {self.p:.3f}"
        )
        return (
            f"{self.metric}: {said}. The test over users applies to these windows only; for other times, "
            f"{self.best} is ahead of {self.second} in {self.won} of {number} windows and behind in {self.lost} "
            f"({tested})."
        )

"""Facts of groups of users or items and of windows of time: how they are made, and where orders are reversed."""

from __future__ import annotations

from cranfield._numbers import listed
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import p_text

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
    """The verdict of a group: the facts of its comparison, None if nothing is measured there."""

    segment: str
    group: str
    users: str
    facts: tuple[Fact, ...] | None

    def _said(self) -> str:
        group = f"{self.segment}, {self.group} ({self.users} {'user' if self.users == '1' else 'users'})"
        if self.facts is None:
            return f"{group}: nothing can be said, since nothing is measured there."
        return f"{group}: {' '.join(map(str, self.facts))}"


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
    p_corrected: float
    test: str

    def _said(self) -> str:
        a, b = self.systems
        p = f"p of the interaction {p_text(self.p)}, corrected for all groups and pairs {p_text(self.p_corrected)}"
        return (
            f"{self.segment}, {self.metric}: the order of {a} and {b} is reversed in {self.group}: {self.ahead[0]} is "
            f"ahead by {abs(self.inside):.4f} there, and {self.ahead[1]} by {abs(self.outside):.4f} elsewhere "
            f"({p}; {self.test})."
        )


class OtherReversals(Fact):
    """Further reversals that are not named one by one."""

    segment: str
    cases: int  # their number
    significant: bool  # whether they are significant
    # The smallest corrected p-value of those that are not; None if there are too few users to test any.
    smallest_p: float | None = None

    def _said(self) -> str:
        if self.significant:
            return f"{self.segment}: there are {self.cases:,} more such cases."
        if not self.cases:
            return f"{self.segment}: no two systems change places in any group."
        cases = "1 case" if self.cases == 1 else f"{self.cases:,} cases"
        why = "with too few users to test it"
        if self.smallest_p is not None:
            why = f"not significantly (smallest corrected p of an interaction: {p_text(self.smallest_p)})"
        return f"{self.segment}: in {cases} two systems change places between a group and the rest, {why}."


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

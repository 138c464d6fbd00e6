"""Facts of groups of users or items and of windows of time: where the order of systems is reversed."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.facts.fact import Fact
from cranfield.facts.numbers import p_text

FEWEST_WINDOWS = 6
"""With fewer windows, even a lead in all of them has a p-value above .05, so none is reported."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ReversedOrder(Fact):
    """Two systems whose order is significantly reversed in a group.

    Parameters
    ----------
    segment, group, metric, systems
        Where, by which metric, and which two systems.
    ahead
        The system that is ahead in the group, and the one that is ahead elsewhere.
    inside, outside
        By how much.
    p, p_corrected, test
        The test of the interaction.
    """

    segment: str
    group: str
    metric: str
    systems: tuple[str, str]
    ahead: tuple[str, str]
    inside: float
    outside: float
    p: float
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


@dataclass(frozen=True)
class OtherReversals(Fact):
    """Further reversals that are not named one by one.

    Parameters
    ----------
    cases
        Their number.
    significant
        Whether they are significant.
    smallest_p
        The smallest corrected p-value of those that are not; None if there are too few users to test any.
    """

    segment: str
    cases: int
    significant: bool
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


@dataclass(frozen=True)
class WindowLeads(Fact):
    """The system that leads in each window of time by a metric.

    Parameters
    ----------
    metric, windows
        The metric, and when each window starts.
    best
        The system that leads over all windows, by the mean of the windows' averages.
    leaders
        The system that leads in each window.
    second
        The system that comes second over all windows.
    won, lost
        The numbers of windows in which the best system is ahead of the second and behind it.
    p
        The p-value of the two-sided sign test over windows; None with fewer than `FEWEST_WINDOWS`.
    """

    metric: str
    windows: tuple[str, ...]
    best: str
    leaders: tuple[str, ...]
    second: str
    won: int
    lost: int
    p: float | None

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

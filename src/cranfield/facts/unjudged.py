"""Facts about unjudged items: how many of them would reverse an order, and whether more judgments are needed."""

from __future__ import annotations

import numpy as np

from cranfield.facts.fact import Fact


class TippingPoint(Fact):
    """How many more of the loser's unjudged items must be liked to reverse the order of two systems."""

    metric: str  # the metric and its parameters
    winner: str  # the two systems, by the judged items alone
    loser: str
    difference: float  # by how much the winner leads
    # How many more of the loser's own unjudged items than of the winner's must be liked, as a difference of shares;
    # None if even all of them are not enough.
    share: float | None
    error: float  # the standard error of the share, where it comes from simulated judgments; 0 where it is exact
    # The numbers of unjudged items that only the winner's lists, only the loser's lists and both have.
    unjudged_winner: int
    unjudged_loser: int
    unjudged_both: int
    base: float  # the share of the winner's own unjudged items that is assumed to be liked

    @property
    def items(self) -> int | None:
        """The share as a number of items: those that only the loser's lists have, times the share."""
        return None if self.share is None else int(np.ceil(self.share * self.unjudged_loser - 1e-9))

    def _said(self) -> str:
        if self.difference == 0:
            return f"{self.metric}: {self.winner} and {self.loser} are level; one more liked item decides."
        if self.share is None:
            none_of = "none" if self.base == 0 else f"{self.base:.0%}"
            return (
                f"{self.metric}: even if all unjudged items of {self.loser} and {none_of} of {self.winner}'s were "
                f"liked, {self.winner} would stay ahead."
            )
        about = "" if self.error == 0 else f" (± {200 * self.error:.1g})"
        return (
            f"{self.metric}: if {100 * self.share:.3g} %{about} more of {self.loser}'s unjudged items than of "
            f"{self.winner}'s are liked, the order is reversed: {self.items:,} of the {self.unjudged_loser:,} that "
            f"only {self.loser} lists."
        )


class ContestState(Fact):
    """Where a comparison of two systems stands while judgments are collected."""

    metric: str  # the metric, the system that is expected to be ahead, and the other
    ahead: str
    behind: str
    by_judged: str | None  # the system that is ahead by the judged items alone; None if they are level
    pairs: int  # the number of unjudged pairs that matter
    difference: float  # the difference by the judged items, and its bounds under any judgments of the others
    lower: float
    upper: float
    probability: float  # the probability that the system expected to be ahead really is
    settled: bool  # whether no judgment can change the sign of the difference, and whether the two are then level
    level: bool

    def _said(self) -> str:
        if self.level:
            return (
                f"{self.metric}: settled. {self.ahead} and {self.behind} are level for these users, and no judgment is "
                "left that could tell them apart."
            )
        ends, rest = f"between {self.lower:+.4f} and {self.upper:+.4f}", f"{self.pairs:,} unjudged pairs that matter"
        if self.settled:
            return (
                f"{self.metric}: settled. {self.ahead} is ahead of {self.behind} for these users, whatever the answers "
                f"to the remaining {rest} (difference {ends})."
            )
        sure = "above 0.999" if self.probability > 0.999 else f"{self.probability:.3f}"
        otherwise = ""
        if self.by_judged not in (None, self.ahead):
            otherwise = f" By the judged items alone {self.by_judged} is ahead."
        return (
            f"{self.metric}: not settled. {self.ahead} is ahead of {self.behind} with probability {sure}, if the "
            f"{rest} are liked as the test ratings of their items are (difference {self.difference:+.4f}, {ends})."
            f"{otherwise}"
        )

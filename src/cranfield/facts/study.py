"""Facts of a study that was repeated: whether the claims of its paper hold here, and when a claim holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Literal

from cranfield._numbers import percent_text
from cranfield.facts.fact import Fact

ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]
ClaimDraws = Literal["draws of systems", "splits", "repetitions"]

SURE = 0.9
"""The minimum share of draws with the same outcome that a verdict on a claim needs."""

_share = partial(percent_text, unit=" %")
_RULES: dict[ClaimDraws, str] = {
    "draws of systems": (
        f"A claim holds if its margin is above 0 for all systems and in at least {SURE:.0%} of 200 bootstrap draws of "
        "the systems; it does not hold if it is below 0 in as many; otherwise it cannot be decided. With fewer than "
        "five systems nothing can be decided."
    ),
    "splits": (
        f"A claim holds if its margin is above 0 on average and in at least {SURE:.0%} of the splits that it was "
        "measured on; it does not hold if it is below 0 in as many; otherwise it cannot be decided."
    ),
    "repetitions": (
        "Each repetition is a study with other random choices. A claim holds if it holds in at least "
        f"{SURE:.0%} of the repetitions, and does not hold if it does not hold in as many; otherwise it cannot be "
        "decided."
    ),
}


class ClaimRule(Fact):
    """When the claims of a study hold, by what the shares of a verdict refer to."""

    drawn: ClaimDraws

    def _said(self) -> str:
        return _RULES[self.drawn]

    @property
    def note(self) -> str:
        """What the columns of a table of claims mean."""
        return (
            f"so, opposite: share of the {self.drawn} for and against (the rest decide nothing); a verdict needs "
            f"{SURE:.0%}"
        )


OF_SYSTEMS, OF_SPLITS, OF_REPETITIONS = map(ClaimRule, _RULES)


class OverRepetitions(Fact):
    """In how many repetitions a claim holds, and the evidence of the first one."""

    holds: int
    repetitions: int
    first: str

    def _said(self) -> str:
        return f"holds in {self.holds} of {self.repetitions} repetitions; first: {self.first}"


class Finding(Fact):
    """A claim of a paper and its verdict."""

    claim: str  # what the paper says, in short
    where: str  # the section that says it
    verdict: ClaimVerdict  # whether it holds here
    evidence: str | OverRepetitions  # the numbers that the verdict is based on
    margin: float  # by how much it is true: above 0 if it is, below 0 if it is not
    sure: float | None = None  # the share of what is ``drawn`` in which it is true; None if nothing is drawn
    against: float | None = None  # the share in which the opposite is true; the rest are ties
    drawn: ClaimDraws = "splits"

    def on(self, data: str) -> Finding:
        """Return the finding with the name of the ratings, if it has one, before the claim."""
        return replace(self, claim=f"{data}: {self.claim}") if data else self

    @property
    def cells(self) -> list[str]:
        """The claim, its section, its verdict, and the shares for and against it."""
        return [self.claim, self.where, self.verdict, _share(self.sure), _share(self.against)]

    @property
    def support(self) -> str:
        """Where the paper says it, and the shares for and against it."""
        place = f"section {self.where}" if self.where[:1].isdigit() else self.where
        if self.sure is None or self.against is None:
            return place
        return f"{place}; so in {_share(self.sure)} of the {self.drawn}, the opposite in {_share(self.against)}"

    def _said(self) -> str:
        return f"{self.claim} ({self.support})"


class ClaimCounts(Fact):
    """How many claims of a study hold on some ratings."""

    study: str
    data: str
    verdicts: tuple[ClaimVerdict, ...]

    def _said(self) -> str:
        count = Counter(self.verdicts)
        return (
            f"{len(self.verdicts)} claims of {self.study} on {self.data}: {count['holds']} hold, "
            f"{count['does not hold']} do not hold, {count['cannot tell']} cannot be decided."
        )

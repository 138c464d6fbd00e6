"""Facts about sparsity and popularity: what popularity explains, what changes without it, and what cannot be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cranfield._numbers import listed, number_text, percent_text
from cranfield.facts.fact import Fact

CHOSEN = "AR"
CONTROLS = {"1R": CHOSEN, "P1R": "1R", "U1R": "1R", "AR-NN": CHOSEN, "UAR": "AR-NN"}
"""What each protocol is compared with: it differs from its control by popularity's advantage, or by the design."""
NEUTRAL = ("P1R", "U1R", "UAR")
ONE_RELEVANT = ("1R", "P1R", "U1R")
_MOST_NAMED = 3

NAMES = {
    "AR": "as measured",
    "1R": "one by one",
    "AR-NN": "fewer items",
    "P1R": "equally popular items",
    "U1R": "equal tests, one by one",
    "UAR": "equal tests per item",
}
"""What each protocol is called where there is little room."""

SAYS = {
    "AR": "all test ratings, all items",
    "1R": "each relevant item among drawn items with test ratings; popularity keeps its advantage",
    "P1R": "each relevant item among items of its popularity percentile",
    "U1R": "as 1R, with the same number of test ratings per item",
    "AR-NN": "drawn items with test ratings, as precise at random as UAR; popularity keeps its advantage",
    "UAR": "the same number of test ratings per item, items with test ratings only",
}

_REMARKS = {
    "only popularity": "Popularity is the only system with a score; name others to compare it with.",
    "no neutral protocol": (
        "No neutral protocol is possible with these ratings, so nothing can be said about the order."
    ),
    "more changes": "More changes are in the table of conclusions.",
    "liked or met": (
        "Whether popular items are liked more, or people only come across them more often, cannot be seen from "
        "ratings that people chose to give. A neutral protocol removes both effects. Judgments of items chosen at "
        "random can tell them apart."
    ),
    "nothing below the threshold": (
        "No rating is below the threshold. Then every item has the same share of positive ratings, and under uniform "
        "test ratings (U1R, UAR) popularity falls to random, or near it in dense data, whatever it is worth (Bellogín "
        "et al. 2017, section 6.2)."
    ),
    "lists differ": "the lists differ between users, and the formula is for a ranking that is the same for all",
    "relevant ratings alone": (
        "no test rating is below the threshold: SNIPS of precision and doubly robust estimates are left out"
    ),
}


class PopularityRemark(Fact):
    """A fact without numbers, by its name."""

    name: str

    def _said(self) -> str:
        return _REMARKS[self.name]


class WinnerWithoutPopularity(Fact):
    """Whether the winner under the chosen protocol stays first under the others, and what is responsible if not.

    ``first`` are the systems at the top under the chosen protocol, ``others`` the other protocols. Systems come with
    the protocols under which they are significantly better than the winner under its control: because of the
    ``design``, if this keeps popularity's advantage, or of ``popularity``. Those in ``opened`` lead, or are level with
    that winner, without being significantly better.
    """

    first: tuple[str, ...]
    others: tuple[str, ...]
    design: Mapping[str, tuple[str, ...]]
    popularity: Mapping[str, tuple[str, ...]]
    opened: Mapping[str, tuple[str, ...]]

    def _said(self) -> str:
        winner, *level = self.first
        if level:
            return f"{listed(self.first)} are level as measured, so there is no winner to look at."
        if self.popularity and not self.design:
            other = _who(self.popularity)
            return f"The winner depends on popularity: {winner} as measured, {other} without its advantage."
        if self.popularity:
            return (
                f"The winner depends on the design and on popularity: {winner} as measured, {_who(self.design)} by the "
                f"design, {_who(self.popularity)} without popularity's advantage."
            )
        ahead = f"; elsewhere it is open: {_who(self.opened)}" if self.opened else ""
        if self.design:
            causes = "the design" if ahead else "the design, not on popularity"
            by_design = f"{winner} as measured, {_who(self.design)} where popularity keeps its advantage"
            return f"The winner depends on {causes}: {by_design}{ahead}."
        if ahead:
            return f"{winner} is first as measured{ahead}."
        return f"{winner} stays first without popularity's advantage."


def _who(systems: Mapping[str, tuple[str, ...]]) -> str:
    return listed([*systems]) if len(systems) <= _MOST_NAMED else f"{len(systems)} other systems"


class RandomPrecision(Fact):
    """The precision of a random ranking of the targets, as it is and as a formula predicts it."""

    rho: float
    predicted: float
    targets: float  # their harmonic mean number per list

    def _said(self) -> str:
        return (
            f"A random ranking of the targets ({self.targets:,.4g} per list) has a precision of {self.rho:.4g}; the "
            f"formula predicts {self.predicted:.4g}."
        )


class HighestEstimate(Fact):
    """The system with the highest estimate of a metric if everything were judged, by one estimator."""

    metric: str
    estimator: str
    system: str
    estimate: float
    lower: float
    upper: float

    def _said(self) -> str:
        interval = f"[{number_text(self.lower)}, {number_text(self.upper)}]"
        return (
            f"{self.metric}: {self.system} has the highest {self.estimator} estimate, {number_text(self.estimate)} "
            f"{interval}."
        )


class WholeCatalogue(Fact):
    """A metric among sampled items, and its estimate on the whole catalogue if the ranks identify it."""

    metric: str
    sampled: float
    estimate: float
    lower: float
    upper: float
    identified: bool

    def _said(self) -> str:
        interval = f"[{number_text(self.lower)}, {number_text(self.upper)}]"
        whole = f"{number_text(self.estimate)} {interval}" if self.identified else f"not identified, within {interval}"
        return f"{self.metric}: {number_text(self.sampled)} among sampled items; on the whole catalogue {whole}."


class TimesRandom(Fact):
    """How far the systems are above a random ranking by a metric: the lowest and the highest multiple."""

    metric: str
    least: float
    most: float

    def _said(self) -> str:
        return f"Systems reach {self.least:,.1f} to {self.most:,.1f} times the {self.metric} of a random ranking."


class ReachedByPopularity(Fact):
    """How much of the score of the best other system popularity alone reaches: its row of `Bias.shares`."""

    metric: str
    row: Mapping[str, Any]
    times_random: float | None

    def _said(self) -> str:
        times = self.times_random
        beside = f", {times:,.1f} times the score of a random ranking" if times is not None else ""
        return (
            f"{self.row['system']} has the best {self.metric} of the systems other than popularity, "
            f"{number_text(self.row['mean'])}{beside}. Ranking by popularity alone reaches "
            f"{percent_text(self.row['reached'], ' %')} of it."
        )


class CorrelatedWithPopularity(Fact):
    """The partial correlation of each system's scores with those of popularity."""

    correlations: Mapping[str, float]

    def _said(self) -> str:
        each = ", ".join(f"{system} {number_text(value, 2)}" for system, value in self.correlations.items())
        return (
            "Over users, given how many relevant items each has, the scores correlate with those of popularity by "
            f"{each}."
        )


class PopularItems(Fact):
    """How popular the items are that a system recommends: its row of `Bias.shares`."""

    row: Mapping[str, Any]

    def _said(self) -> str:
        return (
            f"The items that {self.row['system']} recommends are {self.row['recommended']:.1f} times as popular as the "
            f"average item of the catalogue; {percent_text(self.row['head'], ' %')} of them are in the head, the most "
            "popular items with a fifth of all ratings."
        )


class OrderUnder(Fact):
    """How the order under a protocol agrees with that under its control, and the places of popularity in both."""

    protocol: str
    tau: float
    before: int
    after: int

    def _said(self) -> str:
        agrees = f"the order agrees with that of {CONTROLS[self.protocol]} by tau {number_text(self.tau, 2)}"
        if np.isnan(self.tau):
            agrees = "all systems are level"
        moved = f"goes from place {self.before} to {self.after}"
        if self.before == self.after:
            moved = f"stays at place {self.before}"
        return f"Under {self.protocol} ({SAYS[self.protocol]}) {agrees}: popularity {moved}."


class ChangedConclusions(Fact):
    """How many pairs of systems have another conclusion: one that is reversed, lost or appears."""

    popularity: int  # pairs with a change from a control to a neutral protocol
    design: int  # pairs with a change from the chosen protocol to a control
    unclear: int  # pairs that are significant under one of the two only, by about the same difference
    pairs: int

    def _said(self) -> str:
        have = "has" if self.popularity == 1 else "have"
        unclear = f" In {self.unclear}, only the significance changes, which proves nothing." if self.unclear else ""
        return (
            f"{self.popularity or 'None'} of {self.pairs} pairs of systems {have} another conclusion without "
            f"popularity's advantage, and {self.design or 'none'} because of the design alone.{unclear}"
        )


class ChangedConclusion(Fact):
    """A conclusion that is reversed, is lost or appears between a control and protocols that are compared with it."""

    better: str  # of the two systems, under the control; if the conclusion appears, under the protocols
    other: str
    control: str
    protocols: tuple[str, ...]
    change: str

    def _said(self) -> str:
        pair, under = f"{self.better} is better than {self.other}", listed(self.protocols)
        cause = " because of the design" if self.control == CHOSEN else ""
        if self.change == "appears":
            return f"{pair} under {under}{cause}; under {self.control} that is not significant."
        ending = "the order is reversed" if self.change == "is reversed" else "that is not significant"
        return f"{pair} under {self.control}; under {under} {ending}{cause}."


class Levelled(Fact):
    """The number of non-relevant items that make AR as precise at random as UAR."""

    nonrelevant: int
    rho: float

    def _said(self) -> str:
        return (
            f"AR-NN: {self.nonrelevant:,} non-relevant items in a list, so that a random ranking has a precision of "
            f"{number_text(self.rho)}, as in UAR"
        )


class HowMeasured(Fact):
    """How lists of one relevant item are drawn and averaged, and over what the differences are tested."""

    nonrelevant: int
    by: str
    splits: int

    def _said(self) -> str:
        averaged = "user" if self.by == "user" else "list, as in equation (1)"
        tested = "users of one split, so p-values leave out how much another split would change"
        if self.splits > 1:
            tested = f"users and {self.splits} random splits; what popularity explains is of the first"
        return (
            f"1R, P1R and U1R: {self.nonrelevant:,} non-relevant items in a list, in expectation over the draw; "
            f"averaged by {averaged}. Tests are over {tested}"
        )


class OutsideLists(Fact):
    """The share of the relevant test items that are in no list, and the protocols for which it matters."""

    longest: int
    outside: float
    protocols: tuple[str, ...]

    def _said(self) -> str:
        return (
            f"The lists end at {self.longest:,} items, and {self.outside:.0%} of the relevant test items are outside "
            f"them on average. Under {', '.join(self.protocols)}, items outside follow in random order, so a system "
            "that would rank rare items well looks worse than it is: rank more items to see it."
        )


class NoteOn(Fact):
    """A note on protocols or estimates, all neutral protocols if none is named; or why they are left out."""

    names: tuple[str, ...]
    note: Any
    left_out: bool = True

    def _said(self) -> str:
        left_out = f" {'is' if len(self.names) == 1 else 'are'} left out" if self.left_out else ""
        return f"{listed(self.names or ('neutral protocols',))}{left_out}: {self.note}"


class GroupsTooSmall(Fact):
    """P1R is not possible: its groups have too few items for the metric, or for lists of ``drawn`` targets."""

    groups: int
    smallest: int
    wanted: int
    drawn: bool

    def _said(self) -> str:
        few = f"no more than the {self.wanted:,} that the metric looks at; choose fewer groups"
        if self.drawn:
            few = f"fewer than the {self.wanted:,} targets of a list; choose fewer groups or fewer targets"
        return f"P1R is left out: its {self.groups:,} popularity groups have {self.smallest:,} items, {few}"


class UniformRatings(Fact):
    """The test ratings of U1R and UAR: the same number for each of their items."""

    each: int
    items: int
    ratings: int
    of: int

    def _said(self) -> str:
        return (
            f"U1R and UAR: {self.each:,} test ratings of each of {self.items:,} items, {self.ratings:,} of "
            f"{self.of:,} in all"
        )


class SizesDiffer(Fact):
    """An assumption of the expected precision that does not hold: target sets have the same size."""

    smallest: int
    largest: int

    def _said(self) -> str:
        return (
            f"target sets differ in size, {self.smallest:,} to {self.largest:,} items: training items are removed, so "
            "a remaining item is more likely to be a test item than σ|PR(i)|/|U| says, especially for active users"
        )


class SplitMayNotDraw(Fact):
    """An assumption of the expected precision that may not hold: test ratings are drawn at random."""

    split: str

    def _said(self) -> str:
        spelled = "the given split" if self.split == "predefined" else f"the split ({self.split})"
        return f"{spelled} may not draw test ratings at random"


class UnevenWeights(Fact):
    """A few observed relevant items that carry most of the weight of a system's estimates; or none is observed."""

    system: str
    observed: int
    few: int = 0
    carried: float = 0.0
    effective: float = 0.0

    def _said(self) -> str:
        if not self.observed:
            return f"{self.system}: no relevant test item is in the lists, so nothing is estimated"
        return (
            f"{self.system}: {self.few:,} of {self.observed:,} observed relevant items carry {self.carried:.0%} of the "
            f"weight (effective sample size {self.effective:,.0f}); a larger clip trades this variance for bias"
        )


class AboveOne(Fact):
    """Estimates of a system above 1, by estimator and metric."""

    system: str
    estimates: tuple[tuple[str, str, float], ...]

    def _said(self) -> str:
        above = ", ".join(f"{estimator} of {metric} {value:.2f}" for estimator, metric, value in self.estimates)
        return (
            f"{self.system}: {above} is above 1: the items it recommends are observed more often than their "
            "propensities say, as when users come across items that suit them; look at SNIPS"
        )

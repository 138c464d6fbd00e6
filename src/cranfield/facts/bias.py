"""Facts about sparsity and popularity: what popularity explains, what changes without it, and what cannot be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cranfield._numbers import listed, number_text, percent_text
from cranfield.facts.fact import Fact

CHOSEN = "AR"
_MOST_NAMED = 3

NAMES = {
    "AR": "as measured",
    "P1R": "equally popular items",
    "U1R": "equal tests, one by one",
    "UAR": "equal tests per item",
}
"""What each protocol is called where there is little room."""

SAYS = {
    "AR": "all test ratings, all items",
    "P1R": "each relevant item among items of its popularity percentile",
    "U1R": "each relevant item alone, the same number of test ratings per item",
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
    """Whether the winner under the chosen protocol stays first under neutral ones.

    ``first`` are the systems at the top under the chosen protocol, ``neutral`` the other protocols. The rest are the
    systems that are significantly better than the winner, that lead without being so, and that are level with it, each
    with the protocols under which they are.
    """

    first: tuple[str, ...]
    neutral: tuple[str, ...]
    better: Mapping[str, tuple[str, ...]]
    leading: Mapping[str, tuple[str, ...]]
    level: Mapping[str, tuple[str, ...]]

    def _said(self) -> str:
        winner, *others = self.first
        if others:
            return f"{listed(self.first)} are level as measured, so there is no winner to look at."
        if self.better:
            return f"The winner depends on popularity: {winner} as measured, {_who(self.better)} without its advantage."
        if not self.leading and not self.level:
            return f"{winner} stays first without popularity's advantage."
        if self.leading:
            how = f"{_who(self.leading)} {'leads' if len(self.leading) == 1 else 'lead'}, though not significantly"
        else:
            how = f"{_who(self.level)} {'is' if len(self.level) == 1 else 'are'} level with it"
        return f"{winner} is first as measured; without popularity's advantage {how}."


def _who(systems: Mapping[str, tuple[str, ...]]) -> str:
    return listed([*systems]) if len(systems) <= _MOST_NAMED else f"{len(systems)} other systems"


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
    """How the order under a neutral protocol agrees with the chosen one, and the places of popularity in both."""

    protocol: str
    tau: float
    before: int
    after: int

    def _said(self) -> str:
        agrees = f"the order agrees with that of {CHOSEN} by tau {number_text(self.tau, 2)}"
        if np.isnan(self.tau):
            agrees = "all systems are level"
        moved = f"goes from place {self.before} to {self.after}"
        if self.before == self.after:
            moved = f"stays at place {self.before}"
        return f"Under {self.protocol} ({SAYS[self.protocol]}) {agrees}: popularity {moved}."


class ChangedConclusions(Fact):
    """How many pairs of systems have another conclusion under a neutral protocol."""

    changed: int
    pairs: int
    significant: int  # under the chosen protocol

    def _said(self) -> str:
        firm = self.significant
        if firm == 0:
            return f"No pair of systems differs significantly under {CHOSEN}."
        if self.changed == 0:
            differences = "The only significant difference" if firm == 1 else f"All {firm} significant differences"
            return f"{differences} under {CHOSEN} {'holds' if firm == 1 else 'hold'} under every neutral protocol."
        have = "has" if self.changed == 1 else "have"
        return (
            f"{self.changed} of {self.pairs} pairs of systems {have} another conclusion under a neutral protocol; "
            f"{firm} differ significantly under {CHOSEN}."
        )


class ChangedConclusion(Fact):
    """A significant difference that is reversed or lost under neutral protocols."""

    better: str
    other: str
    protocols: tuple[str, ...]
    is_reversed: bool

    def _said(self) -> str:
        ending = "the order is reversed" if self.is_reversed else "that is not significant"
        under = listed(self.protocols)
        return f"{self.better} is better than {self.other} under {CHOSEN}; under {under} {ending}."


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

"""Facts of the demo: what a published table says of systems whose true values are known."""

from __future__ import annotations

from collections.abc import Mapping

from cranfield._numbers import listed, percent_text
from cranfield.facts.fact import Fact


class PublishedWinner(Fact):
    """The first system of the published table, and the share of what it recommends that users truly like."""

    metric: str
    test: str
    system: str
    liked: float

    def _said(self) -> str:
        return (
            f"The table everyone publishes ({self.metric} on {self.test}) puts {self.system} first. In truth, users "
            f"like {percent_text(self.liked, ' %')} of what it recommends."
        )


class TrulyBest(Fact):
    """The truly best system and the next one, with the shares that users truly like."""

    system: str
    liked: float
    place: int  # in the published table
    systems: int
    second: str
    second_liked: float

    def _said(self) -> str:
        if self.place == 1:
            share = percent_text(self.second_liked, " %")
            return f"It is the best system in truth as well; {self.second} comes next, with {share}."
        return (
            f"The truly best system is {self.system}, with {percent_text(self.liked, ' %')}; the published table has "
            f"it at rank {self.place} of {self.systems}."
        )


class DemoAnswer(Fact):
    """The published winner beside the truly best system."""

    published: PublishedWinner
    best: TrulyBest

    def _said(self) -> str:
        first, best = self.published, self.best
        liked, truly = (percent_text(share, " %") for share in (first.liked, best.liked))
        if first.system == best.system:
            return (
                f"The published table puts {first.system} first, and it is truly best: users like {liked} of its items."
            )
        return (
            f"The published table puts {first.system} first; users truly like {liked} of its items, and {truly} of "
            f"those of {best.system}."
        )


class Overrated(Fact):
    """A system whose published rank is better than its true one."""

    system: str
    place: int
    true_place: int
    systems: int

    def _said(self) -> str:
        return (
            f"The table overrates {self.system}: rank {self.place} of {self.systems}, but rank {self.true_place} in "
            "truth."
        )


class TrueOrder(Fact):
    """Kendall's tau between the order of the systems and the true one, by test set, or by protocol on one of them."""

    taus: Mapping[str, float]
    of_protocols: bool = False

    def _said(self) -> str:
        if self.of_protocols:
            taus = ", ".join(f"{tau:.2f} under {name}" for name, tau in self.taus.items())
            return f"Kendall's tau with the true order is {taus}. In another world it may be the other way round."
        taus = ", ".join(f"{tau:.2f} on {name}" for name, tau in self.taus.items())
        return f"Kendall's tau with the true order: {taus} (1: the same order, 0: no relation)."


class SignificantPairs(Fact):
    """How many pairs of systems differ significantly on a test set, and in how many the winner is truly worse."""

    test: str
    pairs: int
    significant: int
    wrong: int
    # Significant pairs of which a comparison calls nobody better, since unjudged items could reverse the order, and
    # how many of `wrong` are among them.
    untold: int = 0
    untold_wrong: int = 0

    def _said(self) -> str:
        wrong = f"in {self.wrong} of them the winner is truly the worse system" if self.wrong else ""
        untold = f" In {self.untold} of them a comparison calls nobody better, because unjudged items could reverse the"
        caught = f"; {self.untold_wrong} of these {'is' if self.untold_wrong == 1 else 'are'} wrong"
        return (
            f"On {self.test} {self.significant} of {self.pairs} pairs differ significantly; "
            f"{wrong or 'no winner is truly worse'}."
            + (f"{untold} order{caught if self.wrong else ''}." if self.untold else "")
        )


class ReliedOn(Fact):
    """The first system on an unbiased test set, those not significantly worse, and the truly best one."""

    test: str
    first: str
    level: tuple[str, ...]
    best: str

    def _said(self) -> str:
        leads = f"{self.first}, truly the best, leads" if self.first == self.best else f"{self.first} leads"
        are = "is" if len(self.level) == 1 else "are"
        also = f", and {listed(self.level)} {are} not significantly worse" if self.level else ""
        missed = "" if self.best in (self.first, *self.level) else f"; {self.best} is missed"
        return (
            f"What can be relied on: on {self.test}, {leads}{also}{missed}. Significance says that a difference is not "
            "an accident of the sampled users. It does not say that the test set asks the right question."
        )


class AdviceChecked(Fact):
    """The metric that an assessment ranks first, and Kendall's tau of each metric with the true order."""

    test: str
    advised: str
    taus: Mapping[str, float]

    def _said(self) -> str:
        most = max(self.taus.values())
        nearest = [metric for metric, tau in self.taus.items() if round(most - tau, 12) == 0]
        opening = f"Which metric to trust, checked: the assessment of the {self.test} puts {self.advised} first"
        if len(nearest) == len(self.taus):
            return f"{opening}, and all {len(self.taus)} metrics are equally far from the truth (tau {most:.2f})."
        if self.advised in nearest:
            return f"{opening}, and no metric comes closer to the true order there (tau {most:.2f})."
        return (
            f"{opening} (tau {self.taus[self.advised]:.2f} with the truth); {listed(nearest)} "
            f"{'comes' if len(nearest) == 1 else 'come'} closest to the true order (tau {most:.2f}). "
            "An assessment shows how well a metric copes with missing ratings, not what all metrics miss."
        )

"""Facts of an assessment: which metric to trust and why, what loses its order of systems, and which metrics agree."""

from __future__ import annotations

from collections.abc import Mapping

from cranfield._numbers import few, listed
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import fitting

LIMITS = (
    "The whole test set is itself incomplete: robustness says how much further loss a metric tolerates, not how far it "
    "is from the truth.",
    "This is about these systems on these data: other systems, or another split, may rank the metrics differently.",
    "A metric that is robust and tells systems apart may still measure something that your users do not want; whether "
    "the first hit matters or all of them is for you to decide.",
    "Agreement with other metrics is not correctness: many metrics that look at the same thing agree with each other.",
)
"""What an assessment of metrics on such data cannot show."""

FEWEST_SYSTEMS = 8
"""Minimum number of systems; fewer say too little about metrics to choose among them."""

_MOST_SYSTEMS = 1_000  # if more would be needed to decide, none will

_SURE = {0.9: "sure", 0.5: "likely", 0.0: "not sure"}
"""How sure it is that a metric is best, by the minimum share of the draws of the systems in which it comes first."""

_MOST_RIVALS = 3


class Candidate(Fact):
    """A metric under an average, and the share of the draws of the systems in which it comes first."""

    metric: str
    average: str
    first: float

    def _said(self) -> str:
        return self.metric + ("" if self.average == "mean" else f" ({self.average} over users)")

    @property
    def share(self) -> str:
        """The share as a percentage, with a decimal if needed."""
        return f"{round(100 * self.first, 1):g} %"


class MetricChoice(Fact):
    """The metric to trust most, or why there is no clear choice; the evidence is in the table of the advice."""

    candidates: tuple[Candidate, ...]  # every metric under every average, the highest score first
    equal: int  # how many candidates have the highest score
    level: tuple[Candidate, ...]  # those over which the lead of the best one may be chance
    draws: int
    systems: int

    @property
    def unclear(self) -> str:
        """A clause on why there is no clear choice; empty if there is one."""
        reasons = []
        if self.systems < FEWEST_SYSTEMS:
            reasons.append(f"{self.systems} systems are too few (at least eight)")
        if self.level:
            rivals = [str(rival) for rival in self.level]
            others = listed(rivals) if len(rivals) <= _MOST_RIVALS else f"{len(rivals)} others"
            reasons.append(f"its lead over {others} may be chance")
        return " and ".join(reasons)

    def _said(self) -> str:
        best, *others = self.candidates
        if not others:
            return f"{best} was assessed alone, so there is nothing to compare it with."
        if self.equal > 1:
            named = listed([str(candidate) for candidate in self.candidates[: self.equal]])
            equal = (named, f"{self.equal} metrics")
            return fitting(f"No clear choice: {who} score the same on these data." for who in equal)
        if self.unclear:
            return f"No clear choice: {best} scores highest, but {self.unclear}."
        # The share is rounded as it is printed, so that the word never contradicts the number.
        sure = next(word for share, word in _SURE.items() if round(best.first, 3) >= share)
        draws = f"it comes first in {best.share} of {self.draws} draws of the systems"
        return f"Trust {best} most on these data. This is {sure}: {draws}."


class AdviceScope(Fact):
    """Over which other choices the same metric scores highest."""

    metric: str
    # In how many other choices (weights, sizes of test sets) it scores highest, of how many.
    holds: Mapping[str, tuple[int, int]]

    def _said(self) -> str:
        names = {"weights": "other weights of the criteria", "sizes": "parts of the sizes (large, small)"}
        kinds = [f"{same} of {number} {names[kind]}" for kind, (same, number) in self.holds.items()]
        return f"With {listed(kinds)} {self.metric} also scores highest; users are not drawn again."


class NextStep(Fact):
    """What to do without a clear choice of a metric."""

    defensible: tuple[str, ...]  # the metrics that are level with the best one, with it; one if systems are too few
    needed: int | None = None  # about how many systems would tell the first two apart

    def _said(self) -> str:
        if len(self.defensible) < 2:
            return f"Next: assess at least {FEWEST_SYSTEMS} systems."
        named = few(self.defensible, _MOST_RIVALS)
        decide = "no number of systems seems to decide between the first two"
        if self.needed is not None and self.needed <= _MOST_SYSTEMS:
            decide = f"about {max(self.needed, FEWEST_SYSTEMS)} systems would decide between the first two"
        return f"Next: {named} are defensible, so name one before you compare; {decide}."


class OrderKept(Fact):
    """How well metrics keep the order of the systems if some of the test set is missing."""

    missing: str
    metrics: int
    best: tuple[str, float, float]  # the metric with the highest mean tau, this, and the mean share of pairs that flip
    worst: tuple[str, float, float]

    def _said(self) -> str:
        (best, most, few), (worst, least, many) = self.best, self.worst
        if self.metrics == 1:
            said = f"{best} has a mean tau of {most:.3f} ({few:.0%} of the pairs of systems flip)"
        elif round(most - least, 12) == 0.0:
            said = f"all metrics keep the order equally well (mean tau {most:.3f})"
        else:
            how = "keeps the order of the systems best" if most > 0 else "reverses the order of the systems least"
            said = f"{best} {how} (mean tau {most:.3f}, {few:.0%} of the pairs flip)"
            said += f" and {worst} {'least' if most > 0 else 'most'} ({least:.3f}, {many:.0%})"
        return f"With {self.missing}, {said}."


class ToldApart(Fact):
    """The metric with the highest discriminative power."""

    metric: str
    pairs: int
    dp: float  # the sum of the p-values of the pairs
    significant: float  # the share of them below alpha
    alpha: float
    rivals: int = 0  # the number of other metrics
    alike: bool = False  # whether all of them have the same power

    def _said(self) -> str:
        how = "no better than the others " if self.alike else "best " if self.rivals else ""
        return (
            f"{self.metric} tells the systems apart {how}(its discriminative power, the sum of the p-values of "
            f"{self.pairs} pairs, is {self.dp:.3f}, lower is better; {self.significant:.0%} of the pairs are "
            f"significant at {self.alpha:g}, uncorrected)."
        )

    @property
    def brief(self) -> str:
        """The same above a table that has the other metrics."""
        return (
            f"{self.metric} tells the systems apart best: DP {self.dp:.4f} over {self.pairs} pairs, of which "
            f"{self.significant:.0%} differ at {self.alpha:g}."
        )


class RankAlike(Fact):
    """Two systems that rank alike, so that no metric can tell them apart."""

    systems: tuple[str, str]
    without: tuple[tuple[str, float], ...] = ()  # the DP of each metric without the second of them, lowest first

    def _said(self) -> str:
        said = f"{' and '.join(self.systems)} rank alike here: every DP contains their p-value, which is 1"
        if not self.without:
            return said
        powers = listed([f"{metric} {dp:.3f}" for metric, dp in self.without[:_MOST_RIVALS]])
        return f"{said}; without {self.systems[1]}, DP is lowest for {powers}."


class Agreeing(Fact):
    """Groups of metrics that put the systems in nearly the same order."""

    groups: tuple[tuple[str, ...], ...]

    def _said(self) -> str:
        return f"These metrics agree (mean tau at least 0.9): {'; '.join(map(', '.join, self.groups))}."


class OneByOne(Fact):
    """Metrics that were measured one by one on every sample, not by compiled code."""

    metrics: tuple[str, ...]
    has_numba: bool

    def _said(self) -> str:
        if self.has_numba:
            return f"measured one by one, not by compiled code: {', '.join(self.metrics)}"
        return (
            "numba is not installed, so the samples were measured one by one, which is slow; get it with: pip install "
            "'cranfield[recommend]'"
        )

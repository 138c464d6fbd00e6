"""Facts of a comparison over several datasets: who leads on these datasets, and what that says about others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cranfield._numbers import few, listed, number_text
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import fitting, gain_percent, gain_range, p_equals, word_of

_MOST_NAMES = 4
_MANY = 1000
_LARGEST = 16.0
RULES: Mapping[str, str] = {
    "mean": "mean",
    "geometric": "geometric mean",
    "rank": "mean rank",
    "wins": "wins",
    "copeland": "Copeland",
}
"""The rules of aggregation, with their names for people."""


def share_of_effect(effect: float) -> float:
    """Return the logarithm of a ratio as a relative gain; no larger than people can read."""
    return float(np.expm1(min(effect, _LARGEST)))


def _datasets(k: int) -> str:
    return f"{word_of(k)} dataset{'' if k == 1 else 's'}"


class LeadOverDatasets(Fact):
    """By how much the first system of a pair leads, on these datasets and for datasets like these.

    Sizes and ends of intervals are on the scale of the effects: logarithms of ratios, differences or effect sizes.
    """

    metric: str
    systems: tuple[str, str]
    scale: str
    k: int
    gain: float
    these: tuple[float, float] | None  # None where the users' values are not known
    like: tuple[float, float] | None  # None for fewer than three datasets
    p: float | None  # corrected
    pairs: int  # over which it is corrected
    significant: bool
    wins: int
    losses: int
    several: bool = False  # whether there are other metrics, so that this one is named

    def _said(self) -> str:
        first, second = self.systems
        by_metric = f" by {self.metric}" if self.several else ""
        if self.k == 0:
            return f"No dataset has both {first} and {second}{by_metric}."
        which = "this dataset" if self.k == 1 else f"these {_datasets(self.k)}"
        above = "level with" if self.gain == 0 else f"{self.size(self.gain)} above"
        lead = f"On {which} {first} is {above} {second}{by_metric}"
        inner = [f" ({self.range(self.these)})", ""] if self.these else [""]
        return fitting(f"{lead}{ends}; {end}." for end in self._like for ends in inner)

    @property
    def _like(self) -> list[str]:
        """What is said of datasets like these, from long to short."""
        like = "for datasets like these"
        if self.like is None or self.p is None:
            if self.k == 1:
                return ["one dataset says nothing of others"]
            return [f"ahead on {'both' if self.wins == 2 else 'one'}, and two say nothing of others"]
        ends = self.range(self.like)
        if self.significant and self.like[1] < 0:  # with weights by precision
            return [f"{like} it is the other way round ({ends})"]
        if self.significant:
            return [f"{like}, too ({ends}, p {p_equals(self.p)})", f"{like}, too (p {p_equals(self.p)})"]
        if self.like[0] <= 0 <= self.like[1]:
            return [f"{like} it is not settled ({ends})"]
        among = f"p {p_equals(self.p)} over {self.pairs} pairs"
        return [f"{like} it is not settled ({among}; alone {ends})", f"{like} it is not settled ({among})"]

    def size(self, effect: float) -> str:
        """Return an effect without its sign in the unit that is shown: percent for ratios."""
        return gain_percent(abs(share_of_effect(effect))) if self.scale == "ratio" else number_text(abs(effect))

    def range(self, ends: tuple[float, float]) -> str:
        """Return an interval in the unit that is shown."""
        if self.scale == "ratio":
            return gain_range([share_of_effect(end) for end in ends])
        return " to ".join(number_text(end) for end in ends)


class OnANewDataset(Fact):
    """What is to be expected on a new dataset."""

    lead: LeadOverDatasets
    chance: float | None
    ends: tuple[float, float] | None  # the interval of the effect there
    tau: float | None
    split: tuple[float, float, float] | None = None  # the chances of better, equal and worse by a margin
    margin: float | None = None

    def _said(self) -> str:
        lead, (first, second) = self.lead, self.lead.systems
        parts = []
        if self.chance is not None:
            held = f"{lead.wins} of {lead.k} here"
            parts.append(f"{first} leads {second} with a chance of about {self.chance:.2g} ({held})")
        if self.ends is not None:
            measured = "the measured lead" if self.tau is None else "the lead"
            parts.append(f"{measured} would be {lead.range(self.ends)}")
        said = [f"On a new dataset {'; '.join(parts)}."]
        if self.split is not None and self.margin is not None:
            better, equal, worse = (f"{chance:.2g}" for chance in self.split)
            of = f"it is better with a chance of {better}, worse with {worse}, and neither with {equal}"
            said.append(f"By more than {lead.size(self.margin)} {of}.")
        if self.tau == 0:
            said.append("The lead differs between datasets no more than their users explain.")
        elif self.tau is not None:
            by = f"a factor of {np.exp(self.tau):.2f}" if lead.scale == "ratio" else number_text(self.tau)
            said.append(f"The lead differs between datasets, typically by {by}.")
        return " ".join(said)


class WouldSettle(Fact):
    """How many datasets would settle which of two systems is better for datasets like these."""

    systems: tuple[str, str]
    k: int
    needed: float

    def _said(self) -> str:
        first, second = self.systems
        if self.k < 3:
            return "At least three datasets are needed to say anything about others, and five are better."
        if not np.isfinite(self.needed):
            return f"{first} and {second} are level on average, so no number of datasets would settle it."
        if self.needed > _MANY:
            return f"More than {_MANY:,} such datasets would be needed to settle {first} against {second}."
        return f"About {self.needed:.0f} such datasets would settle {first} against {second} alone (power 0.8)."


class WithoutADataset(Fact):
    """The dataset that moves the lead most, and those on which the answer depends."""

    lead: LeadOverDatasets
    dataset: str
    gain: float  # without it
    other_sign: tuple[str, ...] = ()  # datasets without which the other system leads
    other_significance: tuple[str, ...] = ()

    def _said(self) -> str:
        first, second = self.lead.systems if self.gain >= 0 else self.lead.systems[::-1]
        said = [f"Without {self.dataset} {first} is {self.lead.size(self.gain)} above {second}"]
        if others := [name for name in self.other_sign if name != self.dataset]:
            also = "also " if self.dataset in self.other_sign else ""
            said.append(f"the order {also}turns without {few(others, _MOST_NAMES)}")
        if self.other_significance:
            became = "not settled" if self.lead.significant else "settled"
            said.append(f"for datasets like these it is {became} without {few(self.other_significance, _MOST_NAMES)}")
        return f"{'; '.join(said)}."


class SettledPairs(Fact):
    """Which pairs are settled for datasets like these."""

    settled: tuple[tuple[str, str, float], ...]  # better, worse, corrected p
    pairs: int

    def _said(self) -> str:
        if not self.settled:
            return f"None of {self.pairs} pairs is settled for datasets like these (Holm)."
        named = few([f"{better} above {worse} (p {p_equals(p)})" for better, worse, p in self.settled], _MOST_NAMES)
        counted = f"{len(self.settled)} of {self.pairs} pairs {'is' if len(self.settled) == 1 else 'are'} settled"
        return f"For datasets like these {counted} (Holm): {named}."


class LeaderByRule(Fact):
    """Who leads by one rule of aggregation, and how firmly."""

    rule: str
    leaders: tuple[str, ...]  # several if they are level
    scores: tuple[float, ...]  # of each system
    stays: int  # in how many tables without one dataset the leaders are the same
    datasets: int
    subsets_stay: int  # in how many of the subsets of at least three datasets they are
    subsets: int
    decisive: tuple[str, ...] = ()  # losing systems without which others lead

    def _said(self) -> str:
        return f"{listed(self.leaders)} by {RULES[self.rule]}"


class ByRules(Fact):
    """Whether the rule of aggregation decides who leads."""

    rules: tuple[LeaderByRule, ...]

    def _said(self) -> str:
        counts: dict[str, int] = {}
        for name in (name for rule in self.rules for name in rule.leaders):
            counts[name] = counts.get(name, 0) + 1
        best = max(counts, key=lambda name: counts[name])
        alone = sum(rule.leaders == (best,) for rule in self.rules)
        count = f"all {alone}" if alone == len(self.rules) else f"{alone} of {len(self.rules)}"
        others = [
            f"{listed([name for name in rule.leaders if name != best])} is "
            f"{'level with it' if best in rule.leaders else 'first'} by {RULES[rule.rule]}"
            for rule in self.rules
            if rule.leaders != (best,)
        ]
        said = [f"{best} is first by {count} rules{'; ' if others else ''}{', '.join(others)}"]
        weakest = min(self.rules, key=lambda rule: (rule.stays, rule.subsets_stay))
        subsets = f" and {weakest.subsets_stay} of {weakest.subsets} subsets" if weakest.subsets else ""
        stays = f"in {weakest.stays} of {weakest.datasets} tables without one dataset{subsets}"
        said.append(f"the lead by {RULES[weakest.rule]} is the least firm: it stays {stays}")
        for rule in self.rules:
            if rule.decisive:
                out = listed(rule.decisive).replace(" and ", " or ")
                said.append(f"by {RULES[rule.rule]}, leaving out {out}, which does not lead, changes the leader")
        return f"{'; '.join(said)}."


class OneSource(Fact):
    """Datasets of one site or with the same users."""

    families: Mapping[str, tuple[str, ...]]
    counted_as_one: bool
    lead: LeadOverDatasets | None = None  # with each family counted as one, if it is not

    def _said(self) -> str:
        named = "; ".join(f"{listed(names)} come from one source ({family})" for family, names in self.families.items())
        if self.counted_as_one:
            return f"{named}: counted as one dataset."
        said = f"Warning: {named}, so they are not independent; name their family to count them as one dataset."
        if self.lead is None or self.lead.like is None:
            return said
        first, second = self.lead.systems
        return f"{said} Then {first} is {self.lead.range(self.lead.like)} above {second} for datasets like these."


class MissingResults(Fact):
    """Systems without a result on some datasets."""

    missing: Mapping[str, tuple[str, ...]]  # system: datasets
    complete: int
    of: int
    failed_last: tuple[str, ...] = ()  # who leads by mean rank if a missing result is the last place

    def _said(self) -> str:
        absent = [f"{system} on {few(datasets, _MOST_NAMES)}" for system, datasets in self.missing.items()]
        said = [
            f"There is no result of {few(absent, _MOST_NAMES)}",
            "a pair is compared on the datasets that both have",
            f"order, ranks and rules are over the {self.complete} of {self.of} that all have",
        ]
        if self.failed_last:
            who = f"{listed(self.failed_last)} {'is' if len(self.failed_last) == 1 else 'are'} first by mean rank"
            said.append(f"with a missing result as last, {who}")
        return f"{'; '.join(said)}."


class FewDatasets(Fact):
    """That there are few datasets for what is said."""

    k: int

    def _said(self) -> str:
        return f"{_datasets(self.k).capitalize()} are few: intervals for datasets like these are wide."


class AsDifferences(Fact):
    """Pairs whose averages have no ratio."""

    pairs: tuple[tuple[str, str], ...]
    metric: str

    def _said(self) -> str:
        named = few([f"{a} and {b}" for a, b in self.pairs], _MOST_NAMES)
        why = f"an average of {self.metric} is not above 0, so they are compared by differences"
        return f"{named}: {why}, in which datasets with large values weigh most."


class OtherWeighting(Fact):
    """That the other weights give another answer."""

    lead: LeadOverDatasets  # with the other weights
    weights: str

    def _said(self) -> str:
        (first, second), gain = self.lead.systems, self.lead.gain
        ends = "" if self.lead.like is None else f" ({self.lead.range(self.lead.like)})"
        with_weights = "With equal weights" if self.weights == "equal" else "With weights by precision"
        by = f"{self.lead.size(gain)} {'above' if gain >= 0 else 'below'}"
        return f"{with_weights} the answer differs: {first} is {by} {second}{ends}."


class OneTraining(Fact):
    """That the noise of one split and one training counts as a difference between datasets."""

    def _said(self) -> str:
        what = "With one split and seed per dataset, their noise counts as a difference between datasets"
        return f"{what}, which is then too large; the interval for datasets like these stays right."


class RoundedTable(Fact):
    """That the values of a table were rounded too much."""

    share: float  # half a printed digit, relative to the smallest value

    def _said(self) -> str:
        return f"Warning: half a printed digit is {gain_percent(self.share)} of a value; use more digits."


class WithoutUsers(Fact):
    """That the averages come from a table, without the users' values."""

    bounds: bool  # whether the errors of systems are known, which bound those of differences

    def _said(self) -> str:
        if self.bounds:
            return "Errors come from those of each system, an upper bound where users' values correlate positively."
        return "The table has no standard errors, so nothing is said about other users on these datasets."


class TooFewUsers(Fact):
    """Datasets with too few users."""

    thin: tuple[str, ...]
    left_out: tuple[str, ...]

    def _said(self) -> str:
        said = []
        if self.left_out:
            who = f"{few(self.left_out, _MOST_NAMES)} {'is' if len(self.left_out) == 1 else 'are'} left out"
            said.append(f"{who}: fewer than two users have a value from every system")
        if self.thin:
            where = f"on {few(self.thin, _MOST_NAMES)} fewer than 20 users have a value other than 0"
            said.append(f"{where}, so ratios there are biased")
        return f"Warning: {'; '.join(said)}."


class NothingOverDatasets(Fact):
    """Why there is no verdict over several datasets."""

    why: str  # the error

    def _said(self) -> str:
        return f"There is no verdict over all datasets: {self.why}."


class RankTest(Fact):
    """What the ranks of systems over datasets say."""

    k: int
    averages: Mapping[str, float]  # best first
    p: float
    exact: bool
    critical: float

    def _said(self) -> str:
        named = few([f"{system} {rank:.2f}" for system, rank in self.averages.items()], _MOST_NAMES)
        test = "exact" if self.exact else "Iman and Davenport"
        evidence = f"p {p_equals(self.p)}, {test}; critical difference {self.critical:.2f}"
        return f"Mean ranks over {_datasets(self.k)}: {named} ({evidence})."

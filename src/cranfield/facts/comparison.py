"""Facts of a comparison: how systems stand by each metric and over all, who is served, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cranfield._numbers import all_systems, count_text, few, listed, number_text
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import decimals, exact_percent, fitting, gain_percent, gain_range, p_equals, word_of
from cranfield.facts.scores import InFold, NothingRelevant, RepeatsAlone, RepeatsFound
from cranfield.facts.split import CountedRepeats

Row = Mapping[str, Any]
"""A row of `Comparison.frame` with the ``smallest_difference`` that its users can show."""

_BOTH = ("system_a", "system_b")
_MOST_NAMES = 4
_CLOSE = 1.25  # up to this tipping ratio the tipping point stands beside a verdict
_RULES = {True: "counted as 0", False: "left out"}


class Population(Fact):
    """The users that are compared, if not all."""

    served: int
    of: int
    systems: int

    def _said(self) -> str:
        return f"over the {self.users}"

    @property
    def users(self) -> str:
        """The users that are compared."""
        return f"{self.served:,} of {self.of:,} users that {all_systems(self.systems)} serve"


class Lead:
    """The lead of one system of a pair over the other, absolute and relative, with intervals."""

    def __init__(self, row: Row, lower_is_better: bool, digits: int = 4, *, forward: bool) -> None:
        self.row, self._digits = row, digits
        self.systems = (row["system_a"], row["system_b"]) if forward else (row["system_b"], row["system_a"])
        sign = 1 if forward != lower_is_better else -1
        self.base = row["mean_b" if forward else "mean_a"]
        self.gain = sign * row["difference"]
        self.interval = sorted(sign * row[end] for end in ("lower", "upper"))
        ratios = [1 + row[name] for name in ("relative", "relative_lower", "relative_upper")]
        if not forward:
            ratios = [1 / ratio if ratio > 0 else np.nan for ratio in ratios]
        better = -1 if lower_is_better else 1
        self.share = better * (ratios[0] - 1)
        self.share_interval = sorted(better * (ratio - 1) for ratio in ratios[1:])
        # Size and interval have one unit: where the ratio has no interval but the difference has, both are differences.
        without = np.isnan(self.share_interval).any() and not np.isnan(self.interval).any()
        self.in_percent = not np.isnan(self.share) and not without

    def __str__(self) -> str:
        """Return its size: in percent, or as it is where the ratio is not known as well."""
        return gain_percent(self.share) if self.in_percent else number_text(self.gain, self._digits)

    @property
    def loss(self) -> Lead:
        """The same seen from behind: by how much the first system trails the second, as a share of the second."""
        trailing = copy(self)
        trailing.gain, trailing.share = -self.gain, -self.share
        trailing.interval = [-end for end in reversed(self.interval)]
        trailing.share_interval = [-end for end in reversed(self.share_interval)]
        return trailing

    @property
    def signed(self) -> str:
        """Its size with its sign."""
        return str(self) if str(self).startswith("-") else f"+{self}"

    def signed_in(self, *, percent: bool) -> str:
        """Return its size with its sign, in percent or as it is."""
        return gain_percent(self.share, "+") if percent else number_text(self.gain, self._digits, sign="+")

    @property
    def ends(self) -> str:
        """Its interval, in the unit of its size; empty if there is none."""
        if np.isnan(self.interval).any():
            return ""
        if self.in_percent:
            return gain_range(self.share_interval)
        return " to ".join(number_text(end, self._digits) for end in self.interval)

    @property
    def evidence(self) -> str:
        """Its interval and its p-value, which is corrected like the interval, for brackets."""
        return ", ".join(filter(None, (self.ends, self.p)))

    @property
    def inner(self) -> tuple[str, str]:
        """What stands in brackets, and the same where there is little room."""
        return self.evidence, self.p

    @property
    def p(self) -> str:
        """The corrected p-value."""
        return f"p {p_equals(self.row['p_corrected'])}"

    @property
    def beats(self) -> str:
        """What the first system does to the second if it is significantly better: by how much, and how sure."""
        first, second = self.systems
        if self.gain > 0:
            return f"{first} beats {second} by {self} ({self.evidence})"
        # By a rank test, although its average is not the higher one.
        wins, losses = self.row["wins"], self.row["losses"]
        if first != self.row["system_a"]:
            wins, losses = losses, wins
        return f"{first} beats {second} for more users ({wins:,} against {losses:,}, {self.p}), though not on average"

    @property
    def beats_briefly(self) -> str:
        """The same without the interval."""
        return f"{' beats '.join(self.systems)} by {self} ({self.p})" if self.gain > 0 else self.beats

    @property
    def tipping(self) -> str:
        """The share of unjudged items that must be liked to reverse it."""
        return f"{100 * max(np.nan_to_num(self.row['tipping']), 0.0):.0f} %"

    def smallest(self, *, in_percent: bool) -> float:
        """Return the smallest difference that the test shows with power 0.8 for these users, or its share; or NaN."""
        smallest = self.row["smallest_difference"]
        if smallest is None or not smallest > 0:
            return np.nan
        return smallest / self.base if in_percent and self.base > 0 else smallest


@dataclass(frozen=True)
class Tiers:
    """The tiers of systems by a metric, each best first."""

    # The best system, and those after it that do not differ significantly from it or from each other.
    top: tuple[str, ...]
    beaten: tuple[str, ...]  # the systems that every top system is significantly better than
    between: tuple[str, ...]  # the others: they differ significantly from some of the top systems but not from all

    @classmethod
    def of(cls, rows: Sequence[Row], order: Sequence[str]) -> Tiers:
        """Return the tiers of a metric from all its pairs and the systems from best to worst."""
        pairs = {frozenset((row["system_a"], row["system_b"])): row for row in rows}
        # By a rank test the best average may be beaten; then a system that nothing beats is first.
        worse = {row[name] for row in rows if row["better"] for name in _BOTH if row[name] != row["better"]}
        top: list[str] = []
        for system in sorted(order, key=lambda system: system in worse):
            if not any(_is_decided(pairs[frozenset((system, leader))]) for leader in top):
                top.append(system)
        others = [system for system in order if system not in top]
        beaten = [
            system for system in others if all(pairs[frozenset((system, leader))]["better"] == leader for leader in top)
        ]
        return cls(tuple(top), tuple(beaten), tuple(system for system in others if system not in beaten))


def _is_decided(row: Row) -> bool:
    """Whether the two systems of a row differ significantly, and unjudged items could not plausibly reverse that."""
    return bool(row["significant"]) and not _is_untold(row)


def _is_untold(row: Row) -> bool:
    """Whether a difference is significant on these judgments, but unjudged items could plausibly reverse it."""
    return bool(row["significant"]) and not row.get("tipping_ratio", np.inf) >= 1 - 1e-9


class MetricStanding(Fact):
    """How the systems stand by one metric."""

    metric: str
    rows: tuple[Row, ...]
    means: Mapping[str, float]  # the averages of the systems, best first
    lower_is_better: bool  # whether a smaller value is the better one
    baseline: str | None = None  # the system that all others are compared with; None if every pair is compared
    population: Population | None = None  # the users that are compared, if not all
    without_values: tuple[str, ...] = ()  # systems for which the metric is undefined for every user
    role: str = "accuracy"  # what the metric is for; only accuracy and value have winners
    label: str = ""  # the name of the metric for people, if it is another one

    def pair(self, first: str, second: str) -> Lead:
        """Return by how much the first of two systems leads."""
        for row in self.rows:
            if (row["system_a"], row["system_b"]) == (first, second):
                return Lead(row, self.lower_is_better, self.digits, forward=True)
            if (row["system_a"], row["system_b"]) == (second, first):
                return Lead(row, self.lower_is_better, self.digits, forward=False)
        raise KeyError((first, second))

    @property
    def name(self) -> str:
        """The name of the metric for people."""
        return self.label or self.metric

    @property
    def digits(self) -> int:
        """The number of decimals of its numbers: four, or more if averages are very small."""
        return decimals(max((abs(mean) for mean in self.means.values()), default=0.0))

    @property
    def is_equal(self) -> bool:
        """Whether every user has the same value from every system."""
        return all(row["ties"] == row["n"] for row in self.rows)

    @property
    def winners(self) -> list[str | None]:
        """The better system of each pair, None where neither is shown to be better."""
        return [row["better"] for row in self.rows]

    @property
    def reference(self) -> str:
        """The system that differences are shown from: the baseline, or the best one; of two systems the other one."""
        return self.baseline or [*self.means][1 if len(self.means) == 2 else 0]

    @cached_property
    def tiers(self) -> Tiers:
        """Which systems are level at the top, and which ones they beat."""
        return Tiers.of(self.rows, list(self.means))

    @property
    def against(self) -> dict[str, str]:
        """What is shown of each system against the reference: better, worse or undecided."""
        words = {self.reference: "worse", None: "undecided"}
        better = {row["system_a"]: row["better"] for row in self.rows if row["system_b"] == self.reference}
        better |= {row["system_b"]: row["better"] for row in self.rows if row["system_a"] == self.reference}
        shown = {system: words.get(better[system], "better") for system in self.means if system in better}
        return shown | {system: "untold" for system in shown if _is_untold(self.pair(system, self.reference).row)}

    @property
    def untold(self) -> list[Untold]:
        """Leads of or over the reference that unjudged items could plausibly reverse, or nearly so."""
        if self.role not in ("accuracy", "value"):
            return []
        leads = [self.pair(system, self.reference) for system in self.against]
        leads = [lead if lead.gain > 0 else self.pair(lead.systems[1], lead.systems[0]) for lead in leads]
        close = [
            lead for lead in leads if lead.row["significant"] and not lead.row.get("tipping_ratio", np.inf) >= _CLOSE
        ]
        return [
            Untold.of(lead)
            for lead in sorted(close, key=lambda lead: np.nan_to_num(lead.row["tipping_ratio"], nan=-1.0))
        ][:_MOST_NAMES]

    def _said(self) -> str:
        name = f"{self.name}, {self.population}" if self.population else self.name
        without = f" It is undefined for every user of {_names(self.without_values)}." if self.without_values else ""
        return f"{name}: {self.answer}{without}"

    @property
    def answer(self) -> str:
        """Who is better, by how much and how sure; or what these users could have shown: at most 25 words."""
        if not self.rows[0]["n"]:
            return f"{listed([*self.means])} have no users in common."
        if self.is_equal:
            users = "the only user" if self.rows[0]["n"] == 1 else f"each of {self.rows[0]['n']:,} users"
            return fitting(
                f"{who} have the same value for {users}." for who in (listed([*self.means]), self._all_systems)
            )
        if self.role == "description":
            first, *_, last = [*self.means][:: -1 if self.lower_is_better else 1]
            return f"{first} has the highest value and {last} the lowest; neither is better."
        if len(self.rows) == 1:
            return self._of_two()
        return self._of_many() if self.baseline is None else self._against(self.baseline)

    @property
    def _all_systems(self) -> str:
        return all_systems(len(self.means)).capitalize()

    def _of_two(self) -> str:
        row = self.rows[0]
        first, second = self.means
        if _is_untold(row):
            lead = self.pair(first, second)
            leads = f"{first} leads on these judgments; which is better cannot be told"
            reversed_if = f"liking {lead.tipping} of the unjudged items reverses it"
            return fitting(f"{leads}{end}." for end in (f": {reversed_if}", ""))
        other = first if self.reference == second else second
        if row["better"] is None:
            lead = self.pair(other, self.reference)
            neither = f"Neither {first} nor {second} is shown to be better"
            return fitting(
                f"{neither}{inner}{end}."
                for end in (self._could_show([lead]), "")
                for inner in (f" ({lead.evidence})", f" ({lead.ends or lead.p})", "")
            )
        lead = self.pair(other, self.reference)
        if row["better"] == self.reference and lead.gain < 0:
            return fitting(
                f"{other} is {lead.loss} worse than {self.reference} ({inner})." for inner in lead.loss.inner
            )
        lead = self.pair(row["better"], second if row["better"] == first else first)
        return fitting(f"{beats}." for beats in (lead.beats, lead.beats_briefly))

    def _could_show(self, leads: Sequence[Lead]) -> str:
        """Return what a test of these users could have shown, as the end of a sentence."""
        in_percent = all(lead.in_percent for lead in leads)
        known = [lead.smallest(in_percent=in_percent) for lead in leads]
        sizes = sorted(size for size in known if not np.isnan(size))
        if not sizes:
            return ""
        ends = [gain_percent(end) if in_percent else number_text(end, self.digits) for end in (sizes[0], sizes[-1])]
        size = ends[-1] if ends[0] == ends[-1] else f"{ends[0].removesuffix(' %')} to {ends[-1]}"
        return f"; these {count_text(self.rows[0]['n'], 'user')} could have shown {size}"

    def _of_many(self) -> str:
        top, beaten, between = self.tiers.top, self.tiers.beaten, self.tiers.between
        if len(top) == 1:
            return self._one_best(top[0], [*beaten, *between])
        first = self.reference if self.reference in top else top[0]
        losses = [self.pair(system, first).loss for system in top if system != first]
        largest = max(losses, key=lambda lead: abs(np.nan_to_num(lead.gain)))
        if not beaten and not between:
            if len({f"{mean:.12g}" for mean in self.means.values()}) == 1:
                return f"{self._all_systems} have the same average, {number_text(self.means[top[0]], self.digits)}."
            nothing = f"No difference between the {len(top)} systems is shown"
            which = f"; the largest, {' behind '.join(largest.systems)}, is {largest}"
            return fitting(
                f"{nothing}{inner}{end}."
                for end in (self._could_show([largest]), "")
                for inner in (f"{which} ({largest.ends or largest.p})", which, "")
            )
        worse = [f"; {_are(beaten, 'worse', names)}" if beaten else "" for names in (3, 0)]
        first, *others = top
        if all(_is_untold(self.pair(first, other).row) for other in others):
            leads = f"{first} leads on these judgments; whether it is better than"
            return fitting(
                f"{leads} {names} cannot be told{end}."
                for names in (listed(others), f"{len(others)} others")
                for end in worse
            )
        some = f"; {_are(between, 'level with some of them', 3)}" if between else ""
        hows = [f"undecided among them (up to {largest}, {largest.ends})", "undecided among them"]
        if all(lead.row["ties"] == lead.row["n"] for lead in losses):
            hows = ["equal for every user"]
        return fitting(
            f"{names} lead, {how}{end}{some}."
            for names in ([listed(top)] if len(top) <= _MOST_NAMES else []) + [f"{len(top)} systems"]
            for how in hows
            for end in worse
        )

    def _one_best(self, best: str, others: list[str]) -> str:
        if any(self.pair(best, other).row["better"] != best for other in others):  # a rank test may go round in circles
            return "Each system is beaten by another for more users, so none is best."
        loss = self.pair(others[0], best).loss
        rest = others[1:]
        ends = ["", ""] if not rest else [f", {listed(rest)} too", f", the {count_text(len(rest), 'other')} too"]
        if not loss.gain > 0:  # by a rank test
            how = f"{others[0]} for more users ({loss.p}) though not on average"
            return f"{best} is best: it beats {listed([*rest, how])}."
        return fitting(
            f"{best} is best: {others[0]} is {loss} worse ({inner}){end}."
            for inner in loss.inner
            for end in (ends if len(rest) < _MOST_NAMES else ends[1:])
        )

    def _against(self, baseline: str) -> str:
        kinds: dict[str, list[str]] = {"better": [], "worse": [], "undecided": [], "untold": []}
        for system, kind in self.against.items():
            kinds[kind].append(system)
        better, worse, undecided, untold = kinds.values()
        if not better and not undecided and not untold:
            loss = self.pair(worse[0], baseline).loss
            others = "both others" if len(worse) == 2 else f"all {len(worse)} others"
            if not loss.gain > 0:  # by a rank test
                return f"{baseline} beats {others}, {worse[0]} for more users ({loss.p}), though not on average."
            return fitting(f"{baseline} beats {others}; {worse[0]} is {loss} worse ({inner})." for inner in loss.inner)
        leads = [self.pair(system, baseline) for system in undecided]
        if better:
            lead = self.pair(better[0], baseline)
            opening = [lead.beats, lead.beats_briefly]
            could_show = [""]
        else:
            what = "beat" if worse else "differ from"
            opening = [f"No system is shown to {what} {baseline}"]
            could_show = [self._could_show(leads), ""]
        undecided = undecided if better or worse or untold else []
        open_ones = "not told by these judgments"
        parts = [(better[1:], "better too"), (worse, "worse"), (undecided, "undecided"), (untold, open_ones)]
        return fitting(
            "; ".join([first, *(_are(group, word, names) for group, word in parts if group)]) + f"{end}."
            for end in could_show
            for first in opening
            for names in (3, 1, 0)
        )


class Unmeasured(Fact):
    """Metrics without a result, all for the same reason."""

    metrics: tuple[str, ...]  # the metrics
    nothing_relevant: NothingRelevant | None = None  # why no test item is relevant, if that is the reason
    population: Population | None = None  # the users that are compared, if not all: there is none
    # The systems for which the metrics are undefined for every user; empty if no user has a value for every system.
    undefined_for: tuple[str, ...] = ()

    def _said(self) -> str:
        why = "there is no user for whom it is defined for every system"
        if self.undefined_for:
            why = f"it is undefined for every user of {listed(self.undefined_for)}"
        elif self.nothing_relevant:
            why = self.nothing_relevant.sentence
        elif self.population:
            why = f"there is no user that {all_systems(self.population.systems)} serve"
        return f"{listed(self.metrics)}: nothing can be said, since {why}."


class OtherMetrics(Fact):
    """Whether the other metrics of accuracy and value give the same answer as the main one."""

    main: MetricStanding
    others: tuple[MetricStanding, ...]

    def _said(self) -> str:
        return self._by_tiers() if self.main.baseline is None else self._against(self.main.baseline)

    def _by_tiers(self) -> str:
        standings = (self.main, *self.others)
        best, total = next(iter(self.main.means)), len(standings)
        by_all = "both metrics" if total == 2 else f"all {total} metrics"
        if all(len(standing.tiers.top) == len(standing.means) for standing in standings):
            untold = any(_is_untold(row) for standing in standings for row in standing.rows)
            what = "tells which is better" if untold else "shows a difference"
            return f"{'Neither metric' if total == 2 else f'None of {total} metrics'} {what}."
        alone = [standing.name for standing in standings if standing.tiers.top == (best,)]
        level = [standing.name for standing in standings if best in standing.tiers.top and len(standing.tiers.top) > 1]
        behind = {standing.name: next(iter(standing.means)) for standing in standings if best not in standing.tiers.top}
        if len(alone) == total:
            return f"{best} is first by {by_all}."
        if len(level) == total:
            return f"{best} is level at the top by {by_all}."
        said = [f"{best} is first by {len(alone)} of {total} metrics"] if alone else []
        if level:
            said.append(
                f"level at the top by {_names(level)}" if alone else f"{best} is level at the top by {_names(level)}"
            )
        if behind:
            ahead = [f"{metric} ({leader} leads)" for metric, leader in behind.items()]
            said.append(f"behind by {_names(ahead)}")
        return f"{', '.join(said)}."

    def _against(self, baseline: str) -> str:
        other: dict[tuple[str, str], list[str]] = {}
        for standing in self.others:
            for system, kind in standing.against.items():
                if self.main.against.get(system, "undecided") != kind:
                    other.setdefault((system, kind), []).append(standing.name)
        alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (system, kind), metrics in other.items():
            alike.setdefault((kind, tuple(metrics)), []).append(system)
        if not other:
            names = [standing.name for standing in self.others]
            who = listed(names) if len(names) < _MOST_NAMES else f"The other {len(names)} metrics"
            return f"{who} {'agrees' if len(names) == 1 else 'agree'}."
        words = {"untold": "too little judged to tell"}
        by_kind = [
            f"{listed(who)} {'is' if len(who) == 1 else 'are'} {words.get(kind, kind)} by {listed(metrics)}"
            for (kind, metrics), who in alike.items()
        ]
        counts = [f"{listed(who)} {words.get(kind, kind)} by {len(metrics)}" for (kind, metrics), who in alike.items()]
        return fitting(
            (
                f"Against {baseline}, {'; '.join(by_kind)}.",
                f"Against {baseline}, of {len(self.others)} other metrics: {'; '.join(counts)}.",
                f"By other metrics, {len({system for system, _ in other})} systems stand otherwise against {baseline}.",
            ),
            most=40,
        )


TESTS = {
    "student": "Student's paired t-test",
    "log_student": "Student's paired t-test of the logarithms",
    "permutation": "a paired permutation test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "sign": "the sign test",
    "bootstrap": "a paired bootstrap test",
    "tukey": "a randomised Tukey HSD test",
}
"""The tests as papers name them."""

CORRECTIONS = {
    "none": "without correction",
    "bonferroni": "with Bonferroni's correction",
    "holm": "with Holm's correction",
    "max_t": "with the max-|t| correction of Westfall and Young",
    "benjamini_hochberg": "with the correction of Benjamini and Hochberg",
}
"""The corrections as papers name them."""


class ResultsParagraph(Fact):
    """The results by the main metric as a paragraph for a paper: averages, differences, intervals, p, test and n."""

    standing: MetricStanding
    test: str
    correction: str
    alpha: float
    comparisons: int  # that the correction is over

    def _said(self) -> str:
        standing, reference = self.standing, self.standing.reference
        lower = " (lower is better; positive differences are gains)" if standing.lower_is_better else ""
        said = [
            f"By {standing.name}{lower}, averaged over {standing.rows[0]['n']:,} users, {reference} reaches "
            f"{number_text(standing.means[reference], standing.digits)}."
        ]
        groups: dict[str, list[str]] = {"better": [], "worse": [], "undecided": [], "untold": []}
        for system, kind in standing.against.items():
            lead, mean = standing.pair(system, reference), number_text(standing.means[system], standing.digits)
            groups[kind].append(f"{system} ({mean}, {lead.signed}, {lead.evidence})")
        for kind in ("better", "worse"):
            if groups[kind]:
                are = "is" if len(groups[kind]) == 1 else "are"
                said.append(f"{listed(groups[kind])} {are} significantly {kind}.")
        if groups["undecided"]:
            do = "does" if len(groups["undecided"]) == 1 else "do"
            said.append(f"{listed(groups['undecided'])} {do} not differ significantly from it.")
        if groups["untold"]:
            differ = "differs" if len(groups["untold"]) == 1 else "differ"
            said.append(
                f"{listed(groups['untold'])} {differ} significantly from it on these judgments, but enough items are "
                "unjudged to reverse the order."
            )
        name = self.test.split("(")[0]
        at_once = name == "tukey" or self.correction != "none"
        over = f" over {self.comparisons} comparisons" if at_once and self.comparisons > 1 else ""
        hold = "hold for all comparisons at once" if at_once else "are for each comparison alone"
        corrected = "" if name == "tukey" else f", {CORRECTIONS.get(self.correction, self.correction)}"
        said.append(
            f"Differences are tested by {TESTS.get(name, name)}, two-sided, at α = {self.alpha:g}{corrected}{over}; "
            f"the {100 * (1 - self.alpha):g} % intervals {hold}."
        )
        return " ".join(said)


class Untold(Fact):
    """A significant lead that unjudged items would reverse if they were liked about as often as the judged ones."""

    leader: str
    other: str
    share: float  # of all unjudged entries that must be liked to reverse the order; NaN without a judged entry
    ratio: float  # that share over the share of judged entries that are liked

    @classmethod
    def of(cls, lead: Lead) -> Untold:
        """Return the fact of a lead."""
        return cls(*lead.systems, lead.row["tipping"], lead.row["tipping_ratio"])

    def _said(self) -> str:
        if np.isnan(self.ratio):
            return f"{self.leader} leads {self.other}, but no item in the first places of their lists is judged."
        share = f"{100 * max(self.share, 0.0):.0f} %"
        rest = "" if self.ratio >= 1 - 1e-9 else "; which is better cannot be told"
        if self.share <= 0:
            return (
                f"{self.leader} leads {self.other} on these judgments{rest}: among the judged items, those of "
                f"{self.other} are liked more often."
            )
        liked = f"{100 * self.share / self.ratio:.0f} %"
        return (
            f"{self.leader} leads {self.other} on these judgments{rest}: if {share} of the unjudged items are liked, "
            f"the order is reversed, and {liked} of the judged ones are."
        )

    @property
    def brief(self) -> str:
        """The same in a few words."""
        return f"{self.leader} against {self.other}: unjudged items could reverse it"


class NothingDisliked(Fact):
    """No judged item is disliked, so the judgments do not show what unjudged items would change."""

    metric: str

    def _said(self) -> str:
        return (
            f"No item of the lists is known to be disliked, so {self.metric} cannot show whether unjudged items would "
            "change the order; find out what was shown to users."
        )


class PairsThatDiffer(Fact):
    """How many pairs of systems differ significantly by a metric."""

    metric: str
    significant: int
    pairs: int

    def _said(self) -> str:
        many = "No pair of systems differs" if not self.significant else None
        if self.pairs == 1:
            many = "The two systems differ" if self.significant else "The two systems do not differ"
        return f"{many or f'{self.significant} of {self.pairs} pairs differ'} significantly by {self.metric}."


class WinsByUser(Fact):
    """For how many users one system of a pair is better, equal and worse by a metric."""

    metric: str
    systems: tuple[str, str]
    wins: int
    ties: int
    losses: int

    def _said(self) -> str:
        first, second = self.systems
        return (
            f"By {self.metric}, {first} is better than {second} for {self.wins:,} users, worse for {self.losses:,} and "
            f"equal for {self.ties:,}."
        )


class ByMeans(Fact):
    """Tables show an average that has no paired test, so means are compared."""

    shown: str

    def _said(self) -> str:
        means = "This is about plain means, which the test compares"
        return f"{means}: there is no paired test of the {self.shown} that tables show."


class Served(Fact):
    """How many lists each system provides, if some are missing.

    Averages over all users mix how good lists are with how many users have one. The comparison among the users that all
    systems serve has its own averages and its own test; its answer is part of this fact if it is another one.
    """

    counts: Mapping[str, int]  # the number of lists of each system
    # The number of lists that every system should provide, and of users. With folds, or with one list for each
    # relevant item, some of a user's lists may be missing.
    lists: int
    users: int
    alike: bool  # whether all systems serve the same lists
    common: Population | None = None  # the users that every system serves; None if there is none
    among_them: Fact | None = None  # how systems stand among these users by the main metric, if not in the same way

    def _said(self) -> str:
        who = f"{self._who}; a user without a list counts as an empty list"
        if self.common is None:
            return f"{who}, and there is no user that {all_systems(len(self.counts))} serve."
        if self.among_them is None:
            return f"{who}. Among the {self.common.users}, the answer is the same."
        return f"{who}. Among the {self.common.users}: {self.among_them}"

    @property
    def brief(self) -> str:
        """The users without a list, in a few words."""
        fewest, most = min(self.counts.values()), max(self.counts.values())
        without = [exact_percent(self.lists - count, self.lists) for count in (most, fewest)]
        share = without[0] if without[0] == without[1] else f"{without[0].removesuffix(' %')} to {without[1]}"
        other = "" if self.among_them is None else "; without them the answer is another one"
        return f"{share} of {'users' if self.lists == self.users else 'lists'} get no list{other}"

    @property
    def _who(self) -> str:
        all_of_them = "the users" if self.lists == self.users else "the lists"
        if self.alike:
            systems = "Both" if len(self.counts) == 2 else "All"
            served = next(iter(self.counts.values()))
            return f"{systems} systems serve the same {exact_percent(served, self.lists)} of {all_of_them}"
        by_count: dict[int, list[str]] = {}
        for name, count in self.counts.items():
            if count < self.lists:
                by_count.setdefault(count, []).append(name)
        parts = [
            f"{listed(names)} {'serves' if len(names) == 1 else 'serve'} {exact_percent(count, self.lists)}"
            for count, names in by_count.items()
        ]
        return f"{listed(parts)} of {all_of_them}"


class TrainedOnce(Fact):
    """Systems that use random numbers and were trained once."""

    systems: tuple[str, ...]

    def _said(self) -> str:
        draw = "draws at random and was" if len(self.systems) == 1 else "draw at random and were"
        return (
            f"{_names(self.systems)} {draw} trained once: intervals and p-values do not include the effect "
            "of another seed."
        )

    @property
    def brief(self) -> str:
        """The same in a few words."""
        return f"{_names(self.systems)} {'was' if len(self.systems) == 1 else 'were'} trained once"


class Spread(Fact):
    """How far the averages of a metric vary between repetitions, which intervals and tests include."""

    times: int
    metric: str
    deviations: Mapping[str, float]
    same_split: bool = False
    # The smallest differences that the pairs can show with power 0.8, from the least to the largest, if the spread
    # between repetitions limits them and not the number of users; otherwise empty.
    smallest: tuple[float, ...] = ()

    def _said(self) -> str:
        varies = _names([f"{system} {number_text(size)}" for system, size in self.deviations.items()])
        of_what = "training seeds on the same split" if self.same_split else "repetitions (new splits and seeds)"
        included = ", but not how splits vary" if self.same_split else " (users crossed with repetitions)"
        return (
            f"Between {self.times} {of_what} the standard deviation of the average of {self.metric} is {varies}; "
            f"intervals and p-values include it{included}{self._limited}."
        )

    @property
    def _limited(self) -> str:
        """What so few repetitions can show, at the end of the sentence."""
        if not self.smallest:
            return ""
        size = " to ".join(dict.fromkeys(number_text(size) for size in (self.smallest[0], self.smallest[-1])))
        return (
            f"; {self.times} of them can show a difference of {size} (power 0.8), and more users not a much smaller one"
        )


class Disagreement(Fact):
    """Differences that are significant although their intervals include 0, or the reverse."""

    pairs: tuple[tuple[str, str, str], ...]  # the metric and the two systems of each
    significant: bool  # whether they are significant
    test: str  # the test of the p-values
    correction: str = ""  # the correction of the p-values if it differs from that of the intervals, otherwise empty

    def _said(self) -> str:
        single = len(self.pairs) == 1
        named = "; ".join(f"{metric}: {a} and {b}" for metric, a, b in self.pairs[:_MOST_NAMES])
        if len(self.pairs) > _MOST_NAMES:
            named += f"; {len(self.pairs) - _MOST_NAMES} more"
        ends = ("the interval", "includes", "it is") if single else ("the intervals", "include", "they are")
        holds = ends[1] if self.significant else f"{'does' if single else 'do'} not include"
        by, p_by = ("max-|t|", self.correction) if self.correction else ("Student's t", f"the {self.test} test")
        return (
            f"{named} {'' if self.significant else 'do not '}differ significantly although {ends[0]} {holds} 0: "
            f"{ends[2]} by {by}, the p-value{'' if single else 's'} by {p_by}."
        )

    @property
    def brief(self) -> str:
        """The same in a few words."""
        return f"Test and interval disagree on {count_text(len(self.pairs), 'pair')}"


class Warned(Fact):
    """A warning about implausible inputs, at the end of a verdict."""

    warning: Fact

    def _said(self) -> str:
        return f"Warning: {self.warning}."


class OnRepeats(Fact):
    """What counts of the items that users had before, or what a system finds of them, in a verdict."""

    note: Fact

    def _said(self) -> str:
        return f"{self.note}."

    @classmethod
    def of(cls, notes: Sequence[Fact]) -> list[Fact]:
        """Return the notes of a measurement that are about repeats."""
        stated = [note.stated if isinstance(note, InFold) else note for note in notes]
        about = CountedRepeats | RepeatsAlone | RepeatsFound
        return [cls(note) for note, fact in zip(notes, stated) if isinstance(fact, about)]


class UsersThatCount(Fact):
    """Which users and lists a comparison counts, as notes under its table."""

    unit: str  # what has values: ``user`` or ``list``
    lists: int
    users: int
    by_user: bool  # whether the lists of a user are averaged first
    # A number of lists, whether they count as 0, and the metrics that are undefined for so many lists.
    undefined: tuple[tuple[int, bool, tuple[str, ...]], ...] = ()
    # The number of lists that each system does not provide, where some are missing.
    missing: Mapping[str, int] = field(default_factory=dict)
    # The users that are compared, if not all; None if missing lists count as empty.
    population: Population | None = None
    equal_groups: bool = False  # whether groups of lists count equally
    not_compared: tuple[str, ...] = ()  # metrics with one value per system and none per user

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes, one for each rule that was applied."""
        said = [
            f"{', '.join(names)}: undefined for {count_text(lists, self.unit)}, {_RULES[zero]}"
            for lists, zero, names in self.undefined
        ]
        if self.missing:
            counts = ", ".join(f"{name} {n:,}" for name, n in self.missing.items())
            rule = f"compared {self.population}" if self.population else "these count as empty lists"
            without = "users without a list" if self.unit == "user" else "lists not given"
            said.append(f"{without}: {counts}; {rule}")
        if self.lists != self.users:
            how = "averaged by user first" if self.by_user else "each counted as independent"
            said.append(f"{self.users:,} users have {self.lists:,} lists, {how}")
        if self.equal_groups:
            said.append("averaged within each group of lists and then over the groups, over the lists of all systems")
        if self.not_compared:
            said.append(f"not compared (one value per system and none per user): {', '.join(self.not_compared)}")
        return tuple(said)


def _are(systems: Sequence[str], what: str, most: int) -> str:
    """Return what systems are; at most so many are named, more are counted."""
    who = listed(systems) if len(systems) <= most else word_of(len(systems))
    return f"{who} {'is' if len(systems) == 1 else 'are'} {what}"


def _names(names: Sequence[str]) -> str:
    return few(names, _MOST_NAMES)

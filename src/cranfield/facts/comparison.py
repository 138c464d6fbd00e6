"""Facts of a comparison: how systems stand by each metric and over all, who is served, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from cranfield._numbers import all_systems, count_text, few, listed, number_text
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import decimals, exact_percent, gain_ends, gain_percent, p_equals, p_text
from cranfield.facts.scores import NothingRelevant

Row = Mapping[str, Any]
"""A row of `Comparison.frame` with the ``smallest_difference`` that its users can show."""

_MOST_NAMES = 4
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

    def __str__(self) -> str:
        share = "" if np.isnan(self.share) else f", {gain_percent(self.share)}{gain_ends(self.share_interval)}"
        if np.isnan(self.interval).any():
            return f"{self.short} (too few users for an interval)"
        return f"{self._text(self.gain)} {self._brackets}{share}"

    def _text(self, value: float) -> str:
        return number_text(value, self._digits)

    @property
    def _brackets(self) -> str:
        return f"[{', '.join(map(self._text, self.interval))}]"

    @property
    def ends(self) -> str:
        """Only the intervals of the lead, absolute and relative, as the end of a sentence."""
        if np.isnan(self.interval).any():
            return "has too few users for an interval"
        share = "" if np.isnan(self.share) else gain_ends(self.share_interval)
        return f"has the interval {self._brackets}{f',{share} %' if share else ''}"

    @property
    def short(self) -> str:
        """The lead without intervals."""
        return self._text(self.gain) + ("" if np.isnan(self.share) else f", {gain_percent(self.share, sign='+')}")

    @property
    def p(self) -> str:
        """The p-value of the pair, and the corrected one if it differs."""
        single, corrected = self.row["p"], self.row["p_corrected"]
        if p_text(single) == p_text(corrected):
            return f"p {p_equals(corrected)}"
        return f"p {p_equals(single)}, corrected for all pairs {p_text(corrected)}"

    @property
    def ties(self) -> str:
        """The number of users for whom the two are equal, in words."""
        return f"equal for {self.row['ties']:,} of {count_text(self.row['n'], 'user')}"

    @property
    def could_show(self) -> str:
        """The number of users for whom the two are equal, and what a test of the users could have shown."""
        return f"{self.ties}; {_power(self.smallest)}" if self.smallest else self.ties

    @property
    def smallest(self) -> str:
        """The smallest difference that a test of the users shows with power 0.8; empty if nothing varies."""
        smallest = self.row["smallest_difference"]
        if smallest is None or not smallest > 0:
            return ""
        share = "" if np.isnan(self.share) or not self.base > 0 else f" ({gain_percent(smallest / self.base)})"
        return f"{self._text(smallest)}{share}"


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
        top: list[str] = []
        for system in order:
            if not any(pairs[frozenset((system, leader))]["significant"] for leader in top):
                top.append(system)
        others = [system for system in order if system not in top]
        beaten = [
            system for system in others if all(pairs[frozenset((system, leader))]["better"] == leader for leader in top)
        ]
        return cls(tuple(top), tuple(beaten), tuple(system for system in others if system not in beaten))


class MetricStanding(Fact):
    """How the systems stand by one metric."""

    metric: str
    rows: tuple[Row, ...]
    means: Mapping[str, float]  # the averages of the systems, best first
    lower_is_better: bool  # whether a smaller value is the better one
    baseline: str | None = None  # the system that all others are compared with; None if every pair is compared
    population: Population | None = None  # the users that are compared, if not all
    without_values: tuple[str, ...] = ()  # systems for which the metric is undefined for every user

    def pair(self, first: str, second: str) -> Lead:
        """Return by how much the first of two systems leads."""
        for row in self.rows:
            if (row["system_a"], row["system_b"]) == (first, second):
                return Lead(row, self.lower_is_better, self.digits, forward=True)
            if (row["system_a"], row["system_b"]) == (second, first):
                return Lead(row, self.lower_is_better, self.digits, forward=False)
        raise KeyError((first, second))

    @property
    def digits(self) -> int:
        """The number of decimals of its numbers: four, or more if averages are very small."""
        return decimals(max((abs(mean) for mean in self.means.values()), default=0.0))

    @property
    def is_equal(self) -> bool:
        """Whether every user has the same value from every system."""
        return all(row["ties"] == row["n"] for row in self.rows)

    @cached_property
    def tiers(self) -> Tiers:
        """Which systems are level at the top, and which ones they beat."""
        return Tiers.of(self.rows, list(self.means))

    def _said(self) -> str:
        if len(self.rows) == 1:
            said = self._of_two()
        else:
            said = self._of_many() if self.baseline is None else self._against(self.baseline)
        name = f"{self.metric}, {self.population}" if self.population else self.metric
        if self.without_values:
            said += f" It is undefined for every user of {_names(self.without_values)}."
        return f"{name}: {said}"

    def _average(self, system: str) -> str:
        return number_text(self.means[system], self.digits)

    def _of_two(self) -> str:
        row = self.rows[0]
        if row["n"] == 0:
            return f"{row['system_a']} and {row['system_b']} have no users in common."
        first, second = self.means
        if row["better"] is not None:  # a rank test may favour the other system
            first, second = row["better"], row["system_a"] if row["better"] == row["system_b"] else row["system_b"]
        lead = self.pair(first, second)
        names = [f"{system} ({self._average(system)})" for system in (first, second)]
        wins, losses = ("wins", "losses") if first == row["system_a"] else ("losses", "wins")
        better, worse = f"better for {row[wins]:,}", f"worse for {row[losses]:,}"
        if row["significant"]:
            users = f"{row['n']:,} users: {better}, equal for {row['ties']:,}, {worse}"
            return f"{names[0]} is better than {names[1]} by {lead} ({lead.p}; {users})."
        if self.is_equal:
            every = "the only user" if row["n"] == 1 else f"each of {row['n']:,} users"
            return f"{names[0]} and {names[1]} have the same value for {every}."
        difference = f"there is no significant difference between {names[0]} and {names[1]}"
        return f"{difference}: {lead} ({lead.p}; {better}, {worse}, {lead.could_show})."

    def _of_many(self) -> str:
        said = [self._top()]
        if self.tiers.beaten:
            said.append(self._beats())
        if self.tiers.between:
            are = "is" if len(self.tiers.between) == 1 else "are"
            said.append(f"{_names(self.tiers.between)} {are} level with some of them only")
        text = "; ".join(said) + "."
        if len(self.tiers.top) == 1 or self.is_equal:
            return text
        largest = self._largest()
        pair = " and ".join(largest.systems)
        return f"{text} The largest difference, between {pair}, {largest.ends} ({largest.p}; {largest.could_show})."

    def _top(self) -> str:
        top, best = self.tiers.top, self.tiers.top[0]
        if len(top) == 1:
            return f"{best} is best ({self._average(best)})"
        largest = f"largest difference {self._largest().short}"
        if self.tiers.beaten or self.tiers.between:
            return f"{_names(top)} are level at the top ({self._average(best)}; {largest})"
        if self.is_equal:
            return f"all {len(top)} systems have the same value for every user, {self._average(best)} on average"
        if len({f"{mean:.12g}" for mean in self.means.values()}) == 1:
            return f"all {len(top)} systems have the same average, {self._average(best)}"
        what = f"there is no significant difference between the {len(top)} systems"
        return f"{what} ({largest}; {best} has the best average, {self._average(best)})"

    def _largest(self) -> Lead:
        """Return the largest difference among the top systems, by the averages over the users of each pair."""
        top = self.tiers.top
        pairs = [self.pair(a, b) for place, a in enumerate(top) for b in top[place + 1 :]]
        return max(pairs, key=lambda lead: abs(np.nan_to_num(lead.gain)))

    def _beats(self) -> str:
        top, beaten = self.tiers.top, self.tiers.beaten
        leads = [self.pair(leader, other) for leader in top for other in beaten]
        least = min(leads, key=lambda lead: lead.gain)
        who = "it beats" if len(top) == 1 else "they beat"
        whom = _names(beaten) if len(beaten) <= _MOST_NAMES else f"the other {len(beaten)}"
        return f"{who} {whom} by {'at least ' if len(leads) > 1 else ''}{least}"

    def _against(self, baseline: str) -> str:
        leads = {row["system_a"]: self.pair(row["system_a"], baseline) for row in self.rows}
        better = [system for system, lead in leads.items() if lead.row["better"] == system]
        worse = [system for system, lead in leads.items() if lead.row["better"] == baseline]
        level = {system: lead for system, lead in leads.items() if system not in better and system not in worse}
        said = [f"of {len(leads)} systems {_count(better)} better than {baseline} and {_count(worse)} worse"]
        for word, group in (("better", better), ("worse", worse)):
            named = [f"{system} ({leads[system]}, {leads[system].p})" for system in group]
            if named:
                said.append(f"{word}: {_names(named)}")
        if level:
            named = [f"{system} ({lead}, {lead.p}; {lead.ties})" for system, lead in level.items()]
            said.append(f"no significant difference from it: {_names(named)}")
            ranked = sorted(level.values(), key=lambda lead: lead.row["smallest_difference"] or 0.0)
            sizes = list(dict.fromkeys(filter(None, (ranked[0].smallest, ranked[-1].smallest))))
            if sizes:
                said.append(_power(" to ".join(sizes)))
        return "; ".join(said) + "."


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


class Overall(Fact):
    """How the systems stand over several metrics."""

    standings: tuple[MetricStanding, ...]  # how they stand by each metric that has a result
    unmeasured: int = 0  # the number of metrics without a result

    def _said(self) -> str:
        first = self.standings[0]
        said = self._by_tiers() if first.baseline is None else self._against(first.baseline)
        return f"{said}, {first.population}." if first.population else f"{said}."

    @property
    def _by_all(self) -> str:
        n = len(self.standings)
        return ("both metrics" if n == 2 else f"all {n} metrics") + " that can be measured" * (self.unmeasured > 0)

    def _by_tiers(self) -> str:
        tops = {standing.metric: standing.tiers.top for standing in self.standings}
        systems = list(self.standings[0].means)
        leaders = [system for system in systems if all(system in top for top in tops.values())]
        if len(leaders) == len(systems):
            return f"There is no significant difference between {_names(leaders)} by {self._by_all}"
        if len(leaders) > 1:
            return f"{_names(leaders)} are level at the top by {self._by_all}"
        alone = {system: sum(top == (system,) for top in tops.values()) for system in systems}
        level = {system: sum(system in top for top in tops.values()) for system in systems}
        best = max(alone, key=lambda system: (level[system], alone[system]))
        if alone[best] == len(tops):
            return f"{best} is best by {self._by_all}"
        with_whom: dict[tuple[str, ...], list[str]] = {}
        for name, top in tops.items():
            if best in top and len(top) > 1:
                with_whom.setdefault(tuple(system for system in top if system != best), []).append(name)
        shared = [f"with {_names(others)} by {_names(names)}" for others, names in with_whom.items()]
        said = [f"level {listed(shared)}"] if shared else []
        behind = [name for name, top in tops.items() if best not in top]
        if behind:
            said.append(f"not at the top by {_names(behind)}")
        if not alone[best]:
            return f"No system is first alone by any of {len(tops)} metrics: {best} is {', and '.join(said)}"
        return f"{best} is first by {alone[best]} of {len(tops)} metrics, {', and '.join(said)}"

    def _against(self, baseline: str) -> str:
        counts: dict[str, list[int]] = {}
        for standing in self.standings:
            for row in standing.rows:
                count = counts.setdefault(row["system_a"], [0, 0])
                count[0] += row["better"] == row["system_a"]
                count[1] += row["better"] == baseline
        named = [f"{system} by {better} (worse by {worse})" for system, (better, worse) in counts.items()]
        return f"Better than {baseline}, of {len(self.standings)} metrics: {_names(named)}"


class ByMeans(Fact):
    """Tables show an average that has no paired test, so means are compared."""

    shown: str

    def _said(self) -> str:
        means = "This is about plain means, which the test compares"
        return f"{means}: there is no paired test of the {self.shown} that tables show."


class Served(Fact):
    """How many lists each system provides, if some are missing.

    Averages over all users mix how good lists are with how many users have one. The comparison among the users that all
    systems serve has its own averages and its own test; its first sentence is part of this one.
    """

    counts: Mapping[str, int]  # the number of lists of each system
    # The number of lists that every system should provide, and of users. With folds, or with one list for each
    # relevant item, some of a user's lists may be missing.
    lists: int
    users: int
    alike: bool  # whether all systems serve the same lists
    common: Population | None = None  # the users that every system serves; None if there is none
    among_them: Fact | None = None  # the main fact of the comparison among these users

    def _said(self) -> str:
        who = f"{self._who}, and a user without a list counts as an empty list"
        if self.common is None:
            return f"{who}; there is no user that {all_systems(len(self.counts))} serve."
        return f"{who}; among the {self.common.users}: {self.among_them}"

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


class AmongServed(Fact):
    """Another fact of the comparison among the users that every system serves."""

    common: Population
    stated: Fact

    def _said(self) -> str:
        return f"Among the {self.common.users}: {self.stated}"


class TrainedOnce(Fact):
    """Systems that use random numbers and were trained once."""

    systems: tuple[str, ...]

    def _said(self) -> str:
        draw = "draws at random and was" if len(self.systems) == 1 else "draw at random and were"
        return (
            f"{_names(self.systems)} {draw} trained once: intervals and p-values do not include the effect "
            "of another seed."
        )


class Spread(Fact):
    """How far the averages of a metric vary between repetitions, which intervals and tests include."""

    times: int
    metric: str
    deviations: Mapping[str, float]
    same_split: bool = False

    def _said(self) -> str:
        varies = _names([f"{system} {number_text(size)}" for system, size in self.deviations.items()])
        if self.same_split:
            few = ", though two say little about it" if self.times == 2 else ""
            return (
                f"Between {self.times} training seeds on the same split the standard deviation of the average of "
                f"{self.metric} is {varies}; intervals and p-values include it, but not how splits vary{few}."
            )
        two = ", though two repetitions say little about it" if self.times == 2 else ""
        return (
            f"Between {self.times} repetitions (new splits and seeds) the standard deviation of the average of "
            f"{self.metric} is {varies}; intervals and p-values include it (users crossed with repetitions){two}."
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


class Warned(Fact):
    """A warning about implausible inputs, at the end of a verdict."""

    warning: Fact

    def _said(self) -> str:
        return f"Warning: {self.warning}."


NotCompared = Literal["whole system", "describes"]
NOT_COMPARED: Mapping[NotCompared, str] = {
    "whole system": "one value per system and none per user",
    "describes": "neither more nor less of it is better",
}
"""Why systems are not compared by a metric."""


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
    not_compared: tuple[tuple[str, NotCompared], ...] = ()  # metrics that systems are not compared by, and why

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
        for why, reason in NOT_COMPARED.items():
            if metrics := [metric for metric, own in self.not_compared if own == why]:
                said.append(f"not compared ({reason}): {', '.join(metrics)}")
        return tuple(said)


def _count(systems: Sequence[str]) -> str:
    return {0: "none is", 1: "1 is"}.get(len(systems), f"{len(systems)} are")


def _power(sizes: str) -> str:
    return f"a single test of these users shows a difference of {sizes} with power 0.8"


def _names(names: Sequence[str]) -> str:
    return few(names, _MOST_NAMES)

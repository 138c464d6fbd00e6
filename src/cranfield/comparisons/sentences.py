"""The verdict of a comparison, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cranfield._numbers import DASH, count_text, number_text, rounded
from cranfield._phrases import listed
from cranfield.comparisons.standings import Row, Tiers, tiers

_MOST_NAMES = 4


def p_text(p: float | None) -> str:
    """Return a p-value as people write it.

    Examples
    --------
    >>> p_text(0.03214), p_text(1e-9), p_text(1.0)
    ('0.0321', '<0.0001', '1')
    """
    if p is None or np.isnan(p):
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.3g}"


@dataclass(frozen=True)
class MetricFacts:
    """The results of one metric.

    Parameters
    ----------
    name
        The metric.
    population
        The users that are compared, if not all.
    rows
        Its pairs as in `Comparison.frame`, each with the ``smallest_difference`` that its users can show.
    means
        The averages of the systems, best first.
    lower_is_better
        Whether a smaller value is the better one.
    nothing
        Why there is no result; empty if there is one.
    without_values
        Systems for which the metric is undefined for every user: the verdict only says so.
    """

    name: str
    population: str
    rows: tuple[Row, ...]
    means: Mapping[str, float]
    lower_is_better: bool
    nothing: str = ""
    without_values: tuple[str, ...] = ()

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

    def named(self, system: str) -> str:
        """Return the name of a system with its average."""
        return f"{system} ({number_text(self.means[system], self.digits)})"

    @property
    def is_equal(self) -> bool:
        """Whether every user has the same value from every system."""
        return all(row["ties"] == row["n"] for row in self.rows)

    @property
    def tiers(self) -> Tiers:
        """Which systems are level at the top, and which ones they beat."""
        return tiers(self.rows, list(self.means))


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
        share = "" if np.isnan(self.share) else f", {_percent(self.share)}{_percents(self.share_interval)}"
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
        share = "" if np.isnan(self.share) else _percents(self.share_interval)
        return f"has the interval {self._brackets}{f',{share} %' if share else ''}"

    @property
    def short(self) -> str:
        """The lead without intervals."""
        return self._text(self.gain) + ("" if np.isnan(self.share) else f", {_percent(self.share, sign='+')}")

    @property
    def ties(self) -> str:
        """The number of users for whom the two are equal, in words."""
        return f"equal for {self.row['ties']:,} of {count_text(self.row['n'], 'user')}"

    @property
    def could_show(self) -> str:
        """The number of users for whom the two are equal, and what a test of the users could have shown."""
        smallest = self.smallest
        return f"{self.ties}; {_power(smallest)}" if smallest else self.ties

    @property
    def smallest(self) -> str:
        """The smallest difference that a test of the users shows with power 0.8; empty if nothing varies."""
        smallest = self.row["smallest_difference"]
        if smallest is None or not smallest > 0:
            return ""
        share = "" if np.isnan(self.share) or not self.base > 0 else f" ({_percent(smallest / self.base)})"
        return f"{self._text(smallest)}{share}"


def verdict(metrics: Sequence[MetricFacts], baseline: str | None, most: int | None = None) -> list[str]:
    """Return the verdict: with several metrics one sentence over all, then the sentences of each, or of the first ones.

    The first sentence covers all metrics, even those without sentences of their own.
    """
    known = [metric for metric in metrics if not metric.nothing]
    said = [_of_metric(metric, baseline) for metric in known[:most]]
    without: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.nothing:
            without.setdefault(metric.nothing, []).append(metric.name)
    said += [f"{listed(names)}: nothing can be said, since {why}." for why, names in without.items()]
    if len(known) < 2:
        return said
    first = _overall(known, _all(len(known), without=len(metrics) - len(known)), baseline)
    over = known[0].population
    return [f"{first.removesuffix('.')}, {over}." if over else first, *said]


def by_means(shown: str) -> str:
    """Return a remark for tables that show an average without a paired test.

    Examples
    --------
    >>> by_means("median")
    'This is about plain means, which the test compares: there is no paired test of the median that tables show.'
    """
    return (
        f"This is about plain means, which the test compares: there is no paired test of the {shown} that tables show."
    )


def trained_once(systems: Sequence[str]) -> str:
    """Return a remark on systems that use random numbers and were trained once.

    Examples
    --------
    >>> trained_once(["mf"])
    'mf draws at random and was trained once: intervals and p-values do not include the effect of another seed.'
    """
    single = len(systems) == 1
    return (
        f"{_names(systems)} {'draws' if single else 'draw'} at random and {'was' if single else 'were'} trained once: "
        "intervals and p-values do not include the effect of another seed."
    )


def repeated(times: int, metric: str, spread: Mapping[str, float]) -> str:
    """Return how far the averages of a metric vary between repetitions, which intervals and tests include.

    Examples
    --------
    >>> repeated(3, "P@10", {"mf": 0.0031, "ease": 0.0004})
    'Between 3 repetitions (new splits and seeds) the standard deviation of the average of P@10 is mf 0.0031 and ease \
0.0004; intervals and p-values include it (users crossed with repetitions).'
    """
    varies = _names([f"{system} {number_text(deviation)}" for system, deviation in spread.items()])
    few = ", though two repetitions say little about it" if times == 2 else ""
    return (
        f"Between {times} repetitions (new splits and seeds) the standard deviation of the average of {metric} is "
        f"{varies}; intervals and p-values include it (users crossed with repetitions){few}."
    )


def at_odds(pairs: Sequence[str], *, significant: bool, test: str, correction: str) -> str:
    """Explain why differences are significant although their intervals include 0, or the reverse.

    ``correction`` is the correction of the p-values if it differs from that of the intervals, otherwise empty.

    Examples
    --------
    >>> at_odds(["P@10: a and b"], significant=True, test="permutation", correction="holm")
    'P@10: a and b differ significantly although the interval includes 0: it is by max-|t|, the p-value by holm.'
    >>> at_odds(["P@10: a and b"], significant=False, test="sign", correction="")
    "P@10: a and b do not differ significantly although the interval does not include 0: it is by Student's t, the \
p-value by the sign test."
    """
    named, single = "; ".join(pairs[:_MOST_NAMES]), len(pairs) == 1
    if len(pairs) > _MOST_NAMES:
        named += f"; {len(pairs) - _MOST_NAMES} more"
    ends = ("the interval", "includes", "it is") if single else ("the intervals", "include", "they are")
    holds = ends[1] if significant else f"{'does' if single else 'do'} not include"
    by, p_by = ("max-|t|", correction) if correction else ("Student's t", f"the {test} test")
    return (
        f"{named} {'' if significant else 'do not '}differ significantly although {ends[0]} {holds} 0: {ends[2]} by "
        f"{by}, the p-value{'' if single else 's'} by {p_by}."
    )


def _of_metric(metric: MetricFacts, baseline: str | None) -> str:
    name = f"{metric.name}, {metric.population}" if metric.population else metric.name
    if len(metric.rows) == 1:
        said = _of_two(metric)
    else:
        said = _of_many(metric) if baseline is None else _against(metric, baseline)
    without = metric.without_values
    return f"{name}: {said}" + (f" It is undefined for every user of {_names(without)}." if without else "")


def _of_two(metric: MetricFacts) -> str:
    row = metric.rows[0]
    if row["n"] == 0:
        return f"{row['system_a']} and {row['system_b']} have no users in common."
    first, second = metric.means
    if row["better"] is not None:  # a rank test may favour the other system
        first, second = row["better"], row["system_a"] if row["better"] == row["system_b"] else row["system_b"]
    lead = metric.pair(first, second)
    names = [metric.named(system) for system in (first, second)]
    wins, losses = ("wins", "losses") if first == row["system_a"] else ("losses", "wins")
    p, better, worse = _p(row), f"better for {row[wins]:,}", f"worse for {row[losses]:,}"
    if row["significant"]:
        users = f"{row['n']:,} users: {better}, equal for {row['ties']:,}, {worse}"
        return f"{names[0]} is better than {names[1]} by {lead} ({p}; {users})."
    if metric.is_equal:
        return f"{names[0]} and {names[1]} have the same value for {_every(row['n'])}."
    difference = f"there is no significant difference between {names[0]} and {names[1]}"
    return f"{difference}: {lead} ({p}; {better}, {worse}, {lead.could_show})."


def _of_many(metric: MetricFacts) -> str:
    standing = metric.tiers
    said = [_top(metric, standing)]
    if standing.beaten:
        said.append(_beats(metric, standing))
    if standing.between:
        said.append(f"{_names(standing.between)} {_is(standing.between)} level with some of them only")
    text = "; ".join(said) + "."
    if len(standing.top) == 1 or metric.is_equal:
        return text
    largest = _largest(metric, standing.top)
    pair = " and ".join(largest.systems)
    return f"{text} The largest difference, between {pair}, {largest.ends} ({_p(largest.row)}; {largest.could_show})."


def _top(metric: MetricFacts, standing: Tiers) -> str:
    best = standing.top[0]
    average = number_text(metric.means[best], metric.digits)
    if len(standing.top) == 1:
        return f"{best} is best ({average})"
    largest = f"largest difference {_largest(metric, standing.top).short}"
    if not standing.beaten and not standing.between:
        if metric.is_equal:
            return f"all {len(standing.top)} systems have the same value for every user, {average} on average"
        if len({f"{mean:.12g}" for mean in metric.means.values()}) == 1:
            return f"all {len(standing.top)} systems have the same average, {average}"
        what = f"there is no significant difference between the {len(standing.top)} systems"
        return f"{what} ({largest}; {best} has the best average, {average})"
    return f"{_names(standing.top)} are level at the top ({average}; {largest})"


def _largest(metric: MetricFacts, systems: Sequence[str]) -> Lead:
    """Return the largest difference among systems, by the averages over the users of each pair."""
    pairs = [metric.pair(a, b) for place, a in enumerate(systems) for b in systems[place + 1 :]]
    return max(pairs, key=lambda lead: abs(np.nan_to_num(lead.gain)))


def _beats(metric: MetricFacts, standing: Tiers) -> str:
    leads = [metric.pair(leader, other) for leader in standing.top for other in standing.beaten]
    least = min(leads, key=lambda lead: lead.gain)
    who = "it beats" if len(standing.top) == 1 else "they beat"
    others = len(standing.beaten)
    whom = _names(standing.beaten) if others <= _MOST_NAMES else f"the other {others}"
    return f"{who} {whom} by {'at least ' if len(leads) > 1 else ''}{least}"


def _against(metric: MetricFacts, baseline: str) -> str:
    pairs = {row["system_a"]: row for row in metric.rows}
    better = [system for system, row in pairs.items() if row["better"] == system]
    worse = [system for system, row in pairs.items() if row["better"] == baseline]
    level = [system for system in pairs if system not in better and system not in worse]
    said = [f"of {len(pairs)} systems {_count(better)} better than {baseline} and {_count(worse)} worse"]
    for word, group in (("better", better), ("worse", worse)):
        named = [f"{system} ({metric.pair(system, baseline)}, {_p(pairs[system])})" for system in group]
        if named:
            said.append(f"{word}: {_names(named)}")
    if level:
        leads = {system: metric.pair(system, baseline) for system in level}
        named = [f"{system} ({lead}, {_p(pairs[system])}; {lead.ties})" for system, lead in leads.items()]
        said.append(f"no significant difference from it: {_names(named)}")
        ranked = sorted(leads.values(), key=lambda lead: lead.row["smallest_difference"] or 0.0)
        sizes = list(dict.fromkeys(filter(None, (ranked[0].smallest, ranked[-1].smallest))))
        if sizes:
            said.append(_power(" to ".join(sizes)))
    return "; ".join(said) + "."


def _overall(metrics: Sequence[MetricFacts], by_all: str, baseline: str | None) -> str:
    """Return one sentence over several metrics: by which ones the best system leads, is level or is behind."""
    if baseline is not None:
        return _overall_against(metrics, baseline)
    tops = {metric.name: metric.tiers.top for metric in metrics}
    leaders = [system for system in metrics[0].means if all(system in top for top in tops.values())]
    if len(leaders) == len(metrics[0].means):
        return f"There is no significant difference between {_names(leaders)} by {by_all}."
    if len(leaders) > 1:
        return f"{_names(leaders)} are level at the top by {by_all}."
    alone = {system: sum(top == (system,) for top in tops.values()) for system in metrics[0].means}
    level = {system: sum(system in top for top in tops.values()) for system in metrics[0].means}
    best = max(alone, key=lambda system: (level[system], alone[system]))
    if alone[best] == len(metrics):
        return f"{best} is best by {by_all}."
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
        return f"No system is first alone by any of {len(metrics)} metrics: {best} is {', and '.join(said)}."
    return f"{best} is first by {alone[best]} of {len(metrics)} metrics, {', and '.join(said)}."


def _overall_against(metrics: Sequence[MetricFacts], baseline: str) -> str:
    counts: dict[str, list[int]] = {}
    for metric in metrics:
        for row in metric.rows:
            count = counts.setdefault(row["system_a"], [0, 0])
            count[0] += row["better"] == row["system_a"]
            count[1] += row["better"] == baseline
    named = [f"{system} by {better} (worse by {worse})" for system, (better, worse) in counts.items()]
    return f"Better than {baseline}, of {len(metrics)} metrics: {_names(named)}."


def _every(users: int) -> str:
    return "the only user" if users == 1 else f"each of {users:,} users"


def _all(metrics: int, without: int) -> str:
    """Return all metrics in words; ``without`` is the number of metrics without a result."""
    return ("both metrics" if metrics == 2 else f"all {metrics} metrics") + " that can be measured" * (without > 0)


def _count(systems: Sequence[str]) -> str:
    return {0: "none is", 1: "1 is"}.get(len(systems), f"{len(systems)} are")


def _power(sizes: str) -> str:
    return f"a single test of these users shows a difference of {sizes} with power 0.8"


def decimals(largest: float) -> int:
    """Return how many decimals show three digits of a number, four at least and twelve at the most.

    Examples
    --------
    >>> decimals(0.34), decimals(0.00021), decimals(0.0)
    (4, 6, 4)
    """
    return 4 if not 0 < largest < 0.001 else min(12, 2 - int(np.floor(np.log10(largest))))


def _percent(share: float, sign: str = "") -> str:
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{rounded(100 * share, digits):{sign}.{digits}f} %"


def _percents(ends: Sequence[float]) -> str:
    if any(np.isnan(end) for end in ends):
        return ""
    # An end near 0 must not be printed as 0: what matters is on which side of 0 it lies.
    digits = 0 if max(map(abs, ends)) >= 0.0995 and not any(0 < abs(end) < 0.005 for end in ends) else 1
    return f" [{', '.join(f'{rounded(100 * end, digits):.{digits}f}' for end in ends)}]"


def _names(names: Sequence[Any]) -> str:
    kept = list(names)
    return listed(kept if len(kept) <= _MOST_NAMES else [*kept[:_MOST_NAMES], f"{len(kept) - _MOST_NAMES} more"])


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _p(row: Row) -> str:
    """Return the p-value of a pair, and the corrected one if it differs."""
    single, corrected = row["p"], row["p_corrected"]
    if p_text(single) == p_text(corrected):
        return f"p {_equals(corrected)}"
    return f"p {_equals(single)}, corrected for all pairs {p_text(corrected)}"


def _equals(p: float | None) -> str:
    text = p_text(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"

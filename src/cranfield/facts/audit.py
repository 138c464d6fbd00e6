"""Facts of an audit: who leads under the starting point and under other decisions, and which decisions matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from cranfield._numbers import DASH, count_text, listed, percent_text
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import fitting, p_text

Row = Mapping[str, Any]

# Of longer lists of numbers, only the ends are shown; of more names, only the number is given.
_MOST_NUMBERS, _MOST_NAMED = 5, 4
# Smaller shares of the variance are not named.
_LEAST_NAMED = 0.005


def share_text(share: float | None, *, short: bool = False) -> str:
    """Return a share in whole per cent; 0 % and 100 % are only used for exact values. ``short`` is for tables."""
    if share is None or share != share:
        return DASH
    if 0 < share < 0.005:
        return "<1 %" if short else "under 1 %"
    if 0.995 < share < 1 - 1e-9:
        return ">99 %" if short else "over 99 %"
    return f"{abs(100 * share):.0f} %" if abs(share) < 0.005 else f"{100 * share:.0f} %"


def interval_text(share: float, lower: float | None, upper: float | None, *, short: bool = False) -> str:
    """Return a share with its interval, if it has one, in the format of `share_text`."""
    if lower is None or upper is None or lower != lower:
        return share_text(share, short=short)
    low, high = (share_text(end, short=short) for end in (lower, upper))
    return f"{share_text(share, short=short)} [{low}, {high}]"


def question_text(question: Mapping[str, str] | None) -> str:
    """Return the options of a question: ``"split random(train=0.5)"``."""
    return ", ".join(f"{name} {option}" for name, option in question.items()) if question else "all set-ups"


def p_phrase(p: float) -> str:
    """Return a p-value with the letter: ``"p = 0.03"``, or ``"p <0.001"``."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _few(names: Sequence[Any]) -> str:
    texts = [str(name) for name in names]
    if len(texts) <= _MOST_NAMED:
        return listed(texts)
    return f"{', '.join(texts[:_MOST_NAMED])} and {len(texts) - _MOST_NAMED} more"


class LeadShare(Fact):
    """A share of the cells or of the distinct universes, with its 95 % interval over resampled users.

    ``what`` is ``"leads"``, ``"trails"``, ``"equal"``, ``"leads significantly"``, ``"trails significantly"`` (the first
    system of the pair), or ``"significant"`` (in either direction). If the systems are equally good, the larger of
    their two shares is at least ``chance`` in 5 % of the cases.
    """

    over: str  # "cells" (with the weights of options) or "universes" (each distinct one counts once)
    what: str
    share: float
    lower: float  # NaN if there is no interval
    upper: float
    chance: float | None  # None for "equal", and without a joint test

    def _said(self) -> str:
        return interval_text(self.share, self.lower, self.upper)


class JointTest(Fact):
    """The joint test of the universes of a question, and what chance alone gives; its statistics are by name."""

    universes: int  # distinct ones that were tested
    draws: int
    observed: Mapping[str, float]
    p: Mapping[str, float]
    retrained: Mapping[str, float] | None  # p with the spread of chance options, if there are any
    expected: Mapping[str, float]  # the means under the null hypothesis
    often: Mapping[str, float]  # shares that the draws reach in 5 % of the cases, for the system with the larger one


class QuestionAnswer(Fact):
    """The results of one pair of systems within a question.

    The p-values of the joint test, with and without the spread of seeds, are corrected by Holm's method over the pairs
    of systems.
    """

    question: Mapping[str, str] | None  # None for all questions together
    universes: int  # distinct ones
    shares: tuple[LeadShare, ...]
    effects: Mapping[float, float]  # quantiles of d_z over the cells
    joint: JointTest | None  # None if no universe can be tested
    corrected_retrained: Mapping[str, float] = field(default_factory=dict)
    corrected: Mapping[str, float] = field(default_factory=dict)

    @property
    def relied_on(self) -> Mapping[str, float]:
        """The p-values to rely on: those with the spread of seeds if seeds were opened."""
        return self.corrected_retrained or self.corrected

    @property
    def test(self) -> str:
        """The name of the joint test."""
        return "joint test with the spread of seeds" if self.corrected_retrained else "joint test"

    def share(self, what: str, over: str = "cells") -> LeadShare:
        """Return one of the shares."""
        return next(share for share in self.shares if (share.what, share.over) == (what, over))


class OpenedOptions(Fact):
    """The options of an opened decision; ``number`` is the name and the range of the only number they differ in."""

    decision: str
    options: tuple[str, ...]
    is_chance: bool = False
    weighted: bool = False
    number: tuple[str, float, float] | None = None

    def _said(self) -> str:
        weighted = ", weighted" if self.weighted else ""
        if self.number is None or len(self.options) <= _MOST_NUMBERS:
            return f"{self.decision} ({', '.join(self.options)}{weighted})"
        name, low, high = self.number
        span = f"{len(self.options)} from {low:g} to {high:g}"
        return f"{self.decision} ({'' if name == self.decision else name + ', '}{span}{weighted})"


class CrossedOptions(Fact):
    """The opened decisions, chance last."""

    opened: tuple[OpenedOptions, ...]

    def _said(self) -> str:
        decided = ", ".join(str(own) for own in self.opened if not own.is_chance)
        chance = listed([str(own) for own in self.opened if own.is_chance] or [""])
        return f"{decided}, over {chance}" if decided and chance else decided or chance


class FirstPlaces(Fact):
    """How often systems rank first: the rows of `Audit.ranks` for rank 1 over all questions."""

    rows: tuple[Row, ...]

    def _said(self) -> str:
        first, *others = sorted((row for row in self.rows if row["share"]), key=lambda row: -row["share"])[:_MOST_NAMED]
        texts = [f"{first['system']} is first in {share_text(first['share'])} of the set-ups"]
        texts += [f"{row['system']} in {share_text(row['share'])}" for row in others]
        tied = "; if several tie, each of them is first" if sum(row["share"] for row in self.rows) > 1.005 else ""
        return f"Of {len(self.rows)} systems, {listed(texts)}{tied}."


class Survival(Fact):
    """Whether the winner of the starting point survives: how many set-ups it leads, and what reverses it."""

    leader: str
    other: str
    equal: bool  # whether they are equal under the starting point
    share: float  # of the set-ups that the leader leads
    setups: int
    # Options in words, one for each decision of which a single change reverses the winner, the largest effect first.
    reversing: tuple[str, ...]
    by_two: bool  # whether two changes together reverse it

    def _said(self) -> str:
        if self.setups == 1:
            return "There is one set-up, so nothing can be said about other decisions."
        share = f"{share_text(self.share)} of {self.setups:,} set-ups"
        if self.equal:
            return f"{self.leader} and {self.other} are equal as set up; {self.leader} leads in {share}."
        return fitting(
            f"{opening}; {end}."
            for end in self._reversed
            for opening in (f"{self.leader} leads {self.other} in {'only ' * (self.share < 0.5)}{share}",)
        )

    @property
    def _reversed(self) -> list[str]:
        if len(self.reversing) > 1:
            named = f"{', '.join(self.reversing[:-1])} or {self.reversing[-1]}"
            return [
                f"with {named} {self.other} leads",
                f"changing any one of {len(self.reversing)} decisions reverses it",
            ]
        if self.reversing:
            return [f"with {self.reversing[0]} {self.other} leads", "changing one decision reverses it"]
        if self.by_two:
            return ["only two changes together reverse it"]
        return ["no change of one or two decisions reverses it"]


class ChanceShare(Fact):
    """The share of the set-ups that one of two equally good systems reaches in 5 % of cases: set-ups are alike."""

    chance: float

    def _said(self) -> str:
        most = "all" if self.chance > 1 - 1e-6 else f"{int(100 * self.chance)} % or more"
        return f"Of two equally good systems, one would lead in {most} of these set-ups in 5 % of cases."


class LeadAtStart(Fact):
    """The lead under the starting point, with the p-value of a single t-test over users."""

    leader: str
    other: str
    equal: bool
    difference: float
    d_z: float
    p: float
    significant: bool

    def _said(self) -> str:
        if self.equal:
            return f"Under the starting point {self.leader} and {self.other} are equal."
        how = "" if self.significant else ", though not significantly"
        numbers = f"difference {abs(self.difference):.4f}, d_z {abs(self.d_z):.3f}, {p_phrase(self.p)}"
        return (
            f"Under the starting point {self.leader} leads {self.other}{how} ({numbers} by a single t-test over users)."
        )


class JointDifference(Fact):
    """The joint test of all set-ups: whether the systems differ somewhere, and whether one of them leads overall."""

    answer: QuestionAnswer
    alpha: float

    def _said(self) -> str:
        p, test = self.answer.relied_on, self.answer.test
        either, median = (p_phrase(p[name]) for name in ("either", "median"))
        if p["either"] < self.alpha <= p["median"]:
            return f"Somewhere they differ, but neither leads overall: decisions change the winner ({test}, {either})."
        if p["either"] < self.alpha:
            return f"All set-ups together show that they differ ({test}, {either}; median, {median})."
        if p["median"] < self.alpha:
            return f"All set-ups together show that they differ by the median ({test}, {median})."
        if p["largest"] < self.alpha:
            return f"Only the largest difference shows that they differ ({test}, {p_phrase(p['largest'])})."
        return f"All set-ups together do not show that they differ ({test}, {either})."


class Swap(Fact):
    """One decision changed: its name and kind, its option at the starting point, and the new one."""

    decision: str
    kind: str
    before: str
    after: str


class Flip(Fact):
    """A cell that differs from the starting point in one decision or two (``swaps``), and its results as in `Leads`.

    It may turn the winner, or the significance: significant there and not under the starting point, or the reverse.
    """

    swaps: tuple[Swap, ...]
    cell: int
    lead: int
    difference: float
    d_z: float
    p: float
    significant: bool
    turns_winner: bool
    turns_significance: bool


class Flips(Fact):
    """What changes of one decision, or of two, do to the winner of the starting point."""

    lead: int  # of the starting point: 1, −1 or 0 as in `Leads`
    significant: bool
    singles: tuple[Flip, ...]  # all single changes in the grid, whether they change a result or not
    possible: int  # the number that the options allow: a sample or a grid with invalid cells has fewer
    pairs: tuple[Flip, ...]  # changes of two decisions that change the winner, if no single one does

    @property
    def turning(self) -> tuple[Flip, ...]:
        """The smallest changes that change the winner: single ones or, if there are none, pairs."""
        return tuple(flip for flip in self.singles if flip.turns_winner) or self.pairs

    @property
    def turning_significance(self) -> tuple[Flip, ...]:
        """The single changes that change the significance but not the winner."""
        return tuple(flip for flip in self.singles if flip.turns_significance and not flip.turns_winner)


class LargestInfluences(Fact):
    """The decisions that explain most of the variance of the effect size: rows of `Audit.influence` on d_z."""

    rows: tuple[Row, ...]

    @property
    def named(self) -> list[Row]:
        """The rows of the decisions that are named, the largest share first."""
        decided = sorted((row for row in self.rows if row["kind"] != "chance"), key=lambda row: -row["shapley"])
        return [row for row in decided if row["variance"] and row["shapley"] >= _LEAST_NAMED][:3]

    def _said(self) -> str:
        first, *others = self.named
        texts = [f"{first['decision']} explains {share_text(first['shapley'])} of the variance of the effect size"]
        texts += [f"{row['decision']} {share_text(row['shapley'])}" for row in others]
        chance = [row["shapley"] for row in self.rows if row["kind"] == "chance"]
        floor = f"; chance has {share_text(sum(chance))}" if chance else ""
        row = self.rows[0]
        rest = f"; {share_text(row['rest'])} is not explained" if row["method"] == "least squares" else ""
        return f"{listed(texts)}{floor}{rest}."


class LeadRule(Fact):
    """The conditions under which the other system leads instead of the leader of the starting point.

    ``paths`` are the ways to its leaves of the best tree, ``accuracy`` the share of the cells for which the tree is
    right, and ``majority`` the same for always naming the same system.
    """

    leader: str
    other: str
    conditions: int
    paths: tuple[tuple[str, ...], ...]
    accuracy: float
    majority: float

    def _said(self) -> str:
        majority = f"always naming the same one is right for {share_text(self.majority)}"
        if not self.conditions:
            return f"No rule of three conditions predicts better when {self.other} leads: {majority}."
        if not self.paths:
            return f"The rule of three conditions never names {self.other}: {majority}."
        where = "; or ".join(" and ".join(path) for path in self.paths)
        return (
            f"{self.other} leads if: {where}; otherwise {self.leader}. This is right for {share_text(self.accuracy)} "
            f"of the set-ups, and {majority}."
        )


class SeedNoise(Fact):
    """How often a system differs significantly from itself if only a chance option changes.

    ``significant`` is the share of ``pairs`` of cells, which differ in nothing else, with Student's p below α. A share
    of about α would mean that the seed adds nothing to the randomness of the users.
    """

    decision: str
    system: str
    pairs: int
    significant: float

    def _said(self) -> str:
        differ = f"{share_text(self.significant)} of {self.pairs:,} pairs that differ in {self.decision} alone"
        return f"{self.system} differs significantly from itself in {differ}"


class Retraining(Fact):
    """The effect of seeds; ``p`` are the p-values of the joint test without their spread, empty without a test."""

    noise: tuple[SeedNoise, ...]
    turned_by_chance: float | None  # None if no seed was opened
    p: Mapping[str, float]

    def _said(self) -> str:
        if self.turned_by_chance is None:
            return (
                "No seed was opened, so all of this holds for these trained models: two training runs of the same "
                "algorithm can differ significantly too. training_seed and split_seed in an experiment file show how "
                "often they do."
            )
        own = [*self.noise, f"chance alone changes the winner in {share_text(self.turned_by_chance)} of the set-ups"]
        if self.p:
            own.append(
                "without the spread of seeds, that is for these trained models alone, the joint test has "
                f"{p_phrase(self.p['either'])} (median z, {p_phrase(self.p['median'])})"
            )
        return f"Effect of retraining: {'; '.join(map(str, own))}."


class PairedTest(Fact):
    """A paired test of the users' differences, and the correction over the pairs of systems of a universe."""

    significance: str
    correction: str

    def _said(self) -> str:
        return self.significance if self.correction == "none" else f"{self.significance} with {self.correction}"


def _tests(rows: Sequence[Row], text: Callable[[Row], str]) -> str:
    return listed([f"{PairedTest(row['significance'], row['correction'])} {text(row)}" for row in rows])


class SignificantByTest(Fact):
    """The share of the cells in which one system is significantly better, by test: rows of `Audit.significance`."""

    rows: tuple[Row, ...]

    def _said(self) -> str:
        shares = _tests(self.rows, lambda row: f"in {share_text(row['significant'])}")
        return f"One is significantly better in this share of the set-ups, test by test: {shares}."


class StartByTest(Fact):
    """The significance under the starting point by test: rows of `Audit.significance`."""

    rows: tuple[Row, ...]

    def _said(self) -> str:
        yes, no = ([row for row in self.rows if row["start_significant"] is way] for way in (True, False))
        by = [_tests(rows, lambda row: f"({p_phrase(row['start_p_corrected'])})") for rows in (yes, no) if rows]
        if len(by) == 1:
            return f"Under the starting point the difference is {'not ' if no else ''}significant by {by[0]}."
        return (
            "The test alone changes the significance under the starting point: the difference is significant by "
            f"{by[0]} and not by {by[1]}."
        )


class TrueLead(Fact):
    """How often the truly better system of a pair leads; ``row`` is one of ``Audit.truth("pairs")``."""

    source: str
    row: Row

    def _said(self) -> str:
        row, first = self.row, self.row["truly_better"] == self.row["system_a"]
        (better, value), (worse, other) = [(row[f"system_{x}"], row[f"true_{x}"]) for x in ("ab" if first else "ba")]
        agrees = "Most set-ups agree" if row["right"] > 0.5 else "Most set-ups do not agree"
        return (
            f"In truth ({self.source}) {better} ({value:.4g}) is better than {worse} ({other:.4g}). {agrees}: {better} "
            f"leads in {interval_text(row['right'], row['lower'], row['upper'])} of them, significantly in "
            f"{share_text(row['right_significantly'])}, and {worse} leads significantly in "
            f"{share_text(row['wrong_significantly'])}."
        )


class TrueOrderReached(Fact):
    """How close the measured order is to the true one: rows of `Audit.truth` for all cells and for two options.

    The options are the best and the worst one of the decision that matters most.
    """

    overall: Row
    best: Row
    worst: Row

    def _said(self) -> str:
        tau, best, worst = map(_tau, (self.overall, self.best, self.worst))
        return (
            f"The measured order of all systems agrees with the true one by a mean tau of {tau} over all set-ups. The "
            f"decision that matters most for it is {self.best['decision']}: the mean tau is {best} with "
            f"{self.best['option']} and {worst} with {self.worst['option']}."
        )


def _tau(row: Row) -> str:
    ends = "" if row["lower"] is None else f" [{row['lower']:.2f}, {row['upper']:.2f}]"
    return f"{row['tau']:.2f}{ends}"


class AdviceByDesign(Fact):
    """Whether the advice on metrics is the same under each split and target design: rows of `Audit.advice`."""

    rows: tuple[Row, ...]

    @property
    def best(self) -> list[Row]:
        """The row of the metric that scores highest under each design."""
        return [row for row in self.rows if row["rank"] == 1]

    def _said(self) -> str:
        setups: dict[str, list[str]] = {}
        for row in self.best:
            average = "" if row["average"] == "mean" else f", {row['average']}"
            setups.setdefault(f"{row['metric']}{average}", []).append(row["setup"])
        (first, where), *others = sorted(setups.items(), key=lambda entry: -len(entry[1]))
        texts = [f"{first} scores highest in {len(where)} of {len(self.best)} set-ups"]
        texts += [f"{metric} in {len(own)}" for metric, own in others]
        same = "depends on the set-up" if others else "is the same"
        failed = sum(row["rank"] is None for row in self.rows)
        left = f"; {failed} could not be assessed" if failed else ""
        clear = f"the choice is clear in {sum(row['clear'] for row in self.best)}"
        return f"The advice on metrics {same}: {listed(texts)}; {clear}{left}."


class DeclaredInvalid(Fact):
    """Options that the experiment file declares invalid: decision, option and reason; and their combinations."""

    combinations: int
    options: tuple[tuple[str, str, str], ...]

    def _said(self) -> str:
        declared = "; ".join(f"{name} {option} ({reason})" for name, option, reason in self.options)
        return f"Declared invalid here, with {self.combinations:,} combinations: {declared}."


class AveragedRepetitions(Fact):
    """Several repetitions of the experiment, over which values are averaged."""

    repetitions: int

    def _said(self) -> str:
        return (
            f"A user's values are averaged over {self.repetitions} repetitions, and no p-value of the audit includes "
            "the spread between these: open split_seed and training_seed, which the joint test includes."
        )


class SampledCells(Fact):
    """Cells that are a sample of all combinations, and how uneven the pairs of options in it are."""

    cells: int
    imbalance: float

    def _said(self) -> str:
        return (
            f"The {self.cells:,} set-ups are a balanced sample of all combinations; the counts of pairs of options "
            f"differ from equal counts by {percent_text(self.imbalance, ' %')} on average."
        )


class NotSumsOverUsers(Fact):
    """Universes whose average is not a sum over users, and the options that cause it."""

    universes: int
    options: tuple[str, ...]

    def _said(self) -> str:
        which = f" ({', '.join(self.options)})" if self.options else ""
        return (
            f"{self.universes:,} set-ups{which} have an average that is not a sum over users: they are left out of "
            "the joint test, of chance and of intervals."
        )


class LeftOutCombinations(Fact):
    """Combinations that are left out: their numbers by reason."""

    reasons: Mapping[str, int]

    def _said(self) -> str:
        total = sum(self.reasons.values())
        counts = "; ".join(f"{count:,}: {reason}" for reason, count in self.reasons.items())
        return f"{count_text(total, 'combination')} {'is' if total == 1 else 'are'} left out ({counts})."

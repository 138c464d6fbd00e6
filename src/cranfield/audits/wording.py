"""An audit in words: shares, options and questions as text, notes, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield._decisions import in_one_form
from cranfield._errors import CranfieldError
from cranfield._numbers import DASH, count_text, listed, percent_text
from cranfield.audits.flips import Flip, ordered
from cranfield.audits.grid import Grid, VariedDecision
from cranfield.audits.joint import SeedNoise, question_of
from cranfield.audits.pair import LeadShare, PairAudit, QuestionAnswer
from cranfield.experiments import DECISIONS
from cranfield.facts import p_text

if TYPE_CHECKING:
    from cranfield.audits.enumeration import Enumeration

NOT_A_PROBABILITY = (
    "A share of universes is not a probability: it is a property of the options that were opened, and other options "
    "give another share."
)

# Of longer lists of numbers, only the ends are shown.
_MOST_NUMBERS = 5
# If there are more, only their number is given.
_MOST_NAMED = 4
# Smaller shares of the variance are not named.
_LEAST_NAMED = 0.005


def share_text(share: float | None, *, short: bool = False) -> str:
    """Return a share in whole per cent; 0 % and 100 % are only used for exact values. ``short`` is for tables.

    Examples
    --------
    >>> share_text(0.494), share_text(0.001), share_text(0.999), share_text(1.0), share_text(None)
    ('49 %', 'under 1 %', 'over 99 %', '100 %', '–')
    >>> share_text(0.001, short=True)
    '<1 %'
    """
    if share is None or share != share:
        return DASH
    if 0 < share < 0.005:
        return "<1 %" if short else "under 1 %"
    if 0.995 < share < 1 - 1e-9:
        return ">99 %" if short else "over 99 %"
    return f"{abs(100 * share):.0f} %" if abs(share) < 0.005 else f"{100 * share:.0f} %"


def interval_text(share: float, lower: float | None, upper: float | None, *, short: bool = False) -> str:
    """Return a share with its interval, if it has one, in the format of `share_text`.

    Examples
    --------
    >>> interval_text(0.5, 0.42, 0.61), interval_text(0.5, float("nan"), float("nan"))
    ('50 % [42 %, 61 %]', '50 %')
    """
    if lower is None or upper is None or lower != lower:
        return share_text(share, short=short)
    low, high = (share_text(end, short=short) for end in (lower, upper))
    return f"{share_text(share, short=short)} [{low}, {high}]"


def option_words(decision: str, option: str) -> str:
    """Return an option as part of a sentence: the decision's phrase if it has one, otherwise both names.

    Examples
    --------
    >>> option_words("split", "random(train=0.5)"), option_words("cutoff", "10"), option_words("coverage", "full")
    ('random 50/50', 'cutoff 10', 'coverage full')
    """
    declared = DECISIONS.get(decision)
    phrase = None if declared is None else declared.metadata.get("phrase")
    for value in (option, _number(option)):
        if declared is None or phrase is None or value is None:
            continue
        with suppress(CranfieldError):
            if words := phrase(in_one_form(declared, value)):
                return str(words)
    return f"{decision} {option}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def left_out_text(reasons: Sequence[str]) -> str:
    """Return how many combinations are left out, and why.

    Examples
    --------
    >>> left_out_text(["too short", "too short", "nobody is served"])
    '3 combinations are left out (2: too short; 1: nobody is served).'
    """
    counts = "; ".join(f"{count:,}: {reason}" for reason, count in Counter(reasons).items())
    return f"{count_text(len(reasons), 'combination')} {'is' if len(reasons) == 1 else 'are'} left out ({counts})."


def varied_text(grid: Grid) -> str:
    """Return the opened decisions, chance last, each with its options.

    Examples
    --------
    >>> cutoff, seed = VariedDecision("cutoff", "equivalent", ("5", "10")), VariedDecision("seed", "chance", ("0", "1"))
    >>> varied_text(Grid.product([cutoff, seed]))
    'cutoff (5, 10), over seed (0, 1)'
    """
    decided = ", ".join(_options_text(grid.varied[place]) for place in grid.decisions)
    chance = listed([_options_text(grid.varied[place]) for place in grid.of_kind("chance")] or [""])
    return f"{decided}, over {chance}" if decided and chance else decided or chance


def _options_text(decision: VariedDecision) -> str:
    weighted = "" if decision.weights is None else ", weighted"
    numbers = ordered(decision)
    if numbers is None or len(decision.options) <= _MOST_NUMBERS:
        return f"{decision.name} ({', '.join(decision.options)}{weighted})"
    name, values = numbers
    span = f"{len(values)} from {min(values):g} to {max(values):g}"
    return f"{decision.name} ({'' if name == decision.name else name + ', '}{span}{weighted})"


def question_text(question: Mapping[str, str] | None) -> str:
    """Return the options of a question: ``"split random(train=0.5)"``; empty for all questions together."""
    return ", ".join(f"{name} {option}" for name, option in question.items()) if question else "all universes"


def question_name(question: Mapping[str, str] | None) -> str | None:
    """Return the same for a row of a table; None for all questions together."""
    return None if question is None else question_text(question)


def number_or_none(value: float) -> float | None:
    """Return a number for a row of a table; None for NaN."""
    return None if np.isnan(value) else float(value)


def notes_on(enumeration: Enumeration) -> list[str]:
    """Return sentences about options declared invalid, about repetitions and about a sample of cells."""
    varied = enumeration.settings.varied
    declared = [
        f"{decision.name} {option} ({reason})" for decision in varied for option, reason in decision.invalid.items()
    ]
    notes = []
    if declared:
        kept = prod(len(decision.options) for decision in varied)
        left_out = prod(len(decision.options) + len(decision.invalid) for decision in varied) - kept
        notes.append(f"Declared invalid here, with {left_out:,} combinations: {'; '.join(declared)}.")
    times = enumeration.settings.experiment.repetitions
    if times > 1:
        notes.append(
            f"A user's values are averaged over {times} repetitions, and no p-value of the audit includes the "
            "spread between these: open split_seed and training_seed, which the joint test includes."
        )
    if enumeration.complete:
        return notes
    return [
        *notes,
        f"The {len(enumeration.cells):,} cells are a balanced sample of all combinations; the counts of pairs of "
        f"options differ from equal counts by {percent_text(enumeration.imbalance, ' %')} on average.",
    ]


def verdict(grid: Grid, pair: PairAudit, noise: Sequence[SeedNoise] = (), alpha: float = 0.05) -> list[str]:
    """Return the sentences: the starting point, agreement, all universes, what changes the winner, what explains it."""
    sentences = [_starting(grid, pair)]
    if grid.n_cells == 1:
        return [*sentences, f"There is one cell, {varied_text(grid)}: nothing can be said about other decisions."]
    own_question = question_of(grid, grid.start)
    # With a single question, its universes are all universes, which the next sentence covers.
    if len(pair.answers) > 2:
        sentences.append(_agreement(pair, pair.answer(own_question)))
    sentences.append(_shares(grid, pair, pair.answer()))
    sentences += [_joint(pair.answer(), alpha), NOT_A_PROBABILITY, _questions(pair)]
    sentences += [_flips(pair), _stays(pair), _influence(grid, pair), _rule(pair), _retraining(grid, pair, noise)]
    return [sentence for sentence in sentences if sentence]


def _leader(pair: PairAudit) -> tuple[str, str, int]:
    """Return the leading and the trailing system under the starting point, and the sign of the lead."""
    first, second = pair.systems
    return (second, first, -1) if pair.flips.lead < 0 else (first, second, 1)


def _starting(grid: Grid, pair: PairAudit) -> str:
    universe = grid.universe[grid.start]
    first, second, _ = _leader(pair)
    numbers = (
        f"difference {abs(pair.leads.difference[universe]):.4f}, d_z {abs(pair.leads.d_z[universe]):.3f}, "
        f"p {p_phrase(pair.leads.p[universe])} by a single t-test over users"
    )
    if pair.flips.lead == 0:
        return f"Under the starting point {first} and {second} are equal."
    how = "leads" if pair.flips.significant else "leads, though not significantly,"
    return f"Under the starting point {first} {how} {second} ({numbers})."


def _agreement(pair: PairAudit, answer: QuestionAnswer) -> str:
    first, _, sign = _leader(pair)
    share = answer.share("leads" if sign > 0 else "trails")
    significant = answer.share("leads significantly" if sign > 0 else "trails significantly")
    if answer.universes == 1:
        return f"The same question ({question_text(answer.question)}) has no other universe."
    return (
        f"Of the {answer.universes:,} universes of the same question ({question_text(answer.question)}), {first} "
        f"leads in {_with_interval(share)} and significantly in {share_text(significant.share)}{_chance(share)}"
        f"{_joint_of_question(answer)}."
    )


def _joint_of_question(answer: QuestionAnswer) -> str:
    p = answer.relied_on
    if not p:
        return ""
    return f". Their {_test_of(answer)}: median z, p {p_phrase(p['median'])}; either way, p {p_phrase(p['either'])}"


def _test_of(answer: QuestionAnswer) -> str:
    return "joint test with the spread of seeds" if answer.corrected_retrained else "joint test"


def _shares(grid: Grid, pair: PairAudit, answer: QuestionAnswer) -> str:
    first, second, sign = _leader(pair)
    leads, trails = (answer.share(what) for what in (("leads", "trails") if sign > 0 else ("trails", "leads")))
    cells = f"{grid.n_cells:,} cells" + ("" if grid.complete else ", a sample,")
    equal = answer.share("equal").share
    if equal == 1:
        return f"In all {cells} that cross {varied_text(grid)}, they are equal."
    level = f"; they are equal in {share_text(equal)}" if equal else ""
    distinct = answer.share(leads.what, "universes")
    return (
        f"Of the {cells} that cross {varied_text(grid)}, {first} leads in {_with_interval(leads)} and {second} in "
        f"{share_text(trails.share)}{level} (of the {answer.universes:,} distinct universes, {first} in "
        f"{share_text(distinct.share)}){_chance(leads)}."
    )


def _with_interval(share: LeadShare) -> str:
    return interval_text(share.share, share.lower, share.upper)


def _chance(share: LeadShare) -> str:
    if share.chance is None:
        return ""
    if share.chance > 1 - 1e-6:
        return "; if they were equally good, one of them would lead in all of them in 5 % of cases or more"
    least = int(100 * share.chance)
    return f"; if they were equally good, one of them would lead in {least} % or more in 5 % of cases"


def _joint(answer: QuestionAnswer, alpha: float) -> str:
    if answer.joint is None:
        return ""
    joint, p = answer.joint, answer.relied_on
    sentence = (
        f"In {share_text(joint.observed['either'])} of the universes one is significantly better, one way or the other "
        f"(without any difference {share_text(joint.expected['either'])} on average, and "
        f"{share_text(joint.often['either of universes'])} or more in 5 % of cases; {_test_of(answer)}, "
        f"p {p_phrase(p['either'])}"
    )
    if p["either"] < alpha <= p["median"]:
        return (
            f"{sentence}), yet neither leads overall (median z, p {p_phrase(p['median'])}; net share, p "
            f"{p_phrase(p['net'])}): the decisions change the winner."
        )
    if p["either"] < alpha:
        return f"{sentence}; median z, p {p_phrase(p['median'])}). That they differ somewhere does not say who leads."
    if p["median"] < alpha:
        return f"{sentence}). The median of all z does show that they differ (p {p_phrase(p['median'])})."
    if p["largest"] < alpha:
        largest = p_phrase(p["largest"])
        return f"{sentence}). Only the largest of all differences shows that they differ (max |z|, p {largest})."
    return f"{sentence}). Together the universes do not show that the systems differ."


def _questions(pair: PairAudit) -> str:
    """Return which system leads by question, if there are several."""
    answers = [answer for answer in pair.answers if answer.question]
    if len(answers) < 2:
        return ""
    first, second = pair.systems
    led: dict[str, list[str]] = {first: [], second: []}
    undecided = []
    for answer in answers:
        leads, trails = answer.share("leads").share, answer.share("trails").share
        text = f"{question_text(answer.question)} ({share_text(max(leads, trails))})"
        if leads == trails:
            undecided.append(text)
        else:
            led[first if leads > trails else second].append(text)
    parts = [f"{system} leads more often with {_named(texts)}" for system, texts in led.items() if texts]
    parts += [f"neither with {_named(undecided)}"] if undecided else []
    return f"Question by question: {'; '.join(parts)}."


def _flips(pair: PairAudit) -> str:
    flips = pair.flips
    if flips.lead == 0 or not flips.singles:
        return ""
    n = len(flips.singles)
    here = f" here (of {flips.possible} possible ones)" if n < flips.possible else ""
    changes = f"the {n} single changes{here}"
    if any(flip.turns_winner for flip in flips.singles):
        turning = f": {_changes(flips.turning)}" if n == 1 else f". Of {changes} these do: {_changes(flips.turning)}"
        return f"One decision is enough to change the winner{turning}."
    none = f"The single change{here} does not change" if n == 1 else f"None of {changes} changes"
    if flips.pairs:
        return f"{none} the winner; two decisions together do: {_changes(flips.pairs)}."
    return f"{none} the winner, nor do two decisions together."


def _changes(flips: Sequence[Flip]) -> str:
    # The largest effects come first: they are the most certain.
    ordered = sorted(flips, key=lambda flip: -abs(flip.d_z))
    texts = []
    for flip in ordered:
        question = "another question, " if any(swap.kind == "question" for swap in flip.swaps) else ""
        texts.append(f"{' with '.join(map(str, flip.swaps))} ({question}p {p_phrase(flip.p)})")
    return _named(texts)


def _stays(pair: PairAudit) -> str:
    flips, (first, _, _) = pair.flips, _leader(pair)
    if flips.lead == 0 or not flips.singles:
        return ""
    n, kept = len(flips.singles), [flip for flip in flips.singles if flip.lead == flips.lead]
    if not kept:
        return f"{first} does not keep the lead under any single change."
    significant = sum(flip.significant for flip in kept)
    changes = "the single change" if n == 1 else f"{'all' if len(kept) == n else len(kept)} of the {n} single changes"
    text = f"Under {changes} {first} still leads"
    text += ", always significantly" if significant == len(kept) else f", significantly in {significant}"
    turned = flips.turning_significance
    if turned:
        what = "lose" if flips.significant else "gain"
        return f"{text}; {len(turned)} {what}{'s' if len(turned) == 1 else ''} significance: {_changes(turned)}."
    return f"{text}."


def _influence(grid: Grid, pair: PairAudit) -> str:
    rows = [row for row in pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]
    decided = sorted((row for row in rows if row["kind"] != "chance"), key=lambda row: -row["shapley"])
    decided = [row for row in decided if row["variance"] and row["shapley"] >= _LEAST_NAMED]
    if not decided:
        return ""
    texts = [
        f"{row['decision']} ({share_text(row['shapley'])} [{share_text(row['lower'])}, {share_text(row['upper'])}])"
        for row in decided[:3]
    ]
    chance = sum(row["shapley"] for row in rows if row["kind"] == "chance")
    floor = f"; chance has {share_text(chance)}" if grid.has_chance else ""
    rest = f"; {share_text(rows[0]['rest'])} is not explained" if rows[0]["method"] == "least squares" else ""
    return f"Largest shares of the variance of the effect size over the cells: {listed(texts)}{floor}{rest}."


def _rule(pair: PairAudit) -> str:
    rule, (first, second) = pair.rule, pair.systems
    if not rule.majority:
        return ""
    lead = -1 if pair.flips.lead >= 0 else 1
    other, leader = (second, first) if lead < 0 else (first, second)
    majority = f"always naming the same one is right for {share_text(rule.majority)}"
    if not rule.n_conditions:
        return f"No rule of three conditions predicts better when {other} leads: {majority}."
    paths = rule.paths(lead)
    if not paths:
        return f"The rule of three conditions never names {other}: {majority}."
    where = "; or ".join(" and ".join(path) for path in paths)
    return (
        f"{other} leads if: {where}; otherwise {leader}. This is right for {share_text(rule.accuracy)} of the "
        f"cells, and {majority}."
    )


def _retraining(grid: Grid, pair: PairAudit, noise: Sequence[SeedNoise]) -> str:
    """Return a sentence on the effect of seeds, or that it is unknown."""
    if not grid.has_chance:
        return (
            "No seed was opened, so all of this holds for these trained models: two training runs of the same "
            "algorithm can differ significantly too. training_seed and split_seed in an experiment file show how often "
            "they do."
        )
    own = [
        f"{each.system} differs significantly from itself in {share_text(each.significant)} of {each.pairs:,} pairs "
        f"that differ in {each.decision} alone"
        for each in noise
        if each.system in pair.systems
    ]
    own.append(f"chance alone changes the winner in {share_text(pair.turned_by_chance)} of the set-ups")
    p = pair.answer().corrected
    if p:
        own.append(
            f"without the spread of seeds, that is for these trained models alone, the joint test has p "
            f"{p_phrase(p['either'])} (median z, p {p_phrase(p['median'])})"
        )
    return f"Effect of retraining: {'; '.join(own)}."


def _named(texts: Sequence[str]) -> str:
    if len(texts) <= _MOST_NAMED:
        return listed(list(texts))
    return f"{', '.join(texts[:_MOST_NAMED])} and {len(texts) - _MOST_NAMED} more"


def p_phrase(p: float) -> str:
    """Return a p-value after the letter p: ``"= 0.03"``, or ``"<0.001"``."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"


def said_of_advice(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return whether the advice is the same under each split and target design."""
    best = [row for row in rows if row["rank"] == 1]
    failed = sum(row["rank"] is None for row in rows)
    if len(best) < 2:
        return []
    named: dict[str, list[str]] = {}
    for row in best:
        average = "" if row["average"] == "mean" else f", {row['average']}"
        named.setdefault(f"{row['metric']}{average}", []).append(row["setup"])
    several = f"the {len(best)} set-ups that differ in the split or the target design"
    if len(named) == 1:
        said = f"The advice on metrics is the same under {several}: {next(iter(named))} scores highest in all of them"
    else:
        order = sorted(named.items(), key=lambda entry: -len(entry[1]))
        texts = [f"{metric} in {len(setups)}{_example(setups)}" for metric, setups in order]
        said = f"The advice on metrics is not the same under {several}; highest score: {listed(texts)}"
    clear = sum(row["clear"] for row in best)
    taus = [row["tau"] for row in best[1:] if row["tau"] is not None]
    reach = f"; tau with the order of metrics under the starting point: {_range(taus)}" if taus else ""
    left = f"; {failed} could not be assessed" if failed else ""
    return [f"{said}{reach}{left}. The choice is clear in {clear} of them."]


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _example(setups: Sequence[str]) -> str:
    return f" ({setups[0]})" if len(setups) == 1 else f" ({setups[0]} and others)"

"""The verdict of an audit and its notes, as facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.audits.contributions import UserContributions
from cranfield.audits.flips import ordered
from cranfield.audits.grid import Grid, VariedDecision
from cranfield.audits.joint import question_of
from cranfield.audits.pair import PairAudit
from cranfield.audits.significance import PairedTest
from cranfield.facts import Fact
from cranfield.facts import audit as audit_facts

if TYPE_CHECKING:
    from cranfield.audits.enumeration import Enumeration
    from cranfield.audits.truth import TruthFindings

# Smaller shares of the variance are not named.
_LEAST_NAMED = 0.005


def crossed_options(grid: Grid) -> audit_facts.CrossedOptions:
    """Return the opened decisions with their options."""
    return audit_facts.CrossedOptions(tuple(map(_opened, grid.varied)))


def _opened(decision: VariedDecision) -> audit_facts.OpenedOptions:
    numbers = ordered(decision)
    span = None if numbers is None else (numbers[0], min(numbers[1]), max(numbers[1]))
    is_chance, weighted = decision.kind == "chance", decision.weights is not None
    return audit_facts.OpenedOptions(decision.name, decision.options, is_chance, weighted, span)


def facts_of_pair(grid: Grid, pair: PairAudit, noise: Sequence[audit_facts.SeedNoise], alpha: float) -> Iterator[Fact]:
    """Yield the starting point, agreement, all universes, what changes the winner, and what explains it."""
    flips, start = pair.flips, grid.universe[grid.start]
    leader, other = pair.systems if flips.lead >= 0 else pair.systems[::-1]
    leads, trails = ("leads", "trails") if flips.lead >= 0 else ("trails", "leads")
    numbers = {name: float(getattr(pair.leads, name)[start]) for name in ("difference", "d_z", "p")}
    yield audit_facts.LeadAtStart(leader, other, flips.lead == 0, **numbers, significant=flips.significant)
    if grid.n_cells == 1:
        yield audit_facts.OneCell(crossed_options(grid))
        return
    # With a single question, its universes are all universes, which the next fact covers.
    if len(pair.answers) > 2:
        own = pair.answer(question_of(grid, grid.start))
        assert own.question is not None
        significantly = own.share(f"{leads} significantly").share
        p, with_seeds = own.relied_on, bool(own.corrected_retrained)
        led = own.share(leads)
        yield audit_facts.SameQuestion(leader, own.question, own.universes, led, significantly, p, with_seeds)
    answer = pair.answer()
    yield audit_facts.LedCells(
        leader,
        other,
        crossed_options(grid),
        grid.n_cells,
        grid.complete,
        answer.universes,
        answer.share(leads),
        trails=answer.share(trails).share,
        equal=answer.share("equal").share,
        of_universes=answer.share(leads, "universes").share,
    )
    if answer.joint is not None:
        numbers = {name: getattr(answer.joint, name)["either"] for name in ("observed", "expected")}
        often, with_seeds = answer.joint.often["either of universes"], bool(answer.corrected_retrained)
        yield audit_facts.JointDifference(
            **numbers, often=often, p=answer.relied_on, alpha=alpha, with_seeds=with_seeds
        )
    yield audit_facts.NotAProbability()
    yield from _by_question(pair)
    if flips.lead and flips.singles:
        yield from (flips, audit_facts.LeadKept(leader, flips))
    yield from _influences(grid, pair)
    rule = pair.rule
    if rule.majority:
        paths = tuple(rule.paths(-1 if flips.lead >= 0 else 1))
        yield audit_facts.LeadRule(leader, other, rule.n_conditions, paths, rule.accuracy, rule.majority)
    of_pair = tuple(each for each in noise if each.system in pair.systems)
    yield audit_facts.Retraining(of_pair, pair.turned_by_chance, answer.corrected)


def _by_question(pair: PairAudit) -> Iterator[Fact]:
    """Yield which system leads by question, if there are several."""
    answers = [answer for answer in pair.answers if answer.question]
    if len(answers) < 2:
        return
    led: dict[str | None, dict[str, float]] = {**{system: {} for system in pair.systems}, None: {}}
    for answer in answers:
        leads, trails = answer.share("leads").share, answer.share("trails").share
        leader = None if leads == trails else pair.systems[0 if leads > trails else 1]
        led[leader][audit_facts.question_text(answer.question)] = max(leads, trails)
    undecided = led.pop(None)
    yield audit_facts.LeadByQuestion(led, undecided)  # type: ignore[arg-type]


def _influences(grid: Grid, pair: PairAudit) -> Iterator[Fact]:
    rows = [row for row in pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]
    decided = sorted((row for row in rows if row["kind"] != "chance"), key=lambda row: -row["shapley"])
    decided = [row for row in decided if row["variance"] and row["shapley"] >= _LEAST_NAMED]
    if decided:
        chance = sum(row["shapley"] for row in rows if row["kind"] == "chance") if grid.has_chance else None
        rest = rows[0]["rest"] if rows[0]["method"] == "least squares" else None
        yield audit_facts.LargestInfluences(tuple(decided[:3]), chance, rest)


def facts_of_ranks(rows: Sequence[Mapping[str, Any]], systems: Sequence[str]) -> list[Fact]:
    """Return how often systems rank first, if there are more than two."""
    if len(systems) == 2:
        return []
    first = {row["system"]: row["share"] for row in rows if row["rank"] == 1 and row["question"] is None}
    shares = {system: share for system, share in sorted(first.items(), key=lambda entry: -entry[1]) if share}
    return [audit_facts.FirstPlaces(len(systems), shares)]


def facts_of_tests(rows: Sequence[Mapping[str, Any]], systems: tuple[str, str]) -> Iterator[Fact]:
    """Yield the results of other tests of a pair: over all universes together, and under the starting point."""
    own = {
        str(PairedTest(row["significance"], row["correction"])): row
        for row in rows
        if row["question"] is None and (row["system_a"], row["system_b"]) == systems
    }
    shares = {test: row["significant"] for test, row in own.items() if row["significant"] is not None}
    if shares:
        yield audit_facts.SignificantByTest(shares)
    p = {test: row["start_p_corrected"] for test, row in own.items() if row["start_p"] is not None}
    if p:
        yield audit_facts.StartByTest(p, tuple(test for test in p if own[test]["start_significant"]))


def facts_of_truth(truth: TruthFindings | None, systems: tuple[str, str]) -> Iterator[Fact]:
    """Yield the truth about a pair, and the decision that matters most for reaching the true order."""
    if truth is None:
        return
    row = next(row for row in truth.pairs if (row["system_a"], row["system_b"]) == systems)
    if row["truly_better"] is not None:
        yield audit_facts.TrueLead(truth.source, row)
    options: dict[str, list[dict[str, Any]]] = {}
    for row in truth.options:
        if row["decision"] is not None and row["kind"] != "chance":
            options.setdefault(row["decision"], []).append(row)
    ranked = [sorted(own, key=lambda row: -row["tau"]) for own in options.values()]
    most = max(ranked, key=lambda own: own[0]["tau"] - own[-1]["tau"], default=None)
    if most is not None and most[0]["tau"] != most[-1]["tau"]:
        yield audit_facts.TrueOrderReached(truth.options[0], most[0], most[-1])


def facts_of_advice(rows: Sequence[Mapping[str, Any]]) -> list[Fact]:
    """Return whether the advice on metrics is the same under each split and target design, if there are several."""
    best = [row for row in rows if row["rank"] == 1]
    if len(best) < 2:
        return []
    named: dict[str, tuple[str, ...]] = {}
    for row in best:
        metric = row["metric"] if row["average"] == "mean" else f"{row['metric']}, {row['average']}"
        named[metric] = (*named.get(metric, ()), row["setup"])
    taus = tuple(row["tau"] for row in best[1:] if row["tau"] is not None)
    failed = sum(row["rank"] is None for row in rows)
    return [audit_facts.AdviceByDesign(named, sum(row["clear"] for row in best), taus, failed)]


def facts_of_enumeration(enumeration: Enumeration) -> list[Fact]:
    """Return notes on options declared invalid, on repetitions and on a sample of cells."""
    varied, notes = enumeration.settings.varied, list[Fact]()
    declared = [(own.name, option, reason) for own in varied for option, reason in own.invalid.items()]
    if declared:
        kept = prod(len(decision.options) for decision in varied)
        left_out = prod(len(decision.options) + len(decision.invalid) for decision in varied) - kept
        notes.append(audit_facts.DeclaredInvalid(left_out, tuple(declared)))
    if (times := enumeration.settings.experiment.repetitions) > 1:
        notes.append(audit_facts.AveragedRepetitions(times))
    if not enumeration.complete:
        notes.append(audit_facts.SampledCells(len(enumeration.cells), enumeration.imbalance))
    return notes


def facts_of_omissions(grid: Grid, terms: UserContributions) -> list[Fact]:
    """Return notes on universes and combinations that are left out."""
    notes, not_linear = list[Fact](), ~terms.linear[grid.universe]
    if not_linear.any():
        names = [
            f"{decision.name} {option}"
            for decision, option, mask in grid.by_option()
            if not_linear[mask].all() and mask.any()
        ]
        notes.append(audit_facts.NotSumsOverUsers(int(np.count_nonzero(~terms.linear)), tuple(names)))
    return notes + left_out(grid.invalid)


def left_out(invalid: Sequence[tuple[Any, str]]) -> list[Fact]:
    """Return how many combinations are left out, by reason, if any."""
    reasons = Counter(reason for _, reason in invalid)
    return [audit_facts.LeftOutCombinations(dict(reasons))] if reasons else []

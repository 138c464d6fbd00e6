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
from cranfield.audits.pair import PairAudit
from cranfield.audits.words import option_words
from cranfield.facts import Fact
from cranfield.facts import audit as audit_facts

if TYPE_CHECKING:
    from cranfield.audits.enumeration import Enumeration
    from cranfield.audits.truth import TruthFindings


def crossed_options(grid: Grid) -> audit_facts.CrossedOptions:
    """Return the opened decisions with their options."""
    return audit_facts.CrossedOptions(tuple(map(_opened, grid.varied)))


def _opened(decision: VariedDecision) -> audit_facts.OpenedOptions:
    numbers = ordered(decision)
    span = None if numbers is None else (numbers[0], min(numbers[1]), max(numbers[1]))
    is_chance, weighted = decision.kind == "chance", decision.weights is not None
    return audit_facts.OpenedOptions(decision.name, decision.options, is_chance, weighted, span)


def facts_of_pair(grid: Grid, pair: PairAudit, noise: Sequence[audit_facts.SeedNoise], alpha: float) -> Iterator[Fact]:
    """Yield whether the winner survives, the starting point, the joint test, and what explains who leads."""
    flips, rule, start, answer = pair.flips, pair.rule, grid.universe[grid.start], pair.answer()
    leader, other = pair.systems if flips.lead >= 0 else pair.systems[::-1]
    share = answer.share("leads" if flips.lead >= 0 else "trails").share
    turning = sorted(flips.turning, key=lambda flip: -abs(flip.d_z))
    options: dict[str, str] = {}
    for swap in (flip.swaps[0] for flip in turning if not flips.pairs):
        options.setdefault(swap.decision, option_words(swap.decision, swap.after, grid.labels))
    reversing = tuple(options.values())
    yield audit_facts.Survival(leader, other, flips.lead == 0, share, grid.n_cells, reversing, bool(flips.pairs))
    difference, d_z, p = (float(values[start]) for values in (pair.leads.difference, pair.leads.d_z, pair.leads.p))
    yield audit_facts.LeadAtStart(leader, other, flips.lead == 0, difference, d_z, p, flips.significant)
    if grid.n_cells == 1:
        return
    chance = answer.share("leads").chance
    if chance is not None:
        yield audit_facts.ChanceShare(chance)
    if answer.joint is not None:
        yield audit_facts.JointDifference(answer, alpha)
    rows = (row for row in pair.influence if row["with_decision"] is None and row["answer"] == "d_z")
    influences = audit_facts.LargestInfluences(tuple(rows))
    if influences.named:
        yield influences
    if rule.majority:
        paths = tuple(rule.paths(-1 if flips.lead >= 0 else 1))
        yield audit_facts.LeadRule(leader, other, rule.n_conditions, paths, rule.accuracy, rule.majority)
    of_pair = tuple(each for each in noise if each.system in pair.systems)
    yield audit_facts.Retraining(of_pair, pair.turned_by_chance, answer.corrected)


def facts_of_tests(rows: Sequence[Mapping[str, Any]], systems: tuple[str, str]) -> Iterator[Fact]:
    """Yield the results of other tests of a pair: over all universes together, and under the starting point."""
    own = [row for row in rows if row["question"] is None and (row["system_a"], row["system_b"]) == systems]
    if shares := tuple(row for row in own if row["significant"] is not None):
        yield audit_facts.SignificantByTest(shares)
    if tested := tuple(row for row in own if row["start_p"] is not None):
        yield audit_facts.StartByTest(tested)


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
    advice = audit_facts.AdviceByDesign(tuple(rows))
    return [advice] if len(advice.best) > 1 else []


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

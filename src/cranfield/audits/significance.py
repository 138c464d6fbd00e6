"""Other tests and corrections, which only change which differences are significant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._registry import parse
from cranfield.audits.contributions import Leads, Singles, UserContributions
from cranfield.audits.grid import Floats, Grid, number_or_none
from cranfield.audits.joint import Question
from cranfield.audits.pair import Effort, PairAudit
from cranfield.comparisons import CORRECTIONS, SIGNIFICANCE_TESTS, Comparing, Sample, TestResult
from cranfield.experiments import checked_value
from cranfield.facts import audit as audit_facts

OF_TESTS = ("significance", "correction")  # the decisions that change only what is significant

SIGNIFICANCE_KINDS = {
    **dict.fromkeys(("system_a", "system_b", "question", "significance", "correction"), pl.String),
    "universes": pl.Int64,
    **dict.fromkeys(("leads_significantly", "trails_significantly", "significant"), pl.Float64),
    **dict.fromkeys(("start_p", "start_p_corrected"), pl.Float64),
    "start_significant": pl.Boolean,
}
"""The columns of `Audit.significance`."""

_OF_RANKS = ("wilcoxon", "sign")
_SINGLE = 4e-7  # single-precision differences closer than this share of the largest one are equal
# The maximum number of steps of a lattice, and how close its levels must be to multiples of the step.
_MOST_STEPS, _NEAR = 1000, 1e-3


class Outcome(NamedTuple):
    """The result of a test for one pair of systems in every universe."""

    p: Floats  # NaN if the test does not apply
    direction: Floats  # above 0 if the first system is better by what is compared


def checked_significance(value: Any) -> str:
    """Return a test in canonical form; raise an error if it cannot be opened."""
    spelled = str(checked_value("significance", value))
    if parse(spelled).name == "tukey":
        raise SettingError("significance=tukey looks at all systems at once, and an audit at pairs; open correction")
    if parse(spelled).name == "log_student":
        raise SettingError(
            "significance=log_student is Student's test of logarithms; open a geometric average, whose test it is"
        )
    return spelled


def outcome_of(significance: str, x: Singles, terms: UserContributions, leads: Leads, *, seed: int = 0) -> Outcome:
    """Return a test's result for a pair, by x (universes × users); those of ranks and signs need equal weights."""
    direction = leads.lead.astype(np.float64)
    if significance == "student":
        return Outcome(leads.p, direction)
    p = np.full(len(x), np.nan)
    first, second = np.array([0]), np.array([1])
    of_ranks = parse(significance).name in _OF_RANKS
    for universe in np.flatnonzero(terms.paired) if of_ranks else range(len(x)):
        own = _of_users(x[universe], int(terms.users[universe]))
        sample = Sample("x", ("first", "second"), np.stack([own, np.zeros(len(own))]), first, second)
        result: TestResult
        (result,) = SIGNIFICANCE_TESTS.call(significance, [sample], seed=seed, alpha=Comparing.alpha)
        p[universe] = result.p[0]
        if result.direction is not None:
            direction[universe] = result.direction[0]
    return Outcome(p, direction)


def _of_users(x: Singles, users: int) -> Floats:
    """Return the differences of a universe's users, 0 for absent ones; those within single precision become equal."""
    size = np.abs(x, dtype=np.float64)
    order = np.argsort(size, kind="stable")
    ordered = size[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1.0) > _SINGLE * ordered[-1])
    levels = ordered[begins]
    levels[levels <= _SINGLE * ordered[-1]] = 0.0
    own = np.empty(len(x))
    own[order] = np.repeat(_on_lattice(levels), np.diff(begins, append=len(x)))
    rounded = np.sign(x) * own
    differs = rounded[rounded != 0]
    return np.concatenate([differs, np.zeros(max(users - len(differs), 0))])


def _on_lattice(levels: Floats) -> Floats:
    """Return levels as exact multiples of a step if they are in single precision, so that equal sums stay equal."""
    if not 1 < len(levels) <= _MOST_STEPS:
        return levels
    step = float(np.diff(levels[levels > 0], prepend=0.0).min())
    steps = np.round(levels[-1] / step)
    multiples = levels / (levels[-1] / steps)
    if steps > _MOST_STEPS or np.abs(multiples - np.round(multiples)).max() > _NEAR:
        return levels
    return np.round(multiples) * (levels[-1] / steps)


def rows_of_tests(
    grid: Grid,
    terms: UserContributions,
    pairs: Sequence[PairAudit],
    testings: Sequence[audit_facts.PairedTest],
    effort: Effort,
    advance: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """Return one row per test, pair of systems and question: the significant shares, and the start."""
    if not testings:
        return []
    outcomes: dict[str, list[Outcome]] = {testing.significance: [] for testing in testings}
    for place, pair in zip(combinations(range(len(terms.values)), 2), pairs):
        x = terms.between(*place)
        for name, own in outcomes.items():
            own.append(outcome_of(name, x, terms, pair.leads, seed=effort.seed))
            advance()
    questions = Question.of(grid, terms.linear)
    start = grid.universe[grid.start]
    rows = []
    for testing in testings:
        p_values = np.stack([outcome.p for outcome in outcomes[testing.significance]])
        corrected = np.stack([CORRECTIONS.call(testing.correction, column) for column in p_values.T], axis=1)
        for pair, outcome, p in zip(pairs, outcomes[testing.significance], corrected):
            shown = {"system_a": pair.systems[0], "system_b": pair.systems[1]}
            at_start = {
                "start_p": number_or_none(outcome.p[start]),
                "start_p_corrected": number_or_none(p[start]),
                "start_significant": bool(p[start] < effort.alpha),
            }
            for question in questions:
                named = {"question": question.name, **vars(testing)}
                rows.append({**shown, **named, **_shares(p < effort.alpha, outcome, question), **at_start})
    return rows


def _shares(significant: NDArray[np.bool_], outcome: Outcome, question: Question) -> dict[str, Any]:
    """Return the shares of the cells to which the test applies."""
    places = question.universes
    applies = ~np.isnan(outcome.p[places])
    weights = question.weights * applies
    total = float(weights.sum())
    if not total:
        return {"universes": 0, "leads_significantly": None, "trails_significantly": None, "significant": None}
    marks, direction = significant[places], outcome.direction[places]
    return {
        "universes": int(applies.sum()),
        "leads_significantly": float((marks & (direction > 0)) @ weights) / total,
        "trails_significantly": float((marks & (direction < 0)) @ weights) / total,
        "significant": float((marks & (direction != 0)) @ weights) / total,
    }

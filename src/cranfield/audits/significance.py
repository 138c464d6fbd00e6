"""Other tests and corrections, which only change which differences are significant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import SettingError
from cranfield._numbers import listed
from cranfield._registry import parse
from cranfield.audits.grid import Grid
from cranfield.audits.joint import Scope
from cranfield.audits.leads import Floats, Leads
from cranfield.audits.menu import question_text
from cranfield.audits.pair import Effort, PairAudit, Question
from cranfield.audits.terms import Singles, Terms
from cranfield.audits.wording import share_text
from cranfield.comparisons import CORRECTIONS, SIGNIFICANCE_TESTS, Comparing, Sample, TestResult
from cranfield.experiments import checked_value
from cranfield.facts import p_text

OPENED = ("significance", "correction")
"""The decisions that change only what is significant."""

SIGNIFICANCE_KINDS = {
    **dict.fromkeys(("system_a", "system_b", "question", "significance", "correction"), pl.String),
    "universes": pl.Int64,
    **dict.fromkeys(("leads_significantly", "trails_significantly", "significant"), pl.Float64),
    **dict.fromkeys(("start_p", "start_p_corrected"), pl.Float64),
    "start_significant": pl.Boolean,
}
"""The columns of `Audit.significance`."""

_OF_RANKS = ("wilcoxon", "sign")
# Single-precision differences closer than this share of the largest one are equal.
_SINGLE = 4e-7
# The maximum number of steps of a lattice, and how close its levels must be to multiples of the step.
_MOST_STEPS, _NEAR = 1000, 1e-3
_STUDENT = "student"


@dataclass(frozen=True)
class PairedTest:
    """A paired test of the users' differences, and the correction over the pairs of systems of a universe."""

    significance: str
    correction: str

    def __str__(self) -> str:
        return self.significance if self.correction == "none" else f"{self.significance} with {self.correction}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a test for one pair of systems in every universe.

    Parameters
    ----------
    p
        The p-value; NaN if the test does not apply.
    direction
        Above 0 if the first system is better by what the test compares.
    """

    p: Floats
    direction: Floats


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


def outcome_of(significance: str, x: Singles, terms: Terms, leads: Leads, *, seed: int = 0) -> Outcome:
    """Return the result of a test for a pair; x is universes × users (`Terms.between`).

    Student's test is that of `Leads`. Tests of ranks and signs apply if x is the difference of a user's two values,
    that is, not with unequal weights.
    """
    if significance == _STUDENT:
        return Outcome(leads.p, leads.lead.astype(np.float64))
    p, direction = np.full(len(x), np.nan), leads.lead.astype(np.float64)
    of_ranks = parse(significance).name in _OF_RANKS
    for universe in np.flatnonzero(terms.paired) if of_ranks else range(len(x)):
        (verdict,) = _verdicts(significance, _of_users(x[universe], int(terms.users[universe])), seed)
        p[universe] = verdict.p[0]
        if verdict.direction is not None:
            direction[universe] = verdict.direction[0]
    return Outcome(p, direction)


def _of_users(x: Singles, users: int) -> Floats:
    """Return the differences of the users of a universe; absent users have a difference of 0, like some present ones.

    Terms have single precision. Differences within its rounding are made equal.
    """
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
    """Return ascending levels as exact multiples of a step if they are multiples in single precision, else unchanged.

    Sums of differences are then equal whenever sums of the exact values are, for example for P@10.

    Examples
    --------
    >>> _on_lattice(np.array([0.1, 0.2, 0.3], dtype=np.float32).astype(float)).round(7).tolist()
    [0.1, 0.2, 0.3]
    """
    if not 1 < len(levels) <= _MOST_STEPS:
        return levels
    step = float(np.diff(levels[levels > 0], prepend=0.0).min())
    steps = np.round(levels[-1] / step)
    multiples = levels / (levels[-1] / steps)
    if steps > _MOST_STEPS or np.abs(multiples - np.round(multiples)).max() > _NEAR:
        return levels
    lattice: Floats = np.round(multiples) * (levels[-1] / steps)
    return lattice


def _verdicts(significance: str, x: Floats, seed: int) -> list[TestResult]:
    first, second = np.array([0]), np.array([1])
    sample = Sample("x", ("first", "second"), np.stack([x, np.zeros(len(x))]), first, second)
    verdicts: list[TestResult] = SIGNIFICANCE_TESTS.call(significance, [sample], seed=seed, alpha=Comparing.alpha)
    return verdicts


def rows_of_tests(
    grid: Grid,
    terms: Terms,
    pairs: Sequence[PairAudit],
    testings: Sequence[PairedTest],
    effort: Effort,
    advance: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """Return the results of all tests and corrections for all pairs; ``advance`` is called after each test."""
    if not testings:
        return []
    places = list(combinations(range(terms.n_systems), 2))
    names = list(dict.fromkeys(testing.significance for testing in testings))
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    for place, pair in zip(places, pairs):
        x = terms.between(*place)
        for name in names:
            outcomes[name].append(outcome_of(name, x, terms, pair.leads, seed=effort.seed))
            advance()
    scopes = [(question.options, question.scope) for question in Question.of(grid, terms.linear)]
    return significance_rows(grid, scopes, [pair.systems for pair in pairs], outcomes, testings, effort.alpha)


def significance_rows(
    grid: Grid,
    scopes: Sequence[tuple[Mapping[str, str] | None, Scope]],
    pairs: Sequence[tuple[str, str]],
    outcomes: Mapping[str, Sequence[Outcome]],
    testings: Sequence[PairedTest],
    alpha: float,
) -> list[dict[str, Any]]:
    """Return one row per pair of systems, question, test and correction: the significant shares, and the start.

    Parameters
    ----------
    scopes
        Each question with its universes; the question None stands for all of them.
    outcomes
        By test, its results for each pair.
    testings
        The tests and corrections to show.
    """
    rows = []
    for testing in testings:
        own = outcomes[testing.significance]
        corrected = _corrected(testing.correction, np.stack([each.p for each in own]))
        for place, systems in enumerate(pairs):
            shown = {"system_a": systems[0], "system_b": systems[1]}
            start = grid.universe[grid.start]
            at_start = {
                "start_p": _number(own[place].p[start]),
                "start_p_corrected": _number(corrected[place, start]),
                "start_significant": bool(corrected[place, start] < alpha),
            }
            for question, scope in scopes:
                named = {"question": None if question is None else question_text(question), **vars(testing)}
                shares = _shares(corrected[place] < alpha, own[place], scope)
                rows.append({**shown, **named, **shares, **at_start})
    return rows


def _corrected(correction: str, p: Floats) -> Floats:
    """Return p-values, pairs × universes, corrected over the pairs of each universe."""
    columns = [CORRECTIONS.call(correction, column) for column in p.T]
    return np.stack(columns, axis=1)


def _shares(significant: Any, own: Outcome, scope: Scope) -> dict[str, Any]:
    """Return the shares of the cells to which the test applies."""
    places = scope.universes
    applies = ~np.isnan(own.p[places])
    weights = scope.weights * applies
    total = float(weights.sum())
    if not total:
        return {"universes": 0, "leads_significantly": None, "trails_significantly": None, "significant": None}
    marks, direction = significant[places], own.direction[places]
    return {
        "universes": int(applies.sum()),
        "leads_significantly": float((marks & (direction > 0)) @ weights) / total,
        "trails_significantly": float((marks & (direction < 0)) @ weights) / total,
        "significant": float((marks & (direction != 0)) @ weights) / total,
    }


def said_of_tests(rows: Sequence[Mapping[str, Any]], systems: tuple[str, str]) -> list[str]:
    """Return sentences on other tests of a pair: over all universes together, and under the starting point."""
    own = [row for row in rows if row["question"] is None and (row["system_a"], row["system_b"]) == systems]
    if not own:
        return []
    shares = [f"{_name(row)} in {share_text(row['significant'])}" for row in own if row["significant"] is not None]
    said = f"One is significantly better in this share of the cells, test by test: {listed(shares)}."
    sentences = [said] if shares else []
    split: dict[bool, list[str]] = {True: [], False: []}
    for row in own:
        if row["start_p"] is not None:
            split[row["start_significant"]].append(f"{_name(row)} (p {_p_text(row['start_p_corrected'])})")
    if split[True] and split[False]:
        sentences.append(
            f"The test alone changes the significance under the starting point: the difference is significant by "
            f"{listed(split[True])} and not by {listed(split[False])}."
        )
    elif split[True] or split[False]:
        verdict = "significant" if split[True] else "not significant"
        every = split[True] or split[False]
        sentences.append(f"Under the starting point the difference is {verdict} by {listed(every)}.")
    return sentences


def _name(row: Mapping[str, Any]) -> str:
    return str(PairedTest(row["significance"], row["correction"]))


def _p_text(p: float) -> str:
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)

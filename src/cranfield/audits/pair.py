"""`PairAudit`: the results of an audit for one pair of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.chance import spread_by_chance, turned_by_chance
from cranfield.audits.flips import Flips, flips_of
from cranfield.audits.grid import Grid
from cranfield.audits.influence import Influence, influences
from cranfield.audits.joint import JointTest, Scope, joint_tests
from cranfield.audits.leads import Floats, Leads, leads_of
from cranfield.audits.resampling import Resampled, interval, resampled
from cranfield.audits.rule import Rule, rule_of
from cranfield.audits.shares import LeadShare, effect_quantiles, lead_shares
from cranfield.audits.terms import Singles, Terms

ANSWERS = ("d_z", "sign")
"""The answers whose variance is decomposed by decision."""


@dataclass(frozen=True, eq=False)
class Question:
    """The universes of one question, or all of them.

    Parameters
    ----------
    options
        The options that define the question; None for all questions together.
    scope
        Its universes.
    tested
        The universes whose average is linear (`Terms`), which can be tested and resampled. None if there are none.
    """

    options: Mapping[str, str] | None
    scope: Scope
    tested: Scope | None

    @classmethod
    def of(cls, grid: Grid, linear: NDArray[np.bool_]) -> list[Question]:
        """Return all universes together, then each question."""
        everywhere = np.ones(grid.n_cells, dtype=bool)
        questions = [cls(None, *_scopes(grid, everywhere, linear))]
        if grid.of_kind("question"):
            for number in range(int(grid.questions.max()) + 1):
                mask = grid.questions == number
                options = question_of(grid, int(np.flatnonzero(mask)[0]))
                questions.append(cls(options, *_scopes(grid, mask, linear)))
        return questions


def question_of(grid: Grid, cell: int) -> dict[str, str]:
    """Return the options that define the question of a cell; none if no decision changes the question."""
    words = grid.words(cell)
    return {grid.opened[place].name: words[grid.opened[place].name] for place in grid.of_kind("question")}


def _scopes(grid: Grid, mask: NDArray[np.bool_], linear: NDArray[np.bool_]) -> tuple[Scope, Scope | None]:
    """Return all universes of some cells, and those that are linear."""

    def scope(cells: NDArray[np.bool_]) -> Scope:
        weights = grid.universe_weights(cells)
        universes = np.flatnonzero(weights)
        return Scope(universes, weights[universes])

    tested = mask & linear[grid.universe]
    return scope(mask), scope(tested) if tested.any() else None


@dataclass(frozen=True)
class QuestionAnswer:
    """The results of one pair of systems within a question (None: all questions together).

    Parameters
    ----------
    question
        The options that define the question.
    universes
        The number of its distinct universes.
    shares
        How often each system leads, with intervals and chance.
    effects
        The quantiles of d_z over the cells.
    joint
        The joint test; None if no universe can be tested.
    corrected, corrected_retrained
        Its p-values, without and with the spread of seeds, after Holm's correction over the pairs of systems.
    """

    question: Mapping[str, str] | None
    universes: int
    shares: tuple[LeadShare, ...]
    effects: Mapping[float, float]
    joint: JointTest | None
    corrected: Mapping[str, float] = field(default_factory=dict)
    corrected_retrained: Mapping[str, float] = field(default_factory=dict)

    @property
    def relied_on(self) -> Mapping[str, float]:
        """The p-values to rely on: those with the spread of seeds if seeds were opened."""
        return self.corrected_retrained or self.corrected

    def share(self, what: str, over: str = "cells") -> LeadShare:
        """Return one of the shares."""
        return next(share for share in self.shares if (share.what, share.over) == (what, over))


@dataclass(frozen=True, eq=False)
class PairAudit:
    """All results for one pair of systems; the first is ahead if a sign is positive.

    Parameters
    ----------
    systems
        The two systems.
    leads
        Which system leads in each universe.
    answers
        All universes together, then each question.
    influence
        One row per answer and decision, and one per answer and pair of decisions (`influence_rows`).
    flips, rule
        The effects of small changes of the starting point, and the rule for which system leads.
    turned_by_chance
        The share of the set-ups in which chance options alone change the winner; None without chance options.
    """

    systems: tuple[str, str]
    leads: Leads
    answers: tuple[QuestionAnswer, ...]
    influence: tuple[dict[str, Any], ...]
    flips: Flips
    rule: Rule
    turned_by_chance: float | None

    def answer(self, question: Mapping[str, str] | None = None) -> QuestionAnswer:
        """Return the answer to a question, or to all of them together."""
        return next(answer for answer in self.answers if answer.question == question)


@dataclass(frozen=True)
class Effort:
    """The numbers of draws, the seed, and the level of tests."""

    draws: int
    resamples: int
    alpha: float
    seed: int


def audit_pair(
    grid: Grid,
    systems: tuple[str, str],
    x: Singles,
    terms: Terms,
    averages: Floats,
    lower_is_better: NDArray[np.bool_],
    counts: Singles,
    effort: Effort,
) -> PairAudit:
    """Return the results for a pair, from x of `Terms.between` and two rows of averages."""
    leads = leads_of(x, terms, averages, lower_is_better, effort.alpha)
    drawn = resampled(x, terms, counts)
    questions = Question.of(grid, terms.linear)
    tested = [question.tested for question in questions if question.tested is not None]
    spread = spread_by_chance(grid, x, terms.users)
    tests = iter(
        joint_tests(x, terms.users, tested, spread=spread, draws=effort.draws, alpha=effort.alpha, seed=effort.seed)
        if tested
        else ()
    )
    answers = []
    for question in questions:
        joint = None if question.tested is None else next(tests)
        shares = lead_shares(leads, drawn, terms, question.scope, question.tested, effort.alpha, joint)
        effects = effect_quantiles(leads.d_z, question.scope)
        answers.append(QuestionAnswer(question.options, len(question.scope.universes), tuple(shares), effects, joint))
    return judged_pair(grid, systems, leads, answers, influence_rows(grid, leads, drawn))


def judged_pair(
    grid: Grid,
    systems: tuple[str, str],
    leads: Leads,
    answers: Sequence[QuestionAnswer],
    influence: Sequence[dict[str, Any]],
) -> PairAudit:
    """Return the audit of a pair, adding what follows from the leads."""
    lead = leads.lead[grid.universe]
    return PairAudit(
        systems,
        leads,
        tuple(answers),
        tuple(influence),
        flips_of(grid, leads),
        rule_of(grid, lead),
        turned_by_chance(grid, lead),
    )


def influence_rows(grid: Grid, leads: Leads, drawn: Resampled) -> list[dict[str, Any]]:
    """Return one row per answer and decision, and one per answer and two decisions, with intervals over users."""
    cells = grid.universe
    rows = []
    effects, signs = np.vstack([leads.d_z, drawn.d_z]), np.vstack([leads.lead, drawn.sign])
    for answer, table in zip(ANSWERS, (effects, signs.astype(np.float64))):
        rows += _rows(grid, answer, influences(grid, table[:, cells]))
    return rows


def _rows(grid: Grid, answer: str, influence: Influence) -> list[dict[str, Any]]:
    rows = []
    for place, opened in enumerate(grid.opened):
        shares = {name: float(getattr(influence, name)[0, place]) for name in ("main", "total", "shapley")}
        low, high = interval(shares["shapley"], influence.shapley[1:, place])
        error = None if influence.error is None else float(influence.error[place])
        own = {**shares, "lower": low, "upper": high, "error": error, "interaction": None}
        rows.append(_labelled(answer, influence, opened.name, None, opened.kind) | own)
    nothing = dict.fromkeys(("main", "total", "shapley", "error"))
    for (first, second), share in influence.pairs.items():
        low, high = interval(float(share[0]), share[1:])
        label = _labelled(answer, influence, grid.opened[first].name, grid.opened[second].name, None)
        rows.append(label | nothing | {"lower": low, "upper": high, "interaction": float(share[0])})
    return rows


def _labelled(answer: str, influence: Influence, decision: str, other: str | None, kind: str | None) -> dict[str, Any]:
    return {
        "answer": answer,
        "decision": decision,
        "with_decision": other,
        "kind": kind,
        "method": influence.method,
        "variance": float(influence.variance[0]),
        "rest": float(influence.rest[0]),
    }

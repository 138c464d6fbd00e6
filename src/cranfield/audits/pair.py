"""`PairAudit`: the results of an audit for one pair of systems.

How often a system leads depends on the menu, that is, on the opened options and their weights. It is not a probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.contributions import (
    Leads,
    Resampled,
    Singles,
    UserContributions,
    interval,
    leads_of,
    p_of,
    resampled,
)
from cranfield.audits.flips import Rule, flips_of, rule_of
from cranfield.audits.grid import Floats, Grid
from cranfield.audits.influence import influence_rows
from cranfield.audits.joint import Question, SeedSpread, joint_tests, turned_by_chance
from cranfield.facts import audit as audit_facts

if TYPE_CHECKING:
    from cranfield.audits.result import Audit

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The quantiles of d_z to show; the first and the last are its range."""

_CHANCE = {
    "leads": "leads",
    "trails": "leads",
    "leads significantly": "significantly",
    "trails significantly": "significantly",
    "significant": "either",
}
_OPPOSITE = dict(zip(_CHANCE, ("trails", "leads", "trails significantly", "leads significantly")))


def lead_shares(
    leads: Leads,
    drawn: Resampled,
    terms: UserContributions,
    question: Question,
    alpha: float,
    joint: audit_facts.JointTest | None,
) -> list[audit_facts.LeadShare]:
    """Return all shares of a pair in a question; without tested universes, intervals are NaN and chance is None."""
    observed = _events(leads.lead[question.universes], leads.significant[question.universes])
    tested, events = question.tested, {}
    if tested is not None:
        own = tested.universes
        events = _events(drawn.sign[:, own], p_of(drawn.d_z[:, own], terms.users[own]) < alpha)
    shares = []
    for over in ("cells", "universes"):
        for what, event in observed.items():
            share = float(event @ question.shares(over))
            ends = (np.nan, np.nan) if tested is None else interval(share, events[what] @ tested.shares(over))
            chance = joint.often[f"{_CHANCE[what]} of {over}"] if joint is not None and what in _CHANCE else None
            shares.append(audit_facts.LeadShare(over, what, share, *ends, chance))
    return shares


def _events(lead: NDArray[np.int8], significant: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    return {
        "leads": lead > 0,
        "trails": lead < 0,
        "equal": lead == 0,
        "leads significantly": (lead > 0) & significant,
        "trails significantly": (lead < 0) & significant,
        "significant": significant & (lead != 0),
    }


def effect_quantiles(d_z: Floats, question: Question) -> dict[float, float]:
    """Return the quantiles of d_z over the cells of a question, with their weights."""
    own = d_z[question.universes]
    order = np.argsort(own, kind="stable")
    reached = np.cumsum(question.weights[order])
    places = np.minimum(np.searchsorted(reached, np.array(QUANTILES) - 1e-12), len(own) - 1)
    return dict(zip(QUANTILES, own[order][places].tolist()))


_SINGLE = 1e-5  # the rounding of averages that are made of single precision


def ranks_of(averages: Floats, rounding: float = 1e-12) -> NDArray[np.int64]:
    """Return the rank of each system (first axis): 1 plus the number of better systems; equal systems share a rank.

    Averages are equal if they differ by less than ``rounding`` times the largest, as sums in another order may.
    """
    ranks = np.ones(averages.shape, dtype=np.int64)
    equal = rounding * np.abs(averages).max(axis=0, initial=0)
    for place, own in enumerate(averages):
        ranks[place] += (averages > own + equal).sum(axis=0)
    return ranks


def rank_shares(systems: Sequence[str], averages: Floats, drawn: Floats, question: Question) -> list[dict[str, Any]]:
    """Return one row per system and rank: its share of the cells, with an interval over the ``drawn`` averages."""
    observed = ranks_of(averages[:, question.universes])
    resampled_ranks = ranks_of(drawn[..., question.universes], _SINGLE)
    rows = []
    for system, own, ranks in zip(systems, observed, resampled_ranks):
        for rank in range(1, len(systems) + 1):
            share = float((own == rank) @ question.weights)
            low, high = interval(share, (ranks == rank) @ question.weights)
            rows.append({"system": system, "rank": rank, "share": share, "lower": low, "upper": high})
    return rows


@dataclass(frozen=True, eq=False)
class PairAudit:
    """All results for one pair of systems; the first is ahead if a sign is positive."""

    systems: tuple[str, str]
    leads: Leads  # which system leads in each universe
    answers: tuple[audit_facts.QuestionAnswer, ...]  # all universes together, then each question
    influence: tuple[dict[str, Any], ...]  # see `influence_rows`
    flips: audit_facts.Flips  # the effects of small changes of the starting point
    rule: Rule  # for which system leads where
    turned_by_chance: float | None  # the share of the set-ups in which chance alone changes the winner, if opened

    @classmethod
    def of(
        cls,
        grid: Grid,
        systems: tuple[str, str],
        leads: Leads,
        answers: Sequence[audit_facts.QuestionAnswer],
        influence: Sequence[dict[str, Any]],
    ) -> PairAudit:
        """Return the audit of a pair, adding what follows from the leads."""
        lead = leads.lead[grid.universe]
        flips, rule, turned = flips_of(grid, leads), rule_of(grid, lead), turned_by_chance(grid, lead)
        return cls(systems, leads, tuple(answers), tuple(influence), flips, rule, turned)

    def answer(self, question: Mapping[str, str] | None = None) -> audit_facts.QuestionAnswer:
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
    terms: UserContributions,
    averages: Floats,
    lower_is_better: NDArray[np.bool_],
    counts: Singles,
    effort: Effort,
) -> PairAudit:
    """Return the results for a pair, from x of `UserContributions.between` and two rows of averages."""
    leads = leads_of(x, terms, averages, lower_is_better, effort.alpha)
    drawn = resampled(x, terms, counts)
    questions = Question.of(grid, terms.linear)
    tested = [question.tested for question in questions if question.tested is not None]
    spread = SeedSpread.of(grid, x, terms.users)
    tests = iter(
        joint_tests(x, terms.users, tested, spread=spread, draws=effort.draws, alpha=effort.alpha, seed=effort.seed)
        if tested
        else ()
    )
    answers = []
    for question in questions:
        test = None if question.tested is None else next(tests)
        shares = tuple(lead_shares(leads, drawn, terms, question, effort.alpha, test))
        effects, universes = effect_quantiles(leads.d_z, question), len(question.universes)
        answers.append(audit_facts.QuestionAnswer(question.options, universes, shares, effects, test))
    return PairAudit.of(grid, systems, leads, answers, influence_rows(grid, leads, drawn))


@dataclass(frozen=True, eq=False)
class PairView:
    """A pair of systems from the perspective of ``first``: signed numbers are positive if it leads."""

    pair: PairAudit
    first: str
    second: str

    @classmethod
    def of(cls, audit: Audit, first: str | None = None, second: str | None = None) -> PairView:
        """Return the view of a pair, by default of the two best systems under the starting point, the winner first."""
        pair = audit.pair(first, second)
        if first is None or second is None:
            first, second = sorted(pair.systems, key=audit.systems_at_start.index)
        return cls(pair, first, second)

    @property
    def sign(self) -> int:
        """1 if the pair has the systems in this order, −1 if it has them in the opposite order."""
        return 1 if self.pair.systems[0] == self.first else -1

    @property
    def systems(self) -> tuple[str, str]:
        """Both systems, in the order in which they are shown."""
        return self.first, self.second

    @property
    def lead(self) -> NDArray[np.int8]:
        """For each universe, 1 if the first system leads, −1 if the second does, 0 if they are equal."""
        return (self.sign * self.pair.leads.lead).astype(np.int8)

    @property
    def d_z(self) -> Floats:
        """For each universe, the standardised difference, positive if the first system is better."""
        return self.sign * self.pair.leads.d_z

    @property
    def difference(self) -> Floats:
        """For each universe, the average of the first system minus that of the second."""
        return self.sign * self.pair.leads.difference

    @property
    def better(self) -> NDArray[np.int8]:
        """For each universe, 1 if the first system is significantly better, −1 if the second is, otherwise 0."""
        return np.where(self.pair.leads.significant, self.lead, 0).astype(np.int8)

    def leader(self, lead: int) -> str | None:
        """Return the system that leads if the lead has this sign; None if they are equal."""
        return {1: self.first, -1: self.second, 0: None}[lead]

    def share(self, answer: audit_facts.QuestionAnswer, what: str) -> audit_facts.LeadShare:
        """Return a share of the cells of `LeadShare.what`, for the first system."""
        return answer.share(what if self.sign > 0 else _OPPOSITE.get(what, what))

"""Claims of a paper, checked against a run: each holds, does not hold, or cannot be decided.

Bootstrap samples of the *systems* show how certain a verdict is. The paper could have studied other systems of the same
kinds, and a claim about metrics should not depend on a few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.assessments import SCENARIOS, Assessment, draws_of_systems

Floats = NDArray[np.float64]
ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]

DRAWS = 200
SURE = 0.9
"""The minimum share of draws with the same outcome that a verdict on a claim needs."""
FEWEST_SYSTEMS = 5
"""Minimum number of systems for a verdict; a few pairs cannot decide the order of metrics."""


@dataclass(frozen=True)
class ClaimRule:
    """When a claim holds, in words, and what the shares of a verdict refer to."""

    text: str
    drawn: str


OF_SYSTEMS = ClaimRule(
    f"A claim holds if its margin is above 0 for all systems and in at least {SURE:.0%} of 200 bootstrap draws of the "
    "systems; it does not hold if it is below 0 in as many; otherwise it cannot be decided. With fewer than five "
    "systems nothing can be decided.",
    "draws of systems",
)
OF_SPLITS = ClaimRule(
    f"A claim holds if its margin is above 0 on average and in at least {SURE:.0%} of the splits that it was measured "
    "on; it does not hold if it is below 0 in as many; otherwise it cannot be decided.",
    "splits",
)


@dataclass(frozen=True, eq=False)
class Saying:
    """A statement of a paper, and by how much it is true here.

    Parameters
    ----------
    claim
        What it says, in short.
    where
        The section that says it.
    margin
        Above 0 if it is true: one number, or one for all systems followed by one per bootstrap draw.
    evidence
        The numbers that this is based on.
    """

    claim: str
    where: str
    margin: Floats
    evidence: str


@dataclass(frozen=True)
class Finding:
    """A claim of a paper and its verdict.

    Parameters
    ----------
    claim
        What the paper says, in short.
    where
        The section that says it.
    verdict
        Whether it holds here.
    evidence
        The numbers that the verdict is based on.
    margin
        By how much it is true: above 0 if it is, below 0 if it is not.
    sure, against
        The shares of the draws of systems, or of the splits, in which it is true, and in which the opposite is true;
        the rest are ties. None if nothing is drawn.
    """

    claim: str
    where: str
    verdict: ClaimVerdict
    evidence: str
    margin: float
    sure: float | None = None
    against: float | None = None

    def on(self, data: str) -> Finding:
        """Return the finding with the name of the ratings before the claim."""
        return replace(self, claim=f"{data}: {self.claim}")


class Standing:
    """How the metrics of an assessment compare, for all systems and for bootstrap draws of them.

    A criterion is ``power`` (minus the mean p-value of a pair, so that a low DP is a high power), a scenario (the mean
    tau with the whole test set, over sizes below 1) or ``agreement`` (the mean tau with the other metrics).
    """

    def __init__(self, assessment: Assessment, seed: int = 0) -> None:
        self.metrics, self.systems = assessment.metrics, len(assessment.systems)
        held = np.ones((1, self.systems))
        self.drawn = draws_of_systems(self.systems, DRAWS, stream(seed, "studies", "claims", self.systems))
        evidence = assessment.evidence
        whole, draws = evidence.judge(held), evidence.thinned().judge(self.drawn)
        self._scores: dict[str, Floats] = {
            name: np.concatenate([whole[:, c], draws[:, c]]) for c, name in enumerate(evidence.criteria)
        }
        self._scores["power"] = -_mean_p(assessment, np.concatenate([held, self.drawn]))

    @property
    def criteria(self) -> list[str]:
        """The criteria by which metrics can be compared."""
        return list(self._scores)

    def scores(self, criterion: str, names: Sequence[str]) -> Floats:
        """Return (1 + draws) × metrics: the scores of these metrics, first for all systems, then for each draw."""
        return self._scores[criterion][:, [self.metrics.index(name) for name in names]]

    def others(self, names: Sequence[str]) -> list[str]:
        """Return the metrics that are not named."""
        return [name for name in self.metrics if name not in names]

    def evidence(self, criterion: str) -> str:
        """Return the metrics with their scores, best first."""
        scores = self._scores[criterion][0]
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        sign = -1.0 if criterion == "power" else 1.0
        return ", ".join(f"{self.metrics[m]} {sign * scores[m]:.3f}" for m in order)

    # What a paper can claim about metrics. Each method returns the margin: by how much the claim is true.

    def first(self, criterion: str, name: str) -> Floats:
        """``name`` scores more than every other metric."""
        return self.scores(criterion, [name])[:, 0] - self.scores(criterion, self.others([name])).max(axis=1)

    def last(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores less than every other."""
        lowest = self.scores(criterion, self.others(names)).min(axis=1)
        margin: Floats = lowest - self.scores(criterion, names).max(axis=1)
        return margin

    def above(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores more than the others do on average."""
        usual = self.scores(criterion, self.others(names)).mean(axis=1)
        margin: Floats = self.scores(criterion, names).min(axis=1) - usual
        return margin

    def below(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores less than the others do on average."""
        usual = self.scores(criterion, self.others(names)).mean(axis=1)
        margin: Floats = usual - self.scores(criterion, names).max(axis=1)
        return margin

    def mean(self, criterion: str) -> Floats:
        """Return the average score of the metrics."""
        return self._scores[criterion].mean(axis=1)


def finding(said: Saying, systems: int) -> Finding:
    """Return the verdict on a paper's statement.

    It holds if the margin is above 0 overall and in 90 % of the draws, and does not hold if it is below 0 overall and
    in 90 % of the draws. Otherwise, if the margin is undefined, or with fewer than five systems, it cannot be decided.

    Examples
    --------
    >>> finding(Saying("a is best", "6", np.array([0.2, 0.1, 0.3]), "a 0.9, b 0.7"), 21).verdict
    'holds'
    >>> finding(Saying("a is best", "6", np.array([0.2, -0.1, 0.3]), "a 0.9, b 0.7"), 21).verdict
    'cannot tell'
    """
    margin = np.round(said.margin, 12)  # ignore rounding errors
    judged = _found(said, float(margin[0]), margin[1:][~np.isnan(margin[1:])])
    return judged if systems >= FEWEST_SYSTEMS else replace(judged, verdict="cannot tell")


def finding_over_splits(said: Saying) -> Finding:
    """Return the verdict on a paper's statement, from one margin per split.

    It holds if the margin is above 0 on average and in 90 % of the splits, and does not hold if it is below 0 on
    average and in 90 % of the splits. Otherwise, or if the margin of a split is undefined, it cannot be decided.

    Examples
    --------
    >>> finding_over_splits(Saying("a leads", "Table 2", np.array([0.2, 0.1]), "a 0.9, b 0.7")).verdict
    'holds'
    """
    margin = np.round(said.margin, 12)
    return _found(said, float(margin.mean()), margin if len(margin) > 1 else margin[:0])


def _found(said: Saying, whole: float, draws: Floats) -> Finding:
    holds = float((draws > 0).mean()) if len(draws) else None
    fails = float((draws < 0).mean()) if len(draws) else None
    verdict: ClaimVerdict = "cannot tell"
    if whole > 0 and (holds is None or holds >= SURE):
        verdict = "holds"
    elif whole < 0 and (fails is None or fails >= SURE):
        verdict = "does not hold"
    return Finding(said.claim, said.where, verdict, said.evidence, whole, holds, fails)


def frame_of(findings: Sequence[Finding]) -> pl.DataFrame:
    """Return findings as a frame, one row per claim."""
    columns: Mapping[str, pl.DataType | type[pl.DataType]] = {
        "claim": pl.String,
        "where": pl.String,
        "verdict": pl.String,
        "evidence": pl.String,
        "margin": pl.Float64,
        "sure": pl.Float64,
        "against": pl.Float64,
    }
    return pl.DataFrame([{name: getattr(claim, name) for name in columns} for claim in findings], schema=columns)


def title_of(scenario: str) -> str:
    """Return what a scenario removes, in words."""
    return SCENARIOS[scenario].title


def _mean_p(assessment: Assessment, multiplicity: Floats) -> Floats:
    """Return draws × metrics: the mean p-value of a pair of systems; each pair counts as often as it is drawn."""
    place = {system: s for s, system in enumerate(assessment.systems)}
    p = np.full((len(assessment.metrics), len(place), len(place)), np.nan)
    of = {metric: m for m, metric in enumerate(assessment.metrics)}
    for metric, a, b, value in assessment.curves.select("metric", "system_a", "system_b", "p").iter_rows():
        p[of[metric], place[a], place[b]] = p[of[metric], place[b], place[a]] = value
    first, second = np.triu_indices(len(place), 1)
    weights = multiplicity[:, first] * multiplicity[:, second]
    mean: Floats = weights @ p[:, first, second].T / weights.sum(axis=1)[:, None]
    return mean

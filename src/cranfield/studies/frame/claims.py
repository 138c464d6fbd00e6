"""Claims of a paper, checked against a run: each holds, does not hold, or cannot be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]

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
    """A statement of a paper, the section that says it, and by how much it is true here.

    The margin is above 0 if it is true: one number per split, or one for all systems followed by one per bootstrap
    draw. The evidence has the numbers that this is based on.
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


Subject = TypeVar("Subject")


def findings(groups: Iterable[Callable[[Subject], Iterable[Saying]]], panels: Mapping[str, Subject]) -> list[Finding]:
    """Return the verdicts on what groups of claims say about each panel, with its name if there are several."""
    judged = [
        (name, finding_over_splits(saying))
        for name, panel in panels.items()
        for group in groups
        for saying in group(panel)
    ]
    return [claim if len(panels) == 1 else claim.on(name) for name, claim in judged]


def frame_of(claims: Sequence[Finding]) -> pl.DataFrame:
    """Return findings as a frame, one row per claim."""
    columns: dict[str, Any] = dict.fromkeys(("claim", "where", "verdict", "evidence"), pl.String)
    columns |= dict.fromkeys(("margin", "sure", "against"), pl.Float64)
    return pl.DataFrame([asdict(claim) for claim in claims], schema=columns)


def each(values: Mapping[str, Floats], digits: int = 3) -> str:
    """Return the mean of each series in words, without those that are empty."""
    return ", ".join(f"{name} {np.mean(own):.{digits}f}" for name, own in values.items() if len(own))


def points(places: Floats | Sequence[float], values: Floats, form: str = ".3f") -> str:
    """Return the mean over splits at each place in words, from splits × places."""
    return ", ".join(f"{place:g}: {value:{form}}" for place, value in zip(places, values.mean(axis=0)))

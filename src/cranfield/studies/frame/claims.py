"""Claims of a paper, checked against a run: each holds, does not hold, or cannot be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield.facts import study as study_facts

ClaimFindings = list[study_facts.Finding]
Floats = NDArray[np.float64]
FEWEST_SYSTEMS = 5  # minimum number of systems for a verdict; a few pairs cannot decide the order of metrics


@dataclass(frozen=True, eq=False)
class Saying:
    """A statement of a paper, and by how much it is true here."""

    claim: str
    where: str  # the section that says it
    margin: Floats  # above 0 if true: one per split, or one for all systems followed by one per bootstrap draw
    evidence: str  # the numbers that this is based on


def finding(said: Saying, systems: int) -> study_facts.Finding:
    """Return the verdict on a paper's statement by `OF_SYSTEMS`; it cannot be decided if the margin is undefined."""
    margin = np.round(said.margin, 12)  # ignore rounding errors
    judged = _found(said, float(margin[0]), margin[1:][~np.isnan(margin[1:])], "draws of systems")
    return judged if systems >= FEWEST_SYSTEMS else replace(judged, verdict="cannot tell")


def finding_over_splits(said: Saying) -> study_facts.Finding:
    """Return the verdict on a paper's statement by `OF_SPLITS`; it cannot be decided if a margin is undefined."""
    margin = np.round(said.margin, 12)
    return _found(said, float(margin.mean()), margin if len(margin) > 1 else margin[:0], "splits")


def _found(said: Saying, whole: float, draws: Floats, drawn: study_facts.ClaimDraws) -> study_facts.Finding:
    holds = float((draws > 0).mean()) if len(draws) else None
    fails = float((draws < 0).mean()) if len(draws) else None
    verdict: study_facts.ClaimVerdict = "cannot tell"
    if whole > 0 and (holds is None or holds >= study_facts.SURE):
        verdict = "holds"
    elif whole < 0 and (fails is None or fails >= study_facts.SURE):
        verdict = "does not hold"
    return study_facts.Finding(said.claim, said.where, verdict, said.evidence, whole, holds, fails, drawn)


Subject = TypeVar("Subject")


def findings(groups: Iterable[Callable[[Subject], Iterable[Saying]]], panels: Mapping[str, Subject]) -> ClaimFindings:
    """Return the verdicts on what groups of claims say about each panel, with its name if there are several."""
    return [
        finding_over_splits(saying).on(name if len(panels) > 1 else "")
        for name, panel in panels.items()
        for group in groups
        for saying in group(panel)
    ]


def each(values: Mapping[str, Floats], digits: int = 3) -> str:
    """Return the mean of each series in words, without those that are empty."""
    return ", ".join(f"{name} {np.mean(own):.{digits}f}" for name, own in values.items() if len(own))


def points(places: Floats | Sequence[float], values: Floats, form: str = ".3f") -> str:
    """Return the mean over splits at each place in words, from splits × places."""
    return ", ".join(f"{place:g}: {value:{form}}" for place, value in zip(places, values.mean(axis=0)))

"""`Replication`: the result of repeating a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from cranfield._errors import SettingError, nearest
from cranfield._record import Step
from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.assessments import Assessment
from cranfield.reports import percent
from cranfield.studies._claims import OF_SYSTEMS, SURE, ClaimRule, Finding, frame_of
from cranfield.studies._study import Exhibit


@dataclass(frozen=True, eq=False)
class Replication:
    """The result of `replicate`.

    Parameters
    ----------
    study
        The name of the study.
    reference
        The paper.
    exhibits
        Its tables and figures, reproduced from this run.
    claims
        Its claims, each with the verdict of this run.
    assessment
        The assessment of the metrics; None if the study is not about metrics.
    folder
        The folder with all files.
    step
        The settings of the run.
    rule
        When a claim holds.
    """

    study: str
    reference: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[Finding, ...]
    assessment: Assessment | None
    folder: Path
    step: Step
    rule: ClaimRule = OF_SYSTEMS

    def frame(self) -> pl.DataFrame:
        """Return the claims: ``claim, where, verdict, evidence, margin, sure, against``."""
        return frame_of(self.claims)

    def exhibit(self, name: str) -> Exhibit:
        """Return a table or a figure by its name, such as ``table-3`` or ``figure-06``."""
        by_name = {exhibit.name: exhibit for exhibit in self.exhibits}
        if name not in by_name:
            raise SettingError(f"{self.study} has no table or figure {name!r}{nearest(name, by_name)}")
        return by_name[name]

    def table(self) -> Table:
        """Return the claims as a readable table."""
        rows = [
            [finding.claim, finding.where, finding.verdict, percent(finding.sure), percent(finding.against)]
            for finding in self.claims
        ]
        caption = f"Claims of {self.reference} on {self.step.settings['data']}"
        note = (
            f"so, opposite: share of the {self.rule.drawn} for and against (the rest decide nothing); a verdict needs "
            f"{SURE:.0%}"
        )
        return Table(["Claim", "Section", "Here", "So", "Opposite"], rows, caption, [note])

    def sentence(self) -> str:
        """Return the result in one sentence."""
        verdicts = [finding.verdict for finding in self.claims]
        return (
            f"{len(verdicts)} claims of {self.study} on {shown(self.step.settings['data'])}: "
            f"{verdicts.count('holds')} hold, {verdicts.count('does not hold')} do not hold, "
            f"{verdicts.count('cannot tell')} cannot be decided."
        )

    def __str__(self) -> str:
        return f"{self.sentence()}\n\n{self.table().text()}"

    def __repr__(self) -> str:
        return f"Replication({self.study}: {len(self.exhibits)} exhibits, {len(self.claims)} claims)"

    def _repr_html_(self) -> str:
        return self.table().html()

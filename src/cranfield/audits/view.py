"""`View`: a pair of systems from the perspective of one of them, for figures, tables and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.leads import Floats
from cranfield.audits.pair import PairAudit, QuestionAnswer
from cranfield.audits.shares import LeadShare

if TYPE_CHECKING:
    from cranfield.audits.answers import Audit

_OPPOSITE = {
    "leads": "trails",
    "trails": "leads",
    "leads significantly": "trails significantly",
    "trails significantly": "leads significantly",
}


@dataclass(frozen=True, eq=False)
class View:
    """A pair of systems from the perspective of the first: signed numbers are positive if it leads.

    Parameters
    ----------
    pair
        The results of the audit for the pair.
    first, second
        The systems in the order in which they are shown.
    """

    pair: PairAudit
    first: str
    second: str

    @classmethod
    def of(cls, audit: Audit, first: str | None = None, second: str | None = None) -> View:
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
        lead: NDArray[np.int8] = (self.sign * self.pair.leads.lead).astype(np.int8)
        return lead

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

    def share(self, answer: QuestionAnswer, what: str, over: str = "cells") -> LeadShare:
        """Return a share of `LeadShare.what`, for the first system."""
        return answer.share(what if self.sign > 0 else _OPPOSITE.get(what, what), over)

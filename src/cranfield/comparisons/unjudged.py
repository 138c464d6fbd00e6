"""What unjudged items can do to a comparison: how many of them must be liked to reverse the order of two systems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.comparisons.sample import Floats
from cranfield.measures import Scores
from cranfield.metrics import Metric


@dataclass(frozen=True, eq=False)
class Unjudged:
    """The entries of the lists of each system down to a cut-off, as shares of all places: liked, and not judged."""

    liked: Floats
    judged: Floats
    unjudged: Floats

    @classmethod
    def of(cls, scores: Scores, metric: str) -> Unjudged | None:
        """Return the entries down to the cut-off of a metric; None if they are not known, or change nothing in it.

        Those of some users are taken to be those of all.
        """
        scores = scores.part_of or scores
        shares = (scores.filled, scores.unjudged, scores.liked)
        if any(table is None for table in shares):
            return None
        measured, m = Metric.of(metric), scores.metric(metric)
        condensed = measured.definition.condensed or dict(measured.parameters).get("condensed")
        if not measured.definition.bounds or measured.lower_is_better or condensed:
            return None
        filled, unjudged, liked = (np.asarray(table)[:, m] for table in shares)
        gone = np.zeros(len(liked)) if scores.nonexistent is None else scores.nonexistent[:, m]
        if np.isnan(liked[filled > 0]).any():  # lists that depend on draws, or have one relevant item each
            return None
        judged = 1 - unjudged - gone
        return cls(*(np.nan_to_num(share) * filled for share in (liked, judged, unjudged)))

    @property
    def all_liked(self) -> bool:
        """Whether no judged entry is disliked: the ratio is then 1 whatever is true, so it says nothing."""
        return bool((self.liked >= self.judged - 1e-12).all() and self.judged.any())

    def tipping(self, winners: NDArray[np.intp], losers: NDArray[np.intp], ahead: Floats | None = None) -> Tipping:
        r"""Return the tipping point of pairs of systems.

        With :math:`D` the winner's lead in precision at the cut-off and :math:`u` the shares of unjudged entries, the
        order is reversed if more than the share :math:`a^* = D / (u_L - u_W)` of *all* unjudged entries is liked. It is
        compared with :math:`h`, the share of the judged entries of both lists that is liked: :math:`r = a^* / h`. If
        the loser has no more unjudged entries than the winner, no such share reverses the order, and r is infinite. r <
        1 exactly if the loser's judged entries are liked more often than the winner's. Without a judged entry r is NaN.

        ``ahead`` is added to the lead: the margin of a gate.
        """
        lead = self.liked[winners] - self.liked[losers] + (0.0 if ahead is None else ahead)
        more = self.unjudged[losers] - self.unjudged[winners]
        liked, judged = (part[winners] + part[losers] for part in (self.liked, self.judged))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(more > 1e-12, lead / more, np.inf)
            rate = np.where(judged > 0, liked / judged, np.nan)
            ratio = np.where(np.isinf(share), np.inf, np.where(rate > 0, share / rate, np.inf))
        return Tipping(share, rate, np.where(np.isnan(rate), np.nan, ratio))


@dataclass(frozen=True, eq=False)
class Tipping:
    """The tipping points of pairs of systems; see `Unjudged.tipping`."""

    share: Floats  # a*: of all unjudged entries, how many must be liked; infinite if no share reverses the order
    rate: Floats  # h: of the judged entries, how many are liked
    ratio: Floats  # r = a* / h

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether plausible judgments would not reverse the order: r is at least 1, or no share reverses it."""
        return np.asarray(self.ratio >= 1 - 1e-9)


def unknown_tipping(pairs: int) -> Tipping:
    """Return the tipping points of pairs if nothing is known of unjudged entries: no share reverses an order."""
    return Tipping(np.full(pairs, np.inf), np.full(pairs, np.nan), np.full(pairs, np.inf))

"""ranx 0.3.21, with the threshold as its relevance level (``-l``) and ``make_comparable=True``."""

from __future__ import annotations

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import RELEVANT_GAINS, RelevantGain
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg_with

RANX = Tool("ranx", "ranx", "0.3.21", Users.JUDGED)

_SAME = "the same value per list"

RANX.dialect("P", "precision", _SAME)(ranking.precision)
RANX.dialect("Recall", "recall", _SAME)(ranking.recall)
RANX.dialect("F1", "f1", _SAME)(ranking.f1)
RANX.dialect("AP", "map", f"{_SAME}, divided by R whatever the cut-off")(ranking.average_precision)
RANX.dialect("RR", "mrr", _SAME)(ranking.reciprocal_rank)
RANX.dialect("HitRate", "hit_rate", _SAME)(ranking.hit_rate)


@RANX.dialect(
    "nDCG",
    "ndcg",
    "gain is the rating, but items below the threshold gain nothing",
    options={"gain=exp": "gain is 2^r − 1 (ndcg_burges), and items below the threshold gain nothing"},
)
def ndcg(judged: Judged, *, cutoff: int | None = None, gain: RelevantGain = "rating") -> Values:
    """Return nDCG of the relevant items alone, with the rating as gain (``ndcg``) or 2^r − 1 (``ndcg_burges``)."""
    return ndcg_with(judged, cutoff, f"relevant {gain}", RELEVANT_GAINS[gain])

"""recommenders 1.2.1 (Microsoft), its pandas functions, with the test ratings that are relevant as ``rating_true``."""

from __future__ import annotations

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import RELEVANT_GAINS, RelevantGain, achievable, over, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg_with

RECOMMENDERS = Tool("recommenders", "recommenders", "1.2.1", Users.RELEVANT_WITH_LIST)

RECOMMENDERS.dialect("P", "precision_at_k", "the same value per list", cutoff="required")(ranking.precision)
RECOMMENDERS.dialect("Recall", "recall_at_k", "the same value per list", cutoff="required")(ranking.recall)


@RECOMMENDERS.dialect(
    "nDCG",
    "ndcg_at_k",
    "every relevant item gains 1",
    options={
        "gain=rating": "gain is the rating, but items below the threshold gain nothing (score_type='raw')",
        "gain=exp": "gain is 2^r − 1, and items below the threshold gain nothing (score_type='exp')",
    },
    users=Users.RELEVANT,
    cutoff="required",
)
def ndcg(judged: Judged, *, cutoff: int, gain: RelevantGain = "binary") -> Values:
    """Return nDCG of the relevant items; unlike its other metrics, users without a list are averaged in as 0."""
    return ndcg_with(judged, cutoff, f"relevant {gain}", RELEVANT_GAINS[gain])


@RECOMMENDERS.dialect(
    "AP",
    "map_at_k",
    "divided by min(R, n), not by R",
    options={"at_k=false": "the same value per list, divided by R whatever the cut-off (its function map)"},
    cutoff="required",
)
def average_precision(judged: Judged, *, cutoff: int, at_k: bool = True) -> Values:
    """AP = Σ rel(k) P@k / min(R, n) (``map_at_k``), or over R (``map``)."""
    return over(sum_of_precisions(judged), achievable(judged, cutoff) if at_k else judged.n_relevant)

"""RecBole 1.2.1, full ranking, with the test ratings that are relevant as interactions."""

from __future__ import annotations

import numpy as np

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import achievable, over, pooled, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg as graded_ndcg

RECBOLE = Tool("recbole", "RecBole", "1.2.1", Users.RELEVANT)

_SAME = "the same value per list (it prints four decimals)"

RECBOLE.dialect("P", "Precision", _SAME, cutoff="required")(ranking.precision)
RECBOLE.dialect("Recall", "Recall", _SAME, cutoff="required")(ranking.recall)
RECBOLE.dialect("RR", "MRR", _SAME, cutoff="required")(ranking.reciprocal_rank)
RECBOLE.dialect("HitRate", "Hit", _SAME, cutoff="required")(ranking.hit_rate)


@RECBOLE.dialect("nDCG", "NDCG", "every relevant item gains 1 (it prints four decimals)", cutoff="required")
def ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with binary gain."""
    return graded_ndcg(judged, cutoff=cutoff, gain="binary")


@RECBOLE.dialect("AP", "MAP", "divided by min(R, n), not by R (it prints four decimals)", cutoff="required")
def average_precision(judged: Judged, *, cutoff: int) -> Values:
    """AP = Σ rel(k) P@k / min(R, n)."""
    return over(sum_of_precisions(judged), achievable(judged, cutoff))


@RECBOLE.dialect(
    "AUC",
    "GAUC",
    "users are weighted by their number of relevant items; it ranks the whole catalogue (its AUC pools the pairs of "
    "all users, and needs scores)",
    cutoff="none",
)
def area_under_curve(judged: Judged) -> Values:
    """GAUC = Σ R · AUC / Σ R, over users for whom AUC is defined."""
    auc = ranking.area_under_curve(judged)
    weight = np.where(np.isnan(auc), 0, judged.n_relevant)
    return pooled(np.nan_to_num(auc) * weight, weight, judged.n_relevant > 0)

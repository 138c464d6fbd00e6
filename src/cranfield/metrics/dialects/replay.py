"""RePlay 0.22.0, with the test ratings that are relevant as ground truth."""

from __future__ import annotations

import numpy as np

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import achievable, irrelevant_above, over, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg as graded_ndcg

REPLAY = Tool("replay", "RePlay", "0.22.0", Users.RELEVANT)

_SAME = "the same value per list"

REPLAY.dialect("P", "Precision", _SAME, cutoff="required")(ranking.precision)
REPLAY.dialect("Recall", "Recall", _SAME, cutoff="required")(ranking.recall)
REPLAY.dialect("RR", "MRR", _SAME, cutoff="required")(ranking.reciprocal_rank)
REPLAY.dialect("HitRate", "HitRate", _SAME, cutoff="required")(ranking.hit_rate)


@REPLAY.dialect("nDCG", "NDCG", "every relevant item gains 1", cutoff="required")
def ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with binary gain."""
    return graded_ndcg(judged, cutoff=cutoff, gain="binary")


@REPLAY.dialect("AP", "MAP", "divided by min(R, n), not by R", cutoff="required")
def average_precision(judged: Judged, *, cutoff: int) -> Values:
    """AP = Σ rel(k) P@k / min(R, n)."""
    return over(sum_of_precisions(judged), achievable(judged, cutoff))


@REPLAY.dialect(
    "AUC",
    "RocAuc",
    "only over the pairs within the list: relevant items outside it do not count, 1 if no irrelevant item is ranked "
    "above a relevant one",
    cutoff="required",
    averages_ties=False,
)
def area_under_curve(judged: Judged) -> Values:
    """AUC = 1 − Σ_hits |{irrelevant items above}| / (hits · (length − hits)); 0 without a hit."""
    hits, wrong = judged.total(where=judged.relevant), judged.total(irrelevant_above(judged), where=judged.relevant)
    return np.where(hits > 0, 1.0 - over(wrong, hits * (judged.lengths - hits)), 0.0)

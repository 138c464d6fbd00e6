"""RecTools 0.19.0, with the test ratings that are relevant as interactions."""

from __future__ import annotations

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import achievable, over, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.graded import ndcg as graded_ndcg

RECTOOLS = Tool("rectools", "RecTools", "0.19.0", Users.RELEVANT)

_SAME = "the same value per list"

RECTOOLS.dialect("Recall", "Recall", _SAME, cutoff="required")(ranking.recall)
RECTOOLS.dialect("F1", "F1Beta", _SAME, cutoff="required")(ranking.f1)
RECTOOLS.dialect("RR", "MRR", _SAME, cutoff="required")(ranking.reciprocal_rank)
RECTOOLS.dialect("HitRate", "HitRate", _SAME, cutoff="required")(ranking.hit_rate)


@RECTOOLS.dialect(
    "nDCG",
    "NDCG",
    "every relevant item gains 1; the ideal list has n relevant items, however few the user has",
    options={"achievable=true": "every relevant item gains 1; the ideal list has min(R, n) relevant items"},
    cutoff="required",
)
def ndcg(judged: Judged, *, cutoff: int, achievable: bool = False) -> Values:
    """Return nDCG over Σ_{k≤n} 1/log2(k + 1); ``achievable`` is the option ``divide_by_achievable``."""
    if achievable:
        return graded_ndcg(judged, cutoff=cutoff, gain="binary")
    return judged.discounted(logarithmic(judged.depth), judged.relevant) / logarithmic(cutoff).sum()


@RECTOOLS.dialect(
    "P",
    "Precision",
    _SAME,
    options={"r_precision=true": "divided by min(R, n), not by n (its option r_precision)"},
    cutoff="required",
)
def precision(judged: Judged, *, cutoff: int, r_precision: bool = False) -> Values:
    """P = hits / n; with the option ``r_precision``, hits / min(R, n)."""
    return over(judged.n_hits, achievable(judged, cutoff)) if r_precision else judged.n_hits / cutoff


@RECTOOLS.dialect(
    "AP",
    "MAP",
    "the same value per list, divided by R whatever the cut-off",
    options={"divide_by_k=true": "divided by n, not by R (its option divide_by_k)"},
    cutoff="required",
)
def average_precision(judged: Judged, *, cutoff: int, divide_by_k: bool = False) -> Values:
    """AP = Σ rel(k) P@k / R; with the option ``divide_by_k``, over n."""
    return sum_of_precisions(judged) / cutoff if divide_by_k else ranking.average_precision(judged)

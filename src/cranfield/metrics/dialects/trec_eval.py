"""trec_eval, as pytrec_eval-terrier 0.5.11 binds it."""

from __future__ import annotations

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg as graded_ndcg

TREC_EVAL = Tool("trec_eval", "trec_eval", "(pytrec_eval-terrier 0.5.11)", Users.JUDGED_WITH_LIST)

_SAME = "the same value per list"

TREC_EVAL.dialect("P", "P", _SAME)(ranking.precision)
TREC_EVAL.dialect("Recall", "recall", _SAME)(ranking.recall)
TREC_EVAL.dialect("AP", "map_cut", f"{_SAME}, divided by R whatever the cut-off")(ranking.average_precision)
TREC_EVAL.dialect("RR", "recip_rank", f"{_SAME}; a cut-off corresponds to its option -M")(ranking.reciprocal_rank)
TREC_EVAL.dialect("HitRate", "success", _SAME)(ranking.hit_rate)


@TREC_EVAL.dialect("nDCG", "ndcg_cut", "gain is the rating, also for items below the threshold")
def ndcg(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Return nDCG with the rating as gain; the level of relevance (-l) has no effect on it."""
    return graded_ndcg(judged, cutoff=cutoff)


@TREC_EVAL.dialect(
    "F1", "set_F", "precision is divided by the length of the list, not by n; a cut-off corresponds to -M"
)
def f1(judged: Judged) -> Values:
    """F1 = 2 hits / (length + R)."""
    return ranking.f1(judged, cutoff=None)

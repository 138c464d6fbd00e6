"""LensKit 2025.8.1: its ``RunAnalysis`` with the test ratings that are relevant as test data."""

from __future__ import annotations

import numpy as np

from cranfield.judgments import Judged
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import achievable, over, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.gains import GainName, kept_name, relative_gain_of
from cranfield.metrics.graded import ndcg_with

LENSKIT = Tool("lenskit", "LensKit", "2025.8.1", Users.WITH_LIST)

LENSKIT.dialect("RR", "RecipRank", "the same value per list")(ranking.reciprocal_rank)
LENSKIT.dialect("HitRate", "Hit", "the same value per list")(ranking.hit_rate)


def _clipped(n: int) -> Values:
    """Return the discount of Järvelin and Kekäläinen (2002), 1 / log2 max(k, 2): ranks 1 and 2 weigh the same."""
    return 1.0 / np.log2(np.maximum(np.arange(1, n + 1), 2))


@LENSKIT.dialect(
    "nDCG",
    "NDCG",
    "every relevant item gains 1; the discount is 1/log2 max(k, 2), so that ranks 1 and 2 weigh the same",
    options={
        "gain=rating": "gain is the rating; the discount is 1/log2 max(k, 2), so that ranks 1 and 2 weigh the same"
    },
)
def ndcg(judged: Judged, *, cutoff: int | None = None, gain: GainName = "binary") -> Values:
    """Return nDCG with the discount clipped at rank 2."""
    return ndcg_with(judged, cutoff, kept_name(gain), relative_gain_of(gain), _clipped)


@LENSKIT.dialect("P", "Precision", "a list shorter than n is divided by its length, not by n")
def precision(judged: Judged) -> Values:
    """P = hits / min(n, length)."""
    return over(judged.n_hits, judged.lengths)


@LENSKIT.dialect("Recall", "Recall", "divided by min(R, n), not by R")
def recall(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Recall = hits / min(R, n)."""
    return over(judged.n_hits, judged.n_relevant if cutoff is None else achievable(judged, cutoff))


@LENSKIT.dialect(
    "AP", "AveragePrecision", "divided by min(R, n, length), not by R; it stops if R is 0, which counts as 0 here"
)
def average_precision(judged: Judged) -> Values:
    """AP = Σ rel(k) P@k / min(R, n, length); 0 if R is 0, where LensKit fails with a division by zero."""
    return over(sum_of_precisions(judged), np.minimum(judged.n_relevant, judged.lengths))

"""Elliot 0.3.1."""

from __future__ import annotations

import numpy as np

from cranfield.judgments import Judged, Judgments
from cranfield.metrics import ranking
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import irrelevant_above, over, pooled, powers_if_relevant
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg_with

ELLIOT = Tool("elliot", "Elliot", "0.3.1", Users.RELEVANT_WITH_LIST)

_SAME = "the same value per list"

ELLIOT.dialect("P", "Precision", _SAME, cutoff="required")(ranking.precision)
ELLIOT.dialect("Recall", "Recall", _SAME, cutoff="required")(ranking.recall)
ELLIOT.dialect("F1", "F1", _SAME, cutoff="required")(ranking.f1)
ELLIOT.dialect("RR", "MRR", _SAME, cutoff="required")(ranking.reciprocal_rank)
ELLIOT.dialect("HitRate", "HR", _SAME, cutoff="required")(ranking.hit_rate)


def _above_threshold(judgments: Judgments) -> Values:
    """Return 2^(r − threshold + 1) − 1 for a relevant item, 0 for others, up to a factor of each list."""
    return powers_if_relevant(judgments, judgments.grades - judgments.threshold + 1.0)


@ELLIOT.dialect(
    "nDCG",
    "nDCG",
    "a relevant item gains 2^(r − threshold + 1) − 1, others nothing",
    cutoff="required",
)
def ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with an exponential gain that starts at the threshold."""
    return ndcg_with(judged, cutoff, "elliot", _above_threshold)


@ELLIOT.dialect("AP", "MAP", "the mean of P@1 to P@n, whether or not rank k is relevant", cutoff="required")
def average_precision(judged: Judged, *, cutoff: int) -> Values:
    """MAP = (1/n) Σ_{k≤n} P@k: a hit at rank j adds (1/n) Σ_{j≤k≤n} 1/k."""
    reciprocals = 1.0 / np.arange(1, cutoff + 1)
    return judged.discounted(np.cumsum(reciprocals[::-1])[::-1] / cutoff, judged.relevant)


@ELLIOT.dialect(
    "AUC",
    "AUC",
    "pooled: the mean over all relevant items of all lists of the share of N + 1 irrelevant items below them; it needs "
    "lists of the whole catalogue",
    options={
        "grouped=true": "the sum over a user's relevant items of the share of N + 1 irrelevant items below them, "
        "divided by R (GAUC); it needs lists of the whole catalogue"
    },
    cutoff="none",
    averages_ties=False,
)
def area_under_curve(judged: Judged, *, grouped: bool = False) -> Values:
    """AUC = the mean over hits of 1 − |{irrelevant items above}| / (N + 1), N the irrelevant items of the list."""
    hits = judged.total(where=judged.relevant)
    spread = judged.lengths - hits + 1.0
    below = (spread[judged.lists] - irrelevant_above(judged)) / spread[judged.lists]
    areas = judged.total(below, where=judged.relevant)
    if grouped:
        return over(areas, judged.n_relevant)
    return pooled(areas, hits, ELLIOT.users.counted(judged))

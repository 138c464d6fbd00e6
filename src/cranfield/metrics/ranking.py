"""Binary ranking metrics: how many relevant items, and how high.

R is the number of relevant test items of the user, n the cut-off, rel(k) 1 if the item at rank k is relevant. Without
relevant test items a metric of this family is undefined (NaN): the average decides whether that counts as 0, as in
trec_eval, or is left out.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cranfield.judgments import Judged
from cranfield.metrics._ratio import ratio
from cranfield.metrics._ties import expected_average_precision, expected_reciprocal_rank, probability_of_a_hit
from cranfield.metrics.definition import SHARE, Values, metric

_ranking = partial(
    metric, family="ranking", requires="relevant items", zero_if_undefined=True, bounds=True, between=SHARE
)


@_ranking("P", averages_ties=True, aliases=("Precision", "Prec"))
def precision(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Precision: the share of the list that is relevant.

    P@n = (1/n) Σ_{k≤n} rel(k), also for lists shorter than n, as in trec_eval; without cut-off, over the length of the
    list (trec_eval's ``set_P``). Valcarce et al. (2020), equation (1).
    """
    if cutoff is not None:
        return judged.n_hits / cutoff
    return np.nan_to_num(ratio(judged.n_hits, judged.lengths))


@_ranking("Recall", averages_ties=True, aliases=("R",))
def recall(judged: Judged) -> Values:
    """Recall: the share of the relevant items that are in the list.

    Recall@n = (1/R) Σ_{k≤n} rel(k). Valcarce et al. (2020), equation (2).
    """
    return ratio(judged.n_hits, judged.n_relevant)


@_ranking("F1", averages_ties=True, aliases=("F",))
def f1(judged: Judged, *, cutoff: int | None = None) -> Values:
    """F1: the harmonic mean of precision and recall.

    F1@n = 2PR/(P + R) = 2 Σ_{k≤n} rel(k) / (n + R) by user, then averaged; 0 without a hit. Without cut-off
    precision is over the length of the list (trec_eval's ``set_F``). Valcarce et al. (2020), equation (3).
    """
    size = judged.lengths if cutoff is None else cutoff
    return 2 * judged.n_hits / np.maximum(size + judged.n_relevant, 1)


@_ranking("HitRate", averages_ties=True, aliases=("HR", "Success", "Hit"))
def hit_rate(judged: Judged) -> Values:
    """HitRate (success): 1 if the list contains a relevant item, otherwise 0."""
    if judged.tied_from is not None:
        return probability_of_a_hit(judged)
    return (judged.n_hits > 0).astype(np.float64)


@_ranking("RR", averages_ties=True, aliases=("MRR", "ReciprocalRank"))
def reciprocal_rank(judged: Judged) -> Values:
    """Reciprocal rank of the first relevant item: 1 / min{k : rel(k) = 1}, 0 if there is none.

    Valcarce et al. (2020), equation (6).
    """
    if judged.tied_from is not None:
        return expected_reciprocal_rank(judged)
    first = judged.relevant & (judged.relevant_above == 0)
    return judged.total(1.0 / judged.ranks, where=first)


@_ranking("AP", averages_ties=True, aliases=("MAP", "AveragePrecision"))
def average_precision(judged: Judged) -> Values:
    """Average precision: the mean over the relevant items of the precision at their ranks.

    AP@n = (1/R) Σ_{k≤n} rel(k) P@k. The denominator is R whatever the cut-off, as in trec_eval's ``map_cut``; for other
    tools' denominators see the dialects. Valcarce et al. (2020), equation (4).
    """
    if judged.tied_from is not None:
        return ratio(expected_average_precision(judged), judged.n_relevant)
    precisions = (judged.relevant_above + 1) / judged.ranks
    return ratio(judged.total(precisions, where=judged.relevant), judged.n_relevant)


@_ranking("Rprec", averages_ties=True, cutoff="none", aliases=("R-precision", "RPrecision"))
def r_precision(judged: Judged) -> Values:
    """R-precision: precision at rank R, (1/R) Σ_{k≤R} rel(k)."""
    wanted = judged.n_relevant[judged.lists]
    if judged.tied_from is None or judged.tied_to is None:
        return ratio(judged.total(where=judged.relevant & (judged.ranks <= wanted)), judged.n_relevant)
    size = judged.tied_to - judged.tied_from + 1
    inside = np.clip(wanted - judged.tied_from + 1, 0, size) / size
    return ratio(judged.total(inside, where=judged.relevant), judged.n_relevant)


@_ranking("AUC", averages_ties=True)
def area_under_curve(judged: Judged) -> Values:
    """AUC: the probability that a relevant item is above one that is not.

    AUC = Σ_{relevant i in the list} |{j not relevant, below i in the list}| / (R · N_L), where N_L is the number of
    items of the list that are not relevant (including unjudged ones, unless the list is condensed). A relevant item
    outside the list counts as below all of it. Undefined if R or N_L is 0. If ties are averaged, those across the
    cut-off are broken in stored order, since N_L depends on them.
    """
    judged = judged.with_ends_broken()
    hits = judged.total(where=judged.relevant)
    others = judged.lengths - hits
    above = (judged.ranks if judged.tied_from is None else _mid_ranks(judged)) - 1 - _relevant_above(judged)
    pairs = judged.total(others[judged.lists] - above, where=judged.relevant)
    return ratio(pairs, judged.n_relevant * others)


def _mid_ranks(judged: Judged) -> Values:
    assert judged.tied_from is not None
    assert judged.tied_to is not None
    return (judged.tied_from + judged.tied_to) / 2.0


def _relevant_above(judged: Judged) -> Values:
    """Return the number of relevant items above each hit, counting half of those tied with it."""
    above = judged.relevant_above.astype(np.float64)
    if judged.tied_from is None:
        return above
    new = np.ones(len(judged), dtype=bool)
    new[1:] = (judged.lists[1:] != judged.lists[:-1]) | (judged.tied_from[1:] != judged.tied_from[:-1])
    group = np.cumsum(new) - 1
    in_group = np.bincount(group, weights=judged.relevant)[group]
    return above[new][group] + (in_group - judged.relevant) / 2.0

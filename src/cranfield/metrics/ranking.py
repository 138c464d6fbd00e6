"""Binary ranking metrics: how many relevant items, and how high.

R is the number of relevant test items of the user, n the cut-off, rel(k) 1 if the item at rank k is relevant. Without
relevant test items a metric of this family is undefined (NaN): the average decides whether that counts as 0, as in
trec_eval, or is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import SHARE, metric

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
        return _probability_of_a_hit(judged)
    return (judged.n_hits > 0).astype(np.float64)


@_ranking("RR", averages_ties=True, aliases=("MRR", "ReciprocalRank"))
def reciprocal_rank(judged: Judged) -> Values:
    """Reciprocal rank of the first relevant item: 1 / min{k : rel(k) = 1}, 0 if there is none.

    Valcarce et al. (2020), equation (6).
    """
    if judged.tied_from is not None:
        return _expected_reciprocal_rank(judged)
    first = judged.relevant & (judged.relevant_above == 0)
    return judged.total(1.0 / judged.ranks, where=first)


@_ranking("AP", averages_ties=True, aliases=("MAP", "AveragePrecision"))
def average_precision(judged: Judged) -> Values:
    """Average precision: the mean over the relevant items of the precision at their ranks.

    AP@n = (1/R) Σ_{k≤n} rel(k) P@k. The denominator is R whatever the cut-off, as in trec_eval's ``map_cut``; for other
    tools' denominators see the dialects. Valcarce et al. (2020), equation (4).
    """
    if judged.tied_from is not None:
        return ratio(_expected_average_precision(judged), judged.n_relevant)
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


@dataclass(frozen=True)
class _TiedGroups:
    """The groups of tied items with a relevant one, in the order of the lists."""

    lists: NDArray[np.int32]
    behind: NDArray[np.float64]
    size: NDArray[np.float64]
    relevant: NDArray[np.float64]
    relevant_above: NDArray[np.float64]
    counted: NDArray[np.float64]
    """Number of the group's ranks that are within the list."""


def _groups(judged: Judged) -> _TiedGroups:
    assert judged.tied_from is not None
    assert judged.tied_to is not None
    keep = judged.relevant
    lists, first, last = judged.lists[keep], judged.tied_from[keep], judged.tied_to[keep]
    above = judged.relevant_above[keep]
    new = np.ones(len(lists), dtype=bool)
    new[1:] = (lists[1:] != lists[:-1]) | (first[1:] != first[:-1])
    group = np.cumsum(new) - 1
    behind = first[new].astype(np.float64) - 1.0
    size = last[new] - behind
    return _TiedGroups(
        lists=lists[new],
        behind=behind,
        size=size,
        relevant=np.bincount(group, minlength=int(new.sum())).astype(np.float64),
        relevant_above=above[new].astype(np.float64),
        counted=np.clip(judged.lengths[lists[new]] - behind, 0.0, size),
    )


def _expected_average_precision(judged: Judged) -> Values:
    """Return E[Σ_{relevant k ≤ n} P@k].

    A group adds (r/t) Σ_j [c + 1 + (j−1)(r−1)/(t−1)] / (a + j) over its ranks a + j within the list.
    """
    g = _groups(judged)
    share = np.where(g.size > 1, (g.relevant - 1.0) / np.maximum(g.size - 1.0, 1.0), 0.0)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int((g.behind + g.size).max(initial=0.0)) + 1)))
    last, first = (g.behind + g.counted).astype(np.intp), g.behind.astype(np.intp)
    inverse_ranks = harmonic[last] - harmonic[first]
    terms = (g.relevant_above + 1.0 - share * (g.behind + 1.0)) * inverse_ranks + share * g.counted
    return np.bincount(g.lists, weights=g.relevant / g.size * terms, minlength=judged.n_lists).astype(np.float64)


def _expected_reciprocal_rank(judged: Judged) -> Values:
    """Return E[1/rank of the first relevant item]: only the first group with a relevant item counts.

    The first of r relevant items among t is at position j with probability C(t−j, r−1)/C(t, r).
    """
    g = _groups(judged)
    first = g.relevant_above == 0
    behind, size, relevant, counted = g.behind[first], g.size[first], g.relevant[first], g.counted[first]
    value, chance = np.zeros(len(behind)), relevant / np.maximum(size, 1.0)
    for j in range(1, int(counted.max(initial=0.0)) + 1):
        value += np.where(j <= counted, chance / (behind + j), 0.0)
        chance = chance * np.maximum(size - relevant - j + 1.0, 0.0) / np.maximum(size - j, 1.0)
    return np.bincount(g.lists[first], weights=value, minlength=judged.n_lists).astype(np.float64)


def _probability_of_a_hit(judged: Judged) -> Values:
    """Return the probability that a relevant item is within the list: 1 − C(t−m, r)/C(t, r) for the first group."""
    g = _groups(judged)
    first = g.relevant_above == 0
    size, relevant, counted = g.size[first], g.relevant[first], g.counted[first]
    none = np.ones(len(size))
    for i in range(int(relevant.max(initial=0.0))):
        none *= np.where(i < relevant, np.maximum(size - counted - i, 0.0) / np.maximum(size - i, 1.0), 1.0)
    return np.bincount(g.lists[first], weights=1.0 - none, minlength=judged.n_lists).astype(np.float64)

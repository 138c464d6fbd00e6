# mypy: disable-error-code="untyped-decorator"
"""The compiled walk over the hits of all lists. Importing this module imports numba: do so by `_plan.compiled`.

All ranking metrics are made of running sums over the judged items of a list, from the top. One walk keeps these sums;
when it passes a cut-off, the sums so far are those of the list cut there. So a further metric or cut-off costs a
division for each list and no further walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# What a metric is made of, in the order of `_plan.OPERATIONS`.
P, RECALL, F1, HIT_RATE, RR, AP, BPREF, INFAP_ALL, INFAP_JUDGED, NDCG, RBP, ERR = range(12)
# The running sums that every walk keeps; behind them stand the discounted sums and those of ERR.
_HITS, _FIRST, _PRECISIONS, _PREFERENCES, _INFERRED_ALL, _INFERRED_JUDGED, _FIXED = range(7)
_EPSILON = 1e-5
# Which rating is the highest, for ERR.
_OF_DATASET, _OF_USER = 0, 1


@njit(cache=True, nogil=True)
def _count_lists(indptr: Any, mask: Any, relevant: Any, grades: Any, counts: Any, top_grades: Any) -> float:
    """Count what remains of each list's judgments: all, relevant ones; and find the highest rating, and that of all."""
    top = 0.0
    for one in range(len(indptr) - 1):
        judged = relevant_ones = 0
        best = 0.0
        for place in range(indptr[one], indptr[one + 1]):
            if mask[place]:
                judged += 1
                relevant_ones += relevant[place]
                best = max(best, grades[place])
        counts[0, one], counts[1, one] = judged, relevant_ones
        top_grades[one] = best
        top = max(top, best)
    return top


@njit(cache=True, nogil=True)
def _ideals(indptr: Any, mask: Any, order: Any, gains: Any, discount: Any, cutoffs: Any, ideals: Any) -> None:
    """Sum, for each list and cut-off, the gains that remain in descending order, discounted by rank.

    ``order`` holds the judgments of each list by descending gain; a mask only leaves some of them out.
    """
    n_cutoffs = len(cutoffs)
    for one in range(len(indptr) - 1):
        total, rank, cut = 0.0, 0, 0
        for step in range(indptr[one], indptr[one + 1]):
            place = order[step]
            if not mask[place]:
                continue
            while cut < n_cutoffs and rank >= cutoffs[cut]:
                ideals[cut, one] = total
                cut += 1
            if cut == n_cutoffs:
                break
            total += gains[place] * discount[rank]
            rank += 1
        while cut < n_cutoffs:
            ideals[cut, one] = total
            cut += 1


@njit(cache=True, nogil=True)
def evaluate(
    indptr: Any,
    relevant: Any,
    grades: Any,
    strengths: Any,
    gains: Any,
    scaled: Any,
    orders: Any,
    hit_starts: Any,
    hit_ranks: Any,
    hit_pointers: Any,
    lengths: Any,
    condensed: bool,
    cutoffs: Any,
    sum_gain: Any,
    discounts: Any,
    sum_ideal: Any,
    err_mode: Any,
    err_top: Any,
    operation: Any,
    variant: Any,
    metric_cut: Any,
    denominator: Any,
    needs: Any,
    mask: Any,
    undefined: float,
    values: Any,
    counts_out: Any,
) -> int:
    """Fill ``values`` (metrics × systems × lists) for the judgments in ``mask``; return how many lists remain.

    Parameters
    ----------
    indptr, relevant, grades, strengths
        The judgments; the strength of one is 2^r − 1.
    gains, scaled, orders
        Gains by gain and judgment; by gain, 0, or 1 or 2 for those that the highest rating scales; and the judgments of
        each list by descending gain.
    hit_starts, hit_ranks, hit_pointers
        The hits of list ``l`` of system ``s`` are those from ``hit_starts[s, l]`` to ``hit_starts[s, l + 1]``.
    lengths
        systems × lists: how many items each list has.
    condensed
        Whether the rank of a hit is its place among the hits that remain.
    cutoffs
        Ascending; the last one is beyond every list.
    sum_gain, discounts, sum_ideal
        For each discounted sum its gain, its discount by rank, and whether its ideal is needed.
    err_mode, err_top
        For each form of ERR where its highest rating comes from, and the rating if it is given.
    operation, variant, metric_cut, denominator
        For each metric what it is, which sum it is made of, the place of its cut-off, and the cut-off or 0.
    needs
        Whether the sums of precisions, of preferences and of inferred precisions are needed.
    mask
        Which judgments there are.
    undefined
        What an undefined value counts.
    values, counts_out
        Results: values by metric, system and remaining list; and its judgments and relevant ones.
    """
    n_lists, n_systems, n_metrics, n_cuts = len(indptr) - 1, len(hit_starts), len(operation), len(cutoffs)
    n_sums, n_err = len(sum_gain), len(err_mode)
    counts, top_grades = np.empty((2, n_lists), np.int64), np.empty(n_lists)
    top = _count_lists(indptr, mask, relevant, grades, counts, top_grades)
    ideals = np.zeros((n_sums, n_cuts, n_lists))
    scales = np.ones(n_sums)
    for v in range(n_sums):
        kind = scaled[sum_gain[v]]
        if kind == 1:
            scales[v] = 1.0 / 2.0 ** (top - 1.0)
        elif kind == 2:
            reach = 2.0 ** (top - 1.0) - 1.0
            scales[v] = 1.0 / (reach if reach > 0.0 else 1.0)
        if sum_ideal[v]:
            gain = sum_gain[v]
            _ideals(indptr, mask, orders[gain], gains[gain], discounts[v], cutoffs, ideals[v])
    sums = np.zeros(_FIXED + n_sums + n_err)
    at_cut = np.zeros((n_cuts, _FIXED + n_sums + n_err))
    going_on, satisfied_by = np.ones(n_err), np.ones(n_err)
    remaining = 0
    for one in range(n_lists):
        if counts[0, one] == 0:
            continue
        n_relevant = counts[1, one]
        n_others = counts[0, one] - n_relevant
        bound = max(min(n_others, n_relevant), 1)
        for e in range(n_err):
            highest = top if err_mode[e] == _OF_DATASET else top_grades[one] if err_mode[e] == _OF_USER else err_top[e]
            satisfied_by[e] = 1.0 / 2.0**highest
        for s in range(n_systems):
            sums[:] = 0.0
            going_on[:] = 1.0
            kept, relevant_above, cut = 0, 0, 0
            for hit in range(hit_starts[s, one], hit_starts[s, one + 1]):
                place = hit_pointers[hit]
                if not mask[place]:
                    continue
                rank = kept + 1 if condensed else hit_ranks[hit]
                while rank > cutoffs[cut]:
                    at_cut[cut] = sums
                    cut += 1
                for v in range(n_sums):
                    sums[_FIXED + v] += gains[sum_gain[v], place] * discounts[v, rank - 1]
                for e in range(n_err):
                    satisfied = strengths[place] * satisfied_by[e]
                    sums[_FIXED + n_sums + e] += satisfied * going_on[e] / rank
                    going_on[e] *= 1.0 - satisfied
                if relevant[place]:
                    if relevant_above == 0:
                        sums[_FIRST] = 1.0 / rank
                    sums[_HITS] += 1.0
                    others_above = kept - relevant_above
                    if needs[0]:
                        sums[_PRECISIONS] += (relevant_above + 1) / rank
                    if needs[1]:
                        sums[_PREFERENCES] += 1.0 - min(others_above, n_relevant) / bound if others_above > 0 else 1.0
                    if needs[2]:
                        if rank == 1:
                            sums[_INFERRED_ALL] += 1.0
                            sums[_INFERRED_JUDGED] += 1.0
                        else:
                            share = (relevant_above + _EPSILON) / (kept + 2.0 * _EPSILON)
                            sums[_INFERRED_ALL] += 1.0 / rank + (rank - 1.0) / rank * share
                            sums[_INFERRED_JUDGED] += 1.0 / rank + kept / rank * share
                    relevant_above += 1
                kept += 1
            while cut < n_cuts:
                at_cut[cut] = sums
                cut += 1
            length = kept if condensed else lengths[s, one]
            for m in range(n_metrics):
                kind, row = operation[m], at_cut[metric_cut[m]]
                value = undefined
                if kind == NDCG:
                    ideal = ideals[variant[m], metric_cut[m], one]
                    if ideal > 0.0:
                        value = row[_FIXED + variant[m]] / ideal
                elif kind == ERR:
                    if top_grades[one] > 0.0:
                        value = row[_FIXED + n_sums + variant[m]]
                elif n_relevant > 0:
                    size = denominator[m] if denominator[m] > 0 else length
                    if kind == P:
                        value = row[_HITS] / size if size > 0 else 0.0
                    elif kind == RECALL:
                        value = row[_HITS] / n_relevant
                    elif kind == F1:
                        value = 2.0 * row[_HITS] / (size + n_relevant)
                    elif kind == HIT_RATE:
                        value = 1.0 if row[_HITS] > 0.0 else 0.0
                    elif kind == RR:
                        value = row[_FIRST]
                    elif kind == AP:
                        value = row[_PRECISIONS] / n_relevant
                    elif kind == BPREF:
                        value = row[_PREFERENCES] / n_relevant
                    elif kind == INFAP_ALL:
                        value = row[_INFERRED_ALL] / n_relevant
                    elif kind == INFAP_JUDGED:
                        value = row[_INFERRED_JUDGED] / n_relevant
                    elif kind == RBP:
                        value = row[_FIXED + variant[m]] * scales[variant[m]]
                values[m, s, remaining] = value
        counts_out[0, remaining], counts_out[1, remaining] = counts[0, one], n_relevant
        remaining += 1
    return remaining

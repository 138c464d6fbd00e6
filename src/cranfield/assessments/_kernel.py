# mypy: disable-error-code="untyped-decorator"
"""The compiled walk over the hits of all lists. Importing this module imports numba: use `subset_scores.compiled`.

Every common ranking metric is a running sum over the judged items of a list, from the top, times a factor that depends
only on the list's judgments: AP is Σ P@k times 1/R, nDCG is DCG times 1/ideal. One walk over a list computes all sums;
when it passes a cut-off, the sums so far are those of the list cut there. The factors are the same for all systems.
Another metric or cut-off therefore costs one product per list, not another walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# The running sums of every walk; the discounted sums and those of ERR follow them.
HITS, ANY_HIT, FIRST, PRECISIONS, PREFERENCES, INFERRED_ALL, INFERRED_JUDGED, FIXED = range(8)
# The kinds of factors of metrics.
ONE, PER_CUTOFF, PER_RELEVANT, PER_CUTOFF_AND_RELEVANT, PER_IDEAL, SCALE, IF_RATED = range(7)
# The same without a cut-off: the length of the list, which differs between systems, replaces it.
PER_LENGTH, PER_LENGTH_AND_RELEVANT = 7, 8
_EPSILON = 1e-5


@njit(cache=True, nogil=True)
def count_lists(indptr: Any, mask: Any, relevant: Any, grades: Any, counts: Any, top_grades: Any) -> float:
    """Count the remaining judgments and relevant judgments of each list; return the highest remaining rating."""
    top = 0.0
    for row in range(len(indptr) - 1):
        judged = relevant_ones = 0
        best = 0.0
        for place in range(indptr[row], indptr[row + 1]):
            if mask[place]:
                judged += 1
                relevant_ones += relevant[place]
                best = max(best, grades[place])
        counts[0, row], counts[1, row] = judged, relevant_ones
        top_grades[row] = best
        top = max(top, best)
    return top


@njit(cache=True, nogil=True)
def ideal_sums(indptr: Any, mask: Any, order: Any, gains: Any, discount: Any, cutoffs: Any, ideals: Any) -> None:
    """Sum the remaining gains of each list up to each cut-off, discounted by rank; ``order`` is by descending gain."""
    n_cutoffs = len(cutoffs)
    for row in range(len(indptr) - 1):
        total, rank, cut = 0.0, 0, 0
        for step in range(indptr[row], indptr[row + 1]):
            place = order[step]
            if not mask[place]:
                continue
            while cut < n_cutoffs and rank >= cutoffs[cut]:
                ideals[cut, row] = total
                cut += 1
            if cut == n_cutoffs:
                break
            rank += 1
            total += gains[place] * discount[rank]
        while cut < n_cutoffs:
            ideals[cut, row] = total
            cut += 1


@njit(cache=True, nogil=True)
def fill_factors(
    kinds: Any, variants: Any, cuts: Any, cutoffs: Any, counts: Any, top_grades: Any, ideals: Any, scales: Any,
    undefined: float, factors: Any,
) -> None:  # fmt: skip
    """Fill metrics × lists: the factor of each metric's sum; NaN or 0 if the metric is undefined."""
    for m in range(len(kinds)):
        kind, cutoff = kinds[m], cutoffs[cuts[m]]
        for row in range(counts.shape[1]):
            n_relevant = counts[1, row]
            factor = undefined
            if kind == PER_IDEAL:
                ideal = ideals[variants[m], cuts[m], row]
                if ideal > 0.0:
                    factor = 1.0 / ideal
            elif kind == IF_RATED:
                if top_grades[row] > 0.0:
                    factor = 1.0
            elif kind == SCALE:
                factor = scales[variants[m]]
            elif n_relevant > 0:
                if kind == PER_RELEVANT:
                    factor = 1.0 / n_relevant
                elif kind == PER_CUTOFF:
                    factor = 1.0 / cutoff
                elif kind == PER_CUTOFF_AND_RELEVANT:
                    factor = 2.0 / (cutoff + n_relevant)
                else:
                    factor = 1.0
            factors[m, row] = factor


@njit(cache=True, nogil=True, inline="always")
def _keep(
    row: Any, hits: float, first: float, precisions: float, preferences: float, inferred_all: float,
    inferred_judged: float, sums: Any,
) -> None:  # fmt: skip
    """Store the sums of the list cut here."""
    row[HITS], row[ANY_HIT], row[FIRST] = hits, 1.0 if hits > 0.0 else 0.0, first
    row[PRECISIONS], row[PREFERENCES] = precisions, preferences
    row[INFERRED_ALL], row[INFERRED_JUDGED] = inferred_all, inferred_judged
    for v in range(len(sums)):
        row[FIXED + v] = sums[v]


@njit(cache=True, nogil=True)
def walk(
    lists: Any, starts: Any, ranks: Any, pointers: Any, lengths: Any, condensed: bool, mask: Any, relevant: Any,
    counts: Any, strengths: Any, satisfied_by: Any, gains: Any, sum_gain: Any, discounts: Any, cutoffs: Any,
    needs: Any, sources: Any, cuts: Any, kinds: Any, factors: Any, values: Any,
) -> None:  # fmt: skip
    """Walk the hits of one system and fill ``values`` (metrics × remaining lists).

    ``lists`` remain; the hits of list ``l`` are those from ``starts[l]`` to ``starts[l + 1]``. If ``condensed``, the
    rank of a hit is its rank among the remaining ones. ``counts`` are the judgments and relevant ones that remain of
    each list. For ERR, ``strengths`` are 2^r − 1 of each judgment, and ``satisfied_by`` 1 / 2^rmax by form of ERR and
    list. Discounted sums have gains by gain and judgment, the gain of each sum and its discount by rank. Cut-offs
    ascend, and the last one is larger than every list. ``needs`` says whether the sums of preferences and of inferred
    precisions are needed. Each metric has its sum (``sources``), its cut-off, the kind of its factor, and the factor by
    list.
    """
    n_sums, n_err, n_cuts, n_metrics = len(sum_gain), len(satisfied_by), len(cutoffs), len(sources)
    width = FIXED + n_sums + n_err
    sums, going_on = np.zeros(n_sums + n_err), np.ones(n_err)
    at_cut = np.zeros((n_cuts, width))
    # Division is expensive, so reciprocals of ranks and of numbers of judged items above are looked up in tables.
    per_rank = 1.0 / np.maximum(np.arange(discounts.shape[1]), 1)
    per_above = 1.0 / (np.arange(discounts.shape[1]) + 2.0 * _EPSILON)
    remaining = np.empty(discounts.shape[1], np.int64)
    for new, row in enumerate(lists):
        # An unpredictable branch is expensive too, so the remaining hits are gathered without one.
        n_kept = 0
        for hit in range(starts[row], starts[row + 1]):
            remaining[n_kept] = hit
            n_kept += mask[pointers[hit]]
        if n_kept == 0:
            for m in range(n_metrics):
                values[m, new] = 0.0 * factors[m, row]
            continue
        n_relevant = counts[1, row]
        per_bound = 1.0 / max(min(counts[0, row] - n_relevant, n_relevant), 1)
        hits = first = precisions = preferences = inferred_all = inferred_judged = 0.0
        sums[:] = 0.0
        going_on[:] = 1.0
        cut = 0
        for above in range(n_kept):
            hit = remaining[above]
            place = pointers[hit]
            rank = above + 1 if condensed else np.int64(ranks[hit])
            while rank > cutoffs[cut]:
                _keep(at_cut[cut], hits, first, precisions, preferences, inferred_all, inferred_judged, sums)
                cut += 1
            for v in range(n_sums):
                sums[v] += gains[sum_gain[v], place] * discounts[v, rank]
            inverse = per_rank[rank]
            for e in range(n_err):
                satisfied = strengths[place] * satisfied_by[e, row]
                sums[n_sums + e] += satisfied * going_on[e] * inverse
                going_on[e] *= 1.0 - satisfied
            if relevant[place]:
                if hits == 0.0:
                    first = inverse
                if needs[0]:
                    preferences += 1.0 - min(above - hits, n_relevant) * per_bound
                if needs[1]:
                    share = (hits + _EPSILON) * per_above[above]
                    inferred_all += (1.0 + (rank - 1.0) * share) * inverse
                    inferred_judged += (1.0 + above * share) * inverse
                hits += 1.0
                precisions += hits * inverse
        while cut < n_cuts:
            _keep(at_cut[cut], hits, first, precisions, preferences, inferred_all, inferred_judged, sums)
            cut += 1
        length = n_kept if condensed else lengths[row]
        for m in range(n_metrics):
            value = at_cut[cuts[m], sources[m]] * factors[m, row]
            if kinds[m] == PER_LENGTH:
                value /= length
            elif kinds[m] == PER_LENGTH_AND_RELEVANT:
                value *= 2.0 / (length + n_relevant)
            values[m, new] = value

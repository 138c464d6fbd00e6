"""Incomplete judgments: metrics that distinguish unjudged items from items judged not relevant, and bounds.

Bounds are the values of a metric if every unjudged item were irrelevant, or relevant.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.judgments import Judged, tied_ranks
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import SHARE, Metric, metric
from cranfield.rankings import ranks_of_whole
from cranfield.tables import UNKNOWN

# Maximum number of places of lists that leave places out.
_MOST_PLACES = 10_000_000

_EPSILON = 1e-5

_incomplete = partial(
    metric, family="incomplete", requires="relevant items", zero_if_undefined=True, bounds=True, between=SHARE
)


def _mean_over_relevant(judged: Judged, terms: Values) -> Values:
    """Return (1/R) Σ over the relevant hits of their terms."""
    return ratio(judged.total(terms, where=judged.relevant), judged.n_relevant)


@_incomplete("bpref")
def bpref(judged: Judged) -> Values:
    """Binary preference (Buckley and Voorhees 2004): how rarely a judged non-relevant item is above a relevant one.

    bpref = (1/R) Σ_{relevant i in the list} [1 − min(n_i, R) / min(N, R)], where n_i is the number of judged
    non-relevant items above i, and N that of the user; a term is 1 if n_i is 0. Unjudged items are ignored. Valcarce et
    al. (2020), equation (9).
    """
    above = judged.nonrelevant_above
    relevant = judged.n_relevant[judged.lists]
    bound = np.maximum(np.minimum(judged.n_nonrelevant[judged.lists], relevant), 1)
    terms = np.where(above > 0, 1.0 - np.minimum(above, relevant) / bound, 1.0)
    return _mean_over_relevant(judged, terms)


@_incomplete("infAP")
def inferred_average_precision(judged: Judged, *, pool: Literal["all", "judged"] = "all") -> Values:
    """Inferred average precision (Yilmaz and Aslam 2008): AP, with precision above each item estimated.

    infAP = (1/R) Σ_{relevant at rank k} [1/k + (k−1)/k · |pool_k|/(k−1) · (rel_k + ε)/(rel_k + nrel_k + 2ε)], with the
    judged relevant and non-relevant items above k, and ε = 1e-5; 1 at the first rank. With ``pool=all`` every
    recommended item counts as pooled, so |pool_k|/(k−1) = 1 (Valcarce et al. 2020, equations 10 and 11); with
    ``pool=judged`` only judged items and those that the test set marks as pooled and not judged (trec_eval; see
    ``negative_grades`` of `measure`).
    """
    relevant_above = judged.relevant_above
    judged_above = relevant_above + judged.nonrelevant_above
    ranks = judged.ranks.astype(np.float64)
    marked = 0 if judged.pooled_above is None else judged.pooled_above
    pooled = ranks - 1.0 if pool == "all" else (judged_above + marked).astype(np.float64)
    share = (relevant_above + _EPSILON) / (judged_above + 2.0 * _EPSILON)
    return _mean_over_relevant(judged, np.where(ranks == 1.0, 1.0, 1.0 / ranks + pooled / ranks * share))


def bounds(metric: str | Metric, judged: Judged) -> tuple[Values, Values]:
    """Return the lowest and highest value of a metric for each list, whatever its unjudged items are.

    One end counts all of them as not relevant, the other as relevant with the highest rating of the test set; the user
    then has that many more relevant items. For a metric that divides by their number, such as AP, the first end can be
    the upper one. If only one end is defined (a user without a relevant test item), the other is NaN.

    Parameters
    ----------
    metric
        The name of a ranking metric, or a `Metric`. On condensed lists nothing is unjudged, and both ends are its
        value.
    judged
        The judged lists.

    Examples
    --------
    >>> import cranfield as cf
    >>> judged = cf.judge({"mine": {"ann": {"x": 3.0, "y": 2.0}}}, cf.Ratings.of(["ann"], ["x"]))
    >>> [float(end[0]) for end in bounds("P@2", judged)]
    [0.5, 1.0]
    """
    metric = Metric.of(metric)
    if not metric.definition.bounds:
        raise SettingError(f"{metric} has no bounds from missing judgments; ask for a ranking metric such as nDCG@10")
    if judged.draw is not None:
        raise SettingError("draws='exact' has no bounds from missing judgments; set draws='sampled'")
    parameters = dict(metric.parameters)
    if parameters.get("rel") is not None:
        judged = judged.at(float(parameters["rel"]))
    if parameters.get("condensed", metric.definition.condensed) or judged.is_condensed:
        value = np.asarray(metric(judged))
        return value, value
    depth = judged.depth if metric.cutoff is None else metric.cutoff
    # A rating of 0 has no gain; if it would be relevant, the lowest rating is just below the threshold.
    threshold = judged.judgments.threshold
    lowest = 0.0 if threshold > 0 else float(np.nextafter(threshold, -np.inf))
    ends = lowest, max(judged.judgments.top_grade, threshold)
    low, high = (np.asarray(metric(_judged_throughout(judged, depth, grade))) for grade in ends)
    unordered = np.isnan(low) | np.isnan(high)
    return np.where(unordered, low, np.minimum(low, high)), np.where(unordered, high, np.maximum(low, high))


def _judged_throughout(judged: Judged, depth: int, grade: float) -> Judged:
    """Return the lists with a judgment of the given grade for every unjudged item down to rank ``depth``.

    An item that is not known, because the ranks leave its place out, is unjudged as well.
    """
    entries, judgments, of_all = judged.entries, judged.judgments, judged.judgments.grades_of_all
    assert judged.run is not None  # it has entries
    assert judged.places is not None
    missing = _within(judged, depth) & ~np.isin(entries.places, judged.places)
    codes = judgments.item_ids.translation(judged.run.item_ids)
    items = entries.items[missing] if codes is None else codes[entries.items[missing]]
    left_out, their_ranks = _left_out(judged, depth)
    order = np.lexsort((np.append(entries.ranks[missing], their_ranks), np.append(entries.lists[missing], left_out)))
    unknown = np.full(len(left_out), UNKNOWN)
    lists, new_ranks, places, items = (
        np.append(known, others)[order]
        for known, others in (
            (entries.lists[missing], left_out), (entries.ranks[missing], their_ranks),
            (entries.places[missing], unknown), (items, unknown),
        )
    )  # fmt: skip
    added = np.bincount(lists, minlength=judged.n_lists)
    shift = np.append(0, np.cumsum(added))
    # The added judgments of a list come after its own.
    own_places = np.arange(len(judgments)) + shift[judgments.lists]
    new_places = np.arange(len(lists)) + judgments.indptr[1:][lists]

    def merged(values: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        whole = np.empty(len(values) + len(new), dtype=values.dtype)
        whole[own_places], whole[new_places] = values, new
        return whole

    ranks = np.concatenate([judged.ranks, new_ranks])
    order = np.lexsort((ranks, np.concatenate([judged.lists, lists])))
    hits, ranks = np.concatenate([judged.places, places])[order], ranks[order]
    tied_from, tied_to = (
        None if tied is None else np.where(hits == UNKNOWN, ranks, tied)
        for tied in tied_ranks(judged.run, np.maximum(hits, 0))
    )
    return replace(
        judged,
        judgments=judgments.changed(
            indptr=judgments.indptr + shift,
            items=merged(judgments.items, items),
            grades=merged(judgments.grades, np.full(len(lists), grade)),
            grades_of_all=None if of_all is None else np.unique(np.append(of_all, grade)),
        ),
        lists=np.concatenate([judged.lists, lists])[order],
        ranks=ranks,
        pointers=np.concatenate([own_places[judged.pointers], new_places])[order],
        tied_from=tied_from,
        tied_to=tied_to,
        places=hits,
        pooled_above=None,  # pooled items are judged now
        _views={},
    )


def _left_out(judged: Judged, depth: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the list and the rank of each place down to ``depth`` whose item is not known."""
    if judged.run is None or not judged.run.has_gaps:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    sizes = np.minimum(judged.lengths, depth).astype(np.int64)
    if sizes.sum() > _MOST_PLACES:
        raise SettingError(
            f"the ranks of {judged.run.name} leave out too many places for bounds of whole lists; give the metrics a "
            "cut-off"
        )
    indptr = np.append(0, np.cumsum(sizes))
    lists, ranks = np.repeat(np.arange(judged.n_lists, dtype=np.int32), sizes), ranks_of_whole(indptr)
    entries = judged.entries
    near = entries.ranks <= depth
    is_known = np.zeros(len(ranks), dtype=np.bool_)
    is_known[indptr[entries.lists[near]] + entries.ranks[near] - 1] = True
    return lists[~is_known], ranks[~is_known]


def _within(judged: Judged, depth: int) -> NDArray[np.bool_]:
    """Whether each entry can be at a rank of at most ``depth``; all items of a tied group can if any of them can."""
    assert judged.run is not None
    first, _ = tied_ranks(judged.run, judged.entries.places)
    ranks = judged.entries.ranks if first is None else first
    return ranks <= depth

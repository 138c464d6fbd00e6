"""Metrics for incomplete judgments, which distinguish unjudged items from items judged not relevant."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from cranfield.judgments import Judged
from cranfield.metrics._ratio import ratio
from cranfield.metrics.definition import SHARE, Values, metric

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

"""implicit 0.7.3: its ``ranking_metrics_at_k``, with the test ratings that are relevant as test matrix."""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield._errors import SettingError
from cranfield.judgments import Judged
from cranfield.metrics.definition import Values
from cranfield.metrics.dialects._values import achievable, irrelevant_above, over, pooled, sum_of_precisions
from cranfield.metrics.dialects.peers import Tool, Users
from cranfield.metrics.graded import ndcg as graded_ndcg
from cranfield.tables import UNKNOWN

IMPLICIT = Tool("implicit", "implicit", "0.7.3", Users.RELEVANT)


@IMPLICIT.dialect(
    "P",
    "precision",
    "not precision but a pooled recall: the hits of all users together over the sum of min(R, n)",
    cutoff="required",
)
def precision(judged: Judged, *, cutoff: int) -> Values:
    """P = Σ_u hits / Σ_u min(R, n)."""
    return pooled(judged.n_hits, achievable(judged, cutoff), judged.n_relevant > 0)


@IMPLICIT.dialect("AP", "map", "divided by min(R, n), not by R", cutoff="required")
def average_precision(judged: Judged, *, cutoff: int) -> Values:
    """AP = Σ rel(k) P@k / min(R, n)."""
    return over(sum_of_precisions(judged), achievable(judged, cutoff))


@IMPLICIT.dialect("nDCG", "ndcg", "every relevant item gains 1", cutoff="required")
def ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with binary gain."""
    return graded_ndcg(judged, cutoff=cutoff, gain="binary")


@IMPLICIT.dialect(
    "AUC",
    "auc",
    "over the whole catalogue: items that are not in the top n are below it in random order",
    cutoff="required",
    averages_ties=False,
)
def area_under_curve(judged: Judged, *, cutoff: int, items: int | None = None) -> Values:
    """AUC of the top n followed by all other items in random order.

    With h hits in the top n, N = items − R and m = n − h misses: (Σ_misses |{hits above}| + (N − m)(h + R)/2) / (R N).
    ``items`` is the size of the catalogue, by default the number of items in the test set, the run and the training
    ratings.
    """
    if items is not None and items < len(judged.judgments.item_ids):
        known = len(judged.judgments.item_ids)
        raise SettingError(
            f"items={items} of AUC(dialect=implicit) must be a number from {known}, the test set's items"
        )
    hits, relevant = judged.total(where=judged.relevant), judged.n_relevant
    irrelevant = (_catalogue(judged) if items is None else items) - relevant
    misses = cutoff - hits
    # Of all h · m pairs, those with the miss above the hit are in the wrong order.
    in_order = hits * misses - judged.total(irrelevant_above(judged), where=judged.relevant)
    return over(in_order + (hits + relevant) / 2.0 * (irrelevant - misses), relevant * np.maximum(irrelevant, 0))


def _catalogue(judged: Judged) -> int:
    """Return the number of items in the test set, the run and the training ratings."""
    known, train = judged.judgments.item_ids, judged.context.train
    strangers = set(() if judged.ranked is None else judged.ranked.unknown_items)
    codes = None if train is None else known.translation(train.item_ids)
    if train is not None and codes is not None:
        strangers.update(train.item_ids.text.filter(pl.Series(codes == UNKNOWN)).to_list())
    return len(known) + len(strangers)

"""False-positive metrics: how many items the user does not like are in the list, and how high.

N is the number of test items of the user that are not relevant; an unjudged item is not one of them. Lower is better.
If people like popular items, these metrics favour systems that avoid them, while metrics of relevance favour systems
that recommend them: the popularity bias is reversed (Mena-Maldonado et al. 2021).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from cranfield.judgments import Judged, Judgments
from cranfield.metrics.arithmetic import Values
from cranfield.metrics.definition import SHARE, metric
from cranfield.metrics.gains import relative_powers
from cranfield.metrics.graded import ndcg_with
from cranfield.metrics.ranking import precision, recall, reciprocal_rank

LossKind = Literal["linear", "binary", "exp"]

_false_positive = partial(
    metric,
    family="false-positives",
    zero_if_undefined=False,
    bounds=True,
    averages_ties=True,
    lower_is_better=True,
    between=SHARE,
)


def _turned_round(judged: Judged) -> Judged:
    """Return the lists with relevant and non-relevant exchanged: r < t is −r ≥ the next number above −t."""

    def make() -> Judged:
        judgments = judged.judgments
        threshold = float(np.nextafter(-judgments.threshold, np.inf))
        return replace(judged, judgments=judgments.regraded(np.negative, threshold=threshold), _views={})

    return judged.once("turned round", make)


@_false_positive("AntiP", requires="judgments", aliases=("AntiPrecision",))
def anti_precision(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Anti-precision: the share of the list that is judged and not relevant.

    AntiP@n = (1/n) |{k ≤ n : the item at rank k has a test rating below the threshold}|, also for lists shorter than
    n; without cut-off, over the length of the list. It is not divided by N, so it is defined for every user with a test
    rating. Mena-Maldonado et al. (2021).
    """
    return precision(_turned_round(judged), cutoff=cutoff)


@_false_positive("Fallout", requires="non-relevant items")
def fallout(judged: Judged) -> Values:
    """Fallout: the share of the user's judged non-relevant items that are in the list.

    Fallout@n = (1/N) |{k ≤ n : the item at rank k has a test rating below the threshold}|. Undefined if N is 0.
    """
    return recall(_turned_round(judged))


@_false_positive("AntiRR", requires="non-relevant items", aliases=("AntiMRR",))
def anti_reciprocal_rank(judged: Judged) -> Values:
    """Reciprocal rank of the first item that is judged and not relevant, 0 if there is none. Undefined if N is 0."""
    return reciprocal_rank(_turned_round(judged))


def _losses(judgments: Judgments, loss: str) -> Values:
    """Return the loss of each judgment, 0 for a relevant one; those of a list may all be divided by a constant."""
    below = np.where(judgments.relevant, 0.0, judgments.threshold - judgments.grades)
    if loss == "binary":
        return (~judgments.relevant).astype(np.float64)
    return below if loss == "linear" else relative_powers(judgments, below)


@_false_positive("NDCL", requires="non-relevant items")
def normalised_loss(judged: Judged, *, cutoff: int | None = None, loss: LossKind = "linear") -> Values:
    """Normalised discounted cumulative loss: nDCG with the losses of non-relevant items instead of gains.

    DCL@n = Σ_{k≤n} loss(k) / log2(k + 1), divided by that of the worst list, the user's test items by descending loss.
    The loss of a judged non-relevant item is threshold − r (``linear``), 1 (``binary``) or 2^(threshold − r) − 1
    (``exp``); it is 0 for relevant and unjudged items. With a cut-off, the worst list is cut too. Undefined if N is 0.
    Mena-Maldonado et al. (2021).
    """
    return ndcg_with(judged, cutoff, f"loss {loss}", lambda judgments: _losses(judgments, loss))

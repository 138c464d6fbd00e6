"""The tools whose dialects are known, each with the version that its definitions were checked against.

Unless a tool says otherwise, it gets the test ratings that are relevant as its test data. R is the number of relevant
test items of the user, n the cut-off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._registry import Cutoff
from cranfield.judgments import Judged
from cranfield.metrics import graded, ranking
from cranfield.metrics.arithmetic import Values
from cranfield.metrics.dialects import Tool, Users
from cranfield.metrics.gains import Gain, GainName, kept_name, relative_gain_of, relative_powers
from cranfield.metrics.graded import logarithmic, ndcg_with
from cranfield.tables import UNKNOWN

_SAME = "the same value per list"
_OURS: Mapping[str, Callable[..., Values]] = {
    "P": ranking.precision,
    "Recall": ranking.recall,
    "F1": ranking.f1,
    "AP": ranking.average_precision,
    "RR": ranking.reciprocal_rank,
    "HitRate": ranking.hit_rate,
}


def _as_ours(tool: Tool, own_names: Mapping[str, str], cutoff: Cutoff = "optional", words: str = _SAME) -> None:
    """Register the metrics whose values are ours, with the tool's names for them."""
    for metric, own_name in own_names.items():
        tool.dialect(metric, own_name, words, cutoff=cutoff)(_OURS[metric])


def _over(numerator: Values, denominator: NDArray[Any]) -> Values:
    """Divide; 0 if the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


def _achievable(judged: Judged, cutoff: int) -> NDArray[np.int64]:
    """Return min(R, n), the maximum number of relevant items in a list of length n."""
    return np.minimum(judged.n_relevant, cutoff)


def _sum_of_precisions(judged: Judged) -> Values:
    """Return Σ rel(k) P@k, the numerator of average precision."""
    return np.nan_to_num(ranking.average_precision(judged)) * judged.n_relevant


def _irrelevant_above(judged: Judged) -> NDArray[np.int64]:
    """Return the number of items above each hit that are not relevant."""
    return judged.ranks - 1 - judged.relevant_above


def _pooled(numerator: Values, denominator: NDArray[Any], counted: NDArray[np.bool_]) -> Values:
    """Return one value per list, whose mean over the counted lists is Σ numerator / Σ denominator.

    A pooled ratio is not defined for a single list; the contribution of a list is its numerator over the mean
    denominator.
    """
    mean = float(denominator[counted].mean()) if counted.any() else 0.0
    return numerator / mean if mean > 0 else np.zeros(len(numerator))


def _binary_ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with binary gain."""
    return graded.ndcg(judged, cutoff=cutoff, gain="binary")


def _precision_of_achievable(judged: Judged, *, cutoff: int) -> Values:
    """AP = Σ rel(k) P@k / min(R, n)."""
    return _over(_sum_of_precisions(judged), _achievable(judged, cutoff))


_RelevantGain = Literal["binary", "rating", "exp"]

_RELEVANT_GAINS: Mapping[str, Gain] = {
    "binary": lambda judgments: judgments.relevant.astype(np.float64),
    "rating": lambda judgments: np.where(judgments.relevant, judgments.grades, 0.0),
    "exp": lambda judgments: relative_powers(judgments, np.where(judgments.relevant, judgments.grades, 0.0)),
}
"""Gains for tools that see no test rating below the threshold; constant factors of a list's gains cancel in nDCG."""


ELLIOT = Tool("elliot", "Elliot", "0.3.1", Users.RELEVANT_WITH_LIST)

_as_ours(ELLIOT, {"P": "Precision", "Recall": "Recall", "F1": "F1", "RR": "MRR", "HitRate": "HR"}, cutoff="required")


@ELLIOT.dialect("nDCG", "nDCG", "a relevant item gains 2^(r − threshold + 1) − 1, others nothing", cutoff="required")
def _elliot_ndcg(judged: Judged, *, cutoff: int) -> Values:
    """Return nDCG with an exponential gain that starts at the threshold."""
    return graded.ndcg(judged, cutoff=cutoff, gain="exprelevant")


@ELLIOT.dialect("AP", "MAP", "the mean of P@1 to P@n, whether or not rank k is relevant", cutoff="required")
def _elliot_ap(judged: Judged, *, cutoff: int) -> Values:
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
def _elliot_auc(judged: Judged, *, grouped: bool = False) -> Values:
    """AUC = the mean over hits of 1 − |{irrelevant items above}| / (N + 1), N the irrelevant items of the list."""
    hits = judged.total(where=judged.relevant)
    spread = judged.lengths - hits + 1.0
    below = (spread[judged.lists] - _irrelevant_above(judged)) / spread[judged.lists]
    areas = judged.total(below, where=judged.relevant)
    if grouped:
        return _over(areas, judged.n_relevant)
    return _pooled(areas, hits, ELLIOT.users.counted(judged))


IMPLICIT = Tool("implicit", "implicit", "0.7.3", Users.RELEVANT)  # its ranking_metrics_at_k

IMPLICIT.dialect("AP", "map", "divided by min(R, n), not by R", cutoff="required")(_precision_of_achievable)
IMPLICIT.dialect("nDCG", "ndcg", "every relevant item gains 1", cutoff="required")(_binary_ndcg)


@IMPLICIT.dialect(
    "P",
    "precision",
    "not precision but a pooled recall: the hits of all users together over the sum of min(R, n)",
    cutoff="required",
)
def _implicit_precision(judged: Judged, *, cutoff: int) -> Values:
    """P = Σ_u hits / Σ_u min(R, n)."""
    return _pooled(judged.n_hits, _achievable(judged, cutoff), judged.n_relevant > 0)


@IMPLICIT.dialect(
    "AUC",
    "auc",
    "over the whole catalogue: items that are not in the top n are below it in random order",
    cutoff="required",
    averages_ties=False,
)
def _implicit_auc(judged: Judged, *, cutoff: int, items: int | None = None) -> Values:
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
    irrelevant = (_all_items(judged) if items is None else items) - relevant
    misses = cutoff - hits
    # Of all h · m pairs, those with the miss above the hit are in the wrong order.
    in_order = hits * misses - judged.total(_irrelevant_above(judged), where=judged.relevant)
    return _over(in_order + (hits + relevant) / 2.0 * (irrelevant - misses), relevant * np.maximum(irrelevant, 0))


def _all_items(judged: Judged) -> int:
    """Return the number of items in the test set, the run and the training ratings."""
    known, train = judged.judgments.item_ids, judged.context.train
    strangers = set(() if judged.ranked is None else judged.ranked.unknown_items)
    codes = None if train is None else known.translation(train.item_ids)
    if train is not None and codes is not None:
        strangers.update(train.item_ids.text.filter(pl.Series(codes == UNKNOWN)).to_list())
    return len(known) + len(strangers)


LENSKIT = Tool("lenskit", "LensKit", "2025.8.1", Users.WITH_LIST)  # its RunAnalysis

_as_ours(LENSKIT, {"RR": "RecipRank", "HitRate": "Hit"})


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
def _lenskit_ndcg(judged: Judged, *, cutoff: int | None = None, gain: GainName = "binary") -> Values:
    """Return nDCG with the discount clipped at rank 2."""
    return ndcg_with(judged, cutoff, kept_name(gain), relative_gain_of(gain), _clipped)


@LENSKIT.dialect("P", "Precision", "a list shorter than n is divided by its length, not by n")
def _lenskit_precision(judged: Judged) -> Values:
    """P = hits / min(n, length)."""
    return _over(judged.n_hits, judged.lengths)


@LENSKIT.dialect("Recall", "Recall", "divided by min(R, n), not by R")
def _lenskit_recall(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Recall = hits / min(R, n)."""
    return _over(judged.n_hits, judged.n_relevant if cutoff is None else _achievable(judged, cutoff))


@LENSKIT.dialect(
    "AP", "AveragePrecision", "divided by min(R, n, length), not by R; it stops if R is 0, which counts as 0 here"
)
def _lenskit_ap(judged: Judged) -> Values:
    """AP = Σ rel(k) P@k / min(R, n, length); 0 if R is 0, where LensKit fails with a division by zero."""
    return _over(_sum_of_precisions(judged), np.minimum(judged.n_relevant, judged.lengths))


RANX = Tool("ranx", "ranx", "0.3.21", Users.JUDGED)  # with the threshold as -l, and make_comparable=True

_as_ours(RANX, {"P": "precision", "Recall": "recall", "F1": "f1", "RR": "mrr", "HitRate": "hit_rate"})
_as_ours(RANX, {"AP": "map"}, words=f"{_SAME}, divided by R whatever the cut-off")


@RANX.dialect(
    "nDCG",
    "ndcg",
    "gain is the rating, but items below the threshold gain nothing",
    options={"gain=exp": "gain is 2^r − 1 (ndcg_burges), and items below the threshold gain nothing"},
)
def _ranx_ndcg(judged: Judged, *, cutoff: int | None = None, gain: _RelevantGain = "rating") -> Values:
    """Return nDCG of the relevant items alone, with the rating as gain (``ndcg``) or 2^r − 1 (``ndcg_burges``)."""
    return ndcg_with(judged, cutoff, f"relevant {gain}", _RELEVANT_GAINS[gain])


RECBOLE = Tool("recbole", "RecBole", "1.2.1", Users.RELEVANT)  # full ranking

_FOUR = "(it prints four decimals)"

_as_ours(RECBOLE, {"P": "Precision", "Recall": "Recall", "RR": "MRR", "HitRate": "Hit"}, "required", f"{_SAME} {_FOUR}")
RECBOLE.dialect("nDCG", "NDCG", f"every relevant item gains 1 {_FOUR}", cutoff="required")(_binary_ndcg)
RECBOLE.dialect("AP", "MAP", f"divided by min(R, n), not by R {_FOUR}", cutoff="required")(_precision_of_achievable)


@RECBOLE.dialect(
    "AUC",
    "GAUC",
    "users are weighted by their number of relevant items; it ranks the whole catalogue (its AUC pools the pairs of "
    "all users, and needs scores)",
    cutoff="none",
)
def _recbole_auc(judged: Judged) -> Values:
    """GAUC = Σ R · AUC / Σ R, over users for whom AUC is defined."""
    auc = ranking.area_under_curve(judged)
    weight = np.where(np.isnan(auc), 0, judged.n_relevant)
    return _pooled(np.nan_to_num(auc) * weight, weight, judged.n_relevant > 0)


# By Microsoft: its pandas functions, with the relevant test ratings as rating_true.
RECOMMENDERS = Tool("recommenders", "recommenders", "1.2.1", Users.RELEVANT_WITH_LIST)

_as_ours(RECOMMENDERS, {"P": "precision_at_k", "Recall": "recall_at_k"}, cutoff="required")


@RECOMMENDERS.dialect(
    "nDCG",
    "ndcg_at_k",
    "every relevant item gains 1",
    options={
        "gain=rating": "gain is the rating, but items below the threshold gain nothing (score_type='raw')",
        "gain=exp": "gain is 2^r − 1, and items below the threshold gain nothing (score_type='exp')",
    },
    users=Users.RELEVANT,
    cutoff="required",
)
def _recommenders_ndcg(judged: Judged, *, cutoff: int, gain: _RelevantGain = "binary") -> Values:
    """Return nDCG of the relevant items; unlike its other metrics, users without a list are averaged in as 0."""
    return ndcg_with(judged, cutoff, f"relevant {gain}", _RELEVANT_GAINS[gain])


@RECOMMENDERS.dialect(
    "AP",
    "map_at_k",
    "divided by min(R, n), not by R",
    options={"at_k=false": "the same value per list, divided by R whatever the cut-off (its function map)"},
    cutoff="required",
)
def _recommenders_ap(judged: Judged, *, cutoff: int, at_k: bool = True) -> Values:
    """AP = Σ rel(k) P@k / min(R, n) (``map_at_k``), or over R (``map``)."""
    return _over(_sum_of_precisions(judged), _achievable(judged, cutoff) if at_k else judged.n_relevant)


RECTOOLS = Tool("rectools", "RecTools", "0.19.0", Users.RELEVANT)

_as_ours(RECTOOLS, {"Recall": "Recall", "F1": "F1Beta", "RR": "MRR", "HitRate": "HitRate"}, cutoff="required")


@RECTOOLS.dialect(
    "nDCG",
    "NDCG",
    "every relevant item gains 1; the ideal list has n relevant items, however few the user has",
    options={"achievable=true": "every relevant item gains 1; the ideal list has min(R, n) relevant items"},
    cutoff="required",
)
def _rectools_ndcg(judged: Judged, *, cutoff: int, achievable: bool = False) -> Values:
    """Return nDCG over Σ_{k≤n} 1/log2(k + 1); ``achievable`` is the option ``divide_by_achievable``."""
    if achievable:
        return _binary_ndcg(judged, cutoff=cutoff)
    return judged.discounted(logarithmic(judged.depth), judged.relevant) / logarithmic(cutoff).sum()


@RECTOOLS.dialect(
    "P",
    "Precision",
    _SAME,
    options={"r_precision=true": "divided by min(R, n), not by n (its option r_precision)"},
    cutoff="required",
)
def _rectools_precision(judged: Judged, *, cutoff: int, r_precision: bool = False) -> Values:
    """P = hits / n; with the option ``r_precision``, hits / min(R, n)."""
    return _over(judged.n_hits, _achievable(judged, cutoff)) if r_precision else judged.n_hits / cutoff


@RECTOOLS.dialect(
    "AP",
    "MAP",
    "the same value per list, divided by R whatever the cut-off",
    options={"divide_by_k=true": "divided by n, not by R (its option divide_by_k)"},
    cutoff="required",
)
def _rectools_ap(judged: Judged, *, cutoff: int, divide_by_k: bool = False) -> Values:
    """AP = Σ rel(k) P@k / R; with the option ``divide_by_k``, over n."""
    return _sum_of_precisions(judged) / cutoff if divide_by_k else ranking.average_precision(judged)


REPLAY = Tool("replay", "RePlay", "0.22.0", Users.RELEVANT)

_as_ours(REPLAY, {"P": "Precision", "Recall": "Recall", "RR": "MRR", "HitRate": "HitRate"}, cutoff="required")
REPLAY.dialect("nDCG", "NDCG", "every relevant item gains 1", cutoff="required")(_binary_ndcg)
REPLAY.dialect("AP", "MAP", "divided by min(R, n), not by R", cutoff="required")(_precision_of_achievable)


@REPLAY.dialect(
    "AUC",
    "RocAuc",
    "only over the pairs within the list: relevant items outside it do not count, 1 if no irrelevant item is ranked "
    "above a relevant one",
    cutoff="required",
    averages_ties=False,
)
def _replay_auc(judged: Judged) -> Values:
    """AUC = 1 − Σ_hits |{irrelevant items above}| / (hits · (length − hits)); 0 without a hit."""
    hits, wrong = judged.total(where=judged.relevant), judged.total(_irrelevant_above(judged), where=judged.relevant)
    return np.where(hits > 0, 1.0 - _over(wrong, hits * (judged.lengths - hits)), 0.0)


# As pytrec_eval-terrier binds it; it gets all test ratings.
TREC_EVAL = Tool("trec_eval", "trec_eval", "(pytrec_eval-terrier 0.5.11)", Users.JUDGED_WITH_LIST)

_as_ours(TREC_EVAL, {"P": "P", "Recall": "recall", "HitRate": "success"})
_as_ours(TREC_EVAL, {"AP": "map_cut"}, words=f"{_SAME}, divided by R whatever the cut-off")
_as_ours(TREC_EVAL, {"RR": "recip_rank"}, words=f"{_SAME}; a cut-off corresponds to its option -M")


@TREC_EVAL.dialect("nDCG", "ndcg_cut", "gain is the rating, also for items below the threshold")
def _trec_eval_ndcg(judged: Judged, *, cutoff: int | None = None) -> Values:
    """Return nDCG with the rating as gain; the level of relevance (-l) has no effect on it."""
    return graded.ndcg(judged, cutoff=cutoff)


@TREC_EVAL.dialect(
    "F1", "set_F", "precision is divided by the length of the list, not by n; a cut-off corresponds to -M"
)
def _trec_eval_f1(judged: Judged) -> Values:
    """F1 = 2 hits / (length + R)."""
    return ranking.f1(judged, cutoff=None)

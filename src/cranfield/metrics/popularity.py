"""Popularity-aware metrics, which correct for the fact that most test ratings are of popular items.

Popularity is counted in the training ratings. A relevant test item without training ratings has no weight, unless
``smooth`` adds to every count; for a user with only such items the metric is undefined (NaN).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import numpy as np

from cranfield._checks import Limits
from cranfield.data import Ratings
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import metric
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.training import catalogue, codes_of, item_counts, train_of, translated
from cranfield.tables import UNKNOWN

_popular = partial(metric, family="popularity", bounds=False, averages_ties=True, between=(0.0, np.inf))


CountedRatings = Literal["positive", "all"]
Utility = Literal["recall", "dcg", "auc"]
NotBelow0 = Annotated[float, Limits(low=0)]
Gamma = Annotated[float, Limits(low=-1)]
Propensity = Annotated[float, Limits(low=0, high=1)]


def _popularity(judged: Judged, metric_name: str, count: str, smooth: float) -> Values:
    """Return the popularity of each item of the test set's vocabulary."""
    judgments = judged.judgments
    counts = item_counts(judged, metric_name, judgments.threshold if count == "positive" else None) + smooth
    return translated(counts, train_of(judged, metric_name).item_ids, judgments.item_ids, missing=smooth)


def _powers(counts: Values, exponent: float) -> Values:
    """Return counts^(−exponent): 1 for every item if the exponent is 0, otherwise 0 for items without a count."""
    if exponent == 0:
        return np.ones(len(counts))
    return np.where(counts > 0, np.power(np.where(counts > 0, counts, 1.0), -exponent), 0.0)


def _gains(judged: Judged, weights: Values) -> Values:
    """Return the weight of each hit's item; 0 if it is not relevant."""
    return weights[judged.judgments.items[judged.pointers]] * judged.relevant


def _totals(judged: Judged, weights: Values) -> Values:
    """Return for each list the sum of the weights of its relevant judgments."""
    judgments = judged.judgments
    if judgments.n_lists == 0:
        return np.zeros(0)
    return np.add.reduceat(weights[judgments.items] * judgments.relevant, judgments.indptr[:-1])


@_popular("StratRecall", requires="gains", needs=("train",), aliases=("StratifiedRecall",))
def stratified_recall(
    judged: Judged,
    *,
    gamma: Annotated[float, Limits(low=0, finite=False)] = 1.0,
    count: CountedRatings = "positive",
    smooth: NotBelow0 = 0.0,
    weights: Literal["user", "global"] = "user",
) -> Values:
    """Popularity-stratified recall (Steck 2011): recall in which a popular item counts less.

    Σ_{i in the list, relevant} |PR(i)|^(−β) / Σ_{i relevant} |PR(i)|^(−β), β = γ/(γ + 1): γ = 0 is recall, γ = inf
    gives exponent 1. PR(i) are the training ratings of i that are at least the threshold (``count=positive``) or all
    of them (``count=all``). With ``weights=global``, users are weighted by the sum in the denominator: each value is
    the numerator over the mean denominator, so that their mean over all lists is the ratio of the sums.
    """
    exponent = 1.0 if np.isinf(gamma) else gamma / (gamma + 1.0)
    weight = _powers(_popularity(judged, "StratRecall", count, smooth), exponent)
    gained = judged.discounted(np.ones(judged.depth), _gains(judged, weight))
    whole = _totals(judged, weight)
    if weights == "global":
        judged.judgments.need_all_users("StratRecall(weights=global)")
        whole = np.full(judged.n_lists, whole.mean() if judged.n_lists else 0.0)
    return ratio(gained, whole)


def _utility(judged: Judged, name: str) -> Values:
    """Return the worth c(k) of a relevant item at each rank k."""
    if name == "recall":
        return np.ones(judged.depth)
    if name == "dcg":
        return logarithmic(judged.depth)
    judged.judgments.need_all_users("utility=auc")
    return np.maximum(1.0 - np.arange(1, judged.depth + 1) / max(len(catalogue(judged)), 1), 0.0)


def _inverse_propensities(
    judged: Judged, metric_name: str, gamma: float, count: str, smooth: float, clip: float
) -> Values:
    """Return 1/p of each item, p at least ``clip``; 0 for items without a count.

    p = min(1, a n_i^((γ + 1)/2)) is the probability that a test user who did not rate i in training has it in the test
    set; a is chosen so that the sum of p over all these pairs is the number of test ratings.
    """
    train, judgments = train_of(judged, metric_name), judged.judgments
    judgments.need_all_users(metric_name)
    counts = item_counts(judged, metric_name, judgments.threshold if count == "positive" else None) + smooth
    known = train.item_ids.translation(judgments.item_ids)
    new_items = 0 if known is None else int((known == UNKNOWN).sum())
    powers = np.append(_powers(counts, -(gamma + 1.0) / 2.0), _powers(np.array([smooth]), -(gamma + 1.0) / 2.0))
    pairs = np.append(_unseen(judged, train), float(new_items * len(np.unique(judgments.users))))
    chance = calibrated(powers, pairs, float(len(judgments)))
    inverse = np.divide(1.0, chance, out=np.zeros(len(chance)), where=chance > 0)
    inverse = translated(inverse[:-1], train.item_ids, judgments.item_ids, missing=float(inverse[-1]))
    return np.minimum(inverse, 1.0 / clip) if clip > 0 else inverse


def calibrated(weights: Values, pairs: Values, total: float) -> Values:
    """Return probabilities p = min(1, c · weight) whose sum over all pairs is ``total``.

    ``pairs`` is the number of pairs with each weight, and ``total`` the expected number of observed ones. If it exceeds
    the number of pairs with a weight, all of these have probability 1.
    """
    open_pairs = (weights > 0) & (pairs > 0)
    certain = np.zeros(len(weights), dtype=np.bool_)
    while True:
        free = open_pairs & ~certain
        left = total - float(pairs[certain].sum())
        mass = float((weights * pairs)[free].sum())
        scale = max(left, 0.0) / mass if mass > 0 else 0.0
        beyond = free & (weights * scale > 1.0)
        if not beyond.any():
            return np.where(certain, 1.0, np.minimum(weights * scale, 1.0))
        certain |= beyond


def _unseen(judged: Judged, train: Ratings) -> Values:
    """Return the number of test users without a training rating of each item; at least its number of test ratings."""
    judgments = judged.judgments
    codes = train.user_ids.translation(judgments.user_ids)
    users = np.unique(judgments.users) if codes is None else codes[np.unique(judgments.users)]
    tested = np.zeros(train.n_users + 1, dtype=np.bool_)
    tested[users] = True  # the code -1 of a user without training ratings selects the last cell
    seen = np.bincount(train.items[tested[:-1][train.users]], minlength=train.n_items)
    items = codes_of(train.item_ids, judgments.item_ids)[judgments.items]
    judged_often = np.bincount(items[items != UNKNOWN], minlength=train.n_items)
    return np.maximum(len(users) - seen, judged_often).astype(np.float64)


@_popular("AOA", requires="relevant items")
def average_over_all(judged: Judged, *, utility: Utility = "recall") -> Values:
    """The plain mean worth of the relevant test items, (1/|S_u|) Σ_{i in S_u} c(rank of i): what IPS and SNIPS correct.

    The worth c of an item in the list is 1 (``utility=recall``), 1/log2(rank + 1) (``dcg``) or 1 − rank/|I|
    (``auc``), where |I| is the number of items of the catalogue; it is 0 for an item that is not in the list. Yang et
    al. (2018).
    """
    worth = judged.discounted(_utility(judged, utility), judged.relevant)
    return ratio(worth, judged.n_relevant.astype(np.float64))


@_popular("IPS", requires="relevant items", needs=("train",))
def inverse_propensity(
    judged: Judged,
    *,
    utility: Utility = "recall",
    gamma: Gamma = 1.5,
    count: CountedRatings = "all",
    smooth: NotBelow0 = 0.0,
    clip: Propensity = 0.0,
) -> Values:
    """Inverse-propensity estimate (Yang et al. 2018): (1/|I|) Σ_{i in S_u} c(rank of i) / p_i.

    S_u are the relevant test items, c as in ``AOA``, |I| the items of the catalogue, and p_i = min(1, a n_i^((γ+1)/2))
    the probability that an item with n_i training ratings (``count=all``; those of at least the threshold with
    ``count=positive``) is in the test set of a user who has not seen it; a is chosen so that the sum over all unseen
    pairs is the number of test ratings. γ comes from the power law of the popularity. ``clip`` is the lowest propensity
    that is used. With exponents, intervals and a doubly robust estimate: `cranfield.biases.estimate`.
    """
    inverse = _inverse_propensities(judged, "IPS", gamma, count, smooth, clip)
    gains = _gains(judged, inverse)
    worth = judged.discounted(_utility(judged, utility), gains) / max(len(catalogue(judged)), 1)
    return np.where(_totals(judged, inverse) > 0, worth, np.nan)


@_popular("SNIPS", requires="relevant items", needs=("train",))
def self_normalised(
    judged: Judged,
    *,
    utility: Utility = "recall",
    gamma: Gamma = 1.5,
    count: CountedRatings = "all",
    smooth: NotBelow0 = 0.0,
    clip: Propensity = 0.0,
) -> Values:
    """Self-normalised inverse-propensity estimate: Σ_{i in S_u} c(rank of i)/p_i over Σ_{i in S_u} 1/p_i.

    As ``IPS``, and bounded by the worth c. With ``utility=recall`` it is stratified recall with β = (γ + 1)/2
    and ``count=all``, unless a p_i reaches 1, as in a test set that is nearly complete. Yang et al. (2018).
    """
    inverse = _inverse_propensities(judged, "SNIPS", gamma, count, smooth, clip)
    gains = _gains(judged, inverse)
    return ratio(judged.discounted(_utility(judged, utility), gains), _totals(judged, inverse))


@_popular("RScore", requires="relevant items", aliases=("HalfLife",))
def half_life_score(
    judged: Judged,
    *,
    cutoff: int | None = None,
    half_life: Annotated[float, Limits(above=1)] = 5.0,
    popularity: Literal["inverse"] | None = None,
    weights: Literal["user", "global"] = "user",
) -> Values:
    """R-score (Breese, Heckerman and Kadie 1998): the worth of a relevant item halves every ``half_life`` − 1 ranks.

    Σ_{relevant i in the list} w_i 2^(−(k − 1)/(half_life − 1)), where k is the rank of i, divided by that of the best
    list, which a cut-off also cuts. A user looks at rank ``half_life`` half as often as at rank 1. w_i is 1
    (``popularity=none``) or 1/|R(i)| (``popularity=inverse``; Shani et al. 2008), where R(i) are the training ratings
    of i; an item without any has no weight. With ``weights=global``, a value is divided by the mean of the best lists,
    so that the mean over all lists is the ratio of the sums, as in Breese et al.
    """
    judgments = judged.judgments
    longest = int(judgments.n_judged.max(initial=0))
    discount = 0.5 ** (np.arange(max(judged.depth, longest)) / (half_life - 1.0))
    worth = judgments.relevant.astype(np.float64)
    if popularity == "inverse":
        worth *= _powers(_popularity(judged, "RScore", "all", 0.0), 1.0)[judgments.items]
    gained = judged.discounted(discount[: judged.depth], worth[judged.pointers])
    best = judgments.ideal(None, lambda _: worth, discount[: longest if cutoff is None else cutoff])
    if weights == "global":
        judgments.need_all_users("RScore(weights=global)")
        best = np.full(judged.n_lists, best.mean() if judged.n_lists else 0.0)
    return ratio(gained, best)

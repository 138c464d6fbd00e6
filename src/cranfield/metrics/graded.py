"""Graded ranking metrics: how much the found items are worth, and how high they are ranked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import numpy as np

from cranfield._checks import Limits
from cranfield._errors import SettingError
from cranfield.judgments import Judged, Judgments
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import SHARE, metric
from cranfield.metrics.gains import Gain, GainName, gain_of, kept_name, over_power, relative_gain_of, within_reach

_graded = partial(metric, family="graded", zero_if_undefined=True, bounds=True, between=SHARE)


def logarithmic(n: int) -> Values:
    """Return the discount 1 / log2(k + 1) of the ranks 1 to n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


@_graded("DCG", requires="nothing", averages_ties=True, between=(0.0, np.inf))
def dcg(judged: Judged, *, gain: GainName = "rating") -> Values:
    """Discounted cumulative gain: Σ_{k≤n} g(k) / log2(k + 1); 0 for items without a test rating.

    An overflow, such as of 2^r − 1 for a rating above 1,023, is an error.
    """
    gains = gain_of(gain)(judged.judgments)
    return judged.discounted(logarithmic(judged.depth), gains[judged.pointers])


@_graded("nDCG", requires="gains", averages_ties=True)
def ndcg(judged: Judged, *, cutoff: int | None = None, gain: GainName = "rating") -> Values:
    """Normalised DCG: DCG@n divided by that of the ideal list, the user's test ratings in descending order.

    The gain of an item is its test rating (``gain=rating``, trec_eval's), 1 if relevant (``binary``), its test rating
    if relevant (``relevant``), 2^r − 1 (``exp``), 2^(r − threshold + 1) − 1 if relevant (``exprelevant``), or one of
    the scalings of Cañamares et al. (2020): (2^r − 1)/(2^rmax − 1) (``expfull``), (2^(r−1) − 1)/2^(rmax−1) (``exp1``),
    and (2^(r−1) − 1)/(2^(rmax−1) − 1) (``exp1full``). With a cut-off, the ideal list is also cut (trec_eval's
    ``ndcg_cut``); without, it is not (``ndcg``). Undefined if the ideal is 0. Valcarce et al. (2020), equation (5).
    """
    return ndcg_with(judged, cutoff, kept_name(gain), relative_gain_of(gain))


def ndcg_with(
    judged: Judged, cutoff: int | None, name: str | None, gain: Gain, discount: Callable[[int], Values] = logarithmic
) -> Values:
    """Return DCG@n divided by that of the ideal list, with a gain and a discount; see `gains_and_ideal`."""
    gains, ideal = gains_and_ideal(judged.judgments, cutoff, name, gain, discount)
    return ratio(judged.discounted(discount(judged.depth), gains[judged.pointers]), ideal)


def gains_and_ideal(
    judgments: Judgments, cutoff: int | None, name: str | None, gain: Gain, discount: Callable[[int], Values]
) -> tuple[Values, Values]:
    """Return the gain of each judgment, and DCG@n of the ideal list of each user; both are cached under ``name``.

    The gains of a list may all be divided by a constant.
    """
    longest = int(judgments.n_judged.max(initial=0))
    depth = longest if cutoff is None else min(cutoff, longest)

    def gains(of: Judgments) -> Values:
        return within_reach(of, gain(of))

    return judgments.gains(name, gains), judgments.ideal(name, gains, discount(depth))


@_graded("ERR", requires="gains")
def err(judged: Judged, *, rmax: Literal["dataset", "user"] | float = "dataset") -> Values:
    """Expected reciprocal rank (Chapelle et al. 2009): Σ_k (1/k) G_k Π_{p<k} (1 − G_p), G = (2^r − 1) / 2^rmax.

    ``rmax`` is the highest rating of the test set (``dataset``; Valcarce et al. 2020, equations 7 and 8), that of the
    user (``user``, which reproduces the published numbers of Valcarce et al. 2018), or a number. Every rating counts,
    not only relevant ones; an item without one has G = 0. Undefined if the user has no test rating above 0.
    """
    judgments = judged.judgments
    top: Values | float
    if rmax == "user":
        top = np.maximum(judgments.top_grades, 0.0)[judged.lists]
    elif rmax == "dataset":
        top = judgments.top_grade
    else:
        top = float(rmax)
    with np.errstate(over="ignore"):  # an overflow is above 1, and refused below
        satisfied = over_power(np.maximum(judged.grades, 0.0), top)
    if (satisfied > 1.0).any():
        raise SettingError(
            f"rmax={rmax} of ERR is below the highest rating, {judgments.top_grade:g}; give that or more"
        )
    reached = _product_above(judged, 1.0 - satisfied)
    return np.where(judgments.top_grades > 0, judged.total(satisfied * reached / judged.ranks), np.nan)


def _product_above(judged: Judged, factors: Values) -> Values:
    """Return for each hit the product of the factors of the hits above it in its list."""
    product = np.ones(len(judged))
    here, last = judged.starts, np.append(judged.starts[1:], len(judged)) - 1
    while True:
        going_on = here < last
        here, last = here[going_on] + 1, last[going_on]
        if len(here) == 0:
            return product
        product[here] = product[here - 1] * factors[here - 1]


Persistence = Annotated[float, Limits(above=0, below=1)]


@_graded("RBP", requires="judgments", averages_ties=True)
def rbp(judged: Judged, *, p: Persistence = 0.8, gain: GainName = "binary") -> Values:
    """Rank-biased precision (Moffat and Zobel 2008): (1 − p) Σ_k g_k p^(k−1), g in 0 … 1.

    A user continues from each item to the next with probability p. ``gain`` is ``binary`` (1 if relevant) or a graded
    one with values in 0 … 1 (``expfull``, ``exp1``, ``exp1full``). See ``RBPresidual`` for what unjudged items could
    add. Both are defined for every user with a test rating, relevant or not, since they do not divide by the number of
    relevant items.
    """
    gains = gain_of(gain)(judged.judgments)
    if gains.max(initial=0.0) > 1.0:
        raise SettingError(f"gain={gain} of RBP exceeds 1; use binary, expfull, exp1 or exp1full")
    return judged.discounted(_geometric(judged, p), gains[judged.pointers])


@metric(
    "RBPresidual",
    family="graded",
    requires="judgments",
    zero_if_undefined=False,
    bounds=True,
    averages_ties=True,
    lower_is_better=True,
    between=SHARE,
    aliases=("RBP_residual",),
)
def rbp_residual(judged: Judged, *, p: Persistence = 0.8) -> Values:
    """The most that RBP could still gain: (1 − p) Σ_{unjudged k ≤ d} p^(k−1) + p^d, where d is the length of the list.

    The second term is the tail beyond the list, which is included even if all items of the list are judged.
    """
    weight = _geometric(judged, p)
    whole = 1.0 - np.power(p, judged.lengths.astype(np.float64))
    judged_part = judged.discounted(weight, np.ones(len(judged)))
    return whole - judged_part + np.power(p, judged.lengths.astype(np.float64))


def _geometric(judged: Judged, p: float) -> Values:
    return (1.0 - p) * np.power(float(p), np.arange(judged.depth))

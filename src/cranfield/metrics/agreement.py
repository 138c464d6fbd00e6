"""Agreement with the user's own order: whether the test items are in the order of their ratings.

All of these use condensed lists, which contain only items with a test rating; a cut-off counts these. They need at
least two such items with different ratings. Otherwise there is no order to agree with, and they are undefined (NaN).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import numpy as np

from cranfield._checks import Limits
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values
from cranfield.metrics.correlation import Paired
from cranfield.metrics.definition import metric

_agreement = partial(
    metric,
    family="agreement",
    requires="judged items in the list",
    zero_if_undefined=False,
    bounds=False,
    condensed=True,
    averages_ties=True,
    between=(-1.0, 1.0),
)


def _orders(judged: Judged) -> Paired:
    """Pair the user's ratings (the truth) with the system's order, which has ties if ties are averaged."""

    def pair() -> Paired:
        whole = judged.with_ends_broken()
        ranks = whole.ranks if whole.tied_from is None else whole.tied_from
        return Paired(whole.lists.astype(np.intp), whole.n_lists, whole.grades, -ranks.astype(np.float64))

    return judged.once("orders", pair)


@_agreement("Tau", aliases=("Kendall", "KendallTau", "TauB", "tau-b"))
def tau(judged: Judged) -> Values:
    """Kendall's tau-b between the list and the user's ratings: (C − D) / √((n₀ − t_x)(n₀ − t_y)).

    C and D are the pairs of test items that list and ratings order in the same and in the opposite way, n₀ all
    pairs, t_x and t_y those that have the same rating or the same score.
    """
    return _orders(judged).kendall_tau_b()


@_agreement("TauAP", aliases=("tau-ap", "APcorrelation"))
def tau_ap(judged: Judged, *, ties: Literal["a", "b"] = "a") -> Values:
    """AP correlation (Yilmaz et al. 2008) between the list and the user's ratings: errors at the top weigh more.

    2/(n − 1) Σ_{r≥2} C(r)/(r − 1) − 1, where C(r) is the number of items above rank r with a higher rating. All orders
    of equally rated items are equally likely (``ties=a``), or ties are corrected for as in tau-b (``ties=b``; Urbano
    and Marrero 2017).
    """
    return _orders(judged).tau_ap(ties)


@_agreement("Spearman", aliases=("Rho", "SpearmanRho"))
def spearman(judged: Judged) -> Values:
    """Spearman's rho between the list and the user's ratings: the correlation of the ranks, tied ones averaged."""
    return _orders(judged).spearman()


@_agreement("RBO")
def rbo(
    judged: Judged,
    *,
    p: Annotated[float, Limits(above=0, below=1)] = 0.9,
    ties: Literal["system", "a", "b", "w"] = "system",
) -> Values:
    """Rank-biased overlap (Webber et al. 2010) between the list and the user's ratings: (1 − p) Σ_d p^(d−1) A_d.

    A_d is the overlap of the first d items of both, extrapolated beyond the last; p (φ in Cañamares et al. 2020) is the
    probability of continuing to the next depth. Equally rated items are in the system's order (``ties=system``;
    Cañamares et al. 2020), or are tied as in the variants ``a``, ``b`` or ``w`` of Corsi and Urbano (2024).
    """
    orders = _orders(judged)
    return np.where(orders.defined, orders.rbo(p, "y" if ties == "system" else ties), np.nan)

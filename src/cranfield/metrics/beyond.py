"""Beyond accuracy: properties of the listed items, whether or not the user likes them.

These use whole lists, so their cost grows with the lists, not with the judged items. The catalogue is the given one
together with the items of the test set, or the items of the training and the test set if none is given. An item outside
a given catalogue keeps its place and earns nothing. If ties are averaged, these use the stored order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import IdCounts, Judged
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import SHARE, Pooled, metric
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.training import catalogue, codes_of, dead_items, item_counts, train_of, translated
from cranfield.tables import UNKNOWN, Vocabulary

_beyond = partial(metric, family="beyond-accuracy", zero_if_undefined=False, bounds=False, between=(0.0, np.inf))


@dataclass(frozen=True, eq=False)
class Exposure:
    """The number of lists that contain each item, and the items of the catalogue."""

    shown: IdCounts
    catalogue: Vocabulary

    @classmethod
    def of(cls, judged: Judged) -> Exposure:
        """Count the items of judged lists."""
        items = judged.entries.items
        assert judged.run is not None  # it has entries
        known, dead = judged.run.item_ids, dead_items(judged)
        times = np.bincount(items, minlength=len(known))
        return cls(IdCounts(known, (times if dead is None else np.where(dead, 0, times))[None]), catalogue(judged))

    def __add__(self, other: Exposure) -> Exposure:
        return Exposure(self.shown + other.shown, Vocabulary.union([self.catalogue, other.catalogue]))

    @cached_property
    def of_catalogue(self) -> NDArray[np.int64]:
        """The number of lists that contain each item of the catalogue."""
        codes = codes_of(self.catalogue, self.shown.ids)
        known = codes != UNKNOWN
        times = self.shown.counts[0, known]
        return np.bincount(codes[known], weights=times, minlength=len(self.catalogue)).astype(np.int64)


Property = Callable[[Exposure], float]


def _of_exposure(name: str, **properties: Any) -> Callable[[Property], Property]:
    """Register a metric of the whole system: a function of the exposure of items in all lists."""

    def register(function: Property) -> Property:
        @_beyond(name, requires="nothing", needs=("whole lists",), whole_system=True, **properties)
        @wraps(function)
        def pooled(judged: Judged) -> Pooled:
            return Pooled(Exposure.of(judged), function)

        return function

    return register


@_of_exposure("ItemCoverage", aliases=("CatalogueCoverage", "CatalogCoverage"))
def item_coverage(exposure: Exposure) -> float:
    """Catalogue coverage: the share of the catalogue that is in at least one list."""
    times = exposure.of_catalogue
    return float(np.count_nonzero(times) / len(times)) if len(times) else float("nan")


@_of_exposure("AggregateDiversity", aliases=("AggDiv",))
def aggregate_diversity(exposure: Exposure) -> float:
    """Aggregate diversity: the number of distinct items in the lists; only items of the catalogue, if one is given."""
    return float(np.count_nonzero(exposure.shown.counts))


def _inequality(exposure: NDArray[np.int64]) -> float:
    """Return Σ_j (2j − n − 1) x_(j) / Σ x, x_(j) ascending."""
    ascending, n = np.sort(exposure).astype(np.float64), len(exposure)
    total = ascending.sum()
    return float(((2.0 * np.arange(1, n + 1) - n - 1.0) @ ascending) / total) if total > 0 else float("nan")


@_of_exposure("Gini", lower_is_better=True)
def gini(exposure: Exposure) -> float:
    """Gini index of exposure, an inequality: 0 if all items of the catalogue are shown equally often.

    G = Σ_j (2j − n − 1) x_(j) / (n Σ x), where x_(1) ≤ … ≤ x_(n) are the numbers of times the n items are shown.
    """
    times = exposure.of_catalogue
    return _inequality(times) / max(len(times), 1)


@_of_exposure("GiniDiversity")
def gini_diversity(exposure: Exposure) -> float:
    """Gini diversity as in RankSys: 1 − (1/(n − 1)) Σ_j (2j − n − 1) p_(j), p_(j) the share of the j-th item.

    1 if all items of the catalogue are shown equally often, 0 if all lists show one item.
    """
    times = exposure.of_catalogue
    return 1.0 - _inequality(times) / (len(times) - 1) if len(times) > 1 else float("nan")


@_of_exposure("Entropy")
def entropy(exposure: Exposure) -> float:
    """Shannon entropy of exposure: −Σ_i p_i log2 p_i, where p_i is the item's share of all list entries, in bits."""
    times = exposure.of_catalogue
    if times.sum() == 0:
        return float("nan")
    share = times[times > 0] / times.sum()
    return float(-(share @ np.log2(share))) + 0.0


# In a spelling, ``none`` is parsed as None.
Discount = Literal["none", "log"] | None


def _mean_novelty(judged: Judged, novelty: Values, discount: Discount, relevant: bool) -> Values:
    """Return Σ_k disc(k) rel_k novelty_k / Σ_k disc(k) over the ranks of each list; NaN for an empty list."""
    discount = discount or "none"
    depth, dead = judged.depth, dead_items(judged)
    novelty = novelty if dead is None else np.where(dead, 0.0, novelty)
    by_rank = np.ones(depth) if discount == "none" else logarithmic(depth)
    whole = np.append(0.0, np.cumsum(by_rank))[judged.lengths]
    if relevant:
        assert judged.run is not None
        assert judged.places is not None
        gained = judged.discounted(by_rank, novelty[judged.run.items[judged.places]] * judged.relevant)
    else:
        entries = judged.entries
        worth = novelty[entries.items.astype(np.intp)]  # indexing with another type takes three times as long
        if discount != "none":
            worth *= by_rank[entries.ranks - 1]
        gained = entries.total(worth, judged.n_lists)
    return ratio(gained, whole)


def _train_counts(judged: Judged, metric_name: str) -> Values:
    """Return the number of training ratings of each item of the run; NaN if it has none."""
    train = train_of(judged, metric_name)
    assert judged.run is not None
    counts = translated(item_counts(judged, metric_name), train.item_ids, judged.run.item_ids, missing=0.0)
    return np.where(counts > 0, counts, np.nan)


@_beyond("EPC", requires="items in the list", needs=("train", "whole lists"), between=SHARE)
def expected_popularity_complement(judged: Judged, *, discount: Discount = "none", relevant: bool = False) -> Values:
    """Expected popularity complement, a novelty: the mean over the list of 1 − |U_i|/|U|.

    |U_i| of the |U| training users rated item i; 1 for an item nobody rated, 0 for one outside the given catalogue.
    ``discount=log`` weighs rank k by 1/log2(k + 1); with ``relevant=true`` only relevant items count. Vargas and
    Castells (2011).
    """
    users = max(int(np.count_nonzero(train_of(judged, "EPC").user_counts)), 1)
    novelty = 1.0 - np.nan_to_num(_train_counts(judged, "EPC")) / users
    return _mean_novelty(judged, novelty, discount, relevant)


@_beyond("EFD", requires="items in the list", needs=("train", "whole lists"))
def expected_free_discovery(judged: Judged, *, discount: Discount = "none", relevant: bool = False) -> Values:
    """Expected free discovery, a novelty: the mean over the list of −log2(|U_i| / Σ_j |U_j|), in bits.

    An item without training ratings counts as the rarest that has one; 0 for one outside the given catalogue.
    Parameters as in ``EPC``.
    """
    counts = _train_counts(judged, "EFD")
    train = train_of(judged, "EFD")
    rarest = train.item_counts[train.item_counts > 0].min(initial=max(len(train), 1))
    novelty = -np.log2(np.where(np.isnan(counts), rarest, counts) / max(len(train), 1))
    return _mean_novelty(judged, novelty, discount, relevant)


@_beyond("Unjudged", requires="items in the list", averages_ties=True, lower_is_better=True, between=SHARE)
def unjudged(judged: Judged) -> Values:
    """The share of a list that has no test rating (Cañamares et al. 2020, Figure 3); undefined for an empty list."""
    known = judged.discounted(np.ones(judged.depth), np.ones(len(judged)))
    return ratio(judged.lengths - known, judged.lengths)


@_beyond("FullRank", requires="judged items in the list", condensed=True, needs=("whole lists",), lower_is_better=True)
def full_rank(judged: Judged, *, cutoff: int | None = None, which: Literal["mean", "last"] = "mean") -> Values:
    """The mean rank in the full list of the first n items of the condensed list.

    With ``which=last``, only the rank of the n-th item, a point of Figure 5 of Cañamares et al. (2020). Undefined for a
    list with fewer than n judged items.
    """
    entries = judged.entries
    assert judged.offsets is not None
    assert judged.run is not None  # it has entries
    offsets, full_ranks = judged.offsets[entries.lists], judged.run.ranks
    ranks = entries.places - offsets + 1.0 if full_ranks is None else full_ranks[entries.places].astype(np.float64)
    counts = np.bincount(entries.lists, minlength=judged.n_lists)
    if which == "last":
        ranks = np.where(entries.ranks == judged.lengths[entries.lists], ranks, 0.0)
    total = np.bincount(entries.lists, weights=ranks, minlength=judged.n_lists)
    enough = counts >= (1 if cutoff is None else cutoff)
    return np.where(enough, total if which == "last" else total / np.maximum(counts, 1), np.nan)


@_beyond("Coverage", requires="nothing", averages_ties=True, cutoff="required", between=SHARE)
def coverage(judged: Judged, *, cutoff: int) -> Values:
    """The share of n ranks that a system fills: Coverage@n = min(n, length)/n (Cañamares et al. 2020, decision C4)."""
    return judged.lengths / cutoff


@_beyond("UserCoverage", requires="nothing", averages_ties=True, cutoff="none", between=SHARE)
def user_coverage(judged: Judged) -> Values:
    """1 if the user gets a list with at least one item, otherwise 0: Coverage@1."""
    return (judged.lengths > 0).astype(np.float64)

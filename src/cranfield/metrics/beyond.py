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

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.judgments import Entries, IdCounts, Judged
from cranfield.metrics.arithmetic import Values, expanded, power_of_two, ratio
from cranfield.metrics.definition import SHARE, Pooled, metric
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.training import catalogue, codes_of, dead_items, item_counts, train_of, translated
from cranfield.tables import UNKNOWN, Vocabulary

# Approximate number of cells of a block of lists × training users.
_CELLS = 1 << 22
# Number of list items looked up at a time, so that they stay in the processor's cache.
_PAIRS = 1 << 15

_beyond = partial(
    metric, family="beyond-accuracy", role="description", zero_if_undefined=False, bounds=False, between=(0.0, np.inf)
)


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


@_beyond("RepeatShare", requires="items in the list", needs=("train", "whole lists"), between=SHARE)
def repeat_share(judged: Judged) -> Values:
    """The share of a list that its user had before: |L ∩ S_u| / |L|, S_u the user's training items (Li et al. 2023)."""
    train, judgments, entries = train_of(judged, "RepeatShare"), judged.judgments, judged.entries
    assert judged.run is not None  # it has entries
    users = codes_of(train.user_ids, judgments.user_ids)[judgments.users]
    items = codes_of(train.item_ids, judged.run.item_ids)
    had = train.places(users[entries.lists], items[entries.items]) >= 0
    return ratio(np.bincount(entries.lists, had, minlength=judgments.n_lists), judged.lengths)


@_beyond("Contribution", requires="relevant items", needs=("train",), zero_if_undefined=True, between=SHARE)
def contribution(judged: Judged, *, of: Literal["repeated", "new"] = "repeated") -> Values:
    """The part of Recall@n from items that the user had before: |L ∩ T_u ∩ S_u| / |T_u| (Li et al. 2023).

    S_u are the user's training items. With ``of=new``, the part from the other items; the two add up to Recall@n.
    """
    had = judged.judgments.had_in(train_of(judged, "Contribution"))[judged.pointers]
    return ratio(judged.total(where=judged.relevant & (had == (of == "repeated"))), judged.n_relevant)


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


@_beyond("Coverage", role="guardrail", requires="nothing", averages_ties=True, cutoff="required", between=SHARE)
def coverage(judged: Judged, *, cutoff: int) -> Values:
    """The share of n ranks that a system fills: Coverage@n = min(n, length)/n (Cañamares et al. 2020, decision C4)."""
    return judged.lengths / cutoff


@_beyond("UserCoverage", role="guardrail", requires="nothing", averages_ties=True, cutoff="none", between=SHARE)
def user_coverage(judged: Judged) -> Values:
    """1 if the user gets a list with at least one item, otherwise 0: Coverage@1."""
    return (judged.lengths > 0).astype(np.float64)


@_beyond(
    "ILD",
    role="guardrail",
    requires="items in the list",
    needs=("whole lists", "similarity"),
    between=(-np.inf, np.inf),
    aliases=("IntraListDiversity",),
)
def intra_list_diversity(judged: Judged) -> Values:
    """Intra-list diversity: the mean of 1 − sim over the pairs of a list, 2/(n(n − 1)) Σ_{k<l} [1 − sim(i_k, i_l)].

    ``similarity`` of the measurement is a function of two Series of item ids, or a square array with a row for each
    item of the test set's vocabulary. Without it, sim is the cosine of the items' training ratings. An unknown item has
    similarity 0 to all others. A pair with an item outside the given catalogue, or with a place that the ranks leave
    out, counts 0. Undefined for a list of fewer than two items.
    """
    similarity = judged.context.similarity
    entries, dead = judged.entries, dead_items(judged)
    if dead is not None:  # only the pairs of live items can differ
        entries = entries.only(~dead[entries.items])
    if similarity is None:
        total = _sum_of_cosines(judged, entries, train_of(judged, "ILD without similarity"))
    elif callable(similarity):
        total = _sum_of_function(judged, entries, similarity)
    else:
        total = _sum_of_table(judged, entries, _table(judged, similarity))
    known = _pairs(np.bincount(entries.lists, minlength=judged.n_lists))
    return ratio(known - total, _pairs(judged.lengths))


def _pairs(sizes: NDArray[Any]) -> Values:
    sizes = sizes.astype(np.float64)
    return sizes * (sizes - 1.0) / 2.0


def _sum_of_function(judged: Judged, entries: Entries, similarity: Callable[[Any, Any], Any]) -> Values:
    assert judged.run is not None
    ids = judged.run.item_ids
    total = np.zeros(judged.n_lists)
    for _, below, step in expanded(entries.above):
        first, second = (ids.ids(entries.items[places]) for places in (below - 1 - step, below))
        with np.errstate(all="warn"):
            values = np.asarray(similarity(first, second), dtype=np.float64)
        if values.shape != (len(first),):
            raise SettingError(
                f"the similarity function returned {values.shape} values for {len(first):,} pairs of items; "
                "return one for each pair"
            )
        _check_finite(values)
        total += np.bincount(entries.lists[below], weights=values, minlength=judged.n_lists)
    return total


def _table(judged: Judged, matrix: Any) -> Values:
    judged.judgments.need_all_users("ILD with an array of similarities")
    if hasattr(matrix, "toarray"):
        matrix = matrix.toarray()
    try:
        table, n_items = np.asarray(matrix, dtype=np.float64), len(judged.judgments.item_ids)
    except (TypeError, ValueError):
        raise SettingError(
            f"a similarity of type {type(matrix).__name__} holds no numbers; give a square array, or a function of two "
            "arrays of item ids"
        ) from None
    if table.shape != (n_items, n_items):
        raise SettingError(
            f"the similarity has the shape {table.shape}; give a square array with a row for each of the test set's "
            f"{n_items:,} items, or a function of two arrays of item ids"
        )
    _check_finite(table)
    return table


def _check_finite(similarities: Values) -> None:
    if not np.isfinite(similarities).all():
        wrong = similarities[~np.isfinite(similarities)][0]
        raise SettingError(f"a similarity is {wrong}; give a finite number for every pair of items")


def _in_reach(train: Ratings) -> Values:
    """Return the ratings, scaled by a power of two if those of an item are too large or small to be squared."""
    values = train.values.astype(np.float64)
    largest = np.zeros(train.n_items)
    np.maximum.at(largest, train.items, np.abs(values))
    powers = power_of_two(largest)
    return np.ldexp(values, -powers[train.items]) if powers.any() else values


def _sum_of_table(judged: Judged, entries: Entries, table: Values) -> Values:
    """Return Σ_{k<l} sim(i_k, i_l) of each list.

    Lists of similar length form a matrix, and their pairs of each distance l − k are looked up together.
    """
    assert judged.run is not None
    codes = codes_of(judged.judgments.item_ids, judged.run.item_ids)[entries.items].astype(np.intp)
    known = codes != UNKNOWN
    codes = codes[known]
    sizes = np.bincount(entries.lists[known], minlength=judged.n_lists)
    starts = np.cumsum(sizes) - sizes
    magnitude = np.where(sizes > 1, np.frexp(sizes)[1], 0)
    total = np.zeros(judged.n_lists)
    for size in np.unique(magnitude[magnitude > 0]):
        alike = np.flatnonzero(magnitude == size)
        alike = alike[np.argsort(-sizes[alike], kind="stable")]
        for block in np.array_split(alike, -(-len(alike) * int(sizes[alike[0]]) // _PAIRS)):
            places = np.arange(sizes[block[0]])[:, None]
            # Shorter lists are padded with their last item, which is not counted.
            items = codes[starts[block] + np.minimum(places, sizes[block] - 1)]
            total[block] = _sum_by_distance(items, sizes[block], table)
    return total


def _sum_by_distance(items: NDArray[np.intp], sizes: NDArray[np.int64], table: Values) -> Values:
    """Return the sums of the lists in the columns of ``items``, which are sorted by descending length."""
    rows, cells = items * len(table), table.reshape(-1)
    even = bool(sizes[-1] == sizes[0])
    total = np.zeros(len(sizes))
    for distance in range(1, int(sizes[0])):
        values = cells.take(rows[:-distance] + items[distance:])
        if not even:
            values[np.arange(len(values))[:, None] >= sizes - distance] = 0.0
        total += values.sum(axis=0)
    return total


def _sum_of_cosines(judged: Judged, entries: Entries, train: Ratings) -> Values:
    """Return Σ_{k<l} v_k · v_l = (|Σ_k v_k|² − Σ_k |v_k|²)/2, where v are the items' ratings scaled to length 1.

    This needs no loop over pairs, so the cost is linear in the length of the lists.
    """
    from scipy import sparse

    assert judged.run is not None
    values = _in_reach(train)
    lengths = np.sqrt(np.bincount(train.items, weights=np.square(values), minlength=train.n_items))
    scaled = values / np.where(lengths > 0, lengths, 1.0)[train.items]
    vectors = train.matrix(scaled).T.tocsr()
    codes = codes_of(train.item_ids, judged.run.item_ids)[entries.items]
    known = (codes != UNKNOWN) & (lengths[codes] > 0)
    lists, codes = entries.lists[known], codes[known]
    total = np.zeros(judged.n_lists)
    block = max(1, _CELLS // max(train.n_users, 1))
    for first in range(0, judged.n_lists, block):
        start, stop = np.searchsorted(lists, [first, first + block])
        rows = lists[start:stop] - first
        held = sparse.csr_array(
            (np.ones(stop - start), (rows, codes[start:stop])),
            shape=(min(block, judged.n_lists - first), train.n_items),
        )
        sums = held @ vectors
        sums.data *= sums.data
        squares = sums.sum(axis=1)
        total[first : first + block] = (
            np.asarray(squares).reshape(-1) - np.bincount(rows, minlength=held.shape[0])
        ) / 2
    return total

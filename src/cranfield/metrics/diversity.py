"""Intra-list diversity: how different the items of a list are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.judgments import Entries, Judged
from cranfield.metrics.arithmetic import Values, expanded, power_of_two, ratio
from cranfield.metrics.definition import metric
from cranfield.metrics.training import codes_of, dead_items, train_of
from cranfield.tables import UNKNOWN

# Approximate number of cells of a block of lists × training users.
_CELLS = 1 << 22
# Number of list items looked up at a time, so that they stay in the processor's cache.
_PAIRS = 1 << 15


@metric(
    "ILD",
    family="beyond-accuracy",
    requires="items in the list",
    zero_if_undefined=False,
    bounds=False,
    needs=("whole lists", "similarity"),
    aliases=("IntraListDiversity",),
)
def intra_list_diversity(judged: Judged) -> Values:
    """Intra-list diversity: the mean of 1 − sim over the pairs of a list, 2/(n(n − 1)) Σ_{k<l} [1 − sim(i_k, i_l)].

    ``similarity`` of the measurement is a function of two Series of item ids, or a square array with a row for each
    item of the test set's vocabulary. Without it, sim is the cosine of the items' training ratings. An unknown item has
    similarity 0 to all others. A pair with an item outside the given catalogue, or with a place that the ranks leave
    out, counts 0. Undefined for a list of fewer
    than two items.
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

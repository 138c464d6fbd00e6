"""Intra-list diversity: how unlike each other the items of a list are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cranfield._errors import SettingError
from cranfield.data import UNKNOWN, Ratings
from cranfield.measure._blocks import expanded
from cranfield.measure.judged import Entries, Judged
from cranfield.measure.metric import Values, metric
from cranfield.measure.metrics._train import train_of

# A block of lists × training users has about this many cells.
_CELLS = 1 << 22


@metric("ILD", family="beyond-accuracy", needs=("whole lists", "similarity"), aliases=("IntraListDiversity",))
def intra_list_diversity(judged: Judged) -> Values:
    """Intra-list diversity: the mean of 1 − sim over the pairs of a list, 2/(n(n − 1)) Σ_{k<l} [1 − sim(i_k, i_l)].

    ``similarity`` of the measurement is a function of two Series of item ids, or a square array with a row for each
    item of the test set's vocabulary. Without it, sim is the cosine of the items' training ratings. An item that is
    unknown there is like no other. Undefined for a list of fewer than two items.
    """
    similarity = None if judged.context is None else judged.context.similarity
    entries = judged.entries
    if similarity is None:
        total = _sum_of_cosines(judged, entries, train_of(judged, "ILD without similarity"))
    elif callable(similarity):
        total = _sum_over_pairs(judged, entries, _by_function(judged, similarity))
    else:
        total = _sum_over_pairs(judged, entries, _by_matrix(judged, similarity))
    lengths = judged.lengths.astype(np.float64)
    pairs = lengths * (lengths - 1.0) / 2.0
    return 1.0 - np.divide(total, pairs, out=np.full(judged.n_lists, np.nan), where=pairs > 0)


Similarity = Callable[[Any, Any], Values]


def _by_function(judged: Judged, function: Callable[[Any, Any], Any]) -> Similarity:
    assert judged.run is not None
    ids = judged.run.item_ids

    def similarity(first: Any, second: Any) -> Values:
        values = np.asarray(function(ids.ids(first), ids.ids(second)), dtype=np.float64)
        if values.shape != np.shape(first):
            raise SettingError(
                f"the similarity function returned {values.shape} values for {len(first):,} pairs of items; "
                "return one for each pair"
            )
        return values

    return similarity


def _by_matrix(judged: Judged, matrix: Any) -> Similarity:
    assert judged.run is not None
    table, items = np.asarray(matrix, dtype=np.float64), judged.judgments.item_ids
    if table.shape != (len(items), len(items)):
        raise SettingError(
            f"the similarity has the shape {table.shape}; give a square array with a row for each of the test set's "
            f"{len(items):,} items, or a function of two arrays of item ids"
        )
    codes = items.codes(judged.run.item_ids.all)

    def similarity(first: Any, second: Any) -> Values:
        rows, columns = codes[first], codes[second]
        return np.where((rows == UNKNOWN) | (columns == UNKNOWN), 0.0, table[rows, columns])

    return similarity


def _sum_over_pairs(judged: Judged, entries: Entries, similarity: Similarity) -> Values:
    total = np.zeros(judged.n_lists)
    for _, below, step in expanded(entries.ranks - 1):
        values = similarity(entries.items[below - 1 - step], entries.items[below])
        total += np.bincount(entries.lists[below], weights=values, minlength=judged.n_lists)
    return total


def _sum_of_cosines(judged: Judged, entries: Entries, train: Ratings) -> Values:
    """Return Σ_{k<l} v_k · v_l = (|Σ_k v_k|² − Σ_k |v_k|²)/2, v being the items' ratings scaled to length 1.

    So no pair is looked at, and the cost grows linearly with the lists.
    """
    from scipy import sparse

    assert judged.run is not None
    lengths = np.sqrt(
        np.bincount(train.items, weights=np.square(train.values, dtype=np.float64), minlength=train.n_items)
    )
    scaled = train.values / np.where(lengths > 0, lengths, 1.0)[train.items]
    vectors = train.matrix(scaled.astype(np.float64)).T.tocsr()
    codes = train.item_ids.codes(judged.run.item_ids.all)[entries.items]
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

"""Counts of ids that add up over parts of the users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.tables import UNKNOWN, Vocabulary


@dataclass(frozen=True, eq=False)
class IdCounts:
    """Some counts of each id, as rows × ids.

    Examples
    --------
    >>> x, y = (IdCounts(Vocabulary.of(ids), np.array([[1, 2]])) for ids in (["a", "b"], ["b", "c"]))
    >>> (x + y).ids.all.to_list(), (x + y).counts.tolist()
    (['a', 'b', 'c'], [[1, 3, 2]])
    >>> (x + x).counts.tolist()
    [[2, 4]]
    """

    ids: Vocabulary
    counts: NDArray[np.int64]

    def __add__(self, other: IdCounts) -> IdCounts:
        codes = self.ids.translation(other.ids)
        if codes is None:
            return IdCounts(self.ids, self.counts + other.counts)
        mine, ids = self, self.ids
        if (codes == UNKNOWN).any():
            ids = Vocabulary.union([self.ids, other.ids])
            mine, codes = self.over(ids), ids.translation(other.ids)
        counts = mine.counts.copy()
        counts[:, slice(None) if codes is None else codes] += other.counts
        return IdCounts(ids, counts)

    def over(self, ids: Vocabulary) -> IdCounts:
        """Return the counts over a vocabulary that contains all of the ids."""
        codes = ids.translation(self.ids)
        counts = np.zeros((len(self.counts), len(ids)), dtype=np.int64)
        counts[:, slice(None) if codes is None else codes] = self.counts
        return IdCounts(ids, counts)

    def only(self, mask: NDArray[np.bool_]) -> IdCounts:
        """Return the counts of some of the ids."""
        return IdCounts(Vocabulary(self.ids.all.filter(pl.Series(mask))), self.counts[:, mask])

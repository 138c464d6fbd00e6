"""UIR-Item: the unified relevance model of users and items (Wang, de Vries and Reinders 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders._sparse import dense_product, ones_like, rating_matrix
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks, each


@register("uir")
@dataclass
class UserItemRelevance(Model):
    r"""The popularity of the item, increased by each profile item that often occurs with it.

    .. math::
        s(u, i) = \log P(i) + \sum_{b \in I_u,\, c(b, i) > 0}
                  \log \Bigl(1 + \frac{(1 - λ)\, c(b, i) / c(i)}{λ\, P(b)}\Bigr), \qquad P(i) = c(i) / \sum_j c(j)

    c(i) counts the raters of i and c(b, i) those of both. NaN for an item without training ratings.

    Parameters
    ----------
    rest
        1 − λ, the weight of the co-occurrences. The default comes within 1e-4 of the published run on MovieLens 1M,
        which is close to popularity; a larger weight favours rare items.
    """

    rest: float = setting(1e-7, above=0, below=1)

    def _fit(self, train: Ratings) -> None:
        from scipy import sparse

        self._rated = ones_like(rating_matrix(train))
        counts = train.item_counts.astype(np.float64)
        share = counts / counts.sum()
        raters = self._rated.T.tocsr()
        odds = self.rest / (1 - self.rest)

        def one_block(block: slice) -> Any:
            together = (raters[block] @ self._rated).tocsr()
            row = np.repeat(np.arange(block.start, block.stop), np.diff(together.indptr))
            # Single precision is enough, since these corrections are small compared with log P(i).
            data = np.log1p(odds * together.data / counts[together.indices] / share[row]).astype(np.float32)
            return sparse.csr_array((data, together.indices.astype(np.int32), together.indptr), shape=together.shape)

        pieces = each(one_block, blocks(train.n_items, train.n_items), "Counting co-occurrences")
        self._gains = sparse.vstack(pieces, format="csr")
        with np.errstate(divide="ignore"):
            self._prior = np.where(counts > 0, np.log(share), np.nan)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self._prior + dense_product(self._rated[users], self._gains))

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._prior, (len(users), 1))

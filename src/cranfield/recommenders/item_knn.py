"""Item-based nearest neighbours with tf-idf or BM25 weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders._sparse import (
    dense_product,
    ones_like,
    product_or_nan,
    rating_matrix,
    row_of_entries,
    unit_rows,
    with_data,
)
from cranfield.recommenders.model import setting
from cranfield.recommenders.neighbourhood import nearest_rows
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register


@register("itemknn")
@dataclass
class ItemNeighbours(ProfileModel):
    r"""The sum of similarities of the target item to the user's items, over the k nearest items of each.

    .. math:: s(u, i) = \sum_{j \in I_u,\, i \in N_k(j)} sim(j, i)\, r_{uj}

    With weights w_iu for item i and user u, sim is the inner product of the items' weight vectors, divided by their
    lengths except under BM25. A user is a term, an item a document: with N items, n_u of them rated by u, and
    l_i the sum of i's ratings,

    ======  =====================================================================================
    cosine  w = r
    tfidf   w = √r · log(N / (1 + n_u))
    bm25    w = r (k1 + 1) / (k1 (1 − b + b l_i / mean l) + r) · log(N / (1 + n_u))
    ======  =====================================================================================

    NaN if none of the user's items has the target among its neighbours.

    Parameters
    ----------
    k
        The number of neighbours, including the item itself.
    weighting
        ``cosine``, ``tfidf`` or ``bm25``.
    k1, b
        The parameters of BM25.
    binary
        Whether every rating counts 1.
    """

    needs_positive: ClassVar[bool] = True

    k: int = setting(20, low=1)
    weighting: str = setting("bm25", choices=("cosine", "tfidf", "bm25"))
    k1: float = setting(1.2, low=0)
    b: float = setting(0.75, low=0, high=1)
    binary: bool = setting(False)

    def _fit(self, train: Ratings) -> None:
        ratings = rating_matrix(train)
        self._ratings = ones_like(ratings) if self.binary else ratings
        weights = self._weights(self._ratings.T.tocsr())
        by_user = weights.T.tocsr()
        self._similarity = nearest_rows(
            train.n_items, self.k, lambda block: dense_product(weights[block], by_user), own=True
        )

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._score_profiles(self._ratings[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        return product_or_nan(ones_like(profiles) if self.binary else profiles, self._similarity)

    def _weights(self, raters: Any) -> Any:
        """Return the items × users matrix of weights."""
        n_items, n_users = raters.shape
        if self.weighting == "cosine":
            return unit_rows(raters)
        rarity = np.log(n_items) - np.log1p(np.bincount(raters.indices, minlength=n_users))
        if self.weighting == "tfidf":
            return unit_rows(with_data(raters, np.sqrt(raters.data) * rarity[raters.indices]))
        length = np.asarray(raters.sum(axis=1)).reshape(-1)
        norm = (1 - self.b) + self.b * length / (length.mean() or 1)
        # A rating of 0 has weight 0, even with k1=0.
        below = np.where(raters.data > 0, self.k1 * norm[row_of_entries(raters)] + raters.data, 1)
        saturated = raters.data * (self.k1 + 1) / below
        return with_data(raters, saturated * rarity[raters.indices])

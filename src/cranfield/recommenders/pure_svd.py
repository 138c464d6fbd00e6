"""PureSVD: a truncated SVD of the ratings, with zeros for missing ones (Cremonesi et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained, ones_like, rating_matrix, without_rounding_errors
from cranfield.recommenders.factors import average_profile
from cranfield.recommenders.model import setting
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register


@register("puresvd")
@dataclass
class PureSVD(ProfileModel):
    r"""The user's ratings projected on the f leading right singular vectors of the rating matrix.

    .. math:: R \approx U Σ Q^T, \qquad s(u, \cdot) = r_u Q Q^T

    Missing ratings count as 0. NaN for users and items without training ratings.

    Parameters
    ----------
    factors
        f; None for the average number of training ratings per user, at most 30, which reproduces the published run on
        MovieLens 1M. If a user has fewer ratings than factors, the list is little better than chance.
    binary
        Whether every rating counts 1.
    """

    factors: int | None = setting(None, low=1, or_none=int)
    binary: bool = setting(False)

    def _fit(self, train: Ratings) -> None:
        ratings = rating_matrix(train)
        self._ratings = ones_like(ratings) if self.binary else ratings
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        self._factors = average_profile(train, at_most=30) if self.factors is None else self.factors
        self._items = np.ascontiguousarray(self._vectors().T)

    def _vectors(self) -> NDArray[np.float64]:
        """Return the leading right singular vectors, one per row."""
        from scipy.sparse.linalg import ArpackError, svds

        if not self._ratings.data.any():
            return np.zeros((1, self._ratings.shape[1]))
        least = min(self._ratings.shape)
        if self._factors >= least:
            return np.asarray(np.linalg.svd(self._ratings.toarray(), full_matrices=False)[2][: self._factors])

        def found(start: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(svds(self._ratings, k=self._factors, v0=start, return_singular_vectors="vh")[2])

        # A fixed start makes the vectors reproducible.
        try:
            return found(np.ones(least))
        except ArpackError:  # a vector of ones fails if the ratings sum to 0
            return found(stream(0, "puresvd").random(least))

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._score_profiles(self._ratings[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        rows = ones_like(profiles) if self.binary else profiles
        block = without_rounding_errors((rows @ self._items) @ self._items.T)
        return nan_for_untrained(block, self._item_counts, np.diff(rows.indptr))

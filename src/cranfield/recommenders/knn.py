"""Classic user-based nearest neighbours, as in Cañamares et al. (2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders._sparse import dense_product, ones_like, product_or_nan, rating_matrix, unit_rows, with_data
from cranfield.recommenders.model import setting
from cranfield.recommenders.neighbourhood import nearest_columns, nearest_rows
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks

# Relative rounding error of sums of products.
_ROUNDING = 1e-12


@register("knn")
@dataclass
class UserNeighbours(ProfileModel):
    r"""The ratings of the k most similar users, weighted by their similarity and not normalised.

    .. math:: s(u, i) = \sum_{v \in N_k(u),\, v \text{ rated } i} sim(u, v)^q\, r_{vi}

    NaN for an item that no neighbour rated. Neighbours have a positive similarity. If ``normalised``, the sum is
    divided by the sum of sim(u, v)^q over the same neighbours.

    Parameters
    ----------
    k
        The number of neighbours.
    similarity
        ``cosine`` over all items, with 0 for missing ratings; ``pearson`` over the items that both rated; or
        ``jaccard``.
    overlap
        The minimum number of items that two neighbours must both have rated.
    q
        The exponent of the similarity.
    binary
        Whether every rating counts 1, in the similarity and in the sum.
    normalised
        Whether the sum is divided by the sum of the similarities.
    min_neighbours
        The minimum number of neighbours who rated an item; NaN below.
    ratings
        What is summed: the ``raw`` ratings, or ``truncated`` ones, max(r − threshold + 1, 0) (Cañamares and Castells
        2020). The similarity is that of the raw ratings.
    threshold
        The lowest rating that counts if ratings are truncated.

    Examples
    --------
    >>> train = Ratings.of(["ann", "ann", "bob", "bob"], ["x", "y", "x", "z"], [3, 4, 4, 3])
    >>> UserNeighbours(k=1).fit(train).score([0]).round(2).tolist()
    [[1.92, nan, 1.44]]
    """

    k: int = setting(100, low=1)
    similarity: str = setting("cosine", choices=("cosine", "pearson", "jaccard"))
    overlap: int = setting(0, low=0)
    q: float = setting(1.0, low=0)
    binary: bool = setting(False)
    normalised: bool = setting(False)
    min_neighbours: int = setting(1, low=1)
    ratings: str = setting("raw", choices=("raw", "truncated"))
    threshold: float = setting(4.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.binary and self.ratings == "truncated":
            raise SettingError("binary=true and ratings=truncated of knn exclude each other; give one of them")

    def _fit(self, train: Ratings) -> None:
        ratings = rating_matrix(train)
        self._ratings = ones_like(ratings) if self.binary else ratings
        near = nearest_rows(train.n_users, self.k, self._similarity(self._ratings))
        self._neighbours = with_data(near, near.data**self.q)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._score_by(self._neighbours[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        """Score by the training users nearest to each profile, including a user with the same ratings."""
        similarity = self._similarity(ones_like(profiles) if self.binary else profiles)
        scored = []
        for piece in blocks(profiles.shape[0], self._ratings.shape[0]):
            near = nearest_columns(similarity(piece), self.k)
            scored.append(self._score_by(with_data(near, near.data**self.q)))
        return np.concatenate(scored) if scored else np.zeros(profiles.shape)

    def _score_by(self, near: Any) -> NDArray[np.float64]:
        scores = product_or_nan(near, self._summed())
        if self.normalised:
            weights = dense_product(near, ones_like(self._ratings))
            np.divide(scores, weights, out=scores, where=weights > 0)
        if self.min_neighbours > 1:
            scores[dense_product(ones_like(near), ones_like(self._ratings)) < self.min_neighbours] = np.nan
        return scores

    def _summed(self) -> Any:
        """Return the values of the neighbours' ratings in the sum."""
        if self.ratings == "raw":
            return self._ratings
        return with_data(self._ratings, np.maximum(self._ratings.data - self.threshold + 1.0, 0.0))

    def _similarity(self, profiles: Any) -> Callable[[slice], NDArray[np.float64]]:
        """Return a function that computes the similarities of a block of profiles to all training users."""
        kind = {"cosine": _cosine, "pearson": _pearson, "jaccard": _jaccard}[self.similarity]
        similarity = kind(profiles, self._ratings)
        if not self.overlap:
            return similarity
        common = _common(profiles, self._ratings)
        return lambda block: np.where(common(block) >= self.overlap, similarity(block), 0)


class _Products:
    """The products of a block of rows with all rows of another matrix."""

    def __init__(self, left: Any, right: Any) -> None:
        self._left, self._right = left, right.T.tocsr()

    def __call__(self, block: slice) -> NDArray[np.float64]:
        return dense_product(self._left[block], self._right)


_Similarity = Callable[[slice], NDArray[np.float64]]


def _common(profiles: Any, ratings: Any) -> _Similarity:
    """Count the items that both users rated."""
    return _Products(ones_like(profiles), ones_like(ratings))


def _cosine(profiles: Any, ratings: Any) -> _Similarity:
    return _Products(unit_rows(profiles), unit_rows(ratings))


def _jaccard(profiles: Any, ratings: Any) -> _Similarity:
    own_sizes, sizes, common = np.diff(profiles.indptr), np.diff(ratings.indptr), _common(profiles, ratings)

    def similarity(block: slice) -> NDArray[np.float64]:
        both = common(block)
        either = own_sizes[block][:, None] + sizes[None, :] - both
        return np.asarray(both / np.maximum(either, 1))

    return similarity


def _pearson(profiles: Any, ratings: Any) -> _Similarity:
    own_rated, rated, common = ones_like(profiles), ones_like(ratings), _common(profiles, ratings)
    own_squared, squared = with_data(profiles, profiles.data**2), with_data(ratings, ratings.data**2)
    products = _Products(profiles, ratings)
    own_sum, their_sum = _Products(profiles, rated), _Products(own_rated, ratings)
    own_square, their_square = _Products(own_squared, rated), _Products(own_rated, squared)

    def similarity(block: slice) -> NDArray[np.float64]:
        count, own, theirs = common(block), own_sum(block), their_sum(block)
        own_squares, their_squares = count * own_square(block), count * their_square(block)
        own_spread, their_spread = own_squares - own**2, their_squares - theirs**2
        covariance = count * products(block) - own * theirs
        # Without variance or covariance, only a rounding error is left.
        nothing = (own_spread <= _ROUNDING * own_squares) | (their_spread <= _ROUNDING * their_squares)
        nothing |= np.abs(covariance) <= _ROUNDING * np.sqrt(own_squares * their_squares)
        return np.asarray(np.where(nothing, 0, covariance / np.sqrt(np.where(nothing, 1, own_spread * their_spread))))

    return similarity

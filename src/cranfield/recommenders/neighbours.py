"""Nearest neighbours: of users, of items, and over residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders.matrices import (
    dense_product,
    nearest_columns,
    nearest_rows,
    ones_like,
    product_or_nan,
    rating_matrix,
    row_of_entries,
    row_products,
    unit_rows,
    with_data,
)
from cranfield.recommenders.model import Model, ProfileModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks

# Relative rounding error of sums of products.
_ROUNDING = 1e-12


@register("knn")
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
        self._ratings = rating_matrix(train, binary=self.binary)
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
        summed = self._ratings
        if self.ratings == "truncated":
            summed = with_data(summed, np.maximum(summed.data - self.threshold + 1.0, 0.0))
        scores = product_or_nan(near, summed)
        if self.normalised:
            weights = dense_product(near, ones_like(self._ratings))
            np.divide(scores, weights, out=scores, where=weights > 0)
        if self.min_neighbours > 1:
            scores[dense_product(ones_like(near), ones_like(self._ratings)) < self.min_neighbours] = np.nan
        return scores

    def _similarity(self, profiles: Any) -> Callable[[slice], NDArray[np.float64]]:
        """Return a function that computes the similarities of a block of profiles to all training users."""
        kind = {"cosine": _cosine, "pearson": _pearson, "jaccard": _jaccard}[self.similarity]
        similarity = kind(profiles, self._ratings)
        if not self.overlap:
            return similarity
        common = _common(profiles, self._ratings)
        return lambda block: np.where(common(block) >= self.overlap, similarity(block), 0)


_Similarity = Callable[[slice], NDArray[np.float64]]


def _common(profiles: Any, ratings: Any) -> _Similarity:
    """Count the items that both users rated."""
    return row_products(ones_like(profiles), ones_like(ratings))


def _cosine(profiles: Any, ratings: Any) -> _Similarity:
    return row_products(unit_rows(profiles), unit_rows(ratings))


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
    products = row_products(profiles, ratings)
    own_sum, their_sum = row_products(profiles, rated), row_products(own_rated, ratings)
    own_square, their_square = row_products(own_squared, rated), row_products(own_rated, squared)

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


@register("itemknn")
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
        self._ratings = rating_matrix(train, binary=self.binary)
        weights = self._weights(self._ratings.T.tocsr())
        self._similarity = nearest_rows(train.n_items, self.k, row_products(weights, weights), own=True)

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


_ITEM_DAMPING, _USER_DAMPING = 25, 10


@dataclass(frozen=True)
class Biases:
    r"""The baseline b_ui = μ + b_u + b_i, with damped biases.

    .. math::
        b_i = \frac{\sum_{u \in U_i} (r_{ui} - μ)}{25 + \lvert U_i \rvert}, \qquad
        b_u = \frac{\sum_{i \in I_u} (r_{ui} - μ - b_i)}{10 + \lvert I_u \rvert}
    """

    mean: float
    user: NDArray[np.float64]
    item: NDArray[np.float64]

    @classmethod
    def of(cls, ratings: Any) -> Biases:
        """Return the biases of a users × items matrix of ratings."""
        rows, columns = row_of_entries(ratings), ratings.indices
        users, items = ratings.shape
        mean = float(ratings.data.mean())
        item = np.bincount(columns, ratings.data - mean, items) / (
            _ITEM_DAMPING + np.bincount(columns, minlength=items)
        )
        rest = ratings.data - mean - item[columns]
        user = np.bincount(rows, rest, users) / (_USER_DAMPING + np.bincount(rows, minlength=users))
        return cls(mean, user, item)

    def __call__(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return b_ui for these users and all items."""
        return np.asarray(self.mean + self.user[users][:, None] + self.item)

    def residuals(self, ratings: Any) -> Any:
        """Return r_ui − b_ui at the positions of the ratings."""
        rows = row_of_entries(ratings)
        return with_data(ratings, ratings.data - self.mean - self.user[rows] - self.item[ratings.indices])


def _shrunk_neighbours(rows: Any, k: int, shrinkage: float) -> Any:
    """Return d = n / (n + shrinkage) · cosine for the ``k`` nearest rows, n the columns that both rows have."""
    cosine, in_common = _cosine(rows, rows), _common(rows, rows)

    def similarity(block: slice) -> NDArray[np.float64]:
        common = in_common(block)
        return np.asarray(cosine(block) * (common / np.maximum(common + shrinkage, 1e-300)))

    return nearest_rows(rows.shape[0], k, similarity)


@dataclass
class _ResidualNeighbours(Model):
    """The base of both directions: the biases, the residuals and the size of the neighbourhood."""

    k: int = setting(100, low=1)  # the number of neighbours
    shrinkage: float = setting(100.0, low=0)  # the number of common ratings at which a similarity is halved

    def _fit(self, train: Ratings) -> None:
        ratings = rating_matrix(train)
        self._biases = Biases.of(ratings)
        self._residuals = self._biases.residuals(ratings)
        self._fit_neighbours(ratings)

    def _fit_neighbours(self, ratings: Any) -> None:
        raise NotImplementedError

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._biases.mean + self._biases.item, (len(users), 1))


@register("nncosngbr-ub")
class ResidualUserNeighbours(_ResidualNeighbours):
    r"""NNCosNgbr-UB: a baseline plus the residuals of the k nearest users.

    .. math:: s(u, i) = b_{ui} + \sum_{v \in D_k(u),\, v \text{ rated } i} d_{uv} (r_{vi} - b_{vi}), \qquad
              d_{uv} = \frac{n_{uv}}{n_{uv} + 100} cos(u, v)

    Every pair has a score: the baseline where no neighbour rated i.
    """

    def _fit_neighbours(self, ratings: Any) -> None:
        self._neighbours = _shrunk_neighbours(ratings, self.k, self.shrinkage)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self._biases(users) + dense_product(self._neighbours[users], self._residuals))


@register("nncosngbr-ib")
class ResidualItemNeighbours(_ResidualNeighbours):
    r"""NNCosNgbr-IB: a baseline plus the user's residuals on the k items nearest to the target item.

    .. math:: s(u, i) = b_{ui} + \sum_{j \in D_k(i) \cap I_u} d_{ij} (r_{uj} - b_{uj}), \qquad
              d_{ij} = \frac{n_{ij}}{n_{ij} + 100} cos(i, j)

    Every pair has a score: the baseline where the user rated none of the neighbours.
    """

    def _fit_neighbours(self, ratings: Any) -> None:
        self._weights = _shrunk_neighbours(ratings.T.tocsr(), self.k, self.shrinkage).T.tocsr()

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self._biases(users) + dense_product(self._residuals[users], self._weights))

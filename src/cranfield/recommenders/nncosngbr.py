"""NNCosNgbr: cosine neighbourhoods over residuals, not normalised (Cremonesi et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders._sparse import dense_product, ones_like, rating_matrix, row_of_entries, unit_rows, with_data
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.neighbourhood import nearest_rows
from cranfield.recommenders.registry import register

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
    unit, rated = unit_rows(rows), ones_like(rows)
    unit_columns, rated_columns = unit.T.tocsr(), rated.T.tocsr()

    def similarity(block: slice) -> NDArray[np.float64]:
        common = dense_product(rated[block], rated_columns)
        cosine = dense_product(unit[block], unit_columns)
        return np.asarray(cosine * (common / np.maximum(common + shrinkage, 1e-300)))

    return nearest_rows(rows.shape[0], k, similarity)


@dataclass
class _ResidualNeighbours(Model):
    """The base of both directions: the biases, the residuals and the size of the neighbourhood.

    Parameters
    ----------
    k
        The number of neighbours.
    shrinkage
        The number of common ratings at which a similarity is halved.
    """

    k: int = setting(100, low=1)
    shrinkage: float = setting(100.0, low=0)

    def _fit(self, train: Ratings) -> None:
        ratings = rating_matrix(train)
        self._biases = Biases.of(ratings)
        self._residuals = self._biases.residuals(ratings)
        self._fit_neighbours(ratings)

    def _fit_neighbours(self, ratings: Any) -> None:
        raise NotImplementedError

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._biases.mean + self._biases.item, (len(users), 1))


@register("nncosngbr-ub")
@dataclass
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
@dataclass
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

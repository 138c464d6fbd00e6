"""LM-WSR: neighbours by query likelihood, weighted by the cosine (Valcarce et al., ECIR 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders._sparse import (
    dense_product,
    product_or_nan,
    rating_matrix,
    row_of_entries,
    unit_rows,
    with_data,
)
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.neighbourhood import nearest_rows
from cranfield.recommenders.registry import register


def likely_neighbours(rows: Any, k: int, smoothing: float) -> Any:
    r"""Return the ``k`` rows that most likely generated each row, as a sparse matrix of their cosines.

    With rows as documents and Jelinek-Mercer smoothing by λ, the query likelihood ranks like

    .. math::
        QL'(u, v) = \sum_{i \in I_u \cap I_v} r_{ui}
                    \log \Bigl(1 + \frac{1 - λ}{λ} \frac{r_{vi} / \lvert v \rvert}{p(i \mid C)}\Bigr)
    """
    unit = unit_rows(rows)
    sizes = np.asarray(rows.sum(axis=1)).reshape(-1)
    collection = np.asarray(rows.sum(axis=0)).reshape(-1) / (rows.sum() or 1)
    share = rows.data / sizes[row_of_entries(rows)]
    documents = with_data(rows, np.log1p((1 - smoothing) / smoothing * share / collection[rows.indices])).T.tocsr()
    columns = unit.T.tocsr()
    return nearest_rows(
        rows.shape[0],
        k,
        similarity=lambda block: dense_product(rows[block], documents),
        weight=lambda block: dense_product(unit[block], columns),
    )


@dataclass
class _LikelyNeighbours(Model):
    """The base of both directions: neighbours by query likelihood, and the ratings other than 0."""

    needs_positive: ClassVar[bool] = True

    k: int = setting(100, low=1)
    smoothing: float = setting(0.9, above=0, below=1)


@register("lm-wsr-ub")
@dataclass
class LanguageModelUsers(_LikelyNeighbours):
    r"""LM-WSR-UB: ratings of the users whose profiles best explain the profile of the user.

    .. math:: s(u, i) = \sum_{v \in V_u} cos(u, v) r_{vi}

    V_u are the k users with the largest query likelihood (`likely_neighbours`). NaN if none of them rated i.

    Parameters
    ----------
    k
        The number of neighbours.
    smoothing
        λ of Jelinek-Mercer: the weight of the collection.
    """

    def _fit(self, train: Ratings) -> None:
        self._ratings = without_zeros(rating_matrix(train))
        self._neighbours = likely_neighbours(self._ratings, self.k, self.smoothing)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return product_or_nan(self._neighbours[users], self._ratings)


@register("lm-wsr-ib")
@dataclass
class LanguageModelItems(_LikelyNeighbours):
    r"""LM-WSR-IB: the user's ratings of the items whose raters best explain those of the target item.

    .. math:: s(u, i) = \sum_{j \in J_i \cap I_u} cos(i, j) r_{uj}

    J_i are the k items with the largest query likelihood for the target i, with items as documents and users as terms
    (`likely_neighbours`). NaN if the user rated none of them.

    Parameters
    ----------
    k
        The number of neighbours.
    smoothing
        λ of Jelinek-Mercer: the weight of the collection.
    """

    def _fit(self, train: Ratings) -> None:
        self._ratings = without_zeros(rating_matrix(train))
        self._weights = likely_neighbours(self._ratings.T.tocsr(), self.k, self.smoothing).T.tocsr()

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return product_or_nan(self._ratings[users], self._weights)


def without_zeros(ratings: Any) -> Any:
    """Return the ratings without those of value 0, which have no weight."""
    if (ratings.data == 0).any():
        ratings = ratings.copy()
        ratings.eliminate_zeros()
    return ratings

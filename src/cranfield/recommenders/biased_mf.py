"""SVD: rating prediction by biased matrix factorisation with stochastic gradient descent (Takács et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings, RatingScale
from cranfield.recommenders.factors import check_settled, normal_factors, random_state
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import compiled_loops


@register("svd")
@dataclass
class BiasedFactors(PairModel):
    r"""Biased matrix factorisation: predicts ratings from a mean, two biases and two vectors.

    .. math::
        \hat r_{ui} = μ + b_u + b_i + p_u \cdot q_i, \qquad
        \min \sum (r_{ui} - \hat r_{ui})^2 + λ (\lVert p_u \rVert^2 + \lVert q_i \rVert^2 + b_u^2 + b_i^2)

    A user or item without training ratings keeps a bias and a vector of 0. Predicted ratings make poor lists: items
    that a few users rated highly come first.

    Ratings on a scale wider than 1 to 5 are rescaled for training, so that the same step size suits all scales.

    Parameters
    ----------
    factors, epochs, rate, regularization
        The length of the vectors, the number of passes over the ratings, the step size, and λ.
    seed
        Seed of the initial values and of the order of the ratings.
    """

    one_thread: ClassVar[bool] = True

    factors: int = setting(50, low=1)
    epochs: int = setting(30, low=1)
    rate: float = setting(0.01, above=0)
    regularization: float = setting(0.05, low=0)
    seed: int = setting(0, low=0)

    @property
    def predicts_ratings(self) -> bool:
        """The scores are predicted ratings."""
        return True

    def _fit(self, train: Ratings) -> None:
        loops = compiled_loops(self.name)
        draw = stream(self.seed, "svd")
        spread = 0.1 / np.sqrt(self.factors)
        self._users = normal_factors(draw, train.user_counts, self.factors, spread)
        self._items = normal_factors(draw, train.item_counts, self.factors, spread)
        self._user_bias = np.zeros(train.n_users, dtype=np.float32)
        self._item_bias = np.zeros(train.n_items, dtype=np.float32)
        self._mean = float(train.values.mean(dtype=np.float64))
        wide = max(1.0, RatingScale.of(train.values).range / 4)
        loops.biased_factors(
            train.users,
            train.items,
            train.values / train.values.dtype.type(wide),
            self._mean / wide,
            self._user_bias,
            self._item_bias,
            self._users,
            self._items,
            self.rate,
            self.regularization,
            self.epochs,
            random_state(draw),
        )
        learned = (self._users, self._items, self._user_bias, self._item_bias)
        check_settled(self.name, learned, rate=self.rate)
        for part in learned[1:]:
            part *= np.float32(wide)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        block = (self._users[users] @ self._items.T).astype(np.float64)
        block += self._mean + self._item_bias.astype(np.float64)
        block += self._user_bias[users].astype(np.float64)[:, None]
        return block

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        products = np.einsum("pf,pf->p", self._users[users], self._items[items]).astype(np.float64)
        return products + self._mean + self._item_bias[items] + self._user_bias[users]

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._mean + self._item_bias.astype(np.float64), (len(users), 1))

"""Rocchio's Weights, RSV, CHI2 and KLD: pseudo-relevance feedback over a neighbourhood (Valcarce et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders.matrices import cosine_neighbours, ones_like, rating_matrix
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.registry import register

Values = NDArray[np.float64]


@dataclass
class _Feedback(Model):
    r"""A score of how much more the neighbours V_u like an item than the collection C does.

    .. math::
        p(i \mid V) = \frac{\sum_{v \in V} r_{vi}}{\sum_{v \in V} \sum_j r_{vj}}, \qquad
        p_n(i \mid V) = p(i \mid V) / \lvert V \rvert

    V_u are the k users nearest to u by the cosine. An item that no neighbour rated has no score.
    """

    needs_positive: ClassVar[bool] = True

    k: int = setting(200, low=1)

    def _fit(self, train: Ratings) -> None:
        self._ratings = rating_matrix(train)
        self._neighbours = ones_like(cosine_neighbours(self._ratings, self.k))
        sums = np.asarray(self._ratings.sum(axis=0)).reshape(-1)
        total = sums.sum()
        self._collection: NDArray[np.float64] = sums / (total if total else 1) / train.n_users

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        members = self._neighbours[users]
        sums: Any = (members @ self._ratings).tocsr()
        entries = np.diff(sums.indptr)
        size = np.repeat(np.diff(members.indptr), entries)
        share = sums.data / np.repeat(np.asarray(sums.sum(axis=1)).reshape(-1), entries)
        block = np.full(sums.shape, np.nan)
        scores = self._weigh(sums.data / size, share, share / size, self._collection[sums.indices])
        block[np.repeat(np.arange(len(users)), entries), sums.indices] = scores
        return block

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:
        """Return the scores of items, given Σ_v r_vi / |V_u|, p(i|V_u), p_n(i|V_u) and p_n(i|C)."""
        raise NotImplementedError


@register("rw")
@dataclass
class RocchioWeights(_Feedback):
    r"""Rocchio's Weights: the mean rating of the neighbours, with missing ratings counted as 0.

    .. math:: RW(u, i) = \sum_{v \in V_u} r_{vi} / \lvert V_u \rvert
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return mean


@register("rsv")
@dataclass
class RobertsonSelectionValue(_Feedback):
    r"""Robertson Selection Value; for each user it ranks as Rocchio's Weights does.

    .. math:: RSV(u, i) = \sum_{v \in V_u} \frac{r_{vi}}{\lvert V_u \rvert} p(i \mid V_u)
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray(mean * share)


@register("chi2")
@dataclass
class ChiSquared(_Feedback):
    r"""Chi-squared of the neighbours' normalised likelihood against the collection's.

    .. math:: CHI2(u, i) = \frac{(p_n(i \mid V_u) - p_n(i \mid C))^2}{p_n(i \mid C)}
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray((likelihood - collection) ** 2 / collection)


@register("kld")
@dataclass
class KullbackLeibler(_Feedback):
    r"""Kullback-Leibler divergence of the neighbours' normalised likelihood from the collection's.

    .. math:: KLD(u, i) = p_n(i \mid V_u) \log \frac{p_n(i \mid V_u)}{p_n(i \mid C)}
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray(likelihood * np.log(likelihood / collection))

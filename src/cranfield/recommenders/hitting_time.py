"""Hitting time: how soon a random walk from the item reaches the user (Yin et al. 2012)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders.matrices import divided_rows, ones_like, rating_matrix
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.relevance_models import without_zeros

# Number of users per block: small enough that the times of their walks stay in the processor's cache.
_SIDE_BY_SIDE = 64


@register("ht")
class HittingTime(Model):
    r"""The truncated hitting time from the item to the user, negated so that higher is better.

    On the bipartite graph of users and items with the ratings as edge weights, a walk leaves a node along an edge with
    probability p_ab = w_ab / Σ_c w_ac, and

    .. math:: H_0 = 0, \qquad H_{t+1}(q \mid j) = 1 + \sum_k p_{jk} H_t(q \mid k) \; (j \ne q), \qquad
              H_t(q \mid q) = 0, \qquad s(q, i) = -H_τ(q \mid i)

    NaN for items from which no walk reaches the user.

    Parameters
    ----------
    steps
        τ.
    binary
        Whether every edge weighs 1.
    """

    needs_positive: ClassVar[bool] = True

    steps: int = setting(15, low=1)
    binary: bool = setting(False)

    def _fit(self, train: Ratings) -> None:
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        ratings = without_zeros(rating_matrix(train))
        ratings = ones_like(ratings) if self.binary else ratings
        sides = (ratings, ratings.T.tocsr())
        # Empty rows stay empty.
        self._from_users, self._from_items = (
            divided_rows(side, np.asarray(side.sum(axis=1)).reshape(-1)) for side in sides
        )
        labels = connected_components(sparse.block_array([[None, ratings], [ratings.T, None]]), directed=False)[1]
        self._user_part, self._item_part = labels[: train.n_users], labels[train.n_users :]

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        pieces = [users[start : start + _SIDE_BY_SIDE] for start in range(0, len(users), _SIDE_BY_SIDE)]
        times = [self._times(piece).T for piece in pieces]
        scores = -np.concatenate(times) if times else np.zeros((0, len(self._item_part)))
        scores[self._user_part[users][:, None] != self._item_part[None, :]] = np.nan
        return scores

    def _times(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return H_τ(q|j), one column per user q and one row per item j."""
        # The graph is bipartite, so H_τ of items needs only H_{τ-1} of users, H_{τ-2} of items, and so on.
        column = np.arange(len(users))
        at_items = self.steps % 2 == 0
        time = np.zeros((self._from_users.shape[1 if at_items else 0], len(users)))
        for _ in range(self.steps):
            time = (self._from_users if at_items else self._from_items) @ time
            time += 1
            if at_items:
                time[users, column] = 0
            at_items = not at_items
        return time

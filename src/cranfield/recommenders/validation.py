"""Evaluation on a validation part during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.tables import UNKNOWN

# Maximum number of users to evaluate; all of them would take longer than an epoch.
_USERS = 1000
# Number of users scored per block.
_BLOCK = 64
_CUTOFF = 10


@dataclass(frozen=True, eq=False)
class ValidationPart:
    """Held-out ratings of known users and items, with the codes of the training ratings.

    Parameters
    ----------
    users
        The users of the ratings, in ascending order.
    indptr, items, values
        The slice of each user, the item codes and the ratings.
    train
        The training ratings; their items are excluded from lists.
    predicts
        Whether the system predicts ratings and is evaluated by RMSE; otherwise by nDCG@10, with every held-out item as
        relevant.
    """

    users: NDArray[np.int64]
    indptr: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[Any]
    train: Ratings
    predicts: bool

    @classmethod
    def of(cls, train: Ratings, validation: Ratings, predicts: bool, seed: int) -> ValidationPart | None:
        """Return what can be evaluated of a validation part, for at most 1,000 users; None if there is nothing."""
        user_codes = train.user_ids.codes(validation.user_ids.all)[validation.users]
        item_codes = train.item_ids.codes(validation.item_ids.all)[validation.items]
        known = (user_codes != UNKNOWN) & (item_codes != UNKNOWN)
        users, items, values = user_codes[known], item_codes[known], validation.values[known]
        distinct = np.unique(users)
        if not len(distinct):
            return None
        chosen = np.argsort(stream(seed, "validation").random(len(distinct)), kind="stable")[:_USERS]
        distinct = np.sort(distinct[chosen])
        order = np.argsort(users, kind="stable")
        order = order[np.isin(users[order], distinct)]
        counts = np.bincount(np.searchsorted(distinct, users[order]), minlength=len(distinct))
        indptr = np.append(np.int64(0), np.cumsum(counts))
        return cls(distinct.astype(np.int64), indptr, items[order].astype(np.int64), values[order], train, predicts)

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return "RMSE" if self.predicts else f"nDCG@{_CUTOFF}"

    def better(self, value: float, than: float | None) -> bool:
        """Whether a value is better than another; any value is better than none."""
        return than is None or (value < than if self.predicts else value > than)

    def value(self, score: Callable[[NDArray[np.int64]], NDArray[Any]]) -> float:
        """Return the metric of a system, given a function that scores the items for some users."""
        parts = [
            self._part(slice(start, start + _BLOCK), score(self.users[start : start + _BLOCK]))
            for start in range(0, len(self.users), _BLOCK)
        ]
        values = np.concatenate(parts)
        return float(np.sqrt(values.mean()) if self.predicts else values.mean())

    def _part(self, block: slice, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared errors of some users, or their nDCG."""
        users = self.users[block]
        first, last = self.indptr[block.start], self.indptr[block.start + len(users)]
        items = self.items[first:last]
        rows = np.repeat(np.arange(len(users)), np.diff(self.indptr[block.start : block.start + len(users) + 1]))
        if self.predicts:
            return (scores[rows, items].astype(np.float64) - self.values[first:last]) ** 2
        scores = np.where(np.isnan(scores), -np.inf, scores)
        for row, user in enumerate(users):
            scores[row, self.train.items[self.train.profile(int(user))]] = -np.inf
        relevant = np.zeros(scores.shape, dtype=np.bool_)
        relevant[rows, items] = True
        depth = min(_CUTOFF, scores.shape[1])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        discounts = 1 / np.log2(np.arange(depth) + 2)
        ideal = np.cumsum(discounts)[np.minimum(relevant.sum(axis=1), depth) - 1]
        return (np.take_along_axis(relevant, order, axis=1) * discounts).sum(axis=1) / ideal

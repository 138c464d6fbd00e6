"""MF with a pointwise loss: a dot product, biases and sampled negatives (Rendle et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers, from_threshold
from cranfield.recommenders.factors import normal_factors, random_state
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import compiled_loops


@register("mf-pointwise")
@dataclass
class PointwiseFactors(EpochModel, PairModel):
    r"""Matrix factorisation with a logistic loss: the probability that a user rates an item.

    .. math::
        x_{ui} = b + b_u + b_i + p_u \cdot q_i, \qquad
        \min \sum_{(u, i)} \Bigl(-\ln σ(x_{ui}) - \sum_{j} \ln(1 - σ(x_{uj}))\Bigr) + λ \lVert Θ \rVert^2

    over the ratings, each with some items j that are redrawn in every epoch (S. Rendle, W. Krichene, L. Zhang and J.
    Anderson 2020, Neural collaborative filtering vs. matrix factorization revisited, RecSys). Training is stochastic
    gradient descent on one thread, so that the same seed gives the same lists. NaN for users and items without training
    ratings.

    Parameters
    ----------
    factors, epochs, negatives
        The length of the vectors, the number of passes, and the number of items drawn for each rating.
    others
        Where they are drawn from: items that the user has not rated (``unrated``), or ``all`` items, as in the authors'
        program, which sometimes draws rated ones.
    rate, regularization
        The step size, and λ.
    spread
        The standard deviation of the initial vectors.
    threshold
        Only ratings of at least this much make a profile; None for all.
    patience
        With a validation part: stop after this many epochs without improvement; 0 for never.
    seed
        Seed of the initial values, the order of the ratings and the drawn items.
    """

    one_thread: ClassVar[bool] = True

    factors: int = setting(64, low=1)
    epochs: int = setting(128, low=1)
    negatives: int = setting(8, low=1)
    others: str = setting("unrated", choices=("all", "unrated"))
    rate: float = setting(0.002, above=0)
    regularization: float = setting(0.005, low=0)
    spread: float = setting(0.1, above=0)
    threshold: float | None = setting(None, or_none=float)
    patience: int = setting(10, low=0)
    seed: int = setting(0, low=0)

    def _machinery(self) -> str:
        return "numba, on 1 thread"

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        loops = compiled_loops(self.name)
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        kept = from_threshold(train, self.threshold, self.name)
        draw, users = stream(self.seed, "mf-pointwise"), kept.users
        numbers = {
            "users": normal_factors(draw, kept.user_counts, self.factors, self.spread),
            "items": normal_factors(draw, self._item_counts, self.factors, self.spread),
            "user_bias": np.zeros(train.n_users, dtype=np.float32),
            "item_bias": np.zeros(train.n_items, dtype=np.float32),
            "bias": np.zeros(1, dtype=np.float32),
        }

        def epoch(before: Numbers, number: int) -> tuple[Numbers, float]:
            now = {name: values.copy() for name, values in before.items()}
            loss = loops.pointwise_epoch(
                kept.indptr,
                users,
                kept.items,
                now["bias"],
                now["user_bias"],
                now["item_bias"],
                now["users"],
                now["items"],
                self.negatives,
                self.others == "unrated",
                self.rate,
                self.regularization,
                random_state(stream(self.seed, "mf-pointwise", number)),
            )
            return now, loss / max(len(kept) * (1 + self.negatives), 1)

        return numbers, epoch

    def _take(self, numbers: Numbers) -> None:
        self._users, self._items = numbers["users"], numbers["items"]
        self._user_bias, self._item_bias = numbers["user_bias"], numbers["item_bias"]
        self._bias = numbers["bias"]

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        block = self._users[users] @ self._items.T + (self._bias + self._item_bias)
        block += self._user_bias[users, None]
        return nan_for_untrained(block, self._item_counts, self._user_counts[users])

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        products = np.einsum("pf,pf->p", self._users[users], self._items[items])
        return np.asarray(products + (self._bias + self._item_bias[items]) + self._user_bias[users])

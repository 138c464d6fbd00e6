"""BPRMF: matrix factorisation by Bayesian personalised ranking (Rendle et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained
from cranfield.recommenders.factors import check_settled, normal_factors, random_state
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import compiled_loops, one_ahead

# Number of triples per block; the next block is drawn while this one is trained on.
_AT_A_TIME = 1 << 20


@register("bprmf")
@dataclass
class BayesianPersonalizedRanking(PairModel):
    r"""Bayesian personalised ranking: factors that rank the items of a profile above other items.

    .. math:: x_{ui} = b_i + p_u \cdot q_i, \qquad \max \sum_{(u, i, j)} \ln σ(x_{ui} - x_{uj}) - λ \lVert Θ \rVert^2

    over triples with i in the profile of u and j outside it, drawn at random. An epoch has as many triples as there are
    ratings. One thread trains on them, so that the same seed gives the same lists, while another draws the next ones.
    NaN for users and items without training ratings.

    Parameters
    ----------
    factors, epochs, rate
        The length of the vectors, the number of passes, and the initial step size, which falls linearly to 0.
    user, positive, negative, bias
        λ for p_u, for q_i of the profile item, for q_j of the other item, and for the biases.
    sampling
        Whether a triple starts from a random ``rating``, or from a random ``user`` and then one of the user's ratings.
    threshold
        Only ratings of at least this much make a profile; None for all.
    seed
        Seed of the initial values and of the triples.
    """

    one_thread: ClassVar[bool] = True

    factors: int = setting(100, low=1)
    epochs: int = setting(400, low=1)
    rate: float = setting(0.05, above=0)
    user: float = setting(0.02, low=0)
    positive: float = setting(0.003, low=0)
    negative: float = setting(0.003, low=0)
    bias: float = setting(0.0, low=0)
    sampling: str = setting("user", choices=("rating", "user"))
    threshold: float | None = setting(None, or_none=float)
    seed: int = setting(0, low=0)

    def _fit(self, train: Ratings) -> None:
        loops = compiled_loops(self.name)
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        if self.threshold is not None:
            train = train.keep(train.values >= self.threshold)
        draw = stream(self.seed, "bprmf")
        self._users = normal_factors(draw, train.user_counts, self.factors, 0.1)
        self._items = normal_factors(draw, self._item_counts, self.factors, 0.1)
        self._bias = np.zeros(train.n_items, dtype=np.float32)
        if len(train) == 0:
            return
        samples, state = self.epochs * len(train), random_state(draw)
        raters = np.flatnonzero(train.user_counts)
        strengths = np.array([self.user, self.positive, self.negative, self.bias], dtype=np.float32)

        def triples(first: int) -> NDArray[np.int32]:
            drawn = np.empty((3, min(_AT_A_TIME, samples - first)), dtype=np.int32)
            loops.draw_triples(
                train.users, train.indptr, train.items, raters, self.sampling == "user", train.n_items, state, drawn
            )
            return drawn

        starts = range(0, samples, _AT_A_TIME)
        with progress("Fitting bprmf", total=samples, unit="samples") as bar:
            for first, drawn in zip(starts, one_ahead(triples, starts)):
                loops.ascend_triples(
                    drawn, self._users, self._items, self._bias, np.float32(self.rate), strengths, first, samples
                )
                bar.advance(drawn.shape[1])
        check_settled(self.name, (self._users, self._items, self._bias), rate=self.rate)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        block = self._users[users] @ self._items.T + self._bias
        return nan_for_untrained(block, self._item_counts, self._user_counts[users])

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.einsum("pf,pf->p", self._users[users], self._items[items]) + self._bias[items]

"""Factor models by stochastic gradient descent: SVD, BPRMF, and MF with a pointwise loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings, RatingScale
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers, from_threshold
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import compiled_loops, one_ahead


def normal_factors(
    draw: np.random.Generator, counts: NDArray[np.int64], factors: int, spread: float
) -> NDArray[np.float32]:
    """Draw normal factors; those of users or items without ratings are 0."""
    rows = draw.standard_normal((len(counts), factors)) * spread
    rows[counts == 0] = 0
    return rows.astype(np.float32)


def average_profile(train: Ratings, *, at_most: int) -> int:
    """Return the average number of ratings per user, rounded down, from 1 to ``at_most``."""
    return max(1, min(at_most, len(train) // train.n_users))


def check_settled(system: str, factors: Iterable[NDArray[np.float32]], **settings: float) -> None:
    """Refuse factors that are not finite; they come from too large a setting, such as the step size."""
    if not all(np.isfinite(matrix).all() for matrix in factors):
        spelled = " and ".join(f"{name}={value:g}" for name, value in settings.items())
        raise SettingError(f"{system} does not converge with {spelled}; give a smaller {' or '.join(settings)}")


def random_state(draw: np.random.Generator) -> NDArray[np.uint64]:
    """Return the state of a compiled loop's random number generator."""
    return draw.integers(0, 2**63, size=1, dtype=np.uint64)


class FactorModel(PairModel):
    """A model whose scores are the inner products of vectors of users and items."""

    _users: NDArray[np.float32]
    _items: NDArray[np.float32]

    def _score(self, users: NDArray[np.int64]) -> NDArray[Any]:
        return self._users[users] @ self._items.T

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[Any]:
        return np.asarray(np.einsum("pf,pf->p", self._users[users], self._items[items]))


@register("svd")
class BiasedFactors(FactorModel):
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
    predicts_ratings = True

    factors: int = setting(50, low=1)
    epochs: int = setting(30, low=1)
    rate: float = setting(0.01, above=0)
    regularization: float = setting(0.05, low=0)
    seed: int = setting(0, low=0)

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
        ratings = (train.users, train.items, train.values / train.values.dtype.type(wide), self._mean / wide)
        learned = (self._user_bias, self._item_bias, self._users, self._items)
        loops.biased_factors(*ratings, *learned, self.rate, self.regularization, self.epochs, random_state(draw))
        check_settled(self.name, learned, rate=self.rate)
        for part in (self._items, self._user_bias, self._item_bias):
            part *= np.float32(wide)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        block = super()._score(users).astype(np.float64)
        block += self._mean + self._item_bias.astype(np.float64)
        block += self._user_bias[users].astype(np.float64)[:, None]
        return block

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        products = super()._score_pairs(users, items).astype(np.float64)
        return products + self._mean + self._item_bias[items] + self._user_bias[users]

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._mean + self._item_bias.astype(np.float64), (len(users), 1))


# Number of triples per block; the next block is drawn while this one is trained on.
_AT_A_TIME = 1 << 20


@register("bprmf")
class BayesianPersonalizedRanking(FactorModel):
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
        item_counts = train.item_counts
        if self.threshold is not None:
            train = train.keep(train.values >= self.threshold)
        draw = stream(self.seed, "bprmf")
        self._users = normal_factors(draw, train.user_counts, self.factors, 0.1)
        self._items = normal_factors(draw, item_counts, self.factors, 0.1)
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
        return super()._score(users) + self._bias

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return super()._score_pairs(users, items) + self._bias[items]


@register("mf-pointwise")
class PointwiseFactors(EpochModel, FactorModel):
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
        kept = from_threshold(train, self.threshold, self.name)
        draw, users = stream(self.seed, "mf-pointwise"), kept.users
        numbers = {
            "users": normal_factors(draw, kept.user_counts, self.factors, self.spread),
            "items": normal_factors(draw, train.item_counts, self.factors, self.spread),
            "user_bias": np.zeros(train.n_users, dtype=np.float32),
            "item_bias": np.zeros(train.n_items, dtype=np.float32),
            "bias": np.zeros(1, dtype=np.float32),
        }

        def epoch(before: Numbers, number: int) -> tuple[Numbers, float]:
            now = {name: values.copy() for name, values in before.items()}
            learned = (now[name] for name in ("bias", "user_bias", "item_bias", "users", "items"))
            drawn, steps = (self.negatives, self.others == "unrated"), (self.rate, self.regularization)
            state = random_state(stream(self.seed, "mf-pointwise", number))
            loss = loops.pointwise_epoch(kept.indptr, users, kept.items, *learned, *drawn, *steps, state)
            return now, loss / max(len(kept) * (1 + self.negatives), 1)

        return numbers, epoch

    def _take(self, numbers: Numbers) -> None:
        self._users, self._items = numbers["users"], numbers["items"]
        self._user_bias, self._item_bias = numbers["user_bias"], numbers["item_bias"]
        self._bias = numbers["bias"]

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        return super()._score(users) + (self._bias + self._item_bias) + self._user_bias[users, None]

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        products = super()._score_pairs(users, items)
        return np.asarray(products + (self._bias + self._item_bias[items]) + self._user_bias[users])

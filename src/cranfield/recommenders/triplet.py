"""BPR by triplets: a network that places users near the items they like (Aftab and Ramampiaro 2022)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders.epochs import Epoch, Numbers
from cranfield.recommenders.model import setting
from cranfield.recommenders.networks import EXAMPLES, NetworkModel, OutsideProfile, Weights, dense, libraries, rectified
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blas_threads

# Number of ratings per block of the regression.
_BLOCK = 1 << 16
# Dropout rate of the embeddings in training, as in the paper.
_EMBEDDINGS_DROPPED = 0.05


@register("bpr-triplet")
class TripletNetwork(NetworkModel):
    r"""Triplet network: vectors closer to liked items than to others, with a regression of ratings on top.

    .. math::
        z = \frac{f(e)}{\lVert f(e) \rVert}, \qquad
        \min \sum_{(u, i, j)} \max\bigl(0, m + \lVert z_u - z_i \rVert^2 - \lVert z_u - z_j \rVert^2\bigr)

    over triplets of a user, an item that she rated high and another item; f, a network of two rectified layers, is the
    same for users and items. Each high rating makes one triplet per epoch, with a newly drawn other item. After S.
    Aftab and H. Ramampiaro (2022), Evaluating top-n recommendations using ranked error approach, IEEE Access, who use
    convolutional layers whose wiring they do not give. For a user without high ratings the highest ones are used, and
    for a user without low ratings items that she has not rated, so that the network learns from all users. NaN for
    users and items without training ratings.

    Parameters
    ----------
    factors, embedding, hidden
        The length of z, that of e, and the width of the hidden layers; 256, 150 and 500 in the paper.
    margin, dropout
        m, and the share of hidden units that are dropped at random in training.
    epochs, rate, batch
        The number of passes, the learning rate of Adam, and the number of triplets per step.
    positive, negative
        Ratings of at least ``positive`` are high, and ratings of at most ``negative`` are low. None for the highest
        rating and the lower quarter of the scale: 5 and 2 on a scale to 5.
    others
        The other item is one that the user rated ``low``, as in the paper, or an ``unrated`` one. With ``low``, the
        network learns nothing about items that nobody would rate, so lists over a whole catalogue need ``unrated``.
    target
        ``rating`` scores by a linear regression of the training ratings on :math:`[z_u ; z_i ; z_u \odot z_i]`, the
        paper's regressor; ``ranking`` by :math:`z_u \cdot z_i`.
    ridge
        λ of the regression.
    patience
        With a validation part: stop after this many epochs without improvement; 0 for never.
    seed
        Seed of the initial weights, the triplets and the dropped units.
    """

    factors: int = setting(64, low=1)
    embedding: int = setting(64, low=1)
    hidden: int = setting(128, low=1)
    margin: float = setting(0.5, above=0)
    dropout: float = setting(0.25, low=0, below=1)
    epochs: int = setting(20, low=1)
    rate: float = setting(0.001, above=0)
    batch: int = setting(256, low=1)
    positive: float | None = setting(None, or_none=float)
    negative: float | None = setting(None, or_none=float)
    others: str = setting("low", choices=("low", "unrated"))
    target: str = setting("rating", choices=("rating", "ranking"))
    ridge: float = setting(1.0, above=0)
    patience: int = setting(5, low=0)
    seed: int = setting(0, low=0)

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        draw = stream(self.seed, self.name)
        widths = (self.embedding, self.hidden, self.hidden, self.factors)
        weights = {f"layer {level}": dense(draw, *pair) for level, pair in enumerate(pairwise(widths))}
        weights |= {f"offset {level}": np.zeros(width, np.float32) for level, width in enumerate(widths[1:])}
        for name, size in (("users", train.n_users), ("items", train.n_items)):
            weights[name] = (draw.standard_normal((size, self.embedding)) * 0.1).astype(np.float32)

        def loss(w: Weights, rows: tuple[Any, ...], key: Any, _: Any) -> Any:
            jax, _ = libraries(self.name)
            parts = zip((w["users"], w["items"], w["items"]), rows, jax.random.split(key, 3), strict=True)
            user, high, low = (self._placed(w, table[codes], self._dropping(own)) for table, codes, own in parts)
            return jax.numpy.maximum(0, self.margin + ((user - high) ** 2 - (user - low) ** 2).sum(axis=-1))

        triplets = _Triplets(train, self.positive, self.negative, self.others == "low")
        numbers, descend = self._trained(weights, loss, lambda number: self._examples(triplets, number))

        def epoch(before: Numbers, number: int) -> tuple[Numbers, float]:
            after, value = descend(before, number)
            return {**after, "regressor": self._regressed(after, train)}, value

        return {**numbers, "regressor": np.zeros(3 * self.factors + 1)}, epoch

    def _placed(self, w: Weights, vectors: Any, dropped: Any = None) -> Any:
        """Return z of users or items, given their embeddings; ``dropped`` leaves out some units in training."""
        keep = dropped or (lambda values, *_: values)
        hidden = keep(vectors, 0, _EMBEDDINGS_DROPPED)
        for level in range(2):
            hidden = keep(rectified(hidden @ w[f"layer {level}"] + w[f"offset {level}"]), level + 1, self.dropout)
        output = hidden @ w["layer 2"] + w["offset 2"]
        return output / ((output**2).sum(axis=-1, keepdims=True) + 1e-12) ** 0.5

    def _dropping(self, key: Any) -> Any:
        jax, _ = libraries(self.name)

        def dropped(values: Any, level: int, share: float) -> Any:
            stays = jax.random.bernoulli(jax.random.fold_in(key, level), 1.0 - share, values.shape)
            return values * stays / (1 - share)

        return dropped

    def _examples(self, triplets: _Triplets, number: int) -> Iterator[tuple[Any, ...]]:
        draw = stream(self.seed, self.name, "triplets", number)
        order = np.argsort(draw.random(len(triplets)), kind="stable")
        for start in range(0, len(order), EXAMPLES):
            yield triplets.drawn(order[start : start + EXAMPLES], draw)

    def _regressed(self, numbers: Numbers, train: Ratings) -> NDArray[np.float64]:
        """Return the weights of the regression; the last is the constant."""
        width = 3 * self.factors + 1
        weights = np.zeros(width)
        if not self.predicts_ratings:
            return weights
        gram, pull = np.diag(np.append(np.full(width - 1, self.ridge), 0.0)), np.zeros(width)
        places, codes = self._places(numbers), train.users
        with blas_threads(1):
            for start in range(0, len(train), _BLOCK):
                block = slice(start, start + _BLOCK)
                pairs = places[0][codes[block]], places[1][train.items[block]]
                user, item = (side.astype(np.float64) for side in pairs)
                row = np.concatenate([user, item, user * item, np.ones((len(user), 1))], axis=1)
                gram += row.T @ row
                pull += row.T @ train.values[block].astype(np.float64)
            return np.asarray(np.linalg.solve(gram, pull), dtype=np.float64)

    def _places(self, numbers: Numbers) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        w = {name.removeprefix("w."): values for name, values in numbers.items()}
        with blas_threads(1):
            return self._placed(w, w["users"]), self._placed(w, w["items"])

    def _take(self, numbers: Numbers) -> None:
        self._users, self._items = self._places(numbers)
        self._regressor = numbers["regressor"]

    def _score(self, users: NDArray[np.int64]) -> NDArray[Any]:
        own = self._users[users]
        if not self.predicts_ratings:
            return own @ self._items.T
        of_user, of_item, of_both = self._regressor[:-1].reshape(3, -1)
        block = (own * of_both) @ self._items.T.astype(np.float64) + (own @ of_user)[:, None]
        return block + (self._items @ of_item + self._regressor[-1])

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[Any]:
        own, others = self._users[users], self._items[items]
        if not self.predicts_ratings:
            return np.asarray(np.einsum("pf,pf->p", own, others))
        row = np.concatenate([own, others, own * others], axis=1)
        return np.asarray(row @ self._regressor[:-1] + self._regressor[-1])


class _Triplets:
    """The triplets of some ratings: each high one, with an item that the same user rated low, or did not rate."""

    def __init__(self, train: Ratings, positive: float | None, negative: float | None, low: bool) -> None:
        lowest, highest = float(train.values.min()), float(train.values.max())
        users = train.users
        # For a user without high ratings, the highest ones are used.
        best = np.maximum.reduceat(train.values, train.indptr[:-1])
        bound = np.minimum(best, highest if positive is None else positive)[users]
        most = lowest + (highest - lowest) / 4 if negative is None else negative
        high = train.values >= bound
        self._users, self._items = users[high], train.items[high]
        self._low = train.keep((train.values <= most) & (train.values < bound) & low)
        self._outside = OutsideProfile(train)

    def __len__(self) -> int:
        return len(self._users)

    def drawn(self, places: NDArray[np.int64], draw: np.random.Generator) -> tuple[NDArray[Any], ...]:
        """Return the users, the high items and the drawn ones of some triplets."""
        users, items = self._users[places], self._items[places]
        counts = self._low.user_counts[users]
        rank = (draw.random(len(users)) * counts).astype(np.int64)
        # One more item at the end, since the position of users without low ratings may be after the last one.
        place = self._low.indptr[users] + np.minimum(rank, np.maximum(counts - 1, 0))
        low = np.append(self._low.items, np.int32(0))[place]
        unrated, some = self._outside.drawn(users, draw)
        there = (counts > 0) | some
        return users[there], items[there], np.where(counts > 0, low, unrated)[there]

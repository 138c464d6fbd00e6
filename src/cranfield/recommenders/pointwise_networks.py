"""Networks that score a pair of a user and an item, with or without a context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import About, Ratings
from cranfield.recommenders.context import SIDES, FeatureCoding, rows_of
from cranfield.recommenders.epochs import Epoch, Numbers, from_threshold
from cranfield.recommenders.model import setting
from cranfield.recommenders.networks import EXAMPLES, NetworkModel, Weights, libraries
from cranfield.recommenders.outside_profile import OutsideProfile


@dataclass
class PointwiseNetwork(NetworkModel):
    """A network that scores a pair of a user and an item, learned from single pairs.

    A subclass implements ``_initial`` (the initial weights), ``_side`` (the computation for users or items alone) and
    ``_joined`` (the score of pairs). These use only operators and indices, so that they work with both NumPy and JAX.
    """

    factors: int = setting(8, low=1)
    epochs: int | None = setting(None, low=1, or_none=int)
    rate: float = setting(0.001, above=0)
    batch: int = setting(256, low=1)
    negatives: int = setting(4, low=1)
    regularization: float = setting(0.0, low=0)
    target: str = setting("ranking", choices=("ranking", "rating"))
    threshold: float | None = setting(None, or_none=float)
    patience: int = setting(5, low=0)
    seed: int = setting(0, low=0)

    @property
    def predicts_ratings(self) -> bool:
        """Whether it was trained on ratings."""
        return self.target == "rating"

    @property
    def uses_features(self) -> bool:
        """Whether it uses features of users or items."""
        return bool(self._described)

    @property
    def _described(self) -> tuple[About, ...]:
        """Whose features are used; a subclass that uses some has a setting ``context``."""
        return SIDES.get(getattr(self, "context", None) or "", ())

    @property
    def _apart(self) -> int:
        """Number of epochs that train the parts of the network separately."""
        return getattr(self, "pretraining", 0)

    def source(self, train: Ratings) -> str:
        """Return a hash of the ratings and of the features that are used."""
        used = [train.user_features if about == "user" else train.item_features for about in self._described]
        return "-".join([train.fingerprint, *(features.fingerprint for features in used if features is not None)])

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        self._encode_context(train)
        self._mean, self._spread = 0.0, 1.0
        if self.predicts_ratings:
            self._mean = float(train.values.mean(dtype=np.float64))
            self._spread = float(train.values.std(dtype=np.float64)) or 1.0
        sizes: dict[About, int] = {"user": train.n_users, "item": train.n_items}
        weights = self._initial(stream(self.seed, self.name), sizes)
        known = {about: tuple(encoded) for about, encoded in self._encoded.items()}
        kept = from_threshold(train, self.threshold, self.name)
        examples = self._rated if self.predicts_ratings else self._drawn

        def loss(w: Weights, rows: tuple[Any, ...], _: Any, known: Any) -> Any:
            optax = libraries(self.name)[1]
            users, items, labels, *apart = rows
            sides: list[Any] = []
            vectors: list[Any] = []
            for about, codes in (("user", users), ("item", items)):
                embedded = self._embedded(w, about, codes)
                context = tuple(part[codes] for part in known.get(about, ()))
                sides.append(self._side(w, about, embedded, context))
                vectors += embedded.values()
            error = optax.squared_error if self.predicts_ratings else optax.sigmoid_binary_cross_entropy
            losses = error(self._joined(w, *sides), labels)
            for is_apart in apart:
                alone = sum(error(scores, labels) for scores in self._alone(w, *sides))
                losses = is_apart * alone + (1 - is_apart) * losses
            return losses + self.regularization * sum((vector**2).sum(axis=-1) for vector in vectors)

        def of_epoch(number: int) -> Iterator[tuple[Any, ...]]:
            for columns in examples(train if self.predicts_ratings else kept, number):
                phase = np.full(len(columns[0]), number < self._apart, dtype=np.float32)
                yield (*columns, phase) if self._apart else columns

        return self._trained(weights, loss, of_epoch, known)

    def _encode_context(self, train: Ratings) -> None:
        self._contexts: dict[str, FeatureCoding] = {}
        self._encoded: dict[str, Any] = {}
        for about in self._described:
            rows = rows_of(train, about, self.name)
            self._contexts[about] = FeatureCoding.of(rows)
            self._encoded[about] = EncodedFeatures(*self._contexts[about].encoded(rows))

    def _rated(self, train: Ratings, number: int) -> Iterator[tuple[Any, ...]]:
        """Yield the scaled ratings in a random order."""
        order = np.argsort(stream(self.seed, self.name, "order", number).random(len(train)), kind="stable")
        users, labels = train.users, ((train.values - self._mean) / self._spread).astype(np.float32)
        for start in range(0, len(order), EXAMPLES):
            part = order[start : start + EXAMPLES]
            yield users[part], train.items[part], labels[part]

    def _drawn(self, train: Ratings, number: int) -> Iterator[tuple[Any, ...]]:
        """Yield the ratings and items drawn from outside the profiles, in a random order."""
        draw = stream(self.seed, self.name, "order", number)
        order = np.argsort(draw.random(len(train)), kind="stable")
        outside, users = OutsideProfile(train), train.users
        for start in range(0, len(order), at_a_time := max(EXAMPLES // (1 + self.negatives), 1)):
            part = order[start : start + at_a_time]
            again = np.repeat(users[part], self.negatives)
            items, some = outside.drawn(again, draw)
            both = np.concatenate([users[part], again[some]]), np.concatenate([train.items[part], items[some]])
            labels = (np.arange(len(both[0])) < len(part)).astype(np.float32)
            mixed = np.argsort(draw.random(len(labels)), kind="stable")
            yield both[0][mixed], both[1][mixed], labels[mixed]

    def _initial(self, draw: np.random.Generator, sizes: Mapping[About, int]) -> dict[str, NDArray[np.float32]]:
        raise NotImplementedError

    def _embedded(self, w: Weights, about: str, codes: Any) -> dict[str, Any]:
        """Return the vectors of users or items."""
        own = (name for name in w if name.startswith(f"{about}.") and name.endswith("embedding"))
        return {name: w[name][codes] for name in own}

    def _side(self, w: Weights, about: str, embedded: Mapping[str, Any], context: tuple[Any, ...]) -> dict[str, Any]:
        """Return what is computed from users or items alone; ``context`` comes from `FeatureCoding.encoded`."""
        raise NotImplementedError

    def _joined(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _alone(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> list[Any]:
        """Return the scores of each part of the network, if they can be trained separately."""
        raise NotImplementedError

    def _sides_of(self, about: About, codes: NDArray[np.int64] | slice) -> dict[str, Any]:
        encoded = self._encoded.get(about)
        context = () if encoded is None else tuple(part[codes] for part in encoded)
        return self._side(self._weights, about, self._embedded(self._weights, about, codes), context)

    def _scores(self, users: Mapping[str, Any], items: Mapping[str, Any]) -> NDArray[np.float32]:
        return np.asarray(self._mean + self._spread * self._joined(self._weights, users, items), dtype=np.float32)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._rows(self._sides_of("user", users), len(users))

    def _rows(self, sides: Mapping[str, Any], count: int) -> NDArray[np.float32]:
        """Score all items, one user at a time, so that a row does not depend on which other users are scored."""
        items = self._sides_of("item", slice(None))
        block = np.empty((count, len(self._item_counts)), dtype=np.float32)
        for row in range(count):
            block[row] = self._scores({name: part[row : row + 1] for name, part in sides.items()}, items)
        return block

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._scores(self._sides_of("user", users), self._sides_of("item", items))

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Score users of whom only the context is known, with the mean of all users' vectors."""
        if "user" not in self._contexts:
            return None
        rows = rows_of(self.train, "user", self.name)[users]
        everybody = self._embedded(self._weights, "user", slice(None))
        mean = {name: np.tile(values.mean(axis=0), (len(users), 1)) for name, values in everybody.items()}
        context = self._contexts["user"].encoded(rows)
        return self._rows(self._side(self._weights, "user", mean, context), len(users))


@dataclass(frozen=True, eq=False)
class EncodedFeatures:
    """The context of all users or items: categories by column, and numbers; see `FeatureCoding.encoded`."""

    categories: NDArray[np.int32]
    numbers: NDArray[np.float32]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.categories, self.numbers))


def context_weights(
    context: FeatureCoding, width: int, draw: np.random.Generator, about: str
) -> dict[str, NDArray[np.float32]]:
    """Return small random weights for `context_vector`."""
    shapes = {"categories": (len(context.categories), width), "numbers": (len(context.numbers), width)}
    return {
        f"{about}.{name}": (draw.standard_normal(shape) * 0.01).astype(np.float32)
        for name, shape in shapes.items()
        if shape[0]
    }


def context_vector(w: Weights, about: str, context: tuple[Any, ...]) -> Any:
    """Return the sum of the vectors of the categories, and of those of the numbers times the numbers."""
    codes, numbers = context
    total: Any = 0
    if f"{about}.categories" in w:
        table = w[f"{about}.categories"]
        # A row without a category adds nothing.
        total = total + (table[codes % len(table)] * (codes < len(table))[..., None]).sum(axis=-2)
    if f"{about}.numbers" in w:
        total = total + numbers @ w[f"{about}.numbers"]
    return total

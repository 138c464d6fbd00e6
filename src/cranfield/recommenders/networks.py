"""Neural systems: trained in batches by JAX and Optax, scored by NumPy alone, with or without a context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, MissingExtraError
from cranfield._streams import stream
from cranfield.data import About, Ratings
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers, from_threshold
from cranfield.recommenders.model import PairModel, setting

_BETWEEN = "\x1f"


@dataclass(frozen=True, eq=False)
class FeatureCoding:
    """An encoding learned in training: the categories of text columns, and the mean and spread of number columns.

    A missing text or an unseen category has no category, and a missing number is replaced by the mean. Neither adds
    anything to what a network computes.
    """

    texts: NDArray[np.str_]  # the names of the columns of text
    numbers: NDArray[np.str_]  # the names of the columns of numbers
    categories: NDArray[np.str_]  # column, separator and text of each, ascending
    means: NDArray[np.float64]  # of the columns of numbers
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, rows: pl.DataFrame) -> FeatureCoding:
        """Learn the encoding from the columns of the training users or items."""
        texts = [name for name, kind in rows.schema.items() if kind == pl.String]
        numbers = [name for name in rows.columns if name not in texts]
        categories = sorted(f"{name}{_BETWEEN}{value}" for name in texts for value in rows[name].unique().drop_nulls())
        scales = [_mean_and_spread(rows[name].drop_nulls().to_numpy()) for name in numbers]
        return cls(
            np.array(texts, dtype=np.str_),
            np.array(numbers, dtype=np.str_),
            np.array(categories, dtype=np.str_),
            np.array([mean for mean, _ in scales], dtype=np.float64),
            np.array([spread if spread > 0 else 1.0 for _, spread in scales], dtype=np.float64),
        )

    def encoded(self, rows: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the category in each text column (the number of categories if none), and the scaled numbers."""
        none, places = len(self.categories), {key: place for place, key in enumerate(self.categories.tolist())}
        codes = [
            [places.get(f"{name}{_BETWEEN}{value}", none) for value in rows[name].to_list()]
            for name in self.texts.tolist()
        ]
        values = [rows[name].to_numpy() for name in self.numbers.tolist()]
        categories = np.array(codes, dtype=np.int32).reshape(len(codes), rows.height).T
        scaled = (np.array(values, dtype=np.float64).reshape(len(values), rows.height).T - self.means) / self.spreads
        return categories, np.nan_to_num(scaled).astype(np.float32)


def _mean_and_spread(column: NDArray[Any]) -> tuple[float, float]:
    """Return the mean and the standard deviation, 0 for no values; large numbers do not overflow when squared."""
    unit = 2.0 ** np.floor(np.log2(max(np.abs(column).max(initial=0.0), 1.0)))
    shrunk = column / unit
    return (float(shrunk.mean() * unit), float(shrunk.std() * unit)) if len(column) else (0.0, 0.0)


SIDES: dict[str, tuple[About, ...]] = {"users": ("user",), "items": ("item",), "both": ("user", "item")}
"""What each value of a setting ``context`` takes columns from."""


def rows_of(train: Ratings, about: About, system: str) -> pl.DataFrame:
    """Return the features of the users or items of the training ratings, one row per code."""
    features = train.user_features if about == "user" else train.item_features
    if features is None:
        raise InputError(
            f"{system} uses features of {about}s, and the ratings have none",
            remedy=f"give a table of them with {about}_features (--{about}-features), or leave context out",
        )
    ids: Any = train.user_ids if about == "user" else train.item_ids
    return features.rows(ids)


class OutsideProfile:
    """Draws items that a user has not rated, all equally likely.

    The r-th item outside a profile is r + k, where k is the number of profile items before it. For the j-th item of the
    sorted profile, item − j is the number of items outside the profile that come before it. These differences ascend,
    so a binary search finds k.
    """

    def __init__(self, train: Ratings) -> None:
        self._n_items, self._indptr = train.n_items, train.indptr
        self._left = train.n_items - train.user_counts
        before = np.arange(len(train)) - np.repeat(train.indptr[:-1], train.user_counts)
        self._keys = train.users.astype(np.int64) * (train.n_items + 1) + (train.items - before)

    def drawn(self, users: NDArray[Any], draw: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return an item for each user, and a mask of the users for whom there is one."""
        left = self._left[users]
        rank = np.minimum((draw.random(len(users)) * left).astype(np.int64), np.maximum(left - 1, 0))
        key = users.astype(np.int64) * (self._n_items + 1) + rank
        before = np.searchsorted(self._keys, key, side="right") - self._indptr[users]
        return (rank + before).astype(np.int32), left > 0


Weights = Mapping[str, Any]
"""The weights of a network by name: NumPy arrays, or JAX arrays during training."""

Loss = Callable[[Weights, tuple[Any, ...], Any, Any], Any]
"""Returns the loss of each example of a batch, given the weights, the batch's columns, a random key and constants."""

EXAMPLES = 1 << 18
"""Approximate number of examples drawn at a time, so that memory does not grow with the number of ratings."""


class NetworkModel(EpochModel, PairModel):
    """A system that is trained by gradient descent (Adam) on batches of examples.

    Training uses one thread, so that the same seed gives the same lists for any number of threads. Results may differ
    on another platform, or on a graphics card, which JAX uses if there is one. Scores are computed by NumPy, so that a
    saved model does not need JAX.
    """

    one_thread: ClassVar[bool] = True

    batch: int
    rate: float
    target: str

    @property
    def predicts_ratings(self) -> bool:
        """Whether it is trained to predict ratings."""
        return self.target == "rating"

    def _machinery(self) -> str:
        jax, optax = libraries(self.name)
        threads = ", on 1 thread" if jax.default_backend() == "cpu" else ""
        return f"jax {jax.__version__} and optax {optax.__version__} on {jax.default_backend()}{threads}"

    def _trained(
        self,
        weights: dict[str, NDArray[np.float32]],
        loss: Loss,
        examples: Callable[[int], Iterator[tuple[Any, ...]]],
        fixed: Any = None,
    ) -> tuple[Numbers, Epoch]:
        """Return the initial numbers, and a function that runs one epoch.

        ``examples`` yields the examples of an epoch in parts, as columns. ``fixed`` are arrays that the loss reads and
        training does not change.
        """
        steps, numbers, unpacked = _compiled(self.name, weights, loss, self.rate, self.batch)

        def epoch(before: Numbers, number: int) -> tuple[Numbers, float]:
            state, total, count = unpacked(before), 0.0, 0
            for part, columns in enumerate(examples(number)):
                seed = np.uint32(stream(self.seed, self.name, "key", number, part).integers(2**32))
                state, summed = steps(state, seed, columns, fixed)
                total, count = total + summed, count + len(columns[0])
            return {name: np.asarray(values) for name, values in numbers(state).items()}, total / max(count, 1)

        return numbers(unpacked(None)), epoch

    def _take(self, numbers: Numbers) -> None:
        # The other numbers belong to Adam.
        self._weights = {name.removeprefix("w."): values for name, values in numbers.items() if name.startswith("w.")}


def libraries(system: str) -> tuple[Any, Any]:
    """Return JAX and Optax, or say what to install."""
    try:
        import jax
        import optax
    except ImportError as error:
        raise MissingExtraError(system, library="jax and optax", extra="neural") from error
    return jax, optax


def _compiled(
    system: str, weights: dict[str, NDArray[np.float32]], loss: Loss, rate: float, batch: int
) -> tuple[Callable[..., Any], Callable[[Any], dict[str, Any]], Callable[[Numbers | None], Any]]:
    """Return the training steps, and functions that convert the weights and Adam's state to named arrays and back."""
    jax, optax = libraries(system)
    adam = optax.adam(rate)
    fresh = (weights, adam.init(weights))
    structure = jax.tree.structure(fresh)
    names = [f"w.{name}" for name in sorted(weights)]
    names += [f"adam.{place}" for place in range(structure.num_leaves - len(names))]

    def run(state: Any, key: Any, count: Any, columns: Any, fixed: Any) -> Any:
        def mean(w: Any, rows: Any, valid: Any, key: Any) -> Any:
            return (loss(w, rows, key, fixed) * valid).sum() / valid.sum()

        def step(number: Any, carry: Any) -> Any:
            (w, moments), total = carry
            rows = tuple(jax.lax.dynamic_slice_in_dim(column, number * batch, batch) for column in columns)
            valid = jax.numpy.arange(batch) + number * batch < count
            value, gradient = jax.value_and_grad(mean)(w, rows, valid, jax.random.fold_in(key, number))
            updates, moments = adam.update(gradient, moments, w)
            return (optax.apply_updates(w, updates), moments), total + value * valid.sum()

        # The number of steps is not static, so that full parts and the last part share one compiled loop.
        return jax.lax.fori_loop(0, (count + batch - 1) // batch, step, (state, 0.0))

    on_one_thread = {"xla_cpu_multi_thread_eigen": False} if jax.default_backend() == "cpu" else None
    compiled = jax.jit(run, compiler_options=on_one_thread)

    def steps(state: Any, seed: np.uint32, columns: tuple[NDArray[Any], ...], fixed: Any) -> tuple[Any, float]:
        count = len(columns[0])
        if not count:
            return state, 0.0
        # Pad to few different lengths, since each is compiled separately.
        room = batch * (1 << (-(-count // batch) - 1).bit_length())
        padded = tuple(np.concatenate([column, np.repeat(column[:1], room - count, axis=0)]) for column in columns)
        state, total = compiled(state, jax.random.key(seed), count, padded, fixed)
        return state, float(total)

    def numbers(state: Any) -> dict[str, Any]:
        return dict(zip(names, jax.tree.leaves(state), strict=True))

    def unpacked(by_name: Numbers | None) -> Any:
        return fresh if by_name is None else jax.tree.unflatten(structure, [by_name[name] for name in names])

    return steps, numbers, unpacked


def dense(draw: np.random.Generator, wide: int, narrow: int) -> NDArray[np.float32]:
    """Return the initial weights of a layer followed by rectifiers (He et al. 2015)."""
    return (draw.standard_normal((wide, narrow)) * np.sqrt(2 / wide)).astype(np.float32)


def rectified(values: Any) -> Any:
    """Return the positive part, for arrays of NumPy and of JAX."""
    return values * (values > 0)


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
        self._n_items = train.n_items
        self._encode_context(train)
        self._mean, self._spread = 0.0, 1.0
        if self.predicts_ratings:
            self._mean = float(train.values.mean(dtype=np.float64))
            self._spread = float(train.values.std(dtype=np.float64)) or 1.0
        sizes: dict[About, int] = {"user": train.n_users, "item": train.n_items}
        weights = self._initial(stream(self.seed, self.name), sizes)
        known = {about: self._context_of(about) for about in self._described}
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
            self._encoded[about] = dict(zip(("categories", "numbers"), self._contexts[about].encoded(rows)))

    def _context_of(self, about: str) -> tuple[NDArray[Any], ...]:
        """Return the context of all users or items as `FeatureCoding.encoded` gives it; nothing without one."""
        encoded = self._encoded.get(about)
        return () if encoded is None else (encoded["categories"], encoded["numbers"])

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
        context = tuple(part[codes] for part in self._context_of(about))
        return self._side(self._weights, about, self._embedded(self._weights, about, codes), context)

    def _scores(self, users: Mapping[str, Any], items: Mapping[str, Any]) -> NDArray[np.float32]:
        return np.asarray(self._mean + self._spread * self._joined(self._weights, users, items), dtype=np.float32)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._rows(self._sides_of("user", users), len(users))

    def _rows(self, sides: Mapping[str, Any], count: int) -> NDArray[np.float32]:
        """Score all items, one user at a time, so that a row does not depend on which other users are scored."""
        items = self._sides_of("item", slice(None))
        block = np.empty((count, self._n_items), dtype=np.float32)
        for row in range(count):
            block[row] = self._scores({name: part[row : row + 1] for name, part in sides.items()}, items)
        return block

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._scores(self._sides_of("user", users), self._sides_of("item", items))

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Score users of whom only the context is known, with the mean of all users' vectors."""
        if "user" not in self._contexts:
            return None
        rows = rows_of(self.train, "user", self.name)[users]
        everybody = self._embedded(self._weights, "user", slice(None))
        mean = {name: np.tile(values.mean(axis=0), (len(users), 1)) for name, values in everybody.items()}
        context = self._contexts["user"].encoded(rows)
        return self._rows(self._side(self._weights, "user", mean, context), len(users))


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

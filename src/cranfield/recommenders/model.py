"""Base classes of the recommenders: declared settings, checked codes, a training set that is not empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cranfield._checks import Limits
from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings
from cranfield.recommenders.state import pack, unpack

# Number of pairs scored per block.
_PAIRS = 1 << 16


def setting(
    default: Any,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    or_none: type[int] | type[float] | type[bool] | type[str] | None = None,
) -> Any:
    """Declare a setting of a `Model`: its default and the values it may take.

    ``low`` and ``high`` are inclusive bounds, ``above`` and ``below`` exclusive ones. ``or_none`` is the type of the
    value if None is also allowed.
    """
    kinds = (type(default),) if or_none is None else (or_none, NoneType)
    limits = Limits(kinds, choices, low=low, above=above, high=high, below=below)
    return field(default=default, metadata={"limits": limits})


@dataclass
class Model:
    """A recommender of this package: a dataclass whose fields are its settings.

    A subclass declares its settings with `setting`, implements ``_fit`` and ``_score``, and is registered by
    `cranfield.recommenders.register`. ``_fit`` sets arrays, sparse matrices in rows (CSR), plain values, or small
    dataclasses or dictionaries of these, so that a fitted model can be saved (`state`).

    A model knows only the users and items with training ratings. ``_fit`` does not see the others, so that what is
    learned does not depend on what else is in the vocabularies, such as the users and items of a test part. Unknown
    items have no score, and unknown users only those of ``_score_newcomers``.
    """

    name: ClassVar[str]
    displayed: ClassVar[str]
    """The name shown with its results; see `register`."""
    version: ClassVar[int] = 1
    """Part of the key of its stored models. Raise it when the same ratings give another model; a test compares them."""
    one_thread: ClassVar[bool] = False
    """Whether it trains on one thread, so that the same seed gives the same lists; such systems take longest."""
    needs_positive: ClassVar[bool] = False
    """Whether the method treats ratings as counts or weights, so that none may be negative."""

    def __post_init__(self) -> None:
        for declared in fields(self):
            name, limits = declared.name, declared.metadata.get("limits", Limits())
            setattr(self, name, limits.check(name, getattr(self, name), self.name))

    def fit(self, train: Ratings) -> Self:
        """Learn from the training ratings."""
        self._fit(self._learnable(train))
        return self.fitted_on(train)

    def _learnable(self, train: Ratings) -> Ratings:
        """Return the ratings of known users and items; refuse ratings that the method cannot learn from."""
        if len(train) == 0:
            raise InputError(
                f"there are no training ratings for {self.name} to learn from", remedy="give some, or fix the split"
            )
        if self.needs_positive and train.values.min() < 0:
            raise InputError(
                f"{self.name} uses ratings as weights, and the training set holds {train.values.min():g}",
                remedy="shift the ratings so that the lowest is 0 or more, or leave this system out",
            )
        return train.compact()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned as named arrays; arrays of the training ratings are named, not copied."""
        given = {"_train", "_known_codes", *(field.name for field in fields(self))}
        learned = {name: value for name, value in vars(self).items() if name not in given}
        return pack(learned, self.train.compact())

    def restore(self, state: Mapping[str, NDArray[Any]], train: Ratings) -> Self:
        """Load what a model with the same settings learned from the same training ratings, instead of fitting.

        Examples
        --------
        >>> from cranfield.recommenders import recommender
        >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
        >>> state = recommender("knn").fit(train).state()
        >>> recommender("knn").restore(state, train).score([0]).round(2).tolist()
        [[0.71, 0.71]]
        """
        vars(self).update(unpack(state, train.compact(), type(self)))
        return self.fitted_on(train)

    def fitted_on(self, train: Ratings) -> Self:
        """Mark the model as fitted on these ratings."""
        self._train = train
        self._known_codes = _KnownCodes.of(train)
        return self

    @property
    def uses_features(self) -> bool:
        """Whether the model uses features of users or items."""
        return False

    def source(self, train: Ratings) -> str:
        """Return a hash of the training data: the ratings, and the features that the model uses."""
        return train.fingerprint

    @property
    def adapted(self) -> dict[str, Any]:
        """The values chosen for settings that were None, which means: choose from the data."""
        learned = vars(self)
        unset = (declared.name for declared in fields(self) if learned[declared.name] is None)
        return {name: learned[f"_{name}"] for name in unset if f"_{name}" in learned}

    @property
    def predicts_ratings(self) -> bool:
        """Whether the scores are predicted ratings, on the scale of the training ratings."""
        return False

    @property
    def train(self) -> Ratings:
        """The ratings that the model was fitted on."""
        train: Ratings | None = getattr(self, "_train", None)
        if train is None:
            raise SettingError(f"{self.name} is not fitted yet; call fit(train) first")
        return train

    def score(self, users: ArrayLike) -> NDArray[Any]:
        """Return a row of scores over all items for each user code; NaN where the method has no score."""
        n_users = self.train.n_users
        codes = np.asarray(users, dtype=np.int64).reshape(-1)
        if len(codes) and not (codes.min() >= 0 and codes.max() < n_users):
            raise SettingError(
                f"{self.name} was fitted on user codes 0 to {n_users - 1}, but was asked for "
                f"{codes.min() if codes.min() < 0 else codes.max()}; use codes of the training vocabulary"
            )
        known = self._known_codes
        if known is None:
            return self._score(codes)
        places = known.users[codes]
        newcomers = self._score_newcomers(codes[places < 0])
        scored = self._score(places[places >= 0])
        # Integers cannot be NaN.
        kind = scored.dtype if np.issubdtype(scored.dtype, np.floating) else np.float64
        scores = np.full((len(codes), self.train.n_items), np.nan, dtype=kind)
        scores[np.ix_(places >= 0, known.items)] = scored
        if newcomers is not None:
            scores[np.ix_(places < 0, known.items)] = newcomers
        return scores

    def fill_scores(self, users: NDArray[Any]) -> NDArray[Any]:
        """Return scores to fill the gaps of another system, including unknown items if the method can order them.

        If lists must hold every item, items without training ratings need a place too: popularity puts them last,
        random anywhere.
        """
        return self.score(users)

    def _fit(self, train: Ratings) -> None:
        raise NotImplementedError

    def _score(self, users: NDArray[np.int64]) -> NDArray[Any]:
        raise NotImplementedError

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[Any] | None:  # noqa: ARG002
        """Return a row of scores of the known items for each user without training ratings; None if it has none."""
        return None


class PairModel(Model):
    """A model that scores single user-item pairs cheaply; a subclass implements ``_score_pairs``."""

    def score_pairs(self, users: ArrayLike, items: ArrayLike) -> NDArray[Any]:
        """Return the score of each pair of a user code and an item code; NaN where the method has no score."""
        user_codes, item_codes = (np.asarray(codes, dtype=np.int64).reshape(-1) for codes in (users, items))
        known = self._known_codes
        if known is None:
            return self._in_blocks(user_codes, item_codes)
        places, items_known = known.users[user_codes], known.items[item_codes]
        new_item = np.cumsum(known.items) - 1
        both = (places >= 0) & items_known
        scores = np.full(len(user_codes), np.nan)
        scores[both] = self._in_blocks(places[both], new_item[item_codes[both]])
        newcomers = np.flatnonzero((places < 0) & items_known)
        for user in np.unique(user_codes[newcomers]):
            row = self._score_newcomers(np.array([user]))
            of_user = newcomers[user_codes[newcomers] == user]
            if row is not None:
                scores[of_user] = row[0][new_item[item_codes[of_user]]]
        return scores

    def _in_blocks(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score pairs in blocks, so that memory is bounded for any number of pairs."""
        scores = np.empty(len(users))
        for start in range(0, len(users), _PAIRS):
            block = slice(start, start + _PAIRS)
            scores[block] = self._score_pairs(users[block], items[block])
        return scores

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[Any]:
        """Return the score of each pair of a known user and a known item."""
        raise NotImplementedError


class _KnownCodes(NamedTuple):
    """The users and items with training ratings, if some have none."""

    users: NDArray[np.int64]
    """For each user, the code among the known users; -1 for a newcomer."""
    items: NDArray[np.bool_]
    """For each item, whether it is known."""

    @classmethod
    def of(cls, train: Ratings) -> _KnownCodes | None:
        """Return the known users and items; None if all are known."""
        users, items = train.user_counts > 0, train.item_counts > 0
        if users.all() and items.all():
            return None
        return cls(np.where(users, np.cumsum(users) - 1, -1), items)

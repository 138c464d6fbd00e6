"""Base classes of the recommenders: declared settings, checked codes, and what was learned as arrays."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cranfield._checks import Limits
from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings
from cranfield.recommenders.matrices import rating_matrix

# The entry of a state that describes the others.
_PLAN = "plan"
_CSR = ("data", "indices", "indptr")
_OF_TRAIN: Mapping[str, Callable[[Ratings], NDArray[Any]]] = {
    **{name: attrgetter(name) for name in ("items", "values", "indptr", "user_counts", "item_counts")},
    "ones": lambda train: np.ones(len(train)),
}


class CannotKeepError(SettingError):
    """The state of a model is not only arrays and plain values."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}, which cannot be kept as arrays; give the system save(path) and load(path), or keep its lists"
        )


def _pack(attributes: Mapping[str, Any], train: Ratings) -> dict[str, NDArray[Any]]:
    """Return attributes as named arrays, with a plan in JSON that describes each; nothing is pickled.

    Arrays of the training ratings are only named, since the ratings are kept elsewhere.
    """
    arrays: dict[str, NDArray[Any]] = {}
    of_train = {name: array(train) for name, array in _OF_TRAIN.items()}

    def array_plan(name: str, value: NDArray[Any]) -> dict[str, Any]:
        if value.dtype.hasobject:
            raise CannotKeepError(f"{name} holds Python objects")
        for known, array in of_train.items():
            if value.shape == array.shape and np.array_equal(value, array):
                return {"train": known, "dtype": value.dtype.str}
        arrays[name] = value
        return {"array": name}

    def plan(name: str, value: Any) -> dict[str, Any]:
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        if isinstance(value, np.ndarray):
            return array_plan(name, value)
        if hasattr(value, "indptr") and getattr(value, "format", None) == "csr":
            parts = {part: array_plan(f"{name}.{part}", getattr(value, part)) for part in _CSR}
            return {"csr": parts, "shape": [int(size) for size in value.shape]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: plan(f"{name}.{key}", inner) for key, inner in value.items()}}
        if is_dataclass(value):
            inside = {field.name: plan(f"{name}.{field.name}", getattr(value, field.name)) for field in fields(value)}
            return {"object": type(value).__name__, "fields": inside}
        raise CannotKeepError(f"{name} is a {type(value).__name__}")

    plans = {name: plan(name, value) for name, value in attributes.items()}
    return {_PLAN: np.array(json.dumps(plans, sort_keys=True)), **arrays}


def _unpack(state: Mapping[str, NDArray[Any]], train: Ratings, owner: type) -> dict[str, Any]:
    """Return the attributes that `_pack` packed; ``owner`` is the class that they belong to."""
    from scipy import sparse

    # Matrices with the sparsity pattern of the ratings share its arrays.
    of_train = lru_cache(maxsize=None)(lambda name, dtype: np.asarray(_OF_TRAIN[name](train), dtype=dtype))

    def value(plan: Mapping[str, Any]) -> Any:
        if "value" in plan:
            return plan["value"]
        if "train" in plan:
            return of_train(plan["train"], plan["dtype"])
        if "array" in plan:
            return state[plan["array"]]
        if "csr" in plan:
            parts = tuple(value(plan["csr"][part]) for part in _CSR)
            matrix = sparse.csr_array(parts, shape=tuple(plan["shape"]))
            matrix.check_format(full_check=True)  # compiled loops do not check indices
            return matrix
        if "mapping" in plan:
            return {key: value(part) for key, part in plan["mapping"].items()}
        inside = {name: value(part) for name, part in plan["fields"].items()}
        return _dataclass_of(owner, plan["object"])(**inside)

    try:
        return {name: value(plan) for name, plan in json.loads(str(state[_PLAN])).items()}
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise InputError("this is not the state of a fitted model", remedy="train the system again") from error


def _dataclass_of(owner: type, name: str) -> Any:
    """Return a dataclass from a module that defines the model or one of its parents; other names are refused."""
    for parent in owner.__mro__:
        candidate = getattr(sys.modules[parent.__module__], name, None)
        if parent is not object and isinstance(candidate, type) and is_dataclass(candidate):
            return candidate
    raise KeyError(name)


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
    items have no score, and unknown users only those of ``_score_new_users``.
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
        return _pack(learned, self.train.compact())

    def restore(self, state: Mapping[str, NDArray[Any]], train: Ratings) -> Self:
        """Load what a model with the same settings learned from the same training ratings, instead of fitting."""
        vars(self).update(_unpack(state, train.compact(), type(self)))
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
        new_users = self._score_new_users(codes[places < 0])
        scored = self._score(places[places >= 0])
        # Integers cannot be NaN.
        kind = scored.dtype if np.issubdtype(scored.dtype, np.floating) else np.float64
        scores = np.full((len(codes), self.train.n_items), np.nan, dtype=kind)
        scores[np.ix_(places >= 0, known.items)] = scored
        if new_users is not None:
            scores[np.ix_(places < 0, known.items)] = new_users
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

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[Any] | None:  # noqa: ARG002
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
        new_users = np.flatnonzero((places < 0) & items_known)
        for user in np.unique(user_codes[new_users]):
            row = self._score_new_users(np.array([user]))
            of_user = new_users[user_codes[new_users] == user]
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


class ProfileModel(Model):
    """A `Model` that computes scores from a user's ratings and from what it learned about items or other users.

    A subclass implements ``_score_profiles``, for profiles over the items with training ratings. Unless it implements
    ``_score`` too, users are scored from their rows of ``_ratings``.
    """

    _ratings: Any

    def score_profiles(self, profiles: Any) -> NDArray[Any]:
        """Return a row of scores over all items for each profile; NaN where the method has no score.

        ``profiles`` are ratings over the items of the training vocabulary, or a sparse matrix of them: one row per
        profile, one column per item code. Items without training ratings are ignored.

        Examples
        --------
        >>> from cranfield.recommenders import recommender
        >>> train = Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"])
        >>> recommender("ease(l2=1)").fit(train).score_profiles(np.array([[0.0, 1.0]])).round(2).tolist()
        [[0.5, 0.0]]
        """
        from scipy import sparse

        if isinstance(profiles, Ratings):
            check_item_ids(profiles, self.train)
            rows = rating_matrix(profiles)
        else:
            rows = sparse.csr_array(profiles, dtype=np.float64)
        if rows.shape[1] != self.train.n_items:
            raise SettingError(
                f"profiles of {rows.shape[1]:,} items do not fit the {self.train.n_items:,} items that {self.name} was "
                "fitted on; give one column per item code of the training vocabulary"
            )
        known = self.train.item_counts > 0
        if known.all():
            return self._score_profiles(rows)
        scored = self._score_profiles(sparse.csr_array(rows[:, np.flatnonzero(known)]))
        scores = np.full(rows.shape, np.nan, dtype=scored.dtype)
        scores[:, known] = scored
        return scores

    def _score(self, users: NDArray[np.int64]) -> NDArray[Any]:
        return self._score_profiles(self._ratings[users])

    def _score_profiles(self, profiles: Any) -> NDArray[Any]:
        raise NotImplementedError


def check_item_ids(profiles: Ratings, train: Ratings) -> None:
    """Refuse profiles over another vocabulary of items than that of the training ratings."""
    if profiles.item_ids != train.item_ids:
        raise SettingError(
            "the profiles and the training ratings have different vocabularies of items; use "
            "cf.splits.predefined to join them"
        )


class _KnownCodes(NamedTuple):
    """The users and items with training ratings, if some have none."""

    users: NDArray[np.int64]  # for each user, the code among the known users; -1 for a new user
    items: NDArray[np.bool_]  # for each item, whether it is known

    @classmethod
    def of(cls, train: Ratings) -> _KnownCodes | None:
        """Return the known users and items; None if all are known."""
        users, items = train.user_counts > 0, train.item_counts > 0
        if users.all() and items.all():
            return None
        return cls(np.where(users, np.cumsum(users) - 1, -1), items)

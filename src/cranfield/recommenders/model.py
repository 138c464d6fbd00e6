"""What the recommenders of this package share: declared settings, checked codes, a training set that is not empty."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cranfield._errors import InputError, SettingError
from cranfield._spelling import nearest
from cranfield.data import Ratings
from cranfield.recommenders.state import pack, unpack


def setting(
    default: Any,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    or_none: type[int] | type[float] | None = None,
) -> Any:
    """Declare a setting of a `Model`: its default and the values it may take.

    ``low`` and ``high`` belong to the range, ``above`` and ``below`` do not; ``or_none`` is the type of the value where
    None is allowed as well.
    """
    limits = {"low": low, "above": above, "high": high, "below": below, "choices": choices, "or_none": or_none}
    return field(default=default, metadata=limits)


@dataclass
class Model:
    """A recommender of this package: a dataclass whose fields are its settings.

    A child declares its settings with `setting`, gives ``_fit`` and ``_score``, and is registered by
    `cranfield.recommenders.register`. What ``_fit`` sets are arrays, sparse matrices in rows (CSR), plain values, or
    small dataclasses of these, so that a fitted model can be kept (`state`).
    """

    name: ClassVar[str]
    predicts_ratings: ClassVar[bool] = False
    """Whether the scores are predicted ratings, on the scale of the training ratings."""
    one_thread: ClassVar[bool] = False
    """Whether it learns on one thread, so that the same seed gives the same lists; such systems take longest."""
    needs_positive: ClassVar[bool] = False
    """Whether the method takes ratings for counts or weights, so that none may be negative."""

    def __post_init__(self) -> None:
        for one in fields(self):
            setattr(self, one.name, _checked(self.name, one.name, getattr(self, one.name), one.default, one.metadata))

    def fit(self, train: Ratings) -> Self:
        """Learn from the training ratings."""
        if len(train) == 0:
            raise InputError(
                f"there are no training ratings for {self.name} to learn from", remedy="give some, or mend the split"
            )
        if self.needs_positive and train.values.min() < 0:
            raise InputError(
                f"{self.name} takes ratings for weights, and the training set holds {train.values.min():g}",
                remedy="shift the ratings so that the lowest is 0 or more, or leave this system out",
            )
        self._fit(train)
        self._train = train
        return self

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, as arrays by name; arrays of the training ratings are named and not copied."""
        given = {"_train", *(one.name for one in fields(self))}
        learned = {name: value for name, value in vars(self).items() if name not in given}
        return pack(learned, self.train)

    def restore(self, state: Mapping[str, NDArray[Any]], train: Ratings) -> Self:
        """Take over what a model of the same settings learned from the same training ratings, instead of fitting.

        Examples
        --------
        >>> from cranfield.recommenders import recommender
        >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
        >>> state = recommender("knn").fit(train).state()
        >>> recommender("knn").restore(state, train).score([0]).round(2).tolist()
        [[0.71, 0.71]]
        """
        vars(self).update(unpack(state, train, type(self)))
        self._train = train
        return self

    @property
    def train(self) -> Ratings:
        """The ratings that it was fitted on."""
        train: Ratings | None = getattr(self, "_train", None)
        if train is None:
            raise SettingError(f"{self.name} has not learned anything yet; call fit(train) first")
        return train

    def score(self, users: ArrayLike) -> NDArray[Any]:
        """Return a row of scores over all items for each user code; NaN where the method cannot say."""
        n_users = self.train.n_users
        codes = np.asarray(users, dtype=np.int64).reshape(-1)
        if len(codes) and not (codes.min() >= 0 and codes.max() < n_users):
            raise SettingError(
                f"{self.name} was fitted on user codes 0 to {n_users - 1}, and is asked for "
                f"{codes.min() if codes.min() < 0 else codes.max()}; use codes of the training vocabulary"
            )
        return self._score(codes)

    def _fit(self, train: Ratings) -> None:
        raise NotImplementedError

    def _score(self, users: NDArray[np.int64]) -> NDArray[Any]:
        raise NotImplementedError


def _checked(system: str, name: str, value: Any, default: Any, limits: Any) -> Any:
    """Return the value as Python's own kind; refuse one of the wrong kind or out of range."""
    if value is None and limits["or_none"] is not None:
        return None
    wrong = f"{name}={value} of {system} "
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            known = ", ".join(limits["choices"])
            raise SettingError(wrong + f"is not one of {known}" + nearest(str(value), limits["choices"]))
        return value
    if isinstance(default, bool):
        if not isinstance(value, bool | np.bool_):
            raise SettingError(wrong + "is neither true nor false")
        return bool(value)
    whole = (limits["or_none"] or type(default)) is int
    number = _number(value)
    if number is None or (whole and number != int(number)):
        raise SettingError(wrong + f"is not a {'whole ' if whole else ''}number")
    bounds = (
        (limits["low"], operator.ge, "at least"),
        (limits["above"], operator.gt, "above"),
        (limits["high"], operator.le, "at most"),
        (limits["below"], operator.lt, "below"),
    )
    for bound, holds, words in bounds:
        if bound is not None and not holds(number, bound):
            raise SettingError(wrong + f"is out of range; give a number {words} {bound:g}")
    return int(number) if whole else number


def _number(value: Any) -> int | float | None:
    """Return a finite number, of NumPy or other kinds too, as Python's own; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    with suppress(OverflowError):
        if math.isfinite(value):
            return int(value) if isinstance(value, Integral) else float(value)
    return None

"""Decision B1: which users are served."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import Decided, decision
from cranfield._errors import SettingError
from cranfield._phrases import unless
from cranfield._random import stream
from cranfield._record import Step
from cranfield._rounding import nearest_count
from cranfield.data import Ratings
from cranfield.splits import Split


def _sample(name: str, value: object) -> str | int | float:
    """Return ``"all"``, a number of users, or a share below 1."""
    if value is None or (isinstance(value, str) and value == "all"):
        return "all"
    fractional = isinstance(value, Real) and not isinstance(value, Integral)
    if fractional and 0 < float(value) < 1:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    try:
        # 1.0 would be one user to one reader and all of them to another.
        return check.whole(name, None if fractional else value)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a number of users nor a share below 1") from None


@dataclass(frozen=True)
class Serving(Decided):
    """Who is served: users with so many training ratings, and of these all, a number, or a share drawn at random.

    Examples
    --------
    >>> Serving(min_ratings=5, sample=0.1)
    Serving(min_ratings=5, sample=0.1)
    """

    min_ratings: int = decision(
        "B1",
        1,
        "users with fewer training ratings are removed",
        check=partial(check.whole, at_least=0),
        phrase=unless(1, "users with {} training ratings", {0: "all users"}),
        help="Serve users with at least so many training ratings.",
    )
    sample: str | int | float = decision(
        "B1",
        "all",
        "of these users 'all', a number, or a share",
        check=_sample,
        phrase=unless("all", "{!r} of the users drawn"),
        help="Serve so many users, or such a share of them, drawn at random.",
    )

    @property
    def everyone(self) -> bool:
        """Whether nobody is left out."""
        return self == EVERYONE


class ServingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of `recommend`."""

    min_ratings: int
    sample: float | str | None


EVERYONE = Serving(min_ratings=0)
"""Every user of the vocabulary, also those without training ratings."""


def served_users(train: Ratings, serving: Serving = EVERYONE, seed: int = 0) -> tuple[NDArray[np.int32], Step]:
    """Return the codes of the users who are served, and how many are not, and why.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> users, step = served_users(train, Serving(min_ratings=2))
    >>> users.tolist(), step.effect["served"], step.effect["too few ratings"]
    ([1], 1, 1)
    """
    users = np.flatnonzero(train.user_counts >= serving.min_ratings).astype(np.int32)
    enough = len(users)
    if enough == 0:
        raise SettingError(
            f"nobody has {serving.min_ratings} training ratings, so nobody is served; "
            f"give min_ratings={train.user_counts.max(initial=0)} or less"
        )
    if not isinstance(serving.sample, str):
        share = isinstance(serving.sample, float)
        wanted = max(1, int(nearest_count(serving.sample, enough))) if share else int(serving.sample)
        # A key for every user, so that the draw does not depend on who else had enough ratings.
        keys = stream(seed, "serve").random(train.n_users)[users]
        users = np.sort(users[np.argsort(keys, kind="stable")[:wanted]])
    step = Step(
        "serve",
        serving.as_dict(),
        {
            "users": train.n_users,
            "served": len(users),
            "too few ratings": train.n_users - enough,
            "not sampled": enough - len(users),
        },
    )
    return users, step


def served_test(split: Split, serving: Serving = EVERYONE, seed: int = 0) -> Ratings:
    """Return the test ratings of the users who are served: those of the others are not to be measured.

    Examples
    --------
    >>> from cranfield.splits import predefined
    >>> split = predefined(Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"]), Ratings.of(["ann", "bob"], ["z", "z"]))
    >>> served_test(split, Serving(min_ratings=2)).frame().rows()
    [('bob', 'z', 1.0)]
    """
    if serving.everyone:
        return split.test
    users, _ = served_users(split.train, serving, seed)
    served = np.zeros(split.train.n_users, dtype=np.bool_)
    served[users] = True
    test = split.test.keep(served[split.test.users])
    if len(test) == 0:
        some = "a training rating" if serving.min_ratings <= 1 else f"{serving.min_ratings} training ratings"
        raise SettingError(
            f"none of the {np.count_nonzero(split.test.user_counts):,} users with test ratings is served: "
            + (f"none has {some}" if serving.sample == "all" else f"of those with {some} none is drawn")
            + "; lower min_ratings, raise sample, or mend the split: both parts need the same user ids"
        )
    return test

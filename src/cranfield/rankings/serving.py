"""Decision B1: the users of an experiment, and which of them are served.

The population is always all users of the test part: a user whom a system does not serve has no list, and is counted
accordingly (C4). ``min_ratings`` and ``sample`` make the population smaller, and ``newcomers`` decides whether users
without training ratings get lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import Decided, decision, unless
from cranfield._errors import SettingError
from cranfield._numbers import nearest_count
from cranfield._record import Step
from cranfield._streams import stream
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
        # 1.0 is ambiguous: one user, or all of them.
        return check.whole(name, None if fractional else value)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a number of users nor a share below 1") from None


@dataclass(frozen=True)
class Serving(Decided):
    """Which users are measured and served: by default every user of the test part, but newcomers have no list.

    Parameters
    ----------
    min_ratings
        Users with fewer training ratings are removed: they are neither served nor measured.
    sample
        All of these users, or a number or share of them drawn at random.
    newcomers
        Users without training ratings, if they are not removed: ``unserved``, without lists, as in a file of lists that
        was made from training ratings alone; or ``served`` by the systems that can, such as popularity.

    Examples
    --------
    >>> Serving(min_ratings=5, sample=0.1)
    Serving(min_ratings=5, sample=0.1, newcomers='unserved')
    """

    min_ratings: int = decision(
        "B1",
        0,
        "users with fewer training ratings are removed from the experiment",
        check=partial(check.whole, at_least=0),
        phrase=unless(0, "users with {} training ratings", {1: "users with a training rating"}),
        help="Serve only users with at least this many training ratings.",
    )
    sample: str | int | float = decision(
        "B1",
        "all",
        "how many of these users are served: 'all', a number, or a share",
        check=_sample,
        phrase=unless("all", "{!r} of the users drawn"),
        help="Serve only this many users, or this share of them, drawn at random.",
    )
    newcomers: str = decision(
        "B1",
        "unserved",
        "users without training ratings: no list, or one from the systems that can serve them",
        choices=("unserved", "served"),
        phrase=unless("unserved", "newcomers served"),
        help="Whether users without training ratings get a list from the systems that can serve them.",
    )

    @property
    def everyone(self) -> bool:
        """Whether nobody is removed."""
        return self.min_ratings == 0 and self.sample == "all"


def made_for(record: Mapping[str, Any]) -> str:
    """Return a description, from a record, of the users that lists were made for; empty if nobody was left out.

    Examples
    --------
    >>> made_for({"min_ratings": 5, "sample": "all"}), made_for({"min_ratings": 0, "sample": 0.1}), made_for({})
    ('users with at least 5 training ratings', '10 % of the users, drawn at random', '')
    """
    least, sample = record.get("min_ratings", 0), record.get("sample", "all")
    # Users without training ratings have no list in any case.
    enough = f" with at least {least} training ratings" if isinstance(least, int) and least > 1 else ""
    if isinstance(sample, float):
        return f"{100 * sample:g} % of the users{enough}, drawn at random"
    if isinstance(sample, int):
        return f"{sample:,} users{enough}, drawn at random"
    return f"users{enough}" if enough else ""


class ServingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of `recommend`."""

    min_ratings: int
    sample: float | str | None
    newcomers: str


EVERYONE = Serving()
"""All users are served; those without training ratings get no list."""


def served_users(train: Ratings, serving: Serving = EVERYONE, seed: int = 0) -> tuple[NDArray[np.int32], Step]:
    """Return the codes of the users who are served, and counts of those who are not, by reason.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> users, step = served_users(train, Serving(min_ratings=2))
    >>> users.tolist(), step.effect["served"], step.effect["too few ratings"]
    ([1], 1, 1)
    """
    population, enough = _population(train, serving, seed)
    users = population if serving.newcomers == "served" else population[train.user_counts[population] > 0]
    if len(users) == 0:
        raise SettingError(
            "none of the users who are drawn has a training rating, so nobody is served; raise sample, or set "
            "min_ratings=1"
        )
    step = Step(
        "serve",
        serving.as_dict(),
        {
            "users": train.n_users,
            "served": len(users),
            "too few ratings": train.n_users - enough,
            "not sampled": enough - len(population),
            "newcomers": len(population) - len(users),
        },
    )
    return users, step


def _population(train: Ratings, serving: Serving, seed: int) -> tuple[NDArray[np.int32], int]:
    """Return the codes of the users of the experiment, and how many had enough ratings to be drawn."""
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
        # Every user has a key, so that the draw does not depend on which other users have enough ratings.
        keys = stream(seed, "serve").random(train.n_users)[users]
        users = np.sort(users[np.argsort(keys, kind="stable")[:wanted]])
    return users, enough


def measured_ratings(split: Split, serving: Serving = EVERYONE, seed: int = 0) -> Ratings:
    """Return the test ratings of the users of the experiment: all, unless some are removed.

    Examples
    --------
    >>> from cranfield.splits import predefined
    >>> split = predefined(Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"]), Ratings.of(["ann", "bob"], ["z", "z"]))
    >>> measured_ratings(split, Serving(min_ratings=2)).frame().rows()
    [('bob', 'z', 1.0)]
    """
    test = split.test
    if not serving.everyone:
        users, _ = _population(split.inputs, serving, seed)
        measured = np.zeros(split.inputs.n_users, dtype=np.bool_)
        measured[users] = True
        test = test.keep(measured[test.users])
    served = test.user_counts > 0
    if serving.newcomers == "unserved":
        served &= split.inputs.user_counts > 0
    if not served.any():
        some = "a training rating" if serving.min_ratings <= 1 else f"{serving.min_ratings} training ratings"
        raise SettingError(
            f"none of the {np.count_nonzero(split.test.user_counts):,} users with test ratings is served: "
            + (f"none has {some}" if serving.sample == "all" else f"none of those with {some} is drawn")
            + "; lower min_ratings, raise sample, or fix the split: both parts need the same user ids"
        )
    return test

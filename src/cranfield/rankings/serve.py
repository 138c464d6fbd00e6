"""Decision B1: which users are served."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._random import stream
from cranfield._record import Step
from cranfield._rounding import nearest_count
from cranfield.data import Ratings
from cranfield.splits import Split


def served_users(
    train: Ratings, min_ratings: int = 0, sample: float | None = None, seed: int = 0
) -> tuple[NDArray[np.int32], Step]:
    """Return the codes of the users who are served, and how many are not, and why.

    Parameters
    ----------
    min_ratings
        Only users with at least this many training ratings; 0 serves everyone in the vocabulary.
    sample
        A number of users, or a share below 1, drawn at random from these; None for all of them.
    seed
        Fixes the draw.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> users, step = served_users(train, min_ratings=2)
    >>> users.tolist(), step.effect["served"], step.effect["too few ratings"]
    ([1], 1, 1)
    """
    min_ratings = check.whole("min_ratings", min_ratings, at_least=0)
    users = np.flatnonzero(train.user_counts >= min_ratings).astype(np.int32)
    enough = len(users)
    if sample is not None:
        wanted = _sample_size(sample, enough)
        # A key for every user, so that the draw does not depend on who else had enough ratings.
        keys = stream(seed, "serve").random(train.n_users)[users]
        users = np.sort(users[np.argsort(keys, kind="stable")[:wanted]])
    step = Step(
        "serve",
        {"min_ratings": min_ratings, "sample": sample},
        {
            "users": train.n_users,
            "served": len(users),
            "too few ratings": train.n_users - enough,
            "not sampled": enough - len(users),
        },
    )
    return users, step


def _sample_size(sample: Any, users: int) -> int:
    """Return how many users a number or a share means."""
    if isinstance(sample, Real) and not isinstance(sample, Integral) and sample < 1:
        return max(1, int(nearest_count(check.share("sample", sample), users)))
    return check.whole("sample", sample)


def served_test(split: Split, min_ratings: int = 0, sample: float | None = None, seed: int = 0) -> Ratings:
    """Return the test ratings of the users who are served: those of the others are not to be measured.

    Examples
    --------
    >>> from cranfield.splits import given
    >>> split = given(Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"]), Ratings.of(["ann", "bob"], ["z", "z"]))
    >>> served_test(split, min_ratings=2).frame().rows()
    [('bob', 'z', 1.0)]
    """
    if not min_ratings and sample is None:
        return split.test
    users, _ = served_users(split.train, min_ratings, sample, seed)
    served = np.zeros(split.train.n_users, dtype=np.bool_)
    served[users] = True
    test = split.test.keep(served[split.test.users])
    if len(test) == 0:
        some = "a training rating" if min_ratings <= 1 else f"{min_ratings} training ratings"
        raise SettingError(
            f"none of the {np.count_nonzero(split.test.user_counts):,} users with test ratings is served: "
            + (f"none has {some}" if sample is None else f"of those with {some} none is drawn")
            + "; lower min_ratings, raise sample, or mend the split: both parts need the same user ids"
        )
    return test

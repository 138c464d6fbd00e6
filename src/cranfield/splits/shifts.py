"""How far ratings, popularity of items and activity of users differ between training and test, with users as units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings

# Distribution functions are compared at up to so many values; more users than blocks are flipped in random blocks.
_POINTS, _BLOCKS, _FLIPS = 128, 1500, 999


@dataclass(frozen=True)
class UserValues:
    """Values of users, one row per value; every user counts once, however many values there are."""

    users: NDArray[Any]
    values: NDArray[Any]

    @classmethod
    def of(cls, users: NDArray[Any], values: NDArray[Any], counted: NDArray[np.bool_]) -> UserValues:
        """Return the values of the users that are counted."""
        kept = counted[users]
        return cls(users[kept], values[kept].astype(np.float64))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each value: the users weigh the same, and so do the values of a user."""
        counts = np.bincount(self.users)
        return 1 / (counts[self.users] * max(np.count_nonzero(counts), 1))


def shifts(parts: Mapping[str, Ratings]) -> dict[str, dict[str, Any]]:
    """Return how far ratings, popularity of items and activity of users differ between training and test.

    The popularity of a rated item and the activity of a user are the numbers of their ratings in all parts, which do
    not depend on how these were divided. If most test users have training ratings, ratings and popularity are those of
    the users of both parts, so that each user is compared with the same user; otherwise those of all users. Activity is
    compared between all users of each part.
    """
    train, test = parts["train"], parts["test"]
    in_train, in_test = train.user_counts > 0, test.user_counts > 0
    both = in_train & in_test
    known = 2 * np.count_nonzero(both) > np.count_nonzero(in_test)
    sides = ((train, both), (test, both)) if known else ((train, in_train), (test, in_test))
    activity = np.sum([part.user_counts for part in parts.values()], axis=0)
    popularity = np.sum([part.item_counts for part in parts.values()], axis=0)
    everyone = np.arange(train.n_users)
    compared = {
        "ratings": shift(*(UserValues.of(part.rows().users, part.rows().values, users) for part, users in sides)),
        "popularity": shift(*(UserValues.of(part.users, popularity[part.items], users) for part, users in sides)),
        "activity": shift(*(UserValues.of(everyone, activity, users) for users in (in_train, in_test))),
    }
    return {name: {**sizes, "same_users": bool(known)} for name, sizes in compared.items()}


def shift(before: UserValues, after: UserValues) -> dict[str, float]:
    """Return the means of two samples, the standardised difference, and Kolmogorov's distance with its p-value.

    d is the difference of the means in standard deviations of the first sample. D is the largest difference between the
    two distribution functions, from 0 (the same) to 1 (nothing in common). Every user counts once: a part's function F
    is the mean of its users' own functions F_u. The values of a user are not independent, so p is not Kolmogorov's: the
    contributions of each user to the difference, (F_u − F)/n in the second sample less that in the first, are flipped
    by 999 random sign patterns of users, and p is the share (1 + #{D* ≥ D}) / 1,000 of those whose largest difference
    is as large. With fewer than two users in a sample p is 1.
    """
    point, block = _points(np.concatenate([before.values, after.values])), _blocks(before.users, after.users)
    shape = (int(block.max(initial=-1)) + 1, int(point.max(initial=-1)) + 1)
    functions, contributions, sizes = [], [], []
    for sample, points in ((before, point[: len(before.values)]), (after, point[len(before.values) :])):
        cells = block[sample.users] * shape[1] + points
        table = np.bincount(cells, sample.weights, shape[0] * shape[1]).reshape(shape).cumsum(axis=1)
        function, users = table.sum(axis=0), np.flatnonzero(np.bincount(sample.users))
        # The contributions are centred by the mean of the sample, which takes away a part 1/n of their variance.
        centred = table - np.bincount(block[users], minlength=shape[0])[:, None] / max(len(users), 1) * function
        functions.append(function)
        contributions.append(centred * np.sqrt(len(users) / max(len(users) - 1, 1)))
        sizes.append(len(users))
    distance = float(np.abs(functions[1] - functions[0]).max(initial=0.0))
    signs = np.sign(stream(0, "check_split", "flips").random((_FLIPS, len(contributions[0]))) - 0.5)
    flipped = np.abs(signs @ (contributions[1] - contributions[0])).max(axis=1, initial=0.0)
    reached = np.count_nonzero(flipped >= distance * (1 - 1e-9))
    means = [float(sample.weights @ sample.values) for sample in (before, after)]
    spread = float(np.sqrt(before.weights @ (before.values - means[0]) ** 2))
    return {
        "train": means[0],
        "test": means[1],
        "d": (means[1] - means[0]) / spread if spread > 0 else 0.0,
        "D": distance,
        "p": float(1 + reached) / (1 + _FLIPS) if min(sizes) > 1 else 1.0,
    }


def _points(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of each value among the distinct ones, or among so many parts of about the same size."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) <= _POINTS:
        return place
    below = np.cumsum(counts) - counts
    return np.unique(below * _POINTS // len(values), return_inverse=True)[1][place]


def _blocks(*samples: NDArray[Any]) -> NDArray[np.int64]:
    """Return the block of each user, by number: a user is a block unless there are many, then blocks are random."""
    names = np.flatnonzero(np.bincount(np.concatenate(samples)))
    order = np.argsort(stream(0, "check_split", "users").random(len(names)), kind="stable")
    block = np.zeros(int(names.max(initial=-1)) + 1, dtype=np.int64)
    block[names[order]] = np.arange(len(names)) * min(len(names), _BLOCKS) // max(len(names), 1)
    return block

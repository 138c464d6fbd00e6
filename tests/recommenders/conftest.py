"""A world small enough to score by hand, with all that is awkward in it."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.data import Ratings
from cranfield.tables import Vocabulary


def small_world(seed: int = 0, users: int = 14, items: int = 17) -> Ratings:
    """Ratings 1 to 5 with a user and an item that have none, a profile of one rating, and an item of one rater."""
    draw = np.random.default_rng(seed)
    rated = draw.random((users, items)) < 0.4
    rated[0], rated[:, 0] = False, False  # a user and an item unknown to the training set
    rated[1], rated[1, 3] = False, True  # a profile of one rating
    rated[:, 2], rated[4, 2] = False, True  # an item of one rater
    user, item = np.nonzero(rated)
    values = draw.integers(1, 6, len(user)).astype(np.float64)
    names = Vocabulary.of(range(users)), Vocabulary.of(range(items))
    times = draw.integers(0, 90 * 86_400, len(user))
    return Ratings.from_codes(*names, user.astype(np.int32), item.astype(np.int32), values, times)


@pytest.fixture(params=range(2))
def world(request):
    return small_world(request.param)


@pytest.fixture
def dense():
    """Return a function from ratings to the full matrix, 0 where absent."""

    def to_array(ratings: Ratings) -> np.ndarray:
        return np.asarray(ratings.matrix().toarray(), dtype=np.float64)

    return to_array

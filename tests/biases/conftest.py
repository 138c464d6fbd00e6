"""Small ratings with grades, and a split of them."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf


def ratings_of(users=40, items=30, density=0.4, seed=0, skew=0.0):
    """Ratings from 1 to 5 of random pairs; with ``skew`` the first items are rated more often."""
    rng = np.random.default_rng(seed)
    chance = density * (np.arange(1, items + 1) ** -skew) / np.mean(np.arange(1, items + 1) ** -skew)
    rows, columns = np.nonzero(rng.random((users, items)) < np.minimum(chance, 0.95))
    return cf.Ratings.of(rows.tolist(), columns.tolist(), rng.integers(1, 6, len(rows)).astype(float).tolist())


@pytest.fixture(scope="session")
def make_ratings():
    return ratings_of


@pytest.fixture(scope="session")
def split():
    return cf.splits.random(ratings_of(skew=0.5), train=0.7, seed=1)

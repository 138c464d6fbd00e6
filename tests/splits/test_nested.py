"""Random splits of one seed are nested over ratios: an audit compares ratios that differ by the ratio alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

import cranfield as cf

SPLITS = {
    "coins": lambda ratings, train: cf.splits.random(ratings, train=train, seed=3),
    "exact": lambda ratings, train: cf.splits.random(ratings, train=train, seed=3, exact=True),
    "per user": lambda ratings, train: cf.splits.per_user(ratings, train=train, seed=3),
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=list(SPLITS))
def test_a_larger_training_part_holds_every_smaller_one(split):
    ratings = cf.simulate.world(60, 40, 900).ratings
    parts = [
        set(zip(part.users.tolist(), part.items.tolist()))
        for part in (split(ratings, tenths / 10).train for tenths in range(1, 10))
    ]
    assert all(small < large for small, large in pairwise(parts))

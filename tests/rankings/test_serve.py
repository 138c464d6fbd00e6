"""Who is served."""

from __future__ import annotations

import numpy as np
import pytest
from cranfield.rankings.serve import served_users

from cranfield import Ratings


@pytest.mark.parametrize("seed", range(5))
def test_a_user_is_drawn_in_the_same_order_whoever_else_has_enough_ratings(seed):
    rng = np.random.default_rng(seed)
    profiles = rng.integers(1, 6, 30)
    train = Ratings.of(np.repeat(np.arange(30), profiles), np.concatenate([np.arange(n) for n in profiles]))
    order, drawn = [], set()
    for number in range(1, 31):
        users, _ = served_users(train, sample=number, seed=seed)
        (added,) = set(users.tolist()) - drawn
        drawn.add(added)
        order.append(added)
    for least in (2, 4, 5):
        enough = [user for user in order if train.user_counts[user] >= least]
        for number in range(1, len(enough) + 1):
            users, _ = served_users(train, min_ratings=least, sample=number, seed=seed)
            assert users.tolist() == sorted(enough[:number])

"""Who is served."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.data import Ratings
from cranfield.rankings.serving import EVERYONE, Serving, served_users


@pytest.mark.parametrize("sample", [None, "all"])
def test_all_of_them_has_one_form(sample):
    assert Serving(0, sample) == EVERYONE
    assert EVERYONE.everyone


@pytest.mark.parametrize("sample", [0, 1.0, 1.5, -0.5, "some", True, float("nan"), np.float32(2)])
def test_a_sample_is_a_number_or_a_share_below_one(sample):
    with pytest.raises(SettingError, match="is neither 'all' nor a number of users nor a share below 1"):
        Serving(sample=sample)


def test_a_share_may_be_of_any_kind():
    assert Serving(sample=Fraction(1, 4)).sample == 0.25
    assert Serving(sample=np.int64(3)).sample == 3


def test_a_users_draw_does_not_depend_on_who_else_qualifies():
    users, items = zip(*[(user, item) for user in range(40) for item in range(1 + user % 4)])
    train = Ratings.of(users, items)
    for seed in range(5):
        anyone, _ = served_users(train, Serving(0, 15), seed)
        active, _ = served_users(train, Serving(3, 15), seed)
        # Every user has a key; of those who qualify the 15 smallest are drawn.
        qualified = {user for user in anyone.tolist() if train.user_counts[user] >= 3}
        assert qualified
        assert qualified <= set(active.tolist())

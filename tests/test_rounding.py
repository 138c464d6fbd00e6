"""A share of a count is the nearest whole number, halves up, wherever one is taken."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import filters, splits
from cranfield._rounding import nearest_count, share_of
from cranfield.comparisons import comparing as subsampling
from cranfield.data import Ratings


@pytest.mark.parametrize(
    ("share", "count", "kept"), [(0.29, 50, 15), (0.5, 5, 3), (0.5, 7, 4), (0.07, 100, 7), (0.15, 10, 2)]
)
def test_a_share_is_rounded_alike_by_splits_and_filters(share, count, kept):
    ratings = Ratings.of(range(count), range(count))
    assert int(nearest_count(share, count)) == kept
    assert len(filters.sample(ratings, share=share)) == kept
    assert len(filters.sample(ratings, share=share, of="users")) == kept
    assert len(filters.drop_head(ratings, share=share)) == count - kept
    assert len(splits.random(ratings, train=share, exact=True).train) == kept


def test_subsets_of_users_are_rounded_as_other_shares_are():
    drawn = []

    class FiveUsers:
        values, n_pairs = np.zeros((2, 5)), 1

        def restrict(self, users):
            drawn.append(len(users))
            return self

    subsampling.rejected_share([FiveUsers()], lambda samples: [], subsets=2, size=0.5, alpha=0.05, seed=0)
    assert drawn == [3, 3]


def test_a_share_is_what_it_reads_in_decimals():
    assert share_of(np.array([50, 100]), 0.29).tolist() == [14.5, 29.0]

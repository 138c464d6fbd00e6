"""Popularity percentiles are equal in size, and ordered."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, splits


@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.integers(2, 12))
def test_groups_are_even_and_ordered_by_popularity_and_id(popularity, groups):
    pairs = [(user, item) for item, count in enumerate(popularity) for user in range(count)]
    ratings = Ratings.of(*zip(*pairs))
    if groups > len(popularity):
        with pytest.raises(ImpossibleSplitError, match=f"{len(popularity)} rated items do not fill {groups} "):
            splits.popularity_groups(ratings, groups)
        return
    group = splits.popularity_groups(ratings, groups)
    sizes = np.bincount(group, minlength=groups)
    assert sizes.max() - sizes.min() <= 1
    order = sorted(range(len(popularity)), key=lambda item: (-popularity[item], item))
    assert group[order].tolist() == sorted(group.tolist())


def test_an_item_without_ratings_has_no_group():
    made = splits.random(Ratings.of([1, 2, 1], ["a", "a", "b"]), train=0.5, exact=True)
    alone = made.train.keep(made.train.items == 0)
    with pytest.raises(ImpossibleSplitError):
        splits.popularity_groups(alone, 2)
    both = Ratings.of([1, 1, 1], ["a", "b", "c"])
    assert splits.popularity_groups(both.keep(np.array([True, False, True])), 2).tolist() == [0, -1, 1]


def test_movielens_1m_in_ten_groups_has_some_370_items_in_each(real_data):
    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    made = splits.percentiles(Ratings.of(frame["user"], frame["item"]), groups=10, seed=3)
    assert set(np.bincount(made.item_groups).tolist()) == {370, 371}
    assert made.step.effect["items_by_group"] == np.bincount(made.item_groups).tolist()
    assert sum(made.step.effect["ratings_by_group"]) == len(frame)
    assert made.step.effect["ratings_by_group"] == sorted(made.step.effect["ratings_by_group"], reverse=True)

"""Folds partition the ratings, evenly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, splits

PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=2, max_size=50)


@given(PAIRS, st.integers(2, 8), st.booleans(), st.integers(0, 5))
def test_each_rating_is_tested_once(pairs, k, per_user, seed):
    ratings = Ratings.of(*zip(*pairs))
    if k > len(pairs):
        with pytest.raises(ImpossibleSplitError, match=rf"choose at most k={len(pairs)}"):
            splits.k_fold(ratings, k=k)
        return
    folds = splits.k_fold(ratings, k=k, per_user=per_user, seed=seed)
    tested = [pair for one in folds for pair in one.test.frame().select("user", "item").rows()]
    assert Counter(tested) == Counter(pairs)
    sizes = [len(one.test) for one in folds]
    assert max(sizes) - min(sizes) <= 1
    if per_user:
        of_user = np.array([one.test.user_counts for one in folds])
        assert (of_user.max(axis=0) - of_user.min(axis=0) <= 1).all()
    assert [(one.fold, one.folds) for one in folds] == [(fold, k) for fold in range(k)]


def test_folds_are_a_sequence():
    folds = splits.k_fold(Ratings.of([1] * 10, range(10)), k=5)
    assert len(folds) == 5
    assert repr(folds) == "Folds(5 of Ratings(1 users, 10 items, 10 ratings))"
    assert folds[-1].fold == 4
    assert [one.fold for one in folds[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        folds[5]


def test_more_than_256_folds_work():
    folds = splits.k_fold(Ratings.of([1] * 300, range(300)), k=300)
    assert sorted(int(one.test.items[0]) for one in folds) == list(range(300))


def test_the_validation_parts_of_folds_are_drawn_apart():
    folds = splits.k_fold(Ratings.of([1] * 100, range(100)), k=2, validation=0.5)
    one, other = (set(fold.validation.items.tolist()) for fold in folds)
    assert one.isdisjoint(folds[0].test.items.tolist())
    assert not one & other

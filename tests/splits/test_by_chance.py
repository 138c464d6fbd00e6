"""Random splits have the ratio they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, splits


@given(st.integers(2, 300), st.integers(2, 98), st.integers(2, 98))
def test_the_exact_ratio_is_exact(count, train, validation):
    learn = (2 * train * count + 100) // 200
    aside = (2 * validation * learn + 100) // 200
    train, validation = train / 100, validation / 100
    ratings = Ratings.of(range(count), range(count))
    if not (0 < aside < learn < count):
        with pytest.raises(ImpossibleSplitError, match="part empty"):
            splits.random(ratings, train=train, exact=True, validation=validation)
        return
    made = splits.random(ratings, train=train, exact=True, validation=validation)
    assert (len(made.train), len(made.validation), len(made.test)) == (learn - aside, aside, count - learn)


def test_a_half_goes_to_training_as_it_reads_in_decimals():
    ratings = Ratings.of([1] * 50, range(50))
    assert 0.29 * 50 < 14.5
    for made in (splits.random(ratings, train=0.29, exact=True), splits.per_user(ratings, train=0.29)):
        assert len(made.train) == 15


@pytest.mark.parametrize("exact", [False, True])
def test_every_rating_has_the_same_chance(exact):
    """Over many seeds, how often each rating is a test rating is binomial: check its mean and its spread."""
    ratings, seeds = Ratings.of([1] * 20 + [2] * 20, [*range(20)] * 2), 2_000
    times = sum(_tested(splits.random(ratings, train=0.75, exact=exact, seed=seed), 40) for seed in range(seeds))
    expected, deviation = seeds / 4, math.sqrt(seeds * 3 / 16)
    assert np.abs(times - expected).max() < 4.5 * deviation
    assert 0.6 < np.std(times) / deviation < 1.4


def _tested(made, count):
    mask = np.zeros(count)
    mask[made.test.users * 20 + made.test.items] = 1
    return mask


def test_coins_keep_the_ratio_in_expectation_with_validation(real_data):
    import polars as pl

    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    made = splits.random(Ratings.of(frame["user"], frame["item"]), train=0.8, validation=0.1, seed=7)
    sizes = np.array([len(part) for part in made.parts.values()])
    expected = np.array([0.72, 0.08, 0.2]) * len(frame)
    assert np.abs(sizes - expected).max() < 5 * math.sqrt(len(frame) * 0.25)

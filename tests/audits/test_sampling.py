"""Balanced samples of a product."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits.sampling import balanced_sample, imbalance_of

SIZES = [4, 3, 5, 2]


@pytest.mark.parametrize("seed", [0, 1])
def test_options_are_equally_frequent_and_cells_differ(seed):
    cells, _ = balanced_sample(SIZES, 50, [1, 1, 1, 1], seed=seed)
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))
    assert len(np.unique(cells, axis=0)) == 50
    assert cells[0].tolist() == [1, 1, 1, 1]


def test_pairs_are_more_even_than_by_chance():
    cells, imbalance = balanced_sample(SIZES, 50, [0, 0, 0, 0])
    rng = np.random.default_rng(0)
    drawn = np.stack([rng.permutation(np.arange(50) % size) for size in SIZES], axis=1).astype(np.int32)
    assert imbalance == imbalance_of(cells, SIZES) < 0.6 * imbalance_of(drawn, SIZES)


def test_impossible_cells_are_not_drawn_and_options_stay_even():
    def is_valid(cells):
        return (cells[:, 0] != 3) | (cells[:, 2] != 4)

    cells, _ = balanced_sample(SIZES, 40, [0, 0, 0, 0], is_valid)
    assert is_valid(cells).all()
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))


def test_the_same_seed_draws_the_same_sample():
    assert np.array_equal(
        balanced_sample(SIZES, 30, [0] * 4, seed=5)[0], balanced_sample(SIZES, 30, [0] * 4, seed=5)[0]
    )


def test_given_cells_are_in_the_sample_and_options_stay_even():
    beside = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 4, 0], [0, 0, 0, 1]]
    cells, _ = balanced_sample(SIZES, 41, [0, 0, 0, 0], beside=beside)
    assert cells[:5].tolist() == [[0, 0, 0, 0], *beside]
    assert len(np.unique(cells, axis=0)) == 41
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))


def test_given_cells_that_would_make_options_uneven_are_not_forced():
    beside = [[0, 0, option, 0] for option in range(1, 5)]
    cells, _ = balanced_sample(SIZES, 8, [0, 0, 0, 0], beside=beside)
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))

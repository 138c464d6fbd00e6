"""Counts with a total, and the power law that shapes them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield.simulate import PowerLaw
from cranfield.simulate.counts import counts_of_shape, log_normal_sizes, sizes_like


@given(
    shape=st.lists(st.floats(0.01, 100), min_size=1, max_size=40),
    low=st.integers(0, 3),
    room=st.integers(0, 50),
    part=st.floats(0, 1),
)
def test_counts_add_up_stay_in_bounds_and_follow_the_shape(shape, low, room, part):
    high = low + room
    weights = np.array(shape)
    total = round(len(shape) * (low + part * room))
    counts, beta = counts_of_shape(weights, total, low=low, high=high)
    assert counts.sum() == total
    assert counts.min() >= low
    assert counts.max() <= high
    assert np.abs(counts - np.clip(beta * weights, low, high)).max() <= 1 + 1e-6
    order = np.argsort(weights, kind="stable")
    apart = np.diff(weights[order]) > 1e-9
    assert (np.diff(counts[order])[apart] >= 0).all()


def test_a_total_that_does_not_fit_is_refused():
    with pytest.raises(SettingError, match="ask for fewer"):
        counts_of_shape(np.ones(3), 31, low=0, high=10)
    with pytest.raises(SettingError, match="ask for more"):
        counts_of_shape(np.ones(3), 2, low=1, high=10)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.4, 2.0])
def test_power_law_counts_are_the_formula_up_to_rounding(alpha):
    counts, beta = PowerLaw(alpha, c1=2.0, c2=30.0).counts(items=300, ratings=20_000, users=5_000)
    law = 2.0 + beta * (30.0 + np.arange(1, 301)) ** -alpha
    assert counts.sum() == 20_000
    assert np.abs(counts - law).max() < 1


def test_alpha_zero_is_uniform():
    counts, _ = PowerLaw(0.0, c2=10.0).counts(items=7, ratings=100, users=50)
    assert sorted(counts.tolist()) == [14, 14, 14, 14, 14, 15, 15]


def test_a_fit_finds_the_law_that_made_the_counts():
    for law in (PowerLaw(0.8, 5.0, 50.0), PowerLaw(1.4, 0.0, 200.0), PowerLaw(2.0, 10.0, 100.0)):
        counts, _ = law.counts(items=2_000, ratings=2_000_000, users=10**6)
        found = PowerLaw.fit(np.random.default_rng(0).permutation(counts))
        assert found.alpha == pytest.approx(law.alpha, abs=0.03)
        assert found.c2 == pytest.approx(law.c2, rel=0.05)


def test_a_fit_needs_some_items():
    with pytest.raises(SettingError, match="3 items"):
        PowerLaw.fit(np.array([3, 2, 1, 0]))


def test_the_fit_to_movielens_1m_has_the_alpha_of_the_paper(real_data):
    counts = pl.read_parquet(real_data("ml-1m.parquet")).group_by("item").len()["len"].to_numpy()
    law = PowerLaw.fit(counts)
    assert law.alpha == pytest.approx(1.4, abs=0.1)  # "alpha ~ 1.4 for MovieLens 1M", section 5.2
    assert law.c1 == pytest.approx(0, abs=1)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_log_normal_sizes_have_the_gini_of_the_log_normal(spread):
    from scipy.special import erf

    sizes = log_normal_sizes(5_000, 1_000_000, spread=spread, low=1, high=100_000)
    ranks = np.arange(1, 5_001)
    gini = ((2 * ranks - 5_001) @ sizes) / (5_000 * sizes.sum())
    assert sizes.sum() == 1_000_000
    assert gini == pytest.approx(erf(spread / 2), abs=0.01)


def test_sizes_like_others_are_theirs_or_keep_their_shape():
    given_sizes = np.array([20, 100, 30, 50])
    assert sizes_like(given_sizes, 4, 200, low=1, high=100).tolist() == [20, 30, 50, 100]
    larger = sizes_like(given_sizes, 400, 40_000, low=1, high=1_000)
    assert larger.sum() == 40_000
    assert np.median(larger) / larger.mean() == pytest.approx(np.median(given_sizes) / given_sizes.mean(), rel=0.05)

"""Corrections of metrics that were measured among sampled items."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import cranfield as cf
from cranfield.biases import correct_sampled
from cranfield.biases.sampled_metrics import _chances


def _sampled(full, m, n, seed, replacement=False):
    rng = np.random.default_rng(seed)
    if replacement:
        return 1 + rng.binomial(m, (full - 1) / n)
    return 1 + rng.hypergeometric(full - 1, n - (full - 1), m)


def test_the_chance_of_a_sampled_rank_is_hypergeometric_or_binomial():
    grid = np.arange(1, 32, dtype=float)
    for replacement in (False, True):
        found = _chances(7, 30, grid, replacement)
        for k, rank in enumerate(grid.astype(int)):
            law = stats.binom(7, (rank - 1) / 30) if replacement else stats.hypergeom(30, rank - 1, 7)
            np.testing.assert_allclose(found[:, k], law.pmf(np.arange(8)), atol=1e-12)


def test_a_hit_among_99_is_likely_far_below_the_top_of_the_catalogue():
    # MovieLens 1M without the 165 training items of a user
    hit = _chances(99, 3541, np.array([200.0, 370.0]), False)[:10].sum(axis=0)
    assert hit.round(2).tolist() == [0.95, 0.41]


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("m", [20, 99])
def test_the_interval_holds_the_value_on_the_whole_catalogue(m, replacement):
    n, rng = 300, np.random.default_rng(m)
    inside = 0
    for seed in range(2):
        full = np.minimum(1 + rng.geometric(0.02, 800), n + 1)
        ranks = _sampled(full, m, n, seed, replacement)
        result = correct_sampled(
            ranks, ["HitRate@10", "nDCG@10", "RR"], sampled=m, candidates=n, replacement=replacement
        )
        truth = [(full <= 10).mean(), ((full <= 10) / np.log2(full + 1)).mean(), (1 / full).mean()]
        inside += sum(
            low - 1e-9 <= value <= high + 1e-9
            for value, low, high in zip(truth, result.frame["lower"], result.frame["upper"])
        )
    assert inside == 6


def test_with_almost_all_items_sampled_the_value_is_identified_and_right():
    full = 1 + np.random.default_rng(0).integers(0, 60, 3000)
    ranks = _sampled(full, 98, 100, 1)
    row = correct_sampled(ranks, "HitRate@10", sampled=98, candidates=100).frame.row(0, named=True)
    assert row["identified"]
    assert row["estimate"] == pytest.approx((full <= 10).mean(), abs=0.02)


def test_with_few_items_sampled_it_is_not_identified():
    full = 1 + np.random.default_rng(0).geometric(0.02, 500)
    result = correct_sampled(_sampled(np.minimum(full, 1001), 10, 1000, 1), "HitRate@10", sampled=10, candidates=1000)
    assert not result.frame["identified"][0]
    assert "not identified" in result.table().text()


def test_the_corrected_metric_of_krichene_and_rendle_has_less_bias_than_the_sampled_one():
    full = 1 + np.random.default_rng(2).integers(0, 301, 4000)  # all full ranks are equally likely, as it assumes
    ranks = _sampled(full, 50, 300, 5)
    row = correct_sampled(ranks, "nDCG@10", sampled=50, candidates=300, estimator="bv", gamma=0.01).frame.row(
        0, named=True
    )
    truth = ((full <= 10) / np.log2(full + 1)).mean()
    assert abs(row["estimate"] - truth) < 0.3 * abs(row["sampled"] - truth)


def test_numbers_may_differ_between_rows():
    rng = np.random.default_rng(4)
    n = rng.integers(180, 220, 900)
    m = np.where(rng.random(900) < 0.5, 30, 60)
    full = np.minimum(1 + rng.geometric(0.05, 900), n)
    ranks = 1 + rng.hypergeometric(full - 1, n - (full - 1), m)
    frame = pl.DataFrame({"user": range(900), "item": range(900), "rank": ranks, "sampled": m, "candidates": n})
    row = correct_sampled(frame, "HitRate@10").frame.row(0, named=True)
    assert row["lower"] <= (full <= 10).mean() <= row["upper"]


@pytest.mark.parametrize(
    ("ranks", "options", "message"),
    [
        ([1, 2], {"sampled": 9}, "candidates is missing"),
        ([1, 12], {"sampled": 9, "candidates": 100}, "the rank 12"),
        ([0, 1], {"sampled": 9, "candidates": 100}, "the rank 0"),
        ([1.5], {"sampled": 9, "candidates": 100}, "does not hold whole numbers"),
        ([], {"sampled": 9, "candidates": 100}, "no sampled ranks"),
        ([1], {"sampled": 9, "candidates": 5}, "cannot be sampled without replacement"),
        ([1], {"sampled": 9, "candidates": 50, "metrics": "bpref"}, "bpref is not a metric of a single rank"),
        ([1], {"sampled": 9, "candidates": 50, "gamma": 0, "estimator": "bv"}, "gamma=0 is not above 0"),
    ],
)
def test_bad_input_is_refused(ranks, options, message):
    with pytest.raises(cf.CranfieldError, match=message):
        correct_sampled(ranks, **options)

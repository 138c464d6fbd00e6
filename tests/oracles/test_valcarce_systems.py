"""Valcarce et al. (2018): their own systems on their own split of MovieLens 1M, to the printed digits."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.measures.measuring import measure
from cranfield.rankings.recommending import recommend
from cranfield.splits import Split

QUICK = ("popularity", "kld")
# P@10, P@100, nDCG@10, nDCG@100 and AP@100 as published, and the tolerance (ties are broken differently there).
PUBLISHED = {
    "popularity": ([0.1428, 0.0621, 0.1793, 0.2269, 0.0762], 2e-4),
    "kld": ([0.2722, 0.0958, 0.3508, 0.4139, 0.1935], 1e-4),
    "rw": ([0.2545, 0.0918, 0.3308, 0.3921, 0.1782], 2e-4),
    "rm1": ([0.1302, 0.0534, 0.1705, 0.2160, 0.0694], 2e-4),
    "lm-wsr-ub": ([0.2803, 0.0994, 0.3641, 0.4306, 0.2021], 1e-4),
    "puresvd": ([0.2853, 0.1032, 0.3618, 0.4281, 0.2024], 1e-4),
    "uir": ([0.1430, 0.0621, 0.1795, 0.2270, 0.0763], 2e-4),
    "ht": ([0.0067, 0.0184, 0.0091, 0.0754, 0.0082], 1e-4),
}
# Randomised training, with settings chosen on a validation part of the training ratings.
TRAINED = {"bprmf": 0.4566, "wrmf": 0.4347, "svd": 0.0949}
METRICS = ["P@10", "P@100", "nDCG@10", "nDCG@100", "AP@100"]


@pytest.fixture(scope="module")
def split(real_data):
    rows = pl.read_parquet(real_data("ml-1m.parquet"))
    rows = rows.join(pl.read_parquet(real_data("ml-1m-splits.parquet")), on=["user", "item"]).sort("user", "item")
    ratings = Ratings.of(rows["user"], rows["item"], rows["rating"].to_numpy())
    test = rows["evalmetrics_test"].to_numpy()
    return Split(ratings.keep(~test), ratings.keep(test), Step("given"))


def _means(split, system):
    # 35 users have no relevant item and count as 0 there. Only items of the test set are recommended, which matters for
    # systems that go deep into the long tail (ht).
    runs = recommend(split, system, candidates="test")
    return np.nan_to_num(measure(runs, split.test, METRICS, threshold=4).values[0]).mean(axis=1)


@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=pytest.mark.slow if name in QUICK else pytest.mark.hours) for name in PUBLISHED],
)
def test_the_published_values_come_out(split, system):
    values, tolerance = PUBLISHED[system]
    np.testing.assert_allclose(_means(split, system), values, atol=tolerance)


@pytest.mark.hours
@pytest.mark.parametrize("system", TRAINED)
def test_trained_systems_are_as_good_as_published(split, system):
    assert _means(split, system)[3] >= 0.98 * TRAINED[system]

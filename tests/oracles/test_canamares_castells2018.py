"""The published protocols on CM100k give the numbers that are printed, as far as draws and ties allow."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.studies.canamares_castells2018.designs import (
    FIFTHS,
    OBSERVED_NDCG,
    OBSERVED_P1,
    TRUE_NDCG,
    TRUE_P1,
    Sums,
    published_sums,
)

NAMES = {"knn user non-normalised": "kNN, not normalised", "knn user normalised": "kNN, normalised"}
COLUMNS = {"observed_p1": OBSERVED_P1, "true_p1": TRUE_P1, "observed_ndcg10": OBSERVED_NDCG, "true_ndcg10": TRUE_NDCG}
# Twice the difference between two repetitions of P@1 and nDCG@10.
NEAR = {"observed_p1": 0.004, "true_p1": 0.005, "observed_ndcg10": 0.002, "true_ndcg10": 0.002}


@pytest.fixture
def printed(real_data):
    """Return a file of printed numbers by name, or skip the test where it is absent."""

    def read(name):
        path = real_data("cm100k.parquet").parent.parent / "oracles" / name
        if not path.exists():
            pytest.skip(f"{name} is not beside the data")
        return pl.read_csv(path)

    return read


@pytest.mark.slow
def test_the_protocol_of_2018_gives_the_printed_numbers_of_seven_systems(real_data, printed):
    rows = printed("canamares-castells2018-cm100k.csv")
    frame = pl.read_parquet(real_data("cm100k.parquet"))
    known, judged = (cf.read(part.drop("known")) for part in (frame.filter("known"), frame))
    sums = Sums.joined([published_sums(known, judged, "actual", False, 3.0, seed) for seed in range(2)])
    assert rows.height == 7
    for row in rows.iter_rows(named=True):
        place = sums.systems.index(NAMES.get(row["recommender"], row["recommender"]))
        for column, label in COLUMNS.items():
            assert sums.means(label)[place] == pytest.approx(row[column], abs=NEAR[column]), (row, column)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "ours", "near"),
    [
        # Ties between equally popular items are broken differently.
        ("mostpopular", "popularity", {"rel": 0.02}),
        ("smootheditemaverage", "average(damping=1)", {"rel": 0.1, "abs": 0.003}),
        ("randomguess", "random", {"rel": 0.1, "abs": 0.003}),
    ],
)
def test_the_folds_of_2021_give_the_printed_numbers(real_data, printed, system, ours, near):
    rows = printed("mena-maldonado2021-cm100k.csv").filter(system=system)
    folds = pl.read_parquet(real_data("cm100k-folds.parquet"))
    names = dict(zip(FIFTHS, ("precision", "recall", "ndcg", "antiprecision")))
    for kind, part in (("observed", "test"), ("true", "test_true")):
        means = []
        for number in range(1, 6):
            fold = folds.filter(fold=number)
            train, test = (cf.read(fold.filter(part=name).drop("fold", "part")) for name in ("train", part))
            values = cf.measure(cf.recommend(train, ours, 10), test, FIFTHS, threshold=3).values[0]
            means.append(np.nan_to_num(values).sum(axis=1) / np.count_nonzero(test.user_counts))
        for metric, mean in zip(FIFTHS, np.mean(means, axis=0)):
            value = rows.filter(dataset=f"cm100k_{kind}", metric=names[metric])["value"].item()
            assert mean == pytest.approx(value, **near), (kind, metric)

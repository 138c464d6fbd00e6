"""The study of Valcarce et al. (2018) on their own split of MovieLens 1M gives the averages that they published."""

from __future__ import annotations

import polars as pl
import pytest

from cranfield import read
from cranfield.studies import replicate

# From the companion data of the paper: lists of 100, threshold 4.
METRICS = ("P", "Recall", "MAP", "nDCG", "MRR", "bpref", "infAP")
PUBLISHED = {
    "puresvd": dict(zip(METRICS, (0.1032, 0.6052, 0.2024, 0.4281, 0.5798, 0.4932, 0.4650))),
    "popularity": dict(zip(METRICS, (0.0621, 0.3535, 0.0762, 0.2269, 0.3367, 0.3157, 0.2609))),
}
# Popularity has many ties, which the authors' lists break in another order.
TOLERANCE = {"puresvd": 0.00005001, "popularity": 0.0005}


@pytest.mark.hours
def test_the_systems_score_on_the_authors_split_what_the_authors_published(real_data, tmp_path):
    parts = pl.read_parquet(real_data("ml-1m-splits.parquet")).filter("evalmetrics_test")
    rows = pl.read_parquet(real_data("ml-1m.parquet")).join(parts, on=["user", "item"]).select("user", "item", "rating")
    found = replicate(
        "valcarce2018",
        read(real_data("ml-1m.parquet")),
        split=read(rows),
        systems=list(PUBLISHED),
        samples=1,
        sizes=[1, 0.5],
        figures=False,
        out=tmp_path / "out",
    )
    assert rows.height == 197_656
    averages = found.exhibit("systems").frame
    for system, published in PUBLISHED.items():
        own = averages.filter(pl.col("system") == system).drop("system").row(0, named=True)
        assert own == pytest.approx(published, abs=TOLERANCE[system])

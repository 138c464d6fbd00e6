"""The study of target sampling on a small world, against recommending and measuring by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield import measure, recommend
from cranfield._figures import definition
from cranfield.data import simulate
from cranfield.recommenders import recommender
from cranfield.splits import k_fold
from cranfield.studies import replicate
from cranfield.studies.canamares_castells2020 import METRICS, SIZES, systems_of


@pytest.fixture(scope="module")
def world():
    return simulate.world(users=30, items=50, ratings=700, seed=1).ratings


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("castells") / "out"
    return replicate("canamares-castells2020", world, out=out, folds=2, figures=False)


@pytest.mark.parametrize("name", ["Random", "Normalized kNN (full)", "iMF (test)"])
@pytest.mark.parametrize("size", [0, 5, 3706])
def test_a_number_is_that_of_lists_of_test_items_and_unrated_ones(found, world, name, size):
    split = next(iter(k_fold(world, k=2, seed=0)))
    system = {name: recommender(systems_of(4.0, 0)[name])}
    (run,) = recommend(split, system, 10, min_ratings=1, unrated=size, fill="random")
    (short,) = recommend(split, system, 10, min_ratings=1, unrated=size)
    served = split.test.keep(split.train.user_counts[split.test.users] > 0)
    sums = np.nan_to_num(measure(run, served, METRICS, threshold=4).values[0]).sum(axis=1)
    own = pl.read_parquet(found.folder / "measured" / "fold-1.parquet").filter(system=name, unrated=size)
    expected = [*(sums / len(run.users)), np.minimum(np.diff(short.indptr), 10).mean() / 10]
    assert own["value"].to_list() == pytest.approx(expected)


def test_every_system_and_size_stands_in_the_tables_and_figures(found):
    for stem in ("figure-03-precision", "figure-03-recall", "figure-03-ndcg", "figure-05"):
        assert found.exhibit(f"{stem}-numbers").frame.height == 8 * len(SIZES)
        assert (found.folder / "figures" / f"{stem}.csv").read_text().strip()
        assert definition(found.exhibit(stem).draw())["mark"]["type"] == "line"

"""An assessment is the same wherever its lists are judged."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.assessments.assessment import STUDIES
from cranfield.cli import main

METRICS = ["P@3", "nDCG@3", "ERR@3", "bpref", "RBP", "nDCG(condensed=true)@3", "Rprec", "AP(rel=5)"]
OPTIONS = {
    "sizes": [1, 0.5, 0.04],
    "samples": 4,
    "threshold": 4,
    "averages": ["mean", "geometric", "weighted(by=judged)", "median"],
    "significance": "student",
}


def to_spark(rows, session):
    """Return rows as a Spark dataframe."""
    return session.createDataFrame(rows.to_arrow())


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return files of three systems and a test set with few highest ratings, so that some samples have none of them."""
    random, folder = np.random.default_rng(2), tmp_path_factory.mktemp("world")
    test = [
        (user, int(item), float(random.integers(1, 5)) + (user % 10 == 0))
        for user in range(2, 32)
        for item in random.permutation(20)[: random.integers(1, 8)]
    ]
    rated = {(user, item) for user, item, _ in test}
    runs = [
        # The first system ranks rated items above the rest, so it differs significantly from the others.
        (system, user, int(item), float(random.integers(0, 6)) + 6 * (system == "a" and (user, item) in rated))
        for system in ("a", "b", "c")
        for user in range(30)
        for item in random.permutation(20)[: random.integers(2, 9)]
    ]
    pl.DataFrame(runs, ["system", "user", "item", "score"], orient="row").write_parquet(folder / "runs.parquet")
    pl.DataFrame(test, ["user", "item", "rating"], orient="row").write_parquet(folder / "test.parquet")
    return folder / "runs.parquet", folder / "test.parquet"


def assert_same(mine, theirs):
    for study in STUDIES:
        assert_frame_equal(mine.frame(study), theirs.frame(study), rel_tol=1e-9, abs_tol=1e-12)
    assert mine.step.settings == theirs.step.settings
    assert str(mine) == str(theirs)


def test_ranges_of_users_give_the_result_in_memory_also_with_finished_parts(world, tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.measures.ranged._LARGEST_RANGE", 6000)
    monkeypatch.setattr("cranfield.measures.ranged._SMALLEST_RANGE", 1)
    in_memory = cf.assess(*world, METRICS, engine="memory", **OPTIONS)
    for _ in range(2):
        assert_same(cf.assess(*world, METRICS, engine="ranges", out=tmp_path / "samples", **OPTIONS), in_memory)


@pytest.mark.spark
def test_spark_gives_the_result_in_memory(spark, world, capsys):

    runs, test = (to_spark(pl.read_parquet(file), spark) for file in world)
    assert_same(cf.assess(runs, test, METRICS, **OPTIONS), cf.assess(*world, METRICS, engine="memory", **OPTIONS))
    with pytest.raises(cf.SettingError, match="Gini looks at whole lists, of which only the judged items are kept"):
        cf.assess(runs, test, "Gini")
    shown = []
    for engine in ("spark", "memory"):
        command = ["assess", "--test", str(world[1]), str(world[0]), "-m", "P@3", "--engine", engine, "--samples", "2"]
        main([*command, "--sizes", "1,0.5", "--significance", "student", "--format", "csv"])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]

"""Dataframes of Spark, read as ratings and as runs."""

from __future__ import annotations

import os
import sys

import pytest

import cranfield as cf
from cranfield.rankings import read_run

pytestmark = pytest.mark.slow
sql = pytest.importorskip("pyspark.sql")


@pytest.fixture(scope="module")
def spark():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = local.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


def test_ratings_are_those_of_the_frame(spark):
    rows = [("ann", 10, 4.5), ("bob", 10, 3.0), ("bob", 7, 1.0)]
    ratings = cf.read(spark.createDataFrame(rows, ["userId", "movieId", "rating"]))
    assert ratings.frame().rows() == [("ann", 10, 4.5), ("bob", 7, 1.0), ("bob", 10, 3.0)]


def test_a_run_is_that_of_the_frame(spark):
    run = read_run(spark.createDataFrame([(1, "x", 0.5), (1, "y", 0.9)], ["user", "item", "score"]))
    assert run.frame().select("user", "item", "rank").rows() == [(1, "y", 1), (1, "x", 2)]

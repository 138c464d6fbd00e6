"""Lists that Spark makes are the best dot products of its factors, without what the user has seen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.cli import main

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'cranfield[spark]'")

from cranfield.rankings.decisions import Ranking  # noqa: E402
from cranfield.rankings.spark_lists import _RankBlocks, lists_on_spark  # noqa: E402
from cranfield.recommenders import recommender  # noqa: E402
from cranfield.tables import Vocabulary  # noqa: E402
from cranfield.tables.spark import as_polars  # noqa: E402


def to_spark(rows, session):
    """Return rows as a Spark dataframe."""
    return session.createDataFrame(rows.to_arrow())


def train():
    random = np.random.default_rng(0)
    cells = np.argwhere(random.random((15, 12)) < 0.4)
    return pl.DataFrame(
        {"user": cells[:, 0] + 100, "item": [f"i{item}" for item in cells[:, 1]], "rating": 1.0 + cells[:, 1] % 5}
    )


@pytest.mark.parametrize("keep_seen", [False, True])
def test_lists_hold_the_best_dot_products_of_unseen_items(spark, monkeypatch, keep_seen):
    monkeypatch.setattr("cranfield.rankings.spark_lists._CELLS", 30)
    rows = train()
    frame = to_spark(rows, spark)
    factors = recommender("spark-als(factors=3, epochs=2)").fit_on_spark(frame)
    lists = as_polars(lists_on_spark(frame, factors, Ranking(length=5, keep_seen=keep_seen), "als"))
    items = as_polars(factors.items).rows()
    seen = set(rows.select("user", "item").rows())
    for user, vector in as_polars(factors.users).rows():
        scored = [
            (float(np.dot(np.float32(vector), np.float32(other))), item)
            for item, other in items
            if keep_seen or (user, item) not in seen
        ]
        best = sorted(scored, reverse=True)[:5]
        mine = lists.filter(user=user).sort("rank")
        assert mine["rank"].to_list() == [1, 2, 3, 4, 5]
        assert mine["item"].to_list() == [item for _, item in best]
        assert mine["score"].to_list() == pytest.approx([score for score, _ in best], rel=1e-5)
    assert lists["user"].n_unique() == rows["user"].n_unique()


def test_the_lists_can_be_measured_where_they_are_and_written_by_the_command_line(spark, tmp_path, capsys):
    rows = train()
    lists = cf.recommend(to_spark(rows, spark), {"als": "spark-als(factors=3, epochs=2, seed=1)"}, length=4)
    test = pl.DataFrame({"user": [100, 101, 103], "item": ["i1", "i2", "i3"], "rating": [5.0, 5.0, 5.0]})
    on_spark, in_memory = (cf.measure(run, test, ["RR"]) for run in (lists, as_polars(lists)))
    assert_frame_equal(on_spark.frame(), in_memory.frame())
    rows.write_parquet(tmp_path / "train.parquet")
    arguments = ["recommend", "--engine", "spark", "--train", str(tmp_path / "train.parquet"), "--out", str(tmp_path)]
    system = "spark-als(factors=3, epochs=2, seed=1)"
    main([*arguments, "-s", system, "--length", "4"])
    [written] = tmp_path.glob("spark-als*.parquet")
    assert capsys.readouterr().out.strip() == str(written)
    order = ["user", "rank"]
    mine, theirs = pl.read_parquet(written / "*.parquet").sort(order), as_polars(lists).sort(order)
    assert_frame_equal(mine.drop("system"), theirs.drop("system"), rel_tol=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": None}, "the training ratings, item 'i1', column 'user': the user is missing"),
        ({"item": None}, "the training ratings, user 100, column 'item': the item is missing"),
        ({"rating": float("inf")}, "the training ratings, user 100, item 'i1', column 'rating': "),
        ({}, "the training ratings: user 100 rates item 'i1' more than once (1 repeated rating in all); keep one"),
    ],
)
def test_bad_ratings_are_refused_as_in_memory(spark, change, says):
    row = pl.DataFrame({"user": [100], "item": ["i1"], "rating": [1.0]}).with_columns(
        pl.lit(value, dtype={"user": pl.Int64, "item": pl.String}.get(name, pl.Float64)).alias(name)
        for name, value in change.items()
    )
    with pytest.raises(cf.InputError) as error:
        cf.recommend(to_spark(pl.concat([row, row] if not change else [row]), spark), "spark-als")
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("systems", "options", "says"),
    [
        ("popularity", {}, "popularity is not trained on Spark; use spark-als there"),
        ("spark-als", {"fill": "popularity"}, "fill='popularity' is not for ratings on Spark"),
        ("spark-als", {"min_ratings": 5}, "min_ratings=5 is not for ratings on Spark"),
    ],
)
def test_what_spark_does_not_have_is_refused(spark, systems, options, says):
    with pytest.raises(cf.SettingError, match=says):
        cf.recommend(to_spark(train(), spark), systems, **options)


@pytest.mark.parametrize("cells", [1, 30, 1000])
def test_a_worker_ranks_the_users_of_its_rows(monkeypatch, cells):
    monkeypatch.setattr("cranfield.rankings.spark_lists._CELLS", cells)
    random = np.random.default_rng(cells)
    vectors, users = random.random((6, 2), dtype=np.float32), random.random((4, 2), dtype=np.float32)
    seen = {user: set(random.permutation(6)[:2].tolist()) for user in range(4)}
    rows = [(user, None, users[user].tolist()) for user in range(4)]
    rows += [(user, item, None) for user, items in seen.items() for item in items]
    frame = pl.DataFrame(
        rows, schema={"user": pl.Int64, "item": pl.Int64, "features": pl.List(pl.Float32)}, orient="row"
    )
    task = _RankBlocks(vectors, Vocabulary(pl.Series(range(6))), 3, {"user": "bigint", "item": "bigint"})
    lists = pl.concat(pl.from_arrow(batch) for batch in task(iter([frame.sort("user").to_arrow()])))
    for user in range(4):
        scores = {item: float(users[user] @ vectors[item]) for item in range(6) if item not in seen[user]}
        own = lists.filter(user=user)
        assert own["item"].to_list() == sorted(scores, key=scores.get, reverse=True)[:3]
        assert own["rank"].to_list() == [1, 2, 3]
        np.testing.assert_allclose(own["score"], sorted(scores.values(), reverse=True)[:3], rtol=1e-6)

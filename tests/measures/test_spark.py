"""Measuring and comparing on Spark is measuring and comparing in memory."""

from __future__ import annotations

import os
import pickle
import re
import signal
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.cli import main

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'cranfield[spark]'")

from cranfield.measures.spark import (  # noqa: E402
    _SUMS,
    SparkTest,
    _add,
    _MeasureBlocks,
    _OfRatings,
    _pickled,
)
from cranfield.tables.spark import has_java, partitions_for, spark_session  # noqa: E402

if not has_java():
    pytest.skip("Spark needs Java, and there is none", allow_module_level=True)

METRICS = ["P@5", "nDCG@3", "AP", "RR", "ItemCoverage", "Gini@3", "RMSE"]


def to_spark(rows, session):
    """Return rows as a Spark dataframe."""
    return session.createDataFrame(rows.to_arrow())


def world(seed, users=40, items=25):
    """Return rows of two systems and a test set: ties, NaN, items twice, users on one side only, a skewed user."""
    random = np.random.default_rng(seed)
    rows = [
        (
            system,
            int(user),
            int(item),
            float(np.round(1 + 4 * random.random(), 1)) if random.random() > 0.05 else float("nan"),
        )
        for system in ("a", "b")
        for user in random.permutation(users)[: users - 3]
        for item in random.integers(0, items, 3000 if user == 7 else random.integers(1, 9))
    ]
    test = [
        (int(user), int(item), float(random.integers(1, 6)))
        for user in random.permutation(users + 4)[:users]
        for item in random.permutation(items)[: random.integers(1, 6)]
    ]
    runs = pl.DataFrame(rows, schema=["system", "user", "item", "score"], orient="row")
    return runs, pl.DataFrame(test, schema=["user", "item", "rating"], orient="row")


@pytest.fixture(scope="module")
def measured(spark):
    """Return scores from Spark and from memory."""
    runs, test = world(1)
    on_spark = cf.measure(to_spark(runs, spark), to_spark(test, spark), METRICS, bounds=True)
    return on_spark, cf.measure(runs, test, METRICS, bounds=True)


def test_scores_are_those_of_measuring_in_memory(measured):
    mine, theirs = measured
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)
    for name in ("systems", "metrics", "notes", "warnings", "counts", "n_lists", "longest"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert_frame_equal(mine.per_user(), theirs.per_user(), check_dtypes=False, abs_tol=1e-14)
    assert str(mine.table(digits=6)) == str(theirs.table(digits=6))


@pytest.mark.parametrize(
    "significance", ["permutation", "student", "sign", "bootstrap(resamples=50)", "log_student", "wilcoxon", "tukey"]
)
def test_comparisons_are_those_in_memory(measured, significance):
    mine, theirs = (cf.compare(scores, metrics=["nDCG@3", "RR"], significance=significance) for scores in measured)
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-12)


def test_text_ids_ranks_several_frames_and_a_test_set_in_memory_meet(spark):
    runs, test = world(2, users=20)
    runs = runs.filter(pl.col("score").is_not_nan()).with_columns(pl.format("u{}", "user").alias("user"))
    test = test.with_columns(pl.format("u{}", "user").alias("user"), pl.col("item").cast(pl.String))
    ranked = runs.unique(["system", "user", "item"], keep="first", maintain_order=True).with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("system", "user")
    )
    frames = {name: ranked.filter(system=name).drop("system", "score") for name in ("a", "b")}
    train = cf.read(world(3)[1].with_columns(pl.format("u{}", "user").alias("user"), pl.col("item").cast(pl.String)))
    metrics = ["P@5", "EPC(relevant=true)@4"]
    mine = cf.measure({name: to_spark(frame, spark) for name, frame in frames.items()}, test, metrics, train=train)
    theirs = cf.measure(frames, test, metrics, train=train)
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)


@pytest.mark.parametrize(
    "cells", [{"item": ["13", "12 11"]}, {"item": ["[13]", "[12]", "[11]"], "score": [0.2, 0.9, 0.1]}]
)
def test_lists_in_cells_are_known_whichever_comes_first(spark, cells):
    frame = pl.DataFrame({"user": [2, 1, 1][: len(cells["item"])], **cells})
    test = pl.DataFrame({"user": [1, 1, 2], "item": [11, 12, 13], "rating": [5, 2, 5]})
    scores = cf.measure({"lists": to_spark(frame, spark)}, to_spark(test, spark), ["RR", "P@2"])
    assert scores.values.tolist() == [[[0.5, 1.0], [0.5, 0.5]]]


def test_ranks_that_leave_places_out_are_places_as_in_memory(spark):
    runs, test = world(4, users=20)
    runs = runs.drop("score").with_columns(rank=(pl.col("item") * 7 + pl.col("user")) % 30)
    alone = runs.filter(system="b").drop("system")
    structs = alone.group_by("user", maintain_order=True).agg(items=pl.struct("item", "rank"))
    mixed = runs.with_columns(score=pl.when(system="a").then(1.0 + pl.col("item")))
    for frame in (runs, structs, mixed):
        source = {"b": frame} if frame is structs else frame
        on_spark = {"b": to_spark(frame, spark)} if frame is structs else to_spark(frame, spark)
        for options in ({"ties": "average", "bounds": True}, {"gaps": "close"}) if frame is runs else ({},):
            mine = cf.measure(on_spark, to_spark(test, spark), METRICS[:6], **options)
            theirs = cf.measure(source, test, METRICS[:6], **options)
            assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)
            assert mine.counts == theirs.counts
            assert mine.notes == theirs.notes
            assert any("missing in" in note for note in map(str, mine.notes)) == (options.get("gaps") != "close")


def test_lists_in_cells_may_be_empty_or_have_one_item_and_one_score(spark):
    cells = pl.DataFrame({"user": [1, 2, 3], "items": [[4, 5], [], [6]]}, schema_overrides={"items": pl.List(pl.Int64)})
    test = pl.DataFrame({"user": [1, 2, 4], "item": [5, 6, 6], "rating": [1.0, 1.0, 1.0]})
    single = pl.DataFrame({"user": [1, 1, 2], "items": [[4], [5], [6]], "score": [0.5, 1.0, 0.2]})
    for frame in (cells, single):
        mine = cf.measure({"a": to_spark(frame, spark)}, to_spark(test, spark), ["RR"])
        theirs = cf.measure({"a": frame}, test, ["RR"])
        assert_frame_equal(mine.frame(), theirs.frame())
        assert mine.counts == theirs.counts
    assert theirs.average().tolist() == [[pytest.approx(2 / 3)]]


RUN = pl.DataFrame({"user": [1, 2, 3], "item": [3, 3, 4], "score": [1.0, 2.0, 3.0]})
RANKED = RUN.select("user", "item", rank=pl.lit(1))
TEST = pl.DataFrame({"user": [1, 2, 3], "item": [3, 3, 4], "rating": [1.0, 2.0, 3.0]})
LISTS = pl.Series([[1], [2], [3]])


def with_second(frame, column, value, dtype=None):
    """Return a frame whose second row has another value in a column."""
    frame = frame if dtype is None else frame.cast({column: dtype})
    return frame.with_columns(pl.when(pl.int_range(pl.len()) == 1).then(pl.lit(value)).otherwise(column).alias(column))


BAD_RUNS = {
    "a missing user": (with_second(RUN, "user", None), ", item 3"),
    "a missing item": (with_second(RUN, "item", None), ", user 2"),
    "a user that is NaN": (with_second(RUN, "user", float("nan"), pl.Float64), ", user nan, item 3"),
    "an empty user": (with_second(RUN, "user", "", pl.String), ", user '', item 3"),
    "users that are lists": (RUN.with_columns(user=LISTS), ""),
    "a user that is no exact number": (with_second(RUN, "user", 2.0**53, pl.Float64), f", user {2.0**53}, item 3"),
    "an item that is no exact number": (with_second(RUN, "item", 2.0**53, pl.Float64), f", user 2, item {2.0**53}"),
    "a score that is text": (with_second(RUN, "score", "abc", pl.String), ", user 2, item 3"),
    "such a score beside ranks": (with_second(RUN, "score", "abc", pl.String).with_columns(rank=1), ", user 2, item 3"),
    "a missing rank": (with_second(RANKED, "rank", None), ", user 2, item 3"),
    "a rank that is no place": (with_second(RANKED, "rank", 1.5, pl.Float64), ", user 2, item 3"),
    "a rank that is text": (with_second(RANKED, "rank", "first", pl.String), ", user 2, item 3"),
    "no column of items": (RUN.drop("item"), ""),
    "no rows": (RUN.clear(), ""),
}
BAD_TESTS = {
    "a missing user": (with_second(TEST, "user", None), ", item 3"),
    "a missing item": (with_second(TEST, "item", None), ", user 2"),
    "a user that is NaN": (with_second(TEST, "user", float("nan"), pl.Float64), ", user nan, item 3"),
    "users that are lists": (TEST.with_columns(user=LISTS), ", item 3"),
    "a user that is no exact number": (with_second(TEST, "user", 2.0**53, pl.Float64), f", user {2.0**53}, item 3"),
    "a missing rating": (with_second(TEST, "rating", None), ", user 2, item 3"),
    "a rating that is NaN": (with_second(TEST, "rating", float("nan")), ", user 2, item 3"),
    "an infinite rating": (with_second(TEST, "rating", float("inf")), ", user 2, item 3"),
    "a rating that is text": (with_second(TEST, "rating", "good", pl.String), ", user 2, item 3"),
    "ratings that are lists": (TEST.with_columns(rating=LISTS), ", user 1, item 3"),
    "a repeated pair": (pl.concat([TEST, TEST[1:2], TEST[1:2]]), ""),
    "a missing time": (TEST.with_columns(time=pl.Series([1, None, 2])), ", user 2, item 3"),
    "no column of users": (TEST.drop("user"), ""),
    "no rows": (TEST.clear(), ""),
}


# Each takes seconds, and these errors are found by the same code as others that are tested more often.
LESS_OFTEN = ("an empty user", "are lists", "a score that is text", "a rank that is text", "infinite", "a missing time")


def case(side, what, *values):
    marks = [pytest.mark.slow] if any(part in what for part in LESS_OFTEN) else []
    return pytest.param(*values, id=f"{side}, {what}", marks=marks)


@pytest.mark.parametrize(
    ("run", "test", "label", "ids"),
    [
        *(case("run", what, run, TEST, "the run", ids) for what, (run, ids) in BAD_RUNS.items()),
        *(case("test", what, RUN, test, "the test set", ids) for what, (test, ids) in BAD_TESTS.items()),
    ],
)
def test_bad_rows_give_the_same_error_in_memory_by_ranges_and_on_spark(spark, tmp_path, run, test, label, ids):
    paths = [str(tmp_path / name) for name in ("run.parquet", "test.parquet")]
    for frame, path in zip((run, test), paths):
        frame.write_parquet(path)
    errors = []
    for engine in ("memory", "ranges", "spark"):
        with pytest.raises(cf.InputError) as error:
            cf.measure(*paths, "P@3", engine=engine)
        errors.append(str(error.value))
    assert errors[1:] == errors[:1] * 2  # the file, the row and the column
    in_file = error.value
    with pytest.raises(cf.InputError) as error:
        cf.measure(to_spark(run, spark), to_spark(test, spark), "P@3")
    by_ids = error.value
    assert by_ids.source == label + ids
    assert by_ids.row is None
    assert (by_ids.column, by_ids.remedy) == (in_file.column, in_file.remedy)
    assert by_ids.problem == re.sub(", already in row .*", "", in_file.problem)


def test_users_of_different_types_meet_as_in_memory(spark):
    users = [1.0, 20_000_001.0, 3.0]
    run = RUN.with_columns(user=pl.Series(users))
    for own in (pl.Series([1, 20_000_001, 5]), pl.Series(["1", "20000001", "3"]), pl.Series([*users[:2], 3.5])):
        test = TEST.with_columns(user=own)
        mine, theirs = cf.measure(to_spark(run, spark), to_spark(test, spark), "RR"), cf.measure(run, test, "RR")
        assert mine.counts == theirs.counts
        assert_frame_equal(mine.frame(), theirs.frame())
        values = mine.per_user().sort("user")
        assert_frame_equal(values, theirs.per_user().sort("user"))


def test_a_worker_that_is_killed_changes_nothing(spark, tmp_path, measured):
    flag = str(tmp_path / "killed")

    @cf.metric("Deadly", replace=True)
    def deadly(lists):
        """Kill the first worker that measures it."""
        if not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return lists.n_relevant.astype(float)

    runs, test = world(1)
    scores = cf.measure(to_spark(runs, spark), to_spark(test, spark), ["Deadly", *METRICS])
    assert Path(flag).exists()
    kept = scores.frame().filter(pl.col("metric") != "Deadly")
    assert_frame_equal(kept, measured[1].frame().select(kept.columns), rel_tol=1e-12, abs_tol=1e-14)


def test_a_user_with_a_million_rows_in_partitions_that_spill_changes_nothing(spark, tmp_path):
    random = np.random.default_rng(9)
    runs, test = world(5, users=12)
    many = pl.DataFrame(
        {
            "system": "a",
            "user": 7,
            "item": random.integers(0, 600_000, 1_000_000),
            "score": 1 + 4 * random.random(1_000_000),
        }
    ).with_columns(pl.col("score").round(3), pl.col("user").cast(pl.Int64))
    judged = many["item"].unique().sample(40, seed=1)
    runs = pl.concat([many, runs.filter(pl.col("user") != 7)])
    own = pl.DataFrame({"user": 7, "item": judged, "rating": 3.0}).cast({"user": pl.Int64})
    test = pl.concat([test.filter(pl.col("user") != 7), own])
    before = spilled_bytes(spark)
    paths = [str(tmp_path / name) for name in ("runs.parquet", "test.parquet")]
    for frame, path in zip((runs, test), paths):
        frame.write_parquet(path)
    mine = cf.measure(*map(spark.read.parquet, paths), METRICS)
    assert spilled_bytes(spark) > before
    theirs = cf.measure(runs, test, METRICS)
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)
    assert mine.counts == theirs.counts
    compared = [cf.compare(scores, metrics=["AP", "RR"]).frame() for scores in (mine, theirs)]
    assert_frame_equal(*compared, rel_tol=1e-12, abs_tol=1e-12)
    in_ranges = cf.measure(*paths, METRICS, engine="ranges", memory="2GiB")
    assert_frame_equal(in_ranges.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)


def spilled_bytes(spark):
    """Return how many bytes of rows all stages up to now have spilled to disk."""
    context, jvm = spark.sparkContext, spark.sparkContext._jvm
    nothing, no_quantiles = jvm.java.util.ArrayList(), context._gateway.new_array(jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, no_quantiles, nothing)
    return sum(stages.apply(place).diskBytesSpilled() for place in range(stages.size()))


def test_the_command_line_measures_parquet_on_spark(spark, tmp_path, capsys):
    runs, test = world(4, users=12)
    runs.write_parquet(tmp_path / "runs.parquet")
    test.write_parquet(tmp_path / "test.parquet")
    arguments = ["--test", str(tmp_path / "test.parquet"), str(tmp_path / "runs.parquet"), "-m", "nDCG@3"]
    shown = []
    for engine in ("spark", "memory"):
        values = str(tmp_path / f"{engine}.parquet")
        main(["evaluate", *arguments, "--engine", engine, "--format", "csv", "--per-user", values])
        shown.append(pl.read_csv(StringIO(capsys.readouterr().out)))
    assert_frame_equal(*shown, rel_tol=1e-12)
    assert_frame_equal(*(pl.read_parquet(tmp_path / f"{engine}.parquet") for engine in ("spark", "memory")))
    main(["evaluate", *arguments, "--engine", "spark", "--per-user", f"file://{tmp_path}/written.parquet"])
    written = pl.read_parquet(tmp_path / "written.parquet" / "*.parquet")
    assert len(written) == len(pl.read_parquet(tmp_path / "memory.parquet"))
    assert partitions_for(spark.read.parquet(arguments[2])) == 4  # small files: two per core


def test_what_does_not_go_with_spark_is_refused(spark):
    runs, test = world(4, users=12)
    frames = to_spark(runs, spark), to_spark(test, spark)
    with pytest.raises(cf.SettingError, match="ties='input' needs the order of the rows"):
        cf.measure(*frames, "P@3", ties="input")
    with pytest.raises(cf.SettingError, match=r"memory=... cannot be used with engine='spark'"):
        cf.measure(*frames, "P@3", memory="2GiB")
    with pytest.raises(cf.SettingError, match="a dict cannot be used with engine='spark'"):
        cf.measure({"a": {1: [2]}}, frames[1], "P@3", engine="spark")
    with pytest.raises(cf.InputError, match="Spark cannot read it as Parquet"):
        cf.measure("nowhere/runs", frames[1], "P@3", engine="spark")
    with pytest.raises(cf.InputError, match="the file is not Parquet"):
        cf.measure(__file__, frames[1], "P@3", engine="spark")


def test_values_by_user_in_a_frame_are_compared(spark):
    random = np.random.default_rng(0)
    values = pl.DataFrame({"user": np.arange(60), "a": random.random(60), "b": random.random(60) + 0.1})
    mine, theirs = (cf.compare(frame) for frame in (to_spark(values, spark), values))
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-12)
    with pytest.raises(cf.InputError, match="the values of 'b' are not numbers"):
        cf.compare(to_spark(values.with_columns(pl.col("b").cast(pl.String)), spark))


def test_one_line_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(cf.CranfieldError, match="Spark needs Java 17 or newer, and there is none"):
        spark_session("local[2]")


def _sums(batches):
    return [pickle.loads(row["tally"]) for batch in batches for row in batch.to_pylist()]


def test_a_worker_calls_a_function_on_the_ratings_of_its_users():
    test = SparkTest(None, {"user": "who", "item": "what", "rating": "stars"}, {"repeated": "sum"})
    rows = pl.DataFrame({"user": [1, 1, 1, 2], "what": [5, 5, 6, 5], "stars": [1.0, 1.0, 4.0, 3.0]})
    task = _OfRatings(test, lambda ratings: ratings.values.tolist())
    assert _sums(task(iter([rows.to_arrow()]))) == [[[2.0, 4.0, 3.0]]]
    (error,) = _sums(_OfRatings(replace(test, reading={}), len)(iter([rows.to_arrow()])))
    assert "rates item 5 more than once" in str(error)


def test_tallies_are_added_up_in_the_order_of_their_partitions_and_the_first_error_counts():
    def batches(*results):
        for place, result in reversed(list(enumerate(results))):
            yield from _SUMS.batches(_pickled(result).with_columns(place=pl.lit(place)))

    assert _sums(_add(batches("a", "b", "c"))) == ["abc"]
    (error,) = _sums(_add(batches("a", cf.InputError("second"), cf.InputError("first"))))
    assert str(error) == "first"
    assert _sums(_add(batches())) == []


def test_a_worker_hands_on_the_error_of_a_row_and_nothing_of_no_rows(monkeypatch):
    def refuse(*_):
        raise cf.InputError("row 3 has no item")

    monkeypatch.setattr(_MeasureBlocks, "_measured", refuse)
    plan = SimpleNamespace(measuring=SimpleNamespace(wanted=["P@1"]), bounds=False, train=None)
    task = _MeasureBlocks((SimpleNamespace(systems=["a"]),), None, (), plan, ("bigint",))
    (batch,) = task(iter([pl.DataFrame({"user": [1, 1]}).to_arrow()]))
    assert batch.schema.names == ["place", "tally", "block"]
    assert str(pickle.loads(batch.to_pylist()[0]["tally"])) == "row 3 has no item"
    assert list(task(iter([]))) == []


@pytest.mark.parametrize("repeated", ["sum", "last", "mean"])
def test_the_threshold_follows_from_the_merged_ratings(spark, repeated):
    runs, test = world(6, users=15)
    test = pl.concat([test, test.with_columns(rating=pl.col("rating") % 4 + 1)])
    from cranfield.measures import Measuring, opened_run, opened_test
    from cranfield.measures.engines import measure_tables

    tables = [opened_run(to_spark(runs, spark), session=spark)]
    table = opened_test(to_spark(test, spark), session=spark, repeated=repeated)
    mine = measure_tables(tables, table, Measuring(metrics=["P@3", "ERR"]), catalogue=list(range(5))).scores
    theirs = cf.measure(runs, cf.read(test, repeated=repeated), ["P@3", "ERR"], catalogue=list(range(5)))
    assert mine.step.settings["threshold"] == theirs.step.settings["threshold"]
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)

"""Measuring by ranges of users is measuring at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.cli import main
from cranfield.judgments.judged_files import JudgedTable
from cranfield.measures.blocks import ValueTable
from cranfield.measures.engines import measure_tables
from cranfield.measures.measuring import Measuring
from cranfield.metrics import known_metrics
from cranfield.rankings.ranged import HeldOutTable, RunTables

METRICS = ["P@5", "nDCG(gain=exp1)@3", "nDCG", "AP@5", "ERR", "RR", "ItemCoverage", "Gini@3", "RMSE", "PooledRMSE"]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """Make ranges of a few users, read a few rows at a time."""
    monkeypatch.setattr("cranfield.measures.ranged._LARGEST_RANGE", 6000)
    monkeypatch.setattr("cranfield.measures.ranged._SMALLEST_RANGE", 1)
    monkeypatch.setattr("cranfield.measures.ranged._READING", 0)
    monkeypatch.setattr("cranfield.tables.frames.BATCH", 40)


def world(seed, users=30, items=25, length=8):
    """Return the rows of two systems and of a test set: ties, NaN, items twice, users on one side only."""
    random = np.random.default_rng(seed)
    rows = [
        (
            system,
            user,
            int(item),
            float(np.round(1 + 4 * random.random(), 1)) if random.random() > 0.05 else float("nan"),
        )
        for system in ("a", "b")
        for user in random.permutation(users)[: users - 3]
        for item in random.integers(0, items, random.integers(1, length))
    ]
    test = [
        (int(user), int(item), float(random.integers(1, 6)))
        for user in random.permutation(users + 4)[:users]
        for item in random.permutation(items)[: random.integers(1, 6)]
    ]
    runs = pl.DataFrame(rows, schema=["system", "user", "item", "score"], orient="row")
    return runs, pl.DataFrame(test, schema=["user", "item", "rating"], orient="row")


def written(folder: Path, frame: pl.DataFrame, name: str) -> str:
    frame.write_parquet(folder / name, row_group_size=10)
    return str(folder / name)


def same(mine: cf.Scores, theirs: cf.Scores) -> None:
    assert mine.systems == theirs.systems
    assert mine.metrics == theirs.metrics
    assert mine.user_ids.ids(mine.users).to_list() == theirs.user_ids.ids(theirs.users).to_list()
    np.testing.assert_array_equal(mine.values, theirs.values)
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=1e-14)
    for name in ("covered", "judged", "relevant", "bounds", "trained"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), err_msg=name)
    for name in ("notes", "warnings", "counts", "catalogue", "highest_rating", "made_for", "longest"):
        assert getattr(mine, name) == getattr(theirs, name), name


ORDERS = [(["user"], False), (["item"], True)]
MORE_ORDERS = [(["system", "user"], False), ([], False), (["item"], False), (["system", "user"], True), ([], True)]


@pytest.mark.parametrize(
    ("sort", "text"), [*ORDERS, *(pytest.param(*order, marks=pytest.mark.slow) for order in MORE_ORDERS)]
)
def test_ranges_give_the_scores_of_measuring_at_once(tmp_path, sort, text):
    runs, test = world(len(sort))
    runs, test = (
        frame.sort(sort, maintain_order=True) if sort and sort[0] in frame.columns else frame for frame in (runs, test)
    )
    if text:
        runs = runs.with_columns(pl.format("u{}", "user").alias("user"))
        test = test.with_columns(pl.format("u{}", "user").alias("user"), pl.col("item").cast(pl.String))
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    for options in ({"bounds": True}, {"lists": "condensed", "ties": "input"}, {"ties": "average", "threshold": 2}):
        by_ranges, at_once = (cf.measure(*paths, METRICS, engine=engine, **options) for engine in ("ranges", "memory"))
        assert by_ranges.step.settings["blocks"] > 3
        same(by_ranges, at_once)


def test_every_metric_is_measured_by_ranges_as_at_once_or_refused(tmp_path):
    runs, test = world(5)
    train = cf.read(world(6)[1], repeated="last")
    runs = runs.filter(pl.col("score").is_not_nan())
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    refused = {"IPS@4", "SNIPS@4", "StratRecall(weights=global)@4", "RScore(weights=global)@4", "AOA(utility=auc)@4"}
    ours = {name: definition for name, definition in known_metrics().items() if definition.family != "own"}
    spellings = {name if definition.cutoff == "none" else f"{name}@4" for name, definition in ours.items()}
    kept = [*sorted(spellings - refused), "EPC(relevant=true)@4", "nDCG(gain=exp1)@4"]
    mine, theirs = (cf.measure(*paths, kept, engine=engine, train=train) for engine in ("ranges", "memory"))
    for m, spelling in enumerate(kept):
        np.testing.assert_allclose(mine.values[:, m], theirs.values[:, m], rtol=1e-13, atol=1e-15, err_msg=spelling)
        np.testing.assert_allclose(mine.overall[:, m], theirs.overall[:, m], rtol=1e-13, err_msg=spelling)
    for spelling in refused:
        with pytest.raises(cf.SettingError, match="looks at all users together"):
            cf.measure(*paths, spelling, engine="ranges", train=train)


def test_a_folder_of_parts_divided_by_system_is_one_table(tmp_path):
    runs, test = world(1)
    for (system,), rows in runs.partition_by("system", as_dict=True, include_key=False).items():
        folder = tmp_path / "runs" / f"system={system}"
        folder.mkdir(parents=True)
        for place, part in enumerate((rows.head(40), rows.slice(40))):
            written(folder, part, f"part-{place:05d}.parquet")
    (tmp_path / "runs" / "_SUCCESS").touch()
    path = written(tmp_path, test, "test.parquet")
    parts = cf.measure(str(tmp_path / "runs"), path, METRICS, engine="ranges")
    same(parts, cf.measure(str(tmp_path / "runs"), path, METRICS, engine="memory"))
    same(parts, cf.measure(written(tmp_path, runs, "whole.parquet"), path, METRICS, engine="memory"))


def test_a_test_set_in_memory_meets_runs_read_by_ranges(tmp_path):
    runs, test = world(2)
    path, ratings = written(tmp_path, runs, "runs.parquet"), cf.read_test(test)
    same(*(cf.measure(path, ratings, METRICS, engine=engine) for engine in ("ranges", "memory")))
    text = cf.read_test(test.with_columns(pl.col("user").cast(pl.String)))
    same(*(cf.measure(path, text, METRICS, engine=engine) for engine in ("ranges", "memory")))


def test_lists_in_cells_are_read_by_ranges(tmp_path):
    runs, test = world(3)
    nested = runs.filter(system="a").group_by("user", maintain_order=True).agg(pl.col("item"), pl.col("score"))
    nested = pl.concat([nested, pl.DataFrame({"user": [100], "item": [[]], "score": [[]]}, schema=nested.schema)])
    paths = written(tmp_path, nested, "runs.parquet"), written(tmp_path, test, "test.parquet")
    same(*(cf.measure(*paths, METRICS, engine=engine) for engine in ("ranges", "memory")))
    single = runs.filter(system="a").select("user", pl.concat_list("item").alias("items"), "score")
    plain = written(tmp_path, runs.filter(system="a").drop("system"), "plain.parquet")
    paths = written(tmp_path, single, "single.parquet"), paths[1]
    mine, theirs = (cf.measure({"a": path}, paths[1], METRICS, engine="ranges") for path in (paths[0], plain))
    np.testing.assert_array_equal(mine.values, theirs.values)
    same(*(cf.measure(*paths, METRICS, engine=engine) for engine in ("ranges", "memory")))


@pytest.mark.parametrize(
    "cells",
    [
        {"item": ["13", "12 11"]},
        {"item": ["13", "11 12"], "score": ["0.2", "0.1 0.9"]},
        {"item": ["[13]", "[12]", "[11]"], "score": ["0.2", "0.9", "0.1"]},
        {"item": ["[13]", "[12]", "[11]"], "score": [0.2, 0.9, 0.1]},
        {"item": [[13], [12], [11]], "score": [0.2, 0.9, 0.1]},
    ],
)
def test_lists_in_cells_are_known_alike_whatever_holds_them_and_whichever_comes_first(tmp_path, cells):
    frame = pl.DataFrame({"user": [2, 1, 1][: len(cells["item"])], **cells})
    test = pl.DataFrame({"user": [1, 1, 2], "item": [11, 12, 13], "rating": [5, 2, 5]})
    paths = written(tmp_path, frame, "lists.parquet"), written(tmp_path, test, "test.parquet")
    routes = [({"lists": frame}, "auto"), (paths[0], "memory"), (paths[0], "ranges")]
    if frame.schema["item"] == pl.String:
        frame.write_csv(tmp_path / "lists.csv")
        routes.append((tmp_path / "lists.csv", "auto"))
    for source, engine in routes:
        scores = cf.measure(source, paths[1], ["RR", "P@2"], engine=engine)
        assert scores.values.tolist() == [[[0.5, 1.0], [0.5, 0.5]]], engine


def test_a_range_of_lists_with_one_item_each_is_read_as_the_other_ranges(tmp_path):
    cells = [(user, "13" if user < 60 else "12 11") for user in range(90)]
    frame = pl.DataFrame(cells, schema=["user", "item"], orient="row")
    rows = [(user, item, 5) for user in range(90) for item in (11, 13)]
    test = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    paths = written(tmp_path, frame, "lists.parquet"), written(tmp_path, test, "test.parquet")
    by_ranges, at_once = (cf.measure(*paths, ["RR", "P@2"], engine=engine) for engine in ("ranges", "memory"))
    assert by_ranges.step.settings["blocks"] > 3
    same(by_ranges, at_once)
    assert by_ranges.values[0, 0].tolist() == [1.0] * 60 + [0.5] * 30


def test_training_ratings_and_a_catalogue_say_the_same_by_ranges(tmp_path):
    runs, test = world(4)
    # A third of the items in the lists exist nowhere else.
    runs = runs.with_columns(item=pl.when(pl.col("item") % 3 == 0).then(pl.col("item") + 100).otherwise(pl.col("item")))
    train = cf.read(pl.concat([test.head(5), world(9)[1]]), repeated="last")
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    options = {"train": train, "catalogue": list(range(15)), "metrics": ["P@3", "EPC@5", "ILD", "RR"]}
    mine, theirs = (cf.measure(*paths, engine=engine, **options) for engine in ("ranges", "memory"))
    same(mine, theirs)
    np.testing.assert_allclose(mine.nonexistent, theirs.nonexistent, rtol=1e-12)
    assert len(np.unique(theirs.nonexistent)) > 2


@pytest.mark.parametrize("reading", ["unjudged", "pooled"])
def test_grades_below_zero_are_read_alike(tmp_path, reading):
    runs, test = world(7)
    test = test.with_columns(rating=pl.when(pl.col("user") < 6).then(-1.0).otherwise(pl.col("rating") - 2))
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    same(*(cf.measure(*paths, METRICS[:5], engine=engine, negative_grades=reading) for engine in ("ranges", "memory")))


def _error(paths, engine, metric="P@3"):
    with pytest.raises(cf.CranfieldError) as caught:
        cf.measure(*paths, metric, engine=engine)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "of"),
    [
        ("user", None, "runs"), ("user", "", "runs"), ("item", None, "runs"), ("score", "abc", "runs"),
        ("user", 2.0**53, "runs"), ("item", -(2.0**60), "runs"), ("user", 2.0**53, "test"), ("item", 1e300, "test"),
        ("user", None, "test"), ("user", " ", "test"), ("item", None, "test"), ("rating", None, "test"),
        ("rating", float("inf"), "test"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ascends", [True, False])
def test_bad_rows_give_the_same_errors(tmp_path, column, value, of, ascends):
    runs, test = world(8)
    frames = {"runs": runs.filter(system="a").drop("system"), "test": test}
    frame = frames[of].cast({column: {str: pl.String, float: pl.Float64}.get(type(value), frames[of].schema[column])})
    if ascends:
        frame = frame.sort("user", maintain_order=True)
    bad = pl.Series([frame[column][place] if place not in (31, 33) else value for place in range(len(frame))])
    frames[of] = frame.with_columns(bad.alias(column))
    paths = [written(tmp_path, frames[name], f"{name}.parquet") for name in ("runs", "test")]
    message = _error(paths, "ranges")
    assert message == _error(paths, "memory")
    assert f"{of}.parquet, row 32, column {column!r}" in message


@pytest.mark.parametrize(("column", "value"), [("item", None), ("score", "abc"), ("rank", "1.5"), ("rank", None)])
def test_bad_rows_of_several_systems_give_the_same_errors(tmp_path, column, value):
    runs, test = world(8)
    runs = runs.with_columns(score=pl.when(system="a").then("score"), rank=pl.when(system="b").then(1)).cast(pl.String)
    row = 31 if column == "score" else len(runs) - 5
    runs = runs.with_columns(pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(column).alias(column))
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    message = _error(paths, "ranges")
    assert message == _error(paths, "memory")
    assert f"runs.parquet, row {row + 1}, column {column!r}" in message


@pytest.mark.parametrize("ascends", [True, False])
def test_repeated_ratings_give_the_same_error(tmp_path, ascends):
    runs, test = world(8)
    test = pl.concat([test, test[[40, 3, 50]]])
    test = test.sort("user", maintain_order=True) if ascends else test
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    message = _error(paths, "ranges")
    assert message == _error(paths, "memory")
    assert "(3 repeated ratings in all), already in row" in message


def test_levels_of_relevance_are_those_of_all_users(tmp_path):
    runs, test = world(8)
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    same(*(cf.measure(*paths, ["nDCG@3", "RMSE"], engine=engine, levels="all") for engine in ("ranges", "memory")))


@pytest.mark.parametrize("reading", ["unjudged", "pooled"])
def test_levels_and_margins_leave_out_grades_that_are_not_judgments_on_every_route(tmp_path, reading, capsys):
    runs, test = world(2)
    runs = runs.filter(pl.col("score").is_not_nan())
    test = test.with_columns(rating=pl.when(pl.col("rating") == 2).then(-0.5).otherwise("rating"))
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    options = {"negative_grades": reading, "levels": "all"}
    mine, theirs = (
        cf.measure(*paths, ["RR", "PerfectSell"], engine=engine, **options) for engine in ("ranges", "memory")
    )
    same(mine, theirs)
    assert "RR(rel=1)" in mine.metrics
    for engine in ("ranges", "memory"):
        main(["evaluate", "--test", paths[1], paths[0], "-m", "RR", "--levels", "all",
              "--negative-grades", reading, "--engine", engine, "--format", "csv"])  # fmt: skip
        assert "RR(rel=1)" in capsys.readouterr().out


def test_scores_that_are_not_ratings_are_refused_alike(tmp_path):
    runs, test = world(8)
    runs = runs.with_columns(score=pl.col("score") / 100)
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    messages = [_error(paths, engine, "RMSE") for engine in ("ranges", "memory")]
    assert messages[0] == messages[1]
    assert "are not on the rating scale of 1 to 5" in messages[0]


@pytest.mark.parametrize(
    "change",
    [
        {"user": pl.col("user") + 1000},
        {"item": pl.col("item") + 1000},
        {"user": pl.format("{}.0", pl.col("user") + 5)},
    ],
)  # fmt: skip
def test_ids_that_do_not_meet_give_the_same_error(tmp_path, change):
    runs, test = world(8)
    runs = runs.with_columns(**change).sort("user")
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    assert _error(paths, "ranges") == _error(paths, "memory")


def test_suspicious_inputs_are_warned_of_alike(tmp_path):
    runs, test = world(8)
    again = pl.concat([runs.filter(system="a"), runs.filter(system="a").with_columns(system=pl.lit("c"))])
    again = again.with_columns(user=pl.when(pl.col("user") > 2).then(pl.col("user") + 1000).otherwise(pl.col("user")))
    paths = [written(tmp_path, again, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    mine, theirs = (cf.measure(*paths, "P@3", engine=engine) for engine in ("ranges", "memory"))
    assert mine.warnings == theirs.warnings
    assert len(mine.warnings) == 2
    with pytest.raises(cf.InputError, match="the test set has only"):
        cf.measure(*paths, "P@3", engine="ranges", strict=True)


def test_one_user_with_most_of_the_rows_is_measured(tmp_path):
    runs, test = world(8)
    many = pl.DataFrame(
        {"system": "a", "user": 4, "item": range(100, 1000), "score": np.arange(900) / 7}, schema=runs.schema
    )
    runs = pl.concat([runs, many])
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    same(*(cf.measure(*paths, METRICS, engine=engine) for engine in ("ranges", "memory")))


def test_temporary_files_are_gone_and_those_of_the_user_stay(tmp_path, monkeypatch):
    runs, test = world(8)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / "mine.txt").write_text("stays")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    cf.measure(*paths, "P@3", engine="ranges")
    assert [path.name for path in temporary.iterdir()] == ["mine.txt"]
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(cf.CranfieldError, match="the rows are not sorted by user, and dividing them takes about"):
        cf.measure(*paths, "P@3", engine="ranges")


def test_what_does_not_fit_is_measured_by_ranges_by_itself(tmp_path, monkeypatch):
    runs, test = world(8)
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    assert "blocks" not in cf.measure(*paths, "P@3").step.settings
    monkeypatch.setattr("cranfield.measures.engines.available_memory", lambda: 1000.0)
    monkeypatch.setattr("cranfield.measures.ranged.resident_memory", lambda: 0.0)
    assert cf.measure(*paths, "P@3").step.settings["blocks"] > 1


def test_what_cannot_be_done_by_ranges_is_refused(tmp_path):
    runs, test = world(8)
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    with pytest.raises(cf.SettingError, match="a dict is not Parquet, and only Parquet is read by ranges"):
        cf.measure({"mine": {1: [2]}}, paths[1], "P@3", engine="ranges")
    with pytest.raises(cf.SettingError, match="leave one of them out"):
        cf.measure(*paths, "P@3", engine="memory", memory="2GiB")
    with pytest.raises(cf.SettingError, match="is not a size"):
        cf.measure(*paths, "P@3", memory="much")
    with pytest.raises(cf.CranfieldError, match="10 MiB of memory is too little"):
        cf.measure(*paths, "P@3", memory="10MiB")
    with pytest.raises(cf.InputError, match="this file is given both as the test set and as a run"):
        cf.measure(paths[0], paths[0], "P@3", engine="ranges")


def test_given_groups_are_those_of_measuring_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.measures.ranged._LARGEST_RANGE", 3000)
    runs, test = world(8)
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    users = test["user"].unique(maintain_order=True).sort().to_list()
    of_users = {user: f"group {place % 3}" for place, user in enumerate(users) if place % 5}
    for groups in (of_users, [of_users.get(user) for user in users]):
        mine, theirs = (cf.measure(*paths, ["P@3"], engine=engine, groups=groups) for engine in ("ranges", "memory"))
        same(mine, theirs)
        assert mine.group_names == theirs.group_names == ("group 0", "group 1", "group 2")
        assert mine.groups.tolist() == theirs.groups.tolist()
        assert mine.average(groups="equal") == pytest.approx(theirs.average(groups="equal"))
    with pytest.raises(cf.InputError, match="there are 2 groups for"):
        cf.measure(*paths, "P@3", engine="ranges", groups=["a", "b"])


@pytest.fixture
def spilled(monkeypatch):
    """Leave no memory to values and judged lists, so that they go to files."""
    monkeypatch.setattr("cranfield.measures.blocks.ValueTable", lambda _: ValueTable(0.0))
    monkeypatch.setattr("cranfield.measures.blocks.JudgedTable", lambda _: JudgedTable(0.0))


@pytest.mark.parametrize("sort", [["user"], ["item"]])
def test_values_beyond_memory_are_mapped_and_say_the_same(tmp_path, spilled, sort):
    runs, test = (frame.sort(sort) for frame in world(9))
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    mine, theirs = (cf.measure(*paths, METRICS, engine=engine, bounds=True) for engine in ("ranges", "memory"))
    folder = Path(mine.files.name)
    assert [file.name for file in sorted(folder.iterdir())] == ["bounds.npy", "values.npy"]
    same(mine, theirs)
    for significance in ("permutation", "student", "wilcoxon", "sign", "bootstrap", "tukey"):
        options = {"metrics": ["nDCG", "RR"], "significance": significance, "subsets": 2}
        frames = [cf.compare(scores, **options).frame(detail=True) for scores in (mine, theirs)]
        assert_frame_equal(*frames, rel_tol=1e-12, abs_tol=1e-12)
    for average in ("median", "trimmed", "geometric", "weighted(by=judged)", "standardised"):
        assert_frame_equal(*(scores.frame(average) for scores in (mine, theirs)), rel_tol=1e-12, abs_tol=1e-14)
    del mine, frames
    assert not folder.exists()


@pytest.mark.parametrize("ties", ["trec_eval", "average"])
@pytest.mark.parametrize("sort", [["user"], ["item"]])
def test_an_assessment_by_ranges_is_the_one_in_memory(tmp_path, spilled, sort, ties):
    runs, test = (frame.sort(sort) for frame in world(2))
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    options = {"threshold": 3, "samples": 3, "sizes": [1, 0.5, 0.2], "ties": ties, "averages": ["mean", "median"]}
    metrics = ["P@3", "nDCG@5", "AP", "ERR", "bpref", "RR"]
    mine, theirs = (cf.assess(*paths, metrics, engine=engine, **options) for engine in ("ranges", "memory"))
    assert_frame_equal(mine.frame("samples"), theirs.frame("samples"))
    assert str(mine) == str(theirs)
    with pytest.raises(cf.SettingError, match="EPC@3 looks at whole lists, of which only the judged items are kept"):
        cf.assess(*paths, ["EPC@3", "P@3"], engine="ranges", train=cf.read(world(3)[1]), **options)


def opened(folder, runs, test, **reading):
    """Return runs and a test set as tables, read with options."""
    tables = [RunTables.opened(Path(written(folder, runs, "runs.parquet")))]
    return tables, HeldOutTable.opened(Path(written(folder, test, "test.parquet")), **reading)


@pytest.mark.parametrize("ascends", [True, False])
def test_the_threshold_follows_from_the_merged_ratings(tmp_path, ascends):
    pairs = [(u, i, 1.0) for u in range(6) for i in range(8) for _ in range((3 * u + 5 * i) % 5)]
    pairs += [(u, 7, 4.0) for u in range(6)]
    order = 1 if ascends else -1
    test = pl.DataFrame(sorted(pairs)[::order], schema=["user", "item", "rating"], orient="row")
    rows = [
        (system, u, item, rank)
        for system, k in (("a", 3), ("b", 5))
        for u in range(6)
        for rank, item in enumerate(sorted(range(8), key=lambda i: (7 * i + k * u) % 11), start=1)
    ]
    runs = pl.DataFrame(rows, schema=["system", "user", "item", "rank"], orient="row")
    tables, table = opened(tmp_path, runs, test, repeated="sum")
    mine = measure_tables(tables, table, Measuring(metrics=["P@3", "ERR@5"])).scores
    theirs = cf.measure(runs, cf.read(test, repeated="sum"), ["P@3", "ERR@5"])
    assert mine.step.settings["threshold"] == theirs.step.settings["threshold"] == 7
    same(mine, theirs)
    assert mine.average()[:, 0].tolist() == pytest.approx([1 / 18, 0])


def test_a_count_that_cannot_be_one_is_named_with_its_row(tmp_path):
    runs, test = world(8)
    test = test.sort("user", maintain_order=True).with_columns(
        rating=pl.when(pl.int_range(pl.len()) == 31).then(-1.0).otherwise("rating")
    )
    paths = [written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")]
    table = HeldOutTable.opened(Path(paths[1]), counts="to_ratings")
    errors = []
    for test in (lambda: table, lambda: cf.read(paths[1], counts="to_ratings")):
        with pytest.raises(cf.InputError) as error:
            measure_tables([RunTables.opened(Path(paths[0]))], test(), Measuring(metrics=["RR"]))
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert "test.parquet, row 32, column 'rating': a play count of -1 is negative" in errors[0]


def test_counts_become_ratings_before_the_threshold_is_chosen(tmp_path):
    runs, test = world(3)
    plays = test.with_columns(rating=(pl.col("rating") * 37) % 101 + 1)
    tables, table = opened(tmp_path, runs, plays, counts="to_ratings")
    mine = measure_tables(tables, table, Measuring(metrics=["P@3"])).scores
    same(mine, cf.measure(runs, cf.read(plays, counts="to_ratings"), ["P@3"]))


def test_an_item_rated_in_another_range_is_live(tmp_path):
    runs, test = world(6)
    paths = written(tmp_path, runs, "runs.parquet"), written(tmp_path, test, "test.parquet")
    options = {
        "train": cf.read(world(7)[1]),
        "catalogue": [0, 1],
        "metrics": ["EPC", "AggregateDiversity", "ItemCoverage"],
    }
    same(*(cf.measure(*paths, engine=engine, **options) for engine in ("ranges", "memory")))

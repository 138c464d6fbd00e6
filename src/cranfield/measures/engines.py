"""Engines: measuring all at once in memory, or by ranges of users for larger data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from cranfield import _checks as check
from cranfield._checks import size
from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._record import check_unchanged
from cranfield._settings import available_memory, resident_memory
from cranfield.data import Ratings, Relevance
from cranfield.judgments import (
    NONE,
    Context,
    Groups,
    Judged,
    NegativeGrades,
    as_judged,
    as_test,
    catalogue_ids,
    check_inputs,
    counted_items,
    is_no_catalogue,
    same_file,
    with_live,
)
from cranfield.measures.blocks import BlockPlan, Blocks
from cranfield.measures.joining import by_session
from cranfield.measures.measuring import Measuring, measure_judged
from cranfield.measures.notes import with_outside
from cranfield.measures.ranged import held_bytes, measure_ranges, parquet_path
from cranfield.measures.repeats import with_repeats
from cranfield.measures.scores import Scores
from cranfield.measures.spark import (
    SparkRuns,
    SparkTest,
    measure_tables_on_spark,
    open_run_on_spark,
    open_test_on_spark,
)
from cranfield.rankings import Gaps, HeldOutTable, RunTables, Ties, check_system_names, read_test
from cranfield.tables import ParquetTable, Vocabulary, is_spark, spark_session

Engine = Literal["auto", "memory", "ranges", "spark"]
"""``memory``: all at once. ``ranges``: by ranges of users. ``spark``: on Spark. ``auto``: depends on the data."""

# Share of the free memory to use by default.
_SHARE = 0.6


def is_large(runs: Any, test: Any, engine: str, memory: str | int | None) -> bool:
    """Return whether to measure runs by ranges of users; the arguments are those of `measure`.

    Only runs in Parquet are read by ranges. The test set can have any format, and is read by ranges if it is Parquet.
    """
    engine = check.one_of("engine", engine, get_args(Engine))
    most = None if memory is None else size(memory)
    if engine == "memory":
        if most is not None:
            raise SettingError("memory=... limits ranges of users, and engine='memory' has none; leave one of them out")
        return False
    sources = [source for _, source in named_sources(runs)]
    others = [source for source in sources if parquet_path(source) is None]
    if others and engine == "ranges":
        what = str(others[0]) if isinstance(others[0], str | os.PathLike) else f"a {type(others[0]).__name__}"
        raise SettingError(f"{what} is not Parquet, and only Parquet is read by ranges of users; write it as Parquet")
    if others or not sources or test is None:
        return False
    paths = [path for path in map(parquet_path, [*sources, test]) if path is not None]
    for path in paths:
        check_unchanged(path)
    # A given limit applies to the whole process; the free memory does not include what the process already uses.
    used = 0.0 if memory is None else resident_memory()
    whole = sum(held_bytes(ParquetTable(path)) for path in paths)
    return engine == "ranges" or used + whole > memory_limit(memory)


def memory_limit(memory: str | int | None) -> float:
    """Return how many bytes may be used: the given limit, or a share of the free memory."""
    return _SHARE * available_memory() if memory is None else float(size(memory))


def named_sources(runs: Any) -> list[tuple[Any, Any]]:
    """Return the sources of runs with their names, None if they have their own."""
    if isinstance(runs, Mapping):
        return list(runs.items())
    return [(None, source) for source in (runs if isinstance(runs, list | tuple) else [runs])]


def measured_in_blocks(
    runs: Any,
    test: Any,
    measuring: Measuring,
    *,
    ties: Ties | None,
    gaps: Gaps,
    engine: str,
    memory: str | int | None,
    **options: Any,
) -> Blocks | None:
    """Measure block by block where the engine or the size of the data asks for it; None: measure all in memory.

    The arguments are those of `measure`, and ``keeps_judged``, whether judged lists are kept.
    """
    named, session = named_sources(runs), None
    if is_for_spark(runs, test, engine):
        if memory is not None:
            raise SettingError("memory=... cannot be used with engine='spark'; leave it out")
        frames = filter(is_spark, (*(source for _, source in named), test))
        session = spark_session(of=next(frames, None))
    elif named and all(isinstance(tables, RunTables) for _, tables in named):
        return measure_tables([tables for _, tables in named], test, measuring, memory=memory, **options)
    elif not is_large(runs, test, engine, memory):
        return None
    several = len(named) > 1 or isinstance(runs, list | tuple)
    how: dict[str, Any] = {"session": session, "among_others": several, "ties": ties or "trec_eval", "gaps": gaps}
    tables = [opened_run(source, name=None if name is None else str(name), **how) for name, source in named]
    return measure_tables(tables, opened_test(test, session=session), measuring, memory=memory, **options)


def opened_run(source: Any, *, session: Any = None, **options: Any) -> RunTables:
    """Open a run in Parquet to be read by ranges of users, or with a Spark ``session`` one that Spark can read."""
    if session is not None:
        return open_run_on_spark(source, session, **options)
    return RunTables.opened(meant(source), **options)


def opened_test(source: Any, *, session: Any = None, **options: Any) -> HeldOutTable | Ratings:
    """Open a test set in Parquet, and read others; with a Spark ``session``, send them to Spark."""
    if session is not None:
        return open_test_on_spark(source, session, **options)
    path = parquet_path(source)
    if path is not None:
        return HeldOutTable.opened(path, **options)
    return read_test(source, **options) if options else as_test(source)


def judged_and_measured(
    runs: Any,
    test: Any,
    measuring: Measuring,
    context: Context,
    *,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    negative_grades: NegativeGrades = "judged",
    groups: Groups | None = None,
    catalogue: Any = NONE,
    bounds: bool = False,
    strict: bool = False,
    engine: str = "auto",
    memory: str | int | None = None,
    keeps_judged: bool = True,
) -> tuple[list[Judged], Scores]:
    """Return judged lists, of which only the judged items need be kept if any, and their scores; see `measure`."""
    blocks = measured_in_blocks(
        runs, test, measuring, ties=ties, gaps=gaps, train=context.train, similarity=context.similarity, groups=groups,
        catalogue=catalogue, bounds=bounds, strict=strict, negative_grades=negative_grades, engine=engine,
        memory=memory, keeps_judged=keeps_judged,
    )  # fmt: skip
    if blocks is not None:
        return blocks.judged if keeps_judged else [], blocks.scores
    test = None if test is None else as_test(test)
    judged = as_judged(
        runs, test, measuring.threshold, context, ties=ties, gaps=gaps, negative_grades=negative_grades, groups=groups
    )
    warnings = check_inputs(judged, test, strict=strict)
    judged = with_live(judged, catalogue, context.train)
    scores = measure_judged(judged, measuring, bounds=bounds, warnings=warnings)
    if test is not None:
        scores = with_repeats(scores, judged, test, context.train)
        for step in test.history:
            scores = by_session(scores, step)
    live = judged[0].context.live
    if is_no_catalogue(catalogue) or live is None:
        return judged, scores
    counted = [counted_items(lists, measuring.cutoffs) for lists in judged]
    return judged, with_outside(scores, counted, live, strict=strict)


def is_for_spark(runs: Any, test: Any, engine: str) -> bool:
    """Return whether to measure on Spark; pyspark is imported only if some input looks like a Spark dataframe."""
    sources = [test, *(source for _, source in named_sources(runs))]
    return engine == "spark" or (engine == "auto" and any(map(is_spark, sources)))


def measure_tables(
    runs: Sequence[RunTables],
    test: HeldOutTable | Ratings,
    measuring: Measuring,
    *,
    memory: str | int | None = None,
    **options: Any,
) -> Blocks:
    """Measure runs in tables: on Spark, or by ranges of users in Parquet; the options are those of `block_plan`."""
    _refuse_same_file(runs, test)
    plan = block_plan(runs, test, measuring, **options)
    if isinstance(test, SparkTest):
        return measure_tables_on_spark([tables for tables in runs if isinstance(tables, SparkRuns)], test, plan)
    return measure_ranges(runs, test, plan, memory_limit(memory))


def block_plan(
    runs: Sequence[RunTables],
    test: HeldOutTable | Ratings,
    measuring: Measuring,
    *,
    train: Ratings | None = None,
    similarity: Any = None,
    negative_grades: NegativeGrades = "judged",
    catalogue: Any = NONE,
    keeps_judged: bool = False,
    **options: Any,
) -> BlockPlan:
    """Return what is measured on every block of users; the options are those of `measure` and `BlockPlan`."""
    for metric in measuring.wanted if keeps_judged else ():
        if {"whole lists", "predictions"} & set(metric.definition.needs):
            raise SettingError(
                f"{metric} looks at whole lists, of which only the judged items are kept; leave it out, or give enough "
                "memory for all lists at once (memory=...)"
            )
    check_system_names([name for tables in runs for name in tables.systems])
    relevance = Relevance.of(test, measuring.threshold, train, negative=negative_grades == "judged")
    live = None
    if not is_no_catalogue(catalogue):
        of_ratings = partial(_judged_items, negative_grades=negative_grades)
        rated = [of_ratings(test)] if isinstance(test, Ratings) else test.each(of_ratings)
        live = Vocabulary.union([catalogue_ids(catalogue, train), *rated])
    context = Context(train, similarity, live)
    return BlockPlan(
        measuring.on_scale(relevance.scale), relevance, context, negative_grades, keeps_judged=keeps_judged, **options
    )


def _judged_items(ratings: Ratings, negative_grades: NegativeGrades) -> Vocabulary:
    """Return the items with a test rating."""
    judged = np.ones(len(ratings), dtype=np.bool_) if negative_grades == "judged" else ratings.values >= 0
    return Vocabulary(ratings.item_ids.ids(np.unique(ratings.items[judged])))


def _refuse_same_file(runs: Sequence[RunTables], test: HeldOutTable | Ratings) -> None:
    for tables in runs:
        paths: list[Any] = [getattr(of.table, "path", None) for of in (tables, test) if not isinstance(of, Ratings)]
        if len(paths) == 2 and None not in paths and paths[0].resolve() == paths[1].resolve():
            raise same_file(paths[0])

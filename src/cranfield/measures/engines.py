"""Engines: measuring all at once in memory, or by ranges of users for larger data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from cranfield import _checks as check
from cranfield._checksums import check_unchanged
from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._memory import available_memory, resident_memory, size
from cranfield.data import Ratings
from cranfield.data.parquet import ParquetTable, is_parquet_folder
from cranfield.data.relevance import threshold_on, threshold_on_scale
from cranfield.data.sources import is_parquet
from cranfield.measures.catalogue import NONE, catalogue_ids, is_no_catalogue
from cranfield.measures.inputs import as_test
from cranfield.measures.judgments import NegativeGrades
from cranfield.measures.measuring import Measuring
from cranfield.measures.parts import PartPlan
from cranfield.measures.plausibility import same_file
from cranfield.measures.predicted import rating_scale
from cranfield.measures.ranged import held_bytes, measure_ranges
from cranfield.measures.scores import Scores
from cranfield.rankings.lists import Ties
from cranfield.rankings.ranged import HeldOutTable, RunTables
from cranfield.rankings.read import check_system_names

Engine = Literal["auto", "memory", "ranges", "spark"]
"""``memory``: all at once. ``ranges``: by ranges of users. ``spark``: on Spark. ``auto``: depends on the data."""

# Share of the free memory to use by default.
_SHARE = 0.6


def is_large(runs: Any, test: Any, engine: str, memory: str | int | None) -> bool:
    """Return whether to measure runs by ranges of users; the arguments are those of `measure`.

    Only runs in Parquet are read by ranges. The test set can have any format, and is read by ranges if it is Parquet.
    """
    engine = check.one_of("engine", engine, get_args(Engine))
    if engine == "memory":
        if memory is not None:
            raise SettingError(
                "memory=... (--memory) limits ranges of users, and engine='memory' has none; leave one of them out"
            )
        return False
    sources = run_sources(runs)
    sources = list(sources.values()) if isinstance(sources, dict) else sources
    others = [source for source in sources if parquet_path(source) is None]
    if others and engine == "ranges":
        raise SettingError(
            f"{_shown(others[0])} is not Parquet, and only Parquet is read by ranges of users; write it as Parquet"
        )
    if others or not sources or test is None:
        return False
    paths = [path for path in map(parquet_path, [*sources, test]) if path is not None]
    for path in paths:
        check_unchanged(path)
    # A given limit applies to the whole process; the free memory does not include what the process already uses.
    used = 0.0 if memory is None else resident_memory()
    return engine == "ranges" or used + _whole_bytes(paths) > memory_limit(memory)


def _shown(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"


def memory_limit(memory: str | int | None) -> float:
    """Return how many bytes may be used: the given limit, or a share of the free memory."""
    return _SHARE * available_memory() if memory is None else float(size(memory))


def parquet_path(source: Any) -> Path | None:
    """Return the path of a Parquet file or folder; None for anything else."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = meant(Path(source))
    return path if is_parquet(path) or is_parquet_folder(path) else None


def _whole_bytes(paths: Sequence[Path]) -> float:
    return sum(held_bytes(ParquetTable(path)) for path in paths)


def run_sources(runs: Any) -> dict[Any, Any] | list[Any]:
    """Return the sources of runs: by name, or in a list if they have their own names."""
    if isinstance(runs, Mapping):
        return dict(runs)
    return list(runs) if isinstance(runs, list | tuple) else [runs]


def measure_tables(
    runs: Sequence[RunTables],
    test: HeldOutTable | Ratings,
    measuring: Measuring,
    *,
    train: Ratings | None = None,
    similarity: Any = None,
    bounds: bool = False,
    negative_grades: NegativeGrades = "judged",
    catalogue: Any = NONE,
    strict: bool = False,
    memory: str | int | None = None,
) -> Scores:
    """Measure runs in Parquet tables by ranges of users; the options are those of `measure`."""
    _refuse_same_file(runs, test)
    plan = part_plan(
        runs, test, measuring, train=train, similarity=similarity, bounds=bounds, negative_grades=negative_grades,
        catalogue=catalogue, strict=strict,
    )  # fmt: skip
    return measure_ranges(runs, test, plan, memory_limit(memory))


def part_plan(
    runs: Sequence[RunTables],
    test: HeldOutTable | Ratings,
    measuring: Measuring,
    *,
    train: Ratings | None = None,
    catalogue: Any = NONE,
    **options: Any,
) -> PartPlan:
    """Return what is measured on every part of the users; the options are those of `measure`."""
    systems = check_system_names([name for tables in runs for name in tables.systems])
    grades = np.asarray(test.grades, dtype=np.float64)
    if isinstance(test, Ratings):
        threshold = threshold_on(test, measuring.threshold, train)
    else:
        threshold = threshold_on_scale(float(grades[0]), float(grades[-1]), measuring.threshold, train)
    return PartPlan(
        measuring.on_scale(rating_scale(grades, train)),
        threshold,
        grades,
        train=train,
        catalogue=None if is_no_catalogue(catalogue) else catalogue_ids(catalogue, train),
        several=len(systems) > 1,
        **options,
    )


def _refuse_same_file(runs: Sequence[RunTables], test: HeldOutTable | Ratings) -> None:
    for tables in runs:
        paths: list[Any] = [getattr(of.table, "path", None) for of in (tables, test) if not isinstance(of, Ratings)]
        if len(paths) == 2 and None not in paths and paths[0].resolve() == paths[1].resolve():
            raise same_file(paths[0])


def measure_sources(runs: Any, test: Any, measuring: Measuring, *, ties: Ties, **options: Any) -> Scores:
    """Measure runs and a test set, given as `measure` takes them, by ranges of users."""
    sources = run_sources(runs)
    if isinstance(sources, dict):
        tables = [RunTables.opened(_path(path), name=str(name), ties=ties) for name, path in sources.items()]
    else:
        several = len(sources) > 1 or isinstance(runs, list | tuple)
        tables = [RunTables.opened(_path(path), among_others=several, ties=ties) for path in sources]
    path = parquet_path(test)
    return measure_tables(tables, as_test(test) if path is None else HeldOutTable.opened(path), measuring, **options)


def _path(source: Any) -> Path:
    path = parquet_path(source)
    assert path is not None  # checked by `is_large`
    return path

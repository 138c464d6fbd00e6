"""Measuring of runs and test sets larger than memory, by ranges of users."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import CranfieldError
from cranfield._files import meant
from cranfield._numbers import size_text
from cranfield._settings import resident_memory, settings
from cranfield._terminal import progress
from cranfield.data import Ratings, RepeatedPairError
from cranfield.measures.blocks import BlockPlan, Blocks, UserBlock, measure_block
from cranfield.rankings import HeldOutTable, RunTables
from cranfield.tables import ParquetTable, RowTable, UserRanges, is_parquet, is_parquet_folder

# Bytes per row while its range is measured, besides its own: codes, sort keys, ranks, positions.
_ROW = 110.0
# Bytes per row of a table that is read as a whole, besides its own.
_WHOLE_ROW = 40.0
# Larger ranges are not faster, since their arrays do not fit in the processor's cache.
_LARGEST_RANGE = 160 << 20
# The number of ratings from which the users of ranges are taken.
_SAMPLED = 50_000
# Smaller ranges are not worth it.
_SMALLEST_RANGE = 16 << 20
# Memory for reading, besides the rows of the ranges: a batch and its row groups.
_READING = 64 << 20
_HEAD = 1000


def parquet_path(source: Any) -> Path | None:
    """Return the path of a Parquet file or folder; None for anything else."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = meant(Path(source))
    return path if is_parquet(path) or is_parquet_folder(path) else None


def row_bytes(table: RowTable, columns: Sequence[str], beside: float = _ROW) -> float:
    """Estimate the bytes per row; a cell with a list counts as many rows as it has entries."""
    head = table.rows(0, min(_HEAD, len(table)), columns)
    lists = [head[name].list.len() for name in columns if isinstance(head[name].dtype, pl.List)]
    entries = max(float(lists[0].sum()), 1.0) if lists else len(head)
    return (head.estimated_size() + beside * entries) / max(len(head), 1)


def held_bytes(table: ParquetTable) -> float:
    """Estimate the memory for reading and measuring a table at once."""
    return len(table) * row_bytes(table, table.names, _WHOLE_ROW)


def measure_ranges(runs: Sequence[RunTables], test: HeldOutTable | Ratings, plan: BlockPlan, memory: float) -> Blocks:
    """Measure the runs by ranges of users, in at most about ``memory`` bytes."""
    free = memory - resident_memory() - _READING
    most = min(free / (settings.workers + 2), _LARGEST_RANGE)
    if most < _SMALLEST_RANGE:
        needed = resident_memory() + _READING + _SMALLEST_RANGE * (settings.workers + 2)
        raise CranfieldError(
            f"{size_text(memory)} of memory is too little: {size_text(resident_memory())} are in use before any row is "
            f"read; give at least {size_text(needed)}"
        )
    sources: list[RunTables | HeldOutTable] = [*runs, *([test] if isinstance(test, HeldOutTable) else [])]
    weights = [row_bytes(source.table, source.columns) for source in sources]
    ranges = UserRanges.of(sources, weights, most, _sampled_users(test) if isinstance(test, Ratings) else ())
    with ranges.opened(free / 3) as rows:
        blocks = Blocks(plan, free / 4)
        _Ranges(runs, test, rows, ranges, plan).measure(blocks)
    return blocks


@dataclass(frozen=True)
class _Ranges:
    """The ranges of users, as many measured at a time as there are threads."""

    runs: Sequence[RunTables]
    test: HeldOutTable | Ratings
    rows: Sequence[Any]
    ranges: UserRanges
    plan: BlockPlan

    def measure(self, blocks: Blocks) -> None:
        """Measure all ranges; their results are added to the blocks."""
        repeated = list[RepeatedPairError]()
        count = len(self.ranges)
        with progress("Measuring", total=count, unit="ranges of users") as bar:
            for part in self._parts(count, repeated):
                if isinstance(part, RepeatedPairError):
                    repeated.append(part)
                elif part is not None:
                    blocks.add(part)
                bar.advance()
        if repeated:
            assert isinstance(self.test, HeldOutTable)
            raise self.test.repeated_error(repeated)

    def _parts(self, count: int, repeated: Sequence[object]) -> Iterator[UserBlock | RepeatedPairError | None]:
        """Read ranges in order and measure them in threads; few more than the threads are in memory at a time."""
        pending: deque[Future[UserBlock | RepeatedPairError | None]] = deque()
        held = _HeldRatings(self.test, self.ranges) if isinstance(self.test, Ratings) else None
        with ThreadPoolExecutor(settings.workers) as pool:
            for place in range(count):
                frames = [rows.take(place) for rows in self.rows]
                ratings = None if held is None else held.take(place)
                pending.append(pool.submit(self._measured, frames, ratings, bool(repeated)))
                if len(pending) > settings.workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _measured(
        self, frames: Sequence[pl.DataFrame], ratings: Ratings | None, is_faulty: bool
    ) -> UserBlock | RepeatedPairError | None:
        """Measure a range; if another range has repeated ratings, only look for repeated ratings in this one."""
        if ratings is None:
            assert isinstance(self.test, HeldOutTable)
            try:
                ratings = self.test.ratings(frames[-1])
            except RepeatedPairError as error:
                return error
        if is_faulty:
            return None
        runs = [run for tables, frame in zip(self.runs, frames) for run in tables.runs(frame)]
        return measure_block(runs, ratings, self.plan)


class _HeldRatings:
    """Test ratings in memory, by ranges of users."""

    def __init__(self, ratings: Ratings, ranges: UserRanges) -> None:
        self._ratings = ratings
        self._places = ranges.places(ratings.user_ids.all)
        self._ascend = bool((np.diff(self._places) >= 0).all())

    def take(self, place: int) -> Ratings:
        """Return the ratings of the users of a range."""
        if self._ascend:
            first, last = np.searchsorted(self._places, [place, place + 1])
            return self._ratings.of_consecutive(int(first), int(last))
        kept = self._ratings.keep(np.repeat(self._places == place, self._ratings.user_counts))
        return replace(kept.compact(), item_ids=kept.item_ids, items=kept.items)


def _sampled_users(ratings: Ratings) -> list[tuple[pl.Series, float]]:
    """Return users of evenly spaced ratings in memory, and the bytes that each of them stands for."""
    step = max(1, len(ratings) // _SAMPLED)
    users = np.searchsorted(ratings.indptr, np.arange(0, len(ratings), step), side="right") - 1
    return [(ratings.user_ids.ids(users), step * _ROW)]

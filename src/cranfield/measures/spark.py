"""Measuring on Spark: workers measure blocks of many users where the data are, and the values come back."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield._settings import available_memory
from cranfield.data import Ratings, RepeatedPairError, read, repeated_pair
from cranfield.judgments import as_test
from cranfield.measures.blocks import BlockPlan, Blocks, Tally, UserBlock, measure_block
from cranfield.measures.ranged import parquet_path
from cranfield.rankings import HeldOutTable, Run, RunReading, RunTables, read_test
from cranfield.tables import Fault, Schema, SparkTable, as_polars, by_user, is_spark, named_by_ids, quoted, user_blocks
from cranfield.tables import ratings as as_ratings

T = TypeVar("T")

# The types of numbers, as Spark calls them.
_NUMBERS: dict[str, pl.DataType] = {
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
}
# About this many rows are measured at a time.
_BLOCK_ROWS = 1_000_000
# This many tasks add up the tallies of all partitions before they come to the driver.
_ADDERS = 8
# The columns of sums: the partition, and its tally.
_SUMS = Schema(place="int", tally="binary")
# The columns of what is measured: a row for each block, with its scores, and a row with the tally of each partition.
_BLOCKS = Schema(_SUMS, block="binary")


def open_run_on_spark(
    source: Any, session: Any, *, tag: bool = False, ties: Any = "trec_eval", **options: Any
) -> SparkRuns:
    """Open a run: a Spark dataframe, or a path to Parquet files."""
    if ties == "input":
        raise SettingError("ties='input' needs the order of the rows, and Spark rows have none; use trec_eval")
    if isinstance(source, SparkRuns):
        return source
    if is_spark(source):
        name = options.get("name")
        table, own_name = SparkTable(source, "the run" if name is None else f"the run {name!r}"), "run"
    elif isinstance(source, str | os.PathLike):
        table, own_name = SparkTable.read(os.fspath(source), session), None
    else:
        raise SettingError(
            f"a {type(source).__name__} cannot be used with engine='spark'; give a Spark dataframe or a path to "
            "Parquet files"
        )
    runs = SparkRuns.of_table(table, RunReading(tag=tag, ties=ties, **options), own_name)
    assert isinstance(runs, SparkRuns)
    if runs.layout == "table" and not {"score", "rank", "prediction"} & runs.roles.keys():
        raise InputError(
            "the lists have neither scores nor ranks, and Spark rows have no order",
            source=table.label,
            remedy="give a column of scores or ranks",
        )
    return runs


def open_test_on_spark(source: Any, session: Any, *, format: str | None = None, **options: Any) -> SparkTest:
    """Open a test set: a Spark dataframe, a path to Parquet files, or anything that `read_test` accepts."""
    is_path = isinstance(source, str | os.PathLike)
    if isinstance(source, SparkTest):
        return source
    if is_spark(source):
        table = SparkTable(source, "the test set")
    elif is_path and parquet_path(source) is None and Path(source).is_file():
        kind: Any = format
        table = _spread(read_test(source, format=kind, **options), session)
        options = {}
    elif is_path:
        if format == "qrels":
            raise SettingError("only a text file or {user: {item: grade}} can be qrels; leave format out for ratings")
        table = SparkTable.read(os.fspath(source), session)
    else:
        table = _spread(as_test(source), session)
    held_out = SparkTest.of_table(table, **options)
    assert isinstance(held_out, SparkTest)
    return held_out


def _spread(ratings: Ratings, session: Any) -> SparkTable:
    """Send ratings that are in memory to Spark, and return their table."""
    return SparkTable(session.createDataFrame(ratings.frame().to_arrow()), ratings.name or "the test set")


class SparkRuns(RunTables):
    """Runs in a Spark dataframe; errors name a row by its user and item."""

    table: SparkTable

    def runs(self, frame: pl.DataFrame) -> list[Run]:
        """Return the runs of some users, given all rows of these users: one per system, even if it is empty."""
        return [self._run(name, self._rows(frame, name)) for name in self.systems]

    def _run(self, name: str, frame: pl.DataFrame) -> Run:
        try:
            return super()._run(name, frame)
        except InputError as error:
            raise named_by_ids(error, frame, self.roles, self.table.label) from error

    def _systems_with_scores(self) -> tuple[str, ...]:
        """Return the systems with a score that is not missing; workers name the row of one that is not a number."""
        place = self._place_of("score")
        assert place is not None
        missing = ", ".join(f"'{word}'" for word in self.missing)
        rows = self.table.values(*place, *([] if self.column is None else [self.column]))
        known = rows.filter(f"value is not null and lower(trim(string(value))) not in ({missing})")
        if self.column is None:
            return () if known.isEmpty() else self.systems
        names = set(as_polars(known.drop("value").distinct()).to_series().cast(pl.String))
        return tuple(name for name in self.systems if name in names)

    def _ranks(self) -> Iterator[Any]:
        """Yield the distinct ranks of all lists; workers name the row of a rank that is not a number."""
        place = self._place_of("rank")
        assert place is not None
        yield self._single(as_polars(self.table.values(*place).distinct()).to_series())

    def check(self) -> None:
        """Raise the error with its row, if there is one in a file on this machine."""
        if self.table.file is not None:
            RunTables(**{**vars(self), "table": self.table.file}).check()


class SparkTest(HeldOutTable):
    """A test set in a Spark dataframe; errors name a row by its user and item."""

    table: SparkTable

    def each(self, function: Callable[[Ratings], T]) -> list[T]:
        """Call a function on the ratings of all users, on the workers."""
        user = _column(self.user)
        others = [_column(name) for name in self.columns if name != self.user]
        rows = by_user(self.table.frame.select(user.alias("user"), *others))
        results = _collected(rows.mapInArrow(_OfRatings(self, function), _SUMS.ddl))
        error = _error_of(results)
        if error is not None:
            self.check()
            raise self.repeated_error() if isinstance(error, RepeatedPairError) else error
        return [result for of_partition in results for result in of_partition]

    def _column_grades(self) -> NDArray[np.float64]:
        """Return the distinct ratings of the column, ascending."""
        [(_, rows)] = self.table.batches([self.roles["rating"]])
        try:
            return np.unique(as_ratings(rows.to_series()).astype(np.float64))
        except Fault as fault:
            self.check()
            raise self._bad_rating(rows.to_series()[fault.row]) from fault

    def _bad_rating(self, value: Any) -> InputError:
        """Return the error that names the first user and item whose rating is ``value``, which is not valid."""
        from pyspark.sql import functions as F

        rating = F.col("rating")
        if isinstance(value, float) and np.isnan(value):
            is_bad = F.isnan(rating)
        elif isinstance(value, str | int | float | None):
            is_bad = rating.eqNullSafe(F.lit(value))
        else:  # no rating is valid
            is_bad = F.lit(True)
        row = as_polars(self._rows("user", "item", "rating").filter(is_bad).orderBy("user", "item").limit(1))
        try:
            as_ratings(row["rating"])
        except Fault as fault:
            error = InputError(fault.problem, row=1, column=self.roles["rating"], remedy=fault.remedy)
            return named_by_ids(error, row, {"user": "user", "item": "item"}, self.table.label)
        raise AssertionError

    def _rows(self, *roles: str) -> Any:
        return self.table.select([self.roles[role] for role in roles]).toDF(*roles)

    def ratings(self, frame: pl.DataFrame) -> Ratings:
        """Return the ratings of some users, given all rows of these users."""
        if frame.is_empty():
            return self._none(frame)
        try:
            return read(frame, **self._chosen, **self.reading)
        except InputError as error:
            if isinstance(error.__cause__, RepeatedPairError):
                raise error.__cause__ from None
            raise named_by_ids(error, frame, self.roles, self.table.label) from error

    def repeated_error(self, _: Sequence[RepeatedPairError] = ()) -> InputError:
        """Return the error for the first repeated pair: by its row in a file on this machine, otherwise by its ids."""
        error, in_file = repeated_pair(self._rows("user", "item")), self._in_file
        assert error is not None
        if in_file is not None:
            return in_file.repeated_error([error])
        return InputError(error.problem, source=self.table.label, remedy=error.remedy)

    def check(self) -> None:
        """Raise the error with its row, if there is one in a file on this machine."""
        in_file = self._in_file
        if in_file is not None:
            in_file.check()

    @property
    def _in_file(self) -> HeldOutTable | None:
        file = self.table.file
        return None if file is None else HeldOutTable(file, self.roles, self.reading)


def measure_tables_on_spark(runs: Sequence[SparkRuns], test: SparkTest, plan: BlockPlan) -> Blocks:
    """Measure runs in dataframes: partition all rows by a hash of the user, and measure them in blocks of users.

    Tallies are added up on the workers. The values of the users, and their judged lists, come back block by block.
    """
    rows, slots, kinds = _all_rows([*runs, test])
    # Workers do not know the names of metrics that were registered in this process.
    plan = replace(plan, measuring=plan.measuring.with_(metrics=plan.measuring.wanted))
    task = _MeasureBlocks(tuple(runs), test, tuple(slots), plan, tuple(kinds))
    measured = by_user(rows).mapInArrow(task, _BLOCKS.ddl).persist()
    blocks = Blocks(plan, available_memory() / 4)
    try:
        blocks.tally = _added_up(measured)
        for row in measured.filter("block is not null").select("block").toLocalIterator():
            blocks.keep(*pickle.loads(row.block))
    except InputError as error:
        test.check()
        for table in runs:
            table.check()
        raise test.repeated_error() if isinstance(error, RepeatedPairError) else error from None
    finally:
        with suppress(Exception):  # the session may have ended
            measured.unpersist()
    return blocks


def _all_rows(tables: Sequence[SparkRuns | SparkTest]) -> tuple[Any, list[dict[str, str]], list[str]]:
    """Return the rows of all tables as one dataframe, the slot of each column, and the types of their users.

    Columns of the same type share a slot, so that rows are as narrow as possible. ``source`` is the table's index.
    """
    from pyspark.sql import functions as F

    frames = [table.table.frame.select(*(f"`{name}`" for name in table.columns)) for table in tables]
    kinds = [dict(frame.dtypes) for frame in frames]
    own = [types[table.user] for table, types in zip(tables, kinds)]
    for table, type_of_users in zip(tables, own):
        if type_of_users.startswith(("array", "map", "struct")):
            _refuse_users(table)
    slots: list[dict[str, str]] = []
    types: dict[str, str] = {}
    for table, of_table in zip(tables, kinds):
        mine: dict[str, str] = {}
        for name in table.columns:
            if name != table.user:
                number = sum(of_table[other] == of_table[name] for other in mine)
                mine[name] = f"{of_table[name]} {number}"
                types[mine[name]] = of_table[name]
        slots.append(mine)
    union = []
    for place, (table, frame, mine) in enumerate(zip(tables, frames, slots)):
        held = {slot: name for name, slot in mine.items()}
        columns = [
            (F.col(f"`{held[slot]}`") if slot in held else F.lit(None).cast(slot_type)).alias(slot)
            for slot, slot_type in types.items()
        ]
        user = table.table.ids(table.user, own)
        union.append(frame.select(F.lit(place).alias("source"), user.alias("user"), *columns))
    return reduce(lambda above, below: above.unionByName(below), union), slots, own


def _refuse_users(table: SparkRuns | SparkTest) -> None:
    """Raise the error of reading users that cannot be ids, such as lists."""
    table.check()
    head = table.table.rows(0, 1, table.columns)
    _ = table.runs(head) if isinstance(table, SparkRuns) else table.ratings(head)


def _column(name: str) -> Any:
    """Return a column of a Spark dataframe."""
    from pyspark.sql import functions as F

    return F.col(quoted(name))


@dataclass(frozen=True)
class _OfRatings:
    """A worker's task: a function of the test ratings of a partition, in blocks of users."""

    test: SparkTest
    function: Callable[[Ratings], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Call the function on each block, and yield the results."""
        try:
            frames = (frame.rename({"user": self.test.user}) for frame in user_blocks(batches, _BLOCK_ROWS))
            results: Any = [self.function(self.test.ratings(frame)) for frame in frames]
        except CranfieldError as error:  # an error raised here would be printed as a page of Java
            results = error
        yield from _SUMS.batches(_pickled(results))


@dataclass(frozen=True)
class _MeasureBlocks:
    """A worker's task for the rows of a partition, which are sorted by user."""

    runs: tuple[SparkRuns, ...]
    test: SparkTest
    slots: tuple[dict[str, str], ...]
    plan: BlockPlan
    kinds: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Measure the blocks of a partition."""
        tally: Tally | None = None
        for frame in user_blocks(batches, _BLOCK_ROWS):
            try:
                block = self._measured(frame)
            except CranfieldError as error:  # an error raised here would be printed as a page of Java
                yield from _BLOCKS.batches(_pickled(error))
                return
            tally = block.tally if tally is None else tally + block.tally
            if block.scores is not None:
                yield from _BLOCKS.batches(pl.DataFrame({"block": [_dumps((block.scores, block.judged))]}))
        if tally is not None:
            yield from _BLOCKS.batches(_pickled(tally))

    def _measured(self, frame: pl.DataFrame) -> UserBlock:
        parts = {place: rows for (place,), rows in frame.partition_by("source", as_dict=True).items()}
        tables: list[RunTables | HeldOutTable] = [*self.runs, self.test]
        frames = [
            parts.get(place, frame.clear()).select(
                # Ids that `SparkTable.ids` made have the type that they had, if it is one of numbers.
                (pl.col("user").cast(_NUMBERS[own]) if own in _NUMBERS else pl.col("user")).alias(table.user),
                *(pl.col(slot).alias(name) for name, slot in mine.items()),
            )
            for place, (table, mine, own) in enumerate(zip(tables, self.slots, self.kinds))
        ]
        ratings = self.test.ratings(frames[-1])
        runs = [run for table, rows in zip(self.runs, frames) for run in table.runs(rows)]
        return measure_block(runs, ratings, self.plan)


def _dumps(result: Any) -> bytes:
    """Pickle any object, including those that Python's own pickle refuses."""
    from pyspark import cloudpickle

    return cloudpickle.dumps(result)


def _pickled(result: Any) -> pl.DataFrame:
    from pyspark import TaskContext

    context = TaskContext.get()
    place = 0 if context is None else context.partitionId()
    return pl.DataFrame({"place": [place], "tally": [_dumps(result)]})


def _added_up(measured: Any) -> Tally:
    """Return the sum of the tallies of all partitions; raise the error of one of them, if there is any."""
    rows = measured.filter("tally is not null").select("place", "tally").repartition(_ADDERS)
    total = _sum(_collected(rows.mapInArrow(_add, _SUMS.ddl)))
    if isinstance(total, CranfieldError):
        raise total
    return total


def _sum(results: Sequence[Any]) -> Any:
    """Return the sum of the results of several blocks, or one of their errors."""
    return _error_of(results) or reduce(add, results)


def _error_of(results: Sequence[Any]) -> CranfieldError | None:
    """Return one of the errors among results, if any; repeated ratings are looked for in rows that are valid."""
    errors = [result for result in results if isinstance(result, CranfieldError)]
    return min(errors, key=lambda error: (isinstance(error, RepeatedPairError), str(error)), default=None)


def _add(batches: Iterator[Any]) -> Iterator[Any]:
    """Add up the tallies of some partitions, in their order."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["place"])
    if rows:
        total = _sum([pickle.loads(row["tally"]) for row in rows])
        yield from _SUMS.batches(pl.DataFrame({"place": [rows[0]["place"]], "tally": [_dumps(total)]}))


def _collected(frame: Any) -> list[Any]:
    """Return the results of the tasks of a job, in the order of their partitions."""
    rows = as_polars(frame).sort("place")  # Arrow needs far less of the driver's memory than Spark's own rows
    return [pickle.loads(tally) for tally in rows["tally"]]

"""Spark: sessions, dataframes as tables, and their rows in blocks of many users for NumPy and Polars."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._errors import CranfieldError, InputError, MissingExtraError
from cranfield._settings import settings
from cranfield.tables.files import is_parquet
from cranfield.tables.frames import ParquetTable, is_parquet_folder

DEFAULT_MASTER = "local[*]"
# How often a task is tried if its worker dies; Spark's own default on one machine is once.
_TRIES = 4
# The size of a partition, in bytes of its files; and the size that Spark reports if it does not know it.
_PARTITION_BYTES, _UNKNOWN_BYTES = 32 << 20, 1 << 60


def is_spark(source: Any) -> bool:
    """Return whether something is a Spark dataframe."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


def spark_session(master: str | None = None, *, of: Any = None, wanted_by: str = "engine='spark'") -> Any:
    """Return the session ``of`` a dataframe, the active one, or a new one.

    A new one is on this machine, unless ``master`` or spark-submit sets another master.

    The workers of a new session use the Python of this process, unless ``PYSPARK_PYTHON`` names another one: the Python
    that Spark would choose may not have PyArrow and cranfield.
    """
    if of is not None:
        _set_worker_python(of.sparkSession)
        return of.sparkSession
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError(wanted_by, library="pyspark", extra="spark") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        _set_worker_python(active)
        return active
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    is_remote = (master or "").startswith("sc://")
    if not is_submitted and not is_remote and not has_java():
        raise CranfieldError(
            "Spark needs Java 17 or newer, and there is none in PATH or JAVA_HOME; install it, for example with: "
            "apt-get install openjdk-17-jre-headless"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("cranfield")
    if is_remote:
        return builder.remote(master).getOrCreate()
    if not is_submitted or master is not None:
        builder = builder.master(_retrying(master or DEFAULT_MASTER))
    # Every worker has one core; blocks of many users should not be cut into batches of ten thousand rows.
    options = {
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.ui.showConsoleProgress": str(not settings.quiet and sys.stderr.isatty()).lower(),
        "spark.log.level": "ERROR",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    if (master or DEFAULT_MASTER).startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        return builder.getOrCreate()
    except Exception as error:
        problem = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CranfieldError(
            f"Spark does not start on {master or DEFAULT_MASTER}: {problem}; check the master's URL and the installed "
            "Java"
        ) from error


def has_java() -> bool:
    """Return whether there is a Java that can start Spark."""
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


def _retrying(master: str) -> str:
    """Return the master; on this machine, with the option to repeat a task whose worker dies."""
    if master == "local":
        master = "local[1]"
    inside = master.removeprefix("local[").removesuffix("]")
    return f"local[{inside},{_TRIES}]" if master == f"local[{inside}]" and "," not in inside else master


def _set_worker_python(session: Any) -> None:
    """Let the workers of a session on this machine use the Python of this process, unless another one is set."""
    if ".connect." not in type(session).__module__:  # a remote session has no context
        context = session.sparkContext
        if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable


class Schema(dict[str, str]):
    """The columns of a Spark dataframe, and the type of each as Spark calls it."""

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.items())

    def batches(self, frame: pl.DataFrame) -> Iterator[Any]:
        """Yield a frame as Arrow batches with these columns, null where the frame has none."""
        import pyarrow as pa

        names = {"bigint": "int64", "int": "int32", "smallint": "int16", "tinyint": "int8", "boolean": "bool"}
        fields = pa.schema([(name, pa.type_for_alias(names.get(kind, kind))) for name, kind in self.items()])
        rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        columns = [
            rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(frame), field.type)
            for field in fields
        ]
        yield from pa.Table.from_arrays(columns, schema=fields).to_batches()


@dataclass
class SparkTable:
    """A Spark dataframe, whose rows have no numbers. Only its name is sent to workers."""

    frame: Any
    label: str

    has_places = False

    @classmethod
    def read(cls, path: str, session: Any) -> SparkTable:
        """Return the table of the Parquet files at a path, on any file system that Spark knows."""
        remedy = "give Parquet files or folders that every worker can read"
        local = Path(path)
        if local.is_file() and not is_parquet(local):
            raise InputError("the file is not Parquet", source=str(path), remedy=remedy)
        try:
            return cls(session.read.parquet(str(path)), str(path))
        except Exception as error:
            java = getattr(error, "java_exception", None)
            lines = [line for line in str(error if java is None else java.toString()).splitlines() if line.strip()]
            reason = lines[0] if lines else type(error).__name__
            raise InputError(f"Spark cannot read it as Parquet: {reason}", source=str(path), remedy=remedy) from error

    def __getstate__(self) -> dict[str, Any]:
        return {"frame": None, "label": self.label}

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """The types of the columns."""
        return dict(self.rows(0, 0, self.names).schema)

    @property
    def file(self) -> ParquetTable | None:
        """The file or folder, if this process can read it: its rows have numbers."""
        path = Path(self.label)
        return ParquetTable(path) if is_parquet_folder(path) or (path.is_file() and is_parquet(path)) else None

    def __len__(self) -> int:
        """0 if there are no rows, else 1: counting them would need a pass over all rows."""
        return 0 if self.frame.isEmpty() else 1

    def select(self, columns: Sequence[str]) -> Any:
        """Return a dataframe with some of the columns."""
        return self.frame.select(*(quoted(name) for name in columns))

    def rows(self, _: int, stop: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return some rows."""
        return as_polars(self.select(columns).limit(stop))

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each distinct row once."""
        yield 0, as_polars(self.select(columns).distinct())

    def ids(self, column: str, kinds: Sequence[str]) -> Any:
        """Return a column of ids in the common type of several, given as Spark calls them: whole numbers, or else text.

        As text, whole numbers are written without .0.
        """
        from pyspark.sql import functions as F

        ids, own = F.col(quoted(column)), dict(self.frame.dtypes)[column]
        if set(kinds) <= {"boolean", "tinyint", "smallint", "int", "bigint"}:
            return ids.cast("bigint")
        if own not in ("float", "double"):
            return ids.cast("string")
        whole = ids.try_cast("bigint")
        return F.when(whole.cast(own) == ids, whole.cast("string")).otherwise(ids.cast("string"))

    def values(self, column: str, field: str | None, *others: str) -> Any:
        """Return a dataframe of the values of a column, or of a field of it, those of lists one by one, and others."""
        from pyspark.sql import functions as F

        value = F.col(quoted(column)) if field is None else F.col(quoted(column)).getField(field)
        is_list = dict(self.frame.dtypes)[column].startswith("array")
        return self.frame.select((F.explode(value) if is_list else value).alias("value"), *map(quoted, others))


RowTable = ParquetTable | SparkTable


def named_by_ids(error: InputError, frame: pl.DataFrame, roles: Mapping[str, str], label: str) -> InputError:
    """Return the error of a row with its user and item, because the rows of a dataframe have no numbers."""
    row = {} if error.row is None else frame.row(error.row - 1, named=True)
    ids = {role: row.get(roles[role]) for role in ("user", "item")}
    known = [f"{role} {value!r}" for role, value in ids.items() if value is not None and not isinstance(value, list)]
    return InputError(error.problem, source=", ".join([label, *known]), column=error.column, remedy=error.remedy)


def as_polars(frame: Any, *, in_parts: bool = False) -> pl.DataFrame:
    """Return the rows of a Spark dataframe; ``in_parts``: no more than a partition comes from Spark at a time."""
    if not in_parts:
        rows = pl.from_arrow(frame.toArrow())
        assert isinstance(rows, pl.DataFrame)
        return rows
    import pyarrow as pa

    parts = frame.mapInArrow(_as_bytes, "part binary").toLocalIterator()
    tables = (pl.from_arrow(pa.ipc.open_stream(bytes(row.part)).read_all()) for row in parts)
    return pl.concat([table for table in tables if isinstance(table, pl.DataFrame)], how="vertical_relaxed")


def quoted(name: str) -> str:
    """Return a column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


def by_user(rows: Any) -> Any:
    """Return a dataframe whose partitions have all rows of their users, sorted by the column ``user``."""
    return rows.repartition(partitions_for(rows), "user").sortWithinPartitions("user")


def partitions_for(rows: Any) -> int:
    """Return the number of partitions: by the size of the rows if Spark knows it, and at least two per core."""
    try:
        context = rows.sparkSession.sparkContext
        size = int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Exception:  # a remote session (Spark Connect) does not say
        size = _UNKNOWN_BYTES
    if size >= _UNKNOWN_BYTES:
        return int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return max(2 * int(context.defaultParallelism), int(size // _PARTITION_BYTES))


def user_blocks(batches: Iterator[Any], size: int) -> Iterator[pl.DataFrame]:
    """Yield rows, which are sorted by user, in blocks of about ``size`` rows that contain all rows of their users."""
    held: list[pl.DataFrame] = []
    rows, enough = 0, size
    for batch in batches:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        held.append(frame)
        rows += len(frame)
        if rows < enough:
            continue
        block = pl.concat(held)
        first_of_last = int(block["user"].eq_missing(block["user"][-1]).arg_max() or 0)
        # If a user has more rows than a block, read on; the block doubles each time.
        enough = size if first_of_last else 2 * rows
        if first_of_last:
            yield block[:first_of_last]
        held = [block[first_of_last:]]
        rows = len(held[0])
    if rows:
        yield pl.concat(held)


def _as_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield each batch as a row of bytes, which Spark hands over faster than rows of values."""
    import pyarrow as pa

    for batch in batches:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([stream.getvalue().to_pybytes()], pa.binary())], names=["part"])

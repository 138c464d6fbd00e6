"""Starting a Spark session, and Spark dataframes as tables."""

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
from cranfield.tables.parquet import ParquetTable, is_parquet_folder
from cranfield.tables.sources import is_parquet

DEFAULT_MASTER = "local[*]"
# How often a task is tried if its worker dies; Spark's own default on one machine is once.
_TRIES = 4


def is_spark(source: Any) -> bool:
    """Return whether something is a Spark dataframe."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")


def spark_session(master: str | None = None, *, wanted_by: str = "engine='spark' (--engine spark)") -> Any:
    """Return the active session, or a new one: on this machine, unless ``master`` or spark-submit sets another master.

    The workers of a new session use the Python of this process, unless ``PYSPARK_PYTHON`` names another one: the Python
    that Spark would choose may not have PyArrow and cranfield.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError(wanted_by, library="pyspark", extra="spark") from error
    active = SparkSession.getActiveSession()
    if active is not None:
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
    if home:
        return (Path(home) / "bin" / "java").exists()
    return shutil.which("java") is not None


def _retrying(master: str) -> str:
    """Return the master; on this machine, with the option to repeat a task whose worker dies.

    Examples
    --------
    >>> _retrying("local[2]"), _retrying("local"), _retrying("yarn")
    ('local[2,4]', 'local[1,4]', 'yarn')
    """
    if master == "local":
        master = "local[1]"
    inside = master.removeprefix("local[").removesuffix("]")
    return f"local[{inside},{_TRIES}]" if master == f"local[{inside}]" and "," not in inside else master


def set_worker_python(session: Any) -> None:
    """Let the workers of a session on this machine use the Python of this process, unless another one is set."""
    context = None if _is_connect(session) else session.sparkContext
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def _is_connect(session: Any) -> bool:
    return ".connect." in type(session).__module__


@dataclass
class SparkTable:
    """A Spark dataframe, whose rows have no numbers. Only its name is sent to workers."""

    frame: Any
    label: str

    has_places = False

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

    def batches(self, columns: Sequence[str], _: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each distinct row once."""
        yield 0, as_polars(self.select(columns).distinct())

    def values(self, column: str, field: str | None, *others: str) -> Any:
        """Return a dataframe of the values of a column, or of a field of it, those of lists one by one, and others."""
        from pyspark.sql import functions as F

        value = F.col(quoted(column)) if field is None else F.col(quoted(column)).getField(field)
        is_list = dict(self.frame.dtypes)[column].startswith("array")
        return self.frame.select((F.explode(value) if is_list else value).alias("value"), *map(quoted, others))

    def fault(self, problem: str, row: dict[str, Any], column: str | None, remedy: str | None) -> InputError:
        """Return the error for a row, which it names by its user and item."""
        return fault_of(self.label, problem, row, column, remedy)


def fault_of(
    label: str, problem: str, row: dict[str, Any], column: str | None = None, remedy: str | None = None
) -> InputError:
    """Return the error for a row of a dataframe without row numbers: ``row`` has its user and item.

    Examples
    --------
    >>> print(fault_of("the run", "'abc' is not a number", {"user": 3, "item": "x"}, "score"))
    the run, user 3, item 'x', column 'score': 'abc' is not a number
    """
    known = [f"{role} {value!r}" for role, value in row.items() if value is not None and not isinstance(value, list)]
    return InputError(problem, source=", ".join([label, *known]), column=column, remedy=remedy)


def named_by_ids(error: InputError, frame: pl.DataFrame, roles: Mapping[str, str], label: str) -> InputError:
    """Return the error with the user and item instead of the row."""
    row = {} if error.row is None else frame.row(error.row - 1, named=True)
    known = {role: row.get(roles[role]) for role in ("user", "item")}
    return fault_of(label, error.problem, known, error.column, error.remedy)


def as_polars(frame: Any) -> pl.DataFrame:
    """Return the rows of a small Spark dataframe."""
    rows = pl.from_arrow(frame.toArrow())
    assert isinstance(rows, pl.DataFrame)
    return rows


def read_spark(path: str, session: Any) -> Any:
    """Return the Parquet files at a path, on any file system that Spark knows, as a dataframe."""
    remedy = "give Parquet files or folders that every worker can read"
    local = Path(path)
    if local.is_file() and not is_parquet(local):
        raise InputError("the file is not Parquet", source=str(path), remedy=remedy)
    try:
        return session.read.parquet(str(path))
    except Exception as error:
        java = getattr(error, "java_exception", None)
        lines = [line for line in str(error if java is None else java.toString()).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise InputError(f"Spark cannot read it as Parquet: {reason}", source=str(path), remedy=remedy) from error


def to_spark(rows: pl.DataFrame, session: Any) -> Any:
    """Return rows as a Spark dataframe."""
    return session.createDataFrame(rows.to_arrow())


def quoted(name: str) -> str:
    """Return a column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"

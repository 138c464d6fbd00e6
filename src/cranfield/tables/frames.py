"""Parquet files, folders of them, and dataframes of any library as tables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._polars import panics_unheard, readable, scan_parquet
from cranfield.tables.columns import ROLES, Role
from cranfield.tables.files import check_size, is_parquet, unpack_limit
from cranfield.tables.values import ColumnTable

_KINDS = "a path, a dataframe (pandas, Polars, PyArrow, DuckDB), a dictionary of columns or a list of tuples"
# The errors of Polars and PyArrow for types they do not know.
_UNREADABLE = (
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
    *(TypeError, ValueError, NotImplementedError, OverflowError),
)
BATCH = 1 << 19
"""Number of rows to read at a time."""
_SAMPLE = 100  # rows to inspect for the content of a column
_VALUE = 8  # bytes, once it is read
_UNITS = ("D", "ms", "us", "ns")  # of NumPy's dates that Polars knows
# What Hive and Spark write for a partition without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# The parts in which file names of one table differ: part-00001, data_2, a UUID.
_NUMBERS = re.compile(r"[0-9a-fA-F]{8,}|[0-9]+|-[0-9a-fA-F]{4}(?=-)")


def is_parquet_folder(path: Path) -> bool:
    """Whether a path is a folder of Parquet files."""
    return path.is_dir() and any(is_parquet(file) for file in _visible(path))


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files of a folder and its subfolders, sorted by name; or the file itself.

    Files whose names start with a dot or an underscore are not data (``_SUCCESS``), as in other tools.
    """
    if not path.is_dir():
        return [path]
    files = sorted(_visible(path))
    stray = next((file for file in files if not is_parquet(file)), None)
    if stray is not None:
        problem = f"the folder holds Parquet files, and {stray.relative_to(path)} is not one"
        remedy = "move that file elsewhere, or name one file"
        raise InputError(problem, source=str(path), remedy=remedy)
    if len({_NUMBERS.sub("", file.name) for file in files}) > 1 and not any(
        "=" in part for part in files[0].relative_to(path).parts
    ):
        problem = "this is a folder of files that are not parts of one table"
        remedy = f"name the files; it holds {', '.join(file.name for file in files[:5])}"
        raise InputError(problem, source=str(path), remedy=remedy)
    return files


def _visible(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            yield path


class ParquetTable:
    """The rows of a Parquet file, or of all files of a folder in the order of their names.

    It has the same methods as `SparkTable`, whose rows have no places. A folder may be partitioned as by Hive and
    Spark: the names of its subfolders (``system=knn``) become a column.
    """

    has_places = True

    def __init__(self, path: Path) -> None:
        self.path, self.label = path, str(path)
        self._files = parquet_files(path)
        self._partitions = [_partition(file.relative_to(path)) if path.is_dir() else {} for file in self._files]
        with readable(self._files[0]):
            self.schema = dict(self._scan(0).collect_schema())

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema)

    @cached_property
    def _ends(self) -> list[int]:
        """The number of rows up to the end of each file, read from the footers of the files."""
        counts = []
        for file in self._files:
            with readable(file):
                counts.append(scan_parquet(file).select(pl.len()).collect().item())
        return np.cumsum(counts, dtype=np.int64).tolist()

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def file_bytes(self) -> int:
        """The size of the files."""
        return sum(file.stat().st_size for file in self._files)

    def rows(self, start: int, stop: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return the rows from ``start`` up to ``stop``."""
        parts = []
        for place, end in enumerate(self._ends):
            first = self._ends[place - 1] if place else 0
            if first < stop and start < end and first < end:
                parts.append(self._part(place, max(start - first, 0), min(stop, end) - max(start, first), columns))
        if not parts:
            return pl.DataFrame(schema={name: self.schema[name] for name in columns})
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="vertical_relaxed")

    def _scan(self, place: int) -> pl.LazyFrame:
        """Return a file with the columns that the names of its folders add."""
        added = {name: pl.lit(value, dtype=pl.String) for name, value in self._partitions[place].items()}
        return scan_parquet(self._files[place]).with_columns(**added)

    def _part(self, place: int, start: int, count: int, columns: Sequence[str]) -> pl.DataFrame:
        with readable(self._files[place]):
            frame = self._scan(place)
            if missing := [name for name in columns if name not in frame.collect_schema()]:
                problem = f"there is no column {missing[0]!r}, which the other files have"
                remedy = "write the files of a folder with the same columns"
                raise InputError(problem, source=str(self._files[place]), remedy=remedy)
            return frame.select(columns).slice(start, count).collect()

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the rows in order, some at a time, each with the position of its first row."""
        for start in range(0, len(self), BATCH):
            yield start, self.rows(start, min(start + BATCH, len(self)), columns)

    def frame(self) -> pl.LazyFrame:
        """Return the table as a lazy frame."""
        frames = [self._scan(place) for place in range(len(self._files))]
        return frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")


def _partition(path: Path) -> dict[str, str | None]:
    """Return the partition values in the names of the folders above a file."""
    pairs = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
    return {name: None if value == _NO_VALUE else unquote(value) for name, value in pairs}


class FrameTable(ColumnTable):
    """The columns of a frame, collected one at a time, so that a large Parquet file needs little memory."""

    def __init__(self, frame: pl.LazyFrame, label: str, *, named: bool = True) -> None:
        self.label = label
        self._frame = frame
        self._schema = self._collected(frame.head(0)).schema
        self.names = tuple(self._schema) if named else None
        self.width = len(self._schema)
        if not self.width:
            raise self._empty()

    @classmethod
    def of(cls, source: Any) -> FrameTable:
        """Return the table of a dataframe of any library, a dictionary of columns, or a list of tuples."""
        label = "the list" if isinstance(source, list) else f"the {type(source).__name__}"
        try:
            frame, named = _as_polars(source, label)
        except (*_UNREADABLE, ImportError) as error:
            problem = f"the data cannot be read ({str(error).splitlines()[0]})"
            raise InputError(problem, source=label, remedy=f"give {_KINDS}") from error
        return cls(frame.lazy(), label, named=named)

    @classmethod
    def of_parquet(cls, source: Path | bytes, label: str) -> FrameTable:
        """Return the table of a Parquet file, given by its path or its content, or of a folder of such files."""
        if not isinstance(source, Path):
            table, size = cls(scan_parquet(io.BytesIO(source)), label), len(source)
        elif source.is_dir():
            files = ParquetTable(source)
            table, size = cls(files.frame(), label), files.file_bytes
        else:
            table, size = cls(scan_parquet(source), label), source.stat().st_size
        rows = table._collected(table._frame.select(pl.len())).item()
        # A small file may hold many rows if their values repeat.
        check_size(rows * _VALUE * min(table.width, len(ROLES)), unpack_limit(size), label)
        return table

    def head(self) -> pl.DataFrame:
        """Return the first rows."""
        return self._collected(self._frame.head(_SAMPLE))

    def column(self, role: Role) -> pl.Series:
        """Return the column of ``role``."""
        column = self._collected(self._frame.select(pl.nth(self._places[role]))).to_series()
        if not len(column):
            raise self._empty()
        return column

    def _empty(self) -> InputError:
        return InputError("there are no ratings", source=self.label, remedy="give at least one row")

    def _collected(self, frame: pl.LazyFrame) -> pl.DataFrame:
        try:
            with panics_unheard():
                return frame.collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            problem = f"the data cannot be read ({str(error).splitlines()[0]})"
            remedy = "fix it; a Parquet file that is cut short or damaged must be fetched or written again"
            raise InputError(problem, source=self.label, remedy=remedy) from error


def _as_polars(source: Any, label: str) -> tuple[pl.DataFrame | pl.LazyFrame, bool]:
    """Return the data as a frame, and whether its columns have names."""
    if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
        return source, True
    if isinstance(source, Mapping):
        return pl.DataFrame(_columns(source.items(), label)), True
    if isinstance(source, (list, tuple)):
        for row in source:
            # Polars would take a list of texts, such as the names of files, for a single row.
            if isinstance(row, str) or not isinstance(row, (Sequence, Mapping, np.ndarray)):
                raise TypeError(f"{row!r} is not a rating")
        is_named = bool(source) and isinstance(source[0], Mapping)
        return pl.DataFrame(source, orient="row", infer_schema_length=None), is_named
    if isinstance(source, np.ndarray):
        return pl.DataFrame(source), source.dtype.names is not None
    if _is_pandas(source):
        if not hasattr(source, "columns"):
            raise TypeError(f"a {type(source).__name__} of pandas is one column")
        # pandas numbers the columns of a frame that was read without a header.
        named = not all(isinstance(name, Integral) for name in source.columns)
        return pl.DataFrame(_columns(source.items(), label)), named
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source), True
    if hasattr(source, "pl"):
        return source.pl(), True
    if hasattr(source, "__dataframe__"):
        # The older interchange protocol, which PyArrow supports and Polars no longer does.
        from pyarrow.interchange import from_dataframe

        return pl.DataFrame(from_dataframe(source)), True
    raise TypeError(f"{type(source).__name__} holds no ratings")


def _columns(columns: Iterable[tuple[Any, Any]], label: str) -> dict[str, Any]:
    """Return columns by name, in a form that Polars reads."""
    plain: dict[str, Any] = {}
    for name, column in columns:
        if str(name) in plain:
            raise InputError(f"two columns have the name {str(name)!r}", source=label, remedy="rename one of them")
        try:
            plain[str(name)] = _from_pandas(column) if _is_pandas(column) else _from_numpy(column)
        except _UNREADABLE as error:
            raise InputError(
                f"the column cannot be read ({str(error).splitlines()[0]})",
                source=label,
                column=str(name),
                remedy="give it values of one type, all numbers or all text",
            ) from error
    return plain


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def _from_numpy(column: Any) -> Any:
    """Return a column; an array of dates is converted to a unit that Polars knows."""
    is_date = isinstance(column, np.ndarray) and column.dtype.kind == "M"
    return column.astype("M8[us]") if is_date and np.datetime_data(column.dtype)[0] not in _UNITS else column


def _from_pandas(column: Any) -> Any:
    """Return a pandas column in a form that Polars reads, with missing values as null."""
    if column.dtype == object or getattr(column.dtype, "storage", None) == "python":
        # This is usually text without gaps, which need not go through Arrow; and Arrow would turn UUIDs into bytes.
        with suppress(TypeError):
            direct = pl.Series(column.to_numpy(dtype=object))
            if direct.dtype == pl.String or (len(column) and isinstance(column.iloc[0], UUID)):
                return direct
    # PyArrow may be missing, or may not know the type.
    with suppress(*_UNREADABLE, ImportError):
        return pl.from_pandas(column, nan_to_null=column.dtype == object)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return pl.Series(column.to_numpy()).dt.replace_time_zone("UTC")
    missing = column.isna().to_numpy()
    return pl.Series([None if gone else value for value, gone in zip(column.tolist(), missing)])

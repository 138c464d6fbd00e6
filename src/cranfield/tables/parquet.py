"""Parquet files, and folders of them, as one table whose rows are read by position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._polars import readable, scan_parquet
from cranfield.tables.sources import is_parquet

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
        raise InputError(
            f"the folder holds Parquet files, and {stray.relative_to(path)} is not one",
            source=str(path),
            remedy="move that file elsewhere, or name one file",
        )
    if len({_NUMBERS.sub("", file.name) for file in files}) > 1 and not any(
        "=" in part for part in files[0].relative_to(path).parts
    ):
        raise InputError(
            "this is a folder of files that are not parts of one table",
            source=str(path),
            remedy=f"name the files; it holds {', '.join(file.name for file in files[:5])}",
        )
    return files


def _visible(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            yield path


class RowTable(Protocol):
    """A table that is read in parts."""

    label: str
    has_places: bool
    """Whether its rows have an order, so that a row is identified by its position."""

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The types of the columns."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return the rows from ``start`` up to ``stop``."""

    def batches(self, columns: Sequence[str], size: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield rows with the position of the first; without positions each distinct row once."""


class ParquetTable:
    """The rows of a Parquet file, or of all files of a folder in the order of their names.

    A folder may be partitioned as by Hive and Spark: the names of its subfolders (``system=knn``) become a column.
    """

    has_places = True

    def __init__(self, path: Path) -> None:
        self.path, self.label = path, str(path)
        self._files = parquet_files(path)
        self._partitions = [_partition(file.relative_to(path)) if path.is_dir() else {} for file in self._files]
        self.schema = self._schema(0)

    def _schema(self, place: int) -> dict[str, pl.DataType]:
        with readable(self._files[place]):
            own = dict(scan_parquet(self._files[place]).collect_schema())
        return {**own, **dict.fromkeys(self._partitions[place], pl.String())}

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

    def _part(self, place: int, start: int, count: int, columns: Sequence[str]) -> pl.DataFrame:
        file, partition = self._files[place], self._partitions[place]
        with readable(file):
            frame = scan_parquet(file)
            missing = [name for name in columns if name not in partition and name not in frame.collect_schema()]
            if missing:
                raise InputError(
                    f"there is no column {missing[0]!r}, which the other files have",
                    source=str(file),
                    remedy="write the files of a folder with the same columns",
                )
            own = [name for name in columns if name not in partition]
            values = [
                pl.repeat(partition[name], count, dtype=pl.String).alias(name) for name in columns if name in partition
            ]
            if not own:
                return pl.select(values)
            rows = frame.select(own).slice(start, count).collect()
            return rows.with_columns(values).select(columns) if values else rows

    def batches(self, columns: Sequence[str], size: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the rows in order, in batches of ``size``, each with the position of its first row."""
        for start in range(0, len(self), size):
            yield start, self.rows(start, min(start + size, len(self)), columns)

    def frame(self) -> pl.LazyFrame:
        """Return the table as a lazy frame."""
        frames = [
            scan_parquet(file).with_columns(
                **{name: pl.lit(value, dtype=pl.String) for name, value in partition.items()}
            )
            for file, partition in zip(self._files, self._partitions)
        ]
        return frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")


def _partition(path: Path) -> dict[str, str | None]:
    """Return the partition values in the names of the folders above a file.

    Examples
    --------
    >>> _partition(Path("system=a%20b/day=1/part-0.parquet"))
    {'system': 'a b', 'day': '1'}
    """
    pairs = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
    return {name: None if value == _NO_VALUE else unquote(value) for name, value in pairs}

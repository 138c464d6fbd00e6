"""Reading and writing files with Polars: always exactly the named file.

Polars takes a name for a pattern (``fold[1].parquet`` for ``fold1.parquet``), for a URL (``s3://...``) or for a path in
the home folder (``~``). It never reinterprets an open file, so it is given one. No other module calls Polars' readers
and writers of files (`tests/test_architecture.py`).
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import polars as pl

from cranfield._errors import InputError

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""The errors that Polars raises for malformed bytes."""


@contextmanager
def panics_unheard() -> Iterator[None]:
    """Hold back standard error while Polars reads data that may be damaged.

    Rust prints several lines about a panic there before Python sees a `PanicException`. If one is raised, those lines
    are dropped, because the error made from it says what is wrong. Otherwise they are printed afterwards.
    """
    _HELD.begin()
    panicked = False
    try:
        yield
    except pl.exceptions.PanicException:
        panicked = True
        raise
    finally:
        _HELD.end(panicked)


class _Held:
    """The standard error of the process, held back while one or more threads read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers, self._panicked = 0, False
        self._errors: int | None = None
        self._file: IO[Any] | None = None

    def begin(self) -> None:
        with self._lock:
            self._readers += 1
            if self._readers > 1:
                return
            self._panicked = False
            with suppress(OSError):  # it is closed, or there is no temporary folder
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                self._errors = os.dup(2)
                os.dup2(self._file.fileno(), 2)

    def end(self, panicked: bool) -> None:
        with self._lock:
            self._readers -= 1
            self._panicked |= panicked
            if self._readers or self._file is None:
                return
            with suppress(OSError), self._file as file:
                if self._errors is not None:
                    os.dup2(self._errors, 2)
                    os.close(self._errors)
                    file.seek(0)
                    if not self._panicked:
                        os.write(2, file.read())
            self._file = self._errors = None


_HELD = _Held()


@contextmanager
def readable(label: str | Path) -> Iterator[None]:
    """Turn the errors of reading a Parquet file into a message of one line."""
    try:
        with panics_unheard():
            yield
    except OSError as error:
        raise InputError(
            f"the file cannot be read ({error.strerror or error})",
            source=label,
            remedy="check its name and permissions",
        ) from error
    except UNREADABLE as error:
        raise InputError(
            f"the Parquet data cannot be read ({(str(error).splitlines() or [''])[0]})",
            source=label,
            remedy="the file is cut short or damaged: fetch or write it again",
        ) from error


def read_parquet(path: str | Path) -> pl.DataFrame:
    """Return the table in a Parquet file."""
    with readable(path):
        return scan_parquet(path).collect()


def scan_parquet(source: str | Path | IO[bytes] | Sequence[Path]) -> pl.LazyFrame:
    """Return a lazy table of a Parquet file, or of several that are parts of one.

    Damaged data are only noticed when they are collected: collect them in `readable`.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        files: list[IO[bytes]] = [path.open("rb") for path in source]
        return pl.scan_parquet(files)
    return pl.scan_parquet(_opened(source))


def scan_csv(path: Path, **options: Any) -> pl.LazyFrame:
    """Return a lazy table of a text file."""
    return pl.scan_csv(_opened(path), **options)


def scan_ndjson(path: Path, **options: Any) -> pl.LazyFrame:
    """Return a lazy table of a file of JSON lines."""
    return pl.scan_ndjson(_opened(path), **options)


def _opened(source: str | Path | IO[bytes]) -> IO[bytes]:
    # Polars keeps the file open while it is needed.
    return Path(source).open("rb") if isinstance(source, str | Path) else source


def write_parquet(table: pl.DataFrame, target: Path | IO[bytes], **options: Any) -> None:
    """Write a table as Parquet."""
    if not isinstance(target, Path):
        table.write_parquet(target, **options)
        return
    with target.open("wb") as file:
        table.write_parquet(file, **options)


def sink_parquet(tables: Iterator[pl.DataFrame], target: Path) -> None:
    """Write tables with the same columns to one Parquet file, one by one, so that they need not fit in memory."""
    from polars.io.plugins import register_io_source

    first = next(tables)

    def rows(*_: Any) -> Iterator[pl.DataFrame]:
        yield first
        yield from tables

    with target.open("wb") as file:
        register_io_source(rows, schema=first.schema).sink_parquet(file)


def write_csv(table: pl.DataFrame, path: Path, **options: Any) -> None:
    """Write a table as text."""
    with path.open("wb") as file:
        table.write_csv(file, **options)

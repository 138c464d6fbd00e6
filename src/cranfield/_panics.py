"""Panics of Polars, without the lines that Rust prints about them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import polars as pl


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

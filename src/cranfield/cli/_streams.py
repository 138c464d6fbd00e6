"""Standard output and standard error that may be closed, before a command starts or while it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO


@contextmanager
def unread_is_dropped() -> Iterator[None]:
    """Drop what nobody reads, as after ``| head -1`` or with ``>&-``: the command and its exit code are the same."""
    with redirect_stdout(_Stream(sys.stdout)), redirect_stderr(_Stream(sys.stderr)):
        yield


def drop(stream: Any) -> None:
    """Discard what is written to a stream from now on, and what is still unwritten: Python tries again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Stream:
    """A stream whose reader may be gone; closed streams are None."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: Any = Path(os.devnull).open("w", encoding="utf-8") if stream is None else stream  # noqa: SIM115

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            self._stream.write(text)
        except BrokenPipeError:
            drop(self._stream)
        return len(text)

    def flush(self) -> None:
        """Write what is still unwritten, or drop it."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            drop(self._stream)

"""A progress bar for what takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cranfield._settings import settings
from cranfield._shown import shown

_PATIENCE = 2.0


class Progress:
    """Counts steps, and shows a bar on a terminal once two seconds have passed."""

    def __init__(self, what: str, total: float | None, unit: str = "") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done: float = 0
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._silent = settings.quiet or not sys.stderr.isatty()

    def advance(self, steps: float = 1) -> None:
        """Count ``steps`` more as done."""
        self.done += steps
        if self._silent:
            return
        if self._bar is None:
            if time.monotonic() - self._start < _PATIENCE:
                return
            self._open()
        self._bar.update(self._task, completed=self.done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self.unit, markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(shown(self.what), total=self.total)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress(what: str, total: float | None = None, unit: str = "") -> Iterator[Progress]:
    """Open a `Progress` and close it whatever happens.

    Examples
    --------
    >>> with progress("Counting", total=3) as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    >>> bar.done
    3
    """
    bar = Progress(what, total, unit)
    try:
        yield bar
    finally:
        bar.close()

"""What people see on a terminal: text that cannot control it, and the progress of work that takes long."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Protocol

from cranfield._settings import settings

_BREAKS = re.compile("[\t-\r\x85\u2028\u2029]")
# Control characters, surrogates, marks that change the direction of writing, and code points that are not characters.
_COMMANDS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def shown(text: object) -> str:
    r"""Return text without line breaks, terminal control characters and marks that change the direction of writing.

    Examples
    --------
    >>> shown("mine\x1b[31m"), shown("mine\u202e"), shown("two\nlines")
    ('mine�[31m', 'mine�', 'two lines')
    """
    text = str(text)
    if text.isascii() and text.isprintable():
        return text  # nearly all text, even in tables of a million rows
    return _COMMANDS.sub("\ufffd", _BREAKS.sub(" ", text))


def one_line(text: object) -> str:
    """Return text as `shown`, with runs of spaces made one space."""
    return " ".join(shown(text).split())


def shown_lines(text: object) -> str:
    """Return text of several lines, each as `shown` but with its tabs."""
    return "\n".join("\t".join(map(shown, line.split("\t"))) for line in str(text).split("\n"))


_PATIENCE = 2.0
# The second line comes after this many seconds; later lines come ever more rarely, but at least once a minute.
_SECOND_LINE, _RAREST = 10.0, 60.0


# Displays that show the progress of the work inside them.
_LISTENERS: list[Callable[[str], None]] = []


class Progress:
    """Counts steps, and shows them once two seconds have passed: as a bar on a terminal, as lines elsewhere."""

    def __init__(self, what: str, total: float | None, unit: str = "") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done: float = 0
        self.note = ""
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._silent, self._terminal = settings.quiet, sys.stderr.isatty()
        self._next_line, self._writing = _PATIENCE, threading.Lock()

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Count ``steps`` more as done; ``note`` is the current state, such as a loss."""
        self.done += steps
        self.note = note
        if self._silent:
            self._tell_outside()
            return
        if not self._terminal:
            self.remind()
            return
        if self._bar is None:
            if time.monotonic() - self._start < _PATIENCE:
                return
            self._open()
        self._bar.update(self._task, completed=self.done, description=shown(self._title()))

    def remind(self) -> None:
        """Write a line if there is no terminal and the last line was long enough ago."""
        elapsed = time.monotonic() - self._start
        with self._writing:
            if self._silent or self._terminal or elapsed < self._next_line:
                return
            self._next_line = max(_SECOND_LINE, min(2 * elapsed, elapsed + _RAREST))
        with suppress(OSError, ValueError):  # standard error is closed
            print(shown(self._line(elapsed)), file=sys.stderr, flush=True)

    def _tell_outside(self) -> None:
        """Report this progress to the display that it is a part of."""
        elapsed = time.monotonic() - self._start
        if _LISTENERS and elapsed > _PATIENCE:
            _LISTENERS[-1](self._line(elapsed))

    def _line(self, elapsed: float) -> str:
        if self.total is None or self.total <= 1:
            return f"{self.what}: {elapsed:.0f} s so far" + (f"; {self.note}" if self.note else "")
        unit = f" {self.unit}" if self.unit else ""
        left = f", about {elapsed * (self.total / self.done - 1):.0f} s left" if 0 < self.done < self.total else ""
        note = f"; {self.note}" if self.note else ""
        return f"{self.what}: {self.done:,.10g} of {self.total:,.10g}{unit}, {elapsed:.0f} s so far{left}{note}"

    def _title(self) -> str:
        return f"{self.what} ({self.note})" if self.note else self.what

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
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def heard_by(listener: Callable[[str], None]) -> Iterator[None]:
    """Silence all progress inside, and report it to a listener instead."""
    quiet, settings.quiet = settings.quiet, True
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.pop()
        settings.quiet = quiet


def unheard() -> AbstractContextManager[None]:
    """Silence all progress inside."""
    return heard_by(lambda _: None)


def announce(text: str) -> None:
    """Print a sentence before long work begins, if progress is shown."""
    if not settings.quiet:
        with suppress(OSError, ValueError):  # standard error is closed
            print(shown(text), file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: float | None = None, unit: str = "") -> Iterator[Progress]:
    """Open a `Progress`, and close it whatever happens."""
    bar = Progress(what, total, unit)
    try:
        yield bar
    finally:
        bar.close()


class Stages(Protocol):
    """Shows the progress of work in stages: a context for each, with a function to report steps."""

    def __call__(self, what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:
        """Start a stage that has the given number of steps."""


def silent(what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG001
    """Show no progress."""
    return nullcontext(lambda: None)

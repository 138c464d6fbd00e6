"""A live display of the stages of a long command, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cranfield._settings import settings
from cranfield._shown import shown
from cranfield.cli._output import say


@contextmanager
def stages(what: str, steps: int = 1) -> Iterator[Callable[[], None]]:
    """Show a stage of so many steps while it lasts, then leave a line with its time; give what counts a step.

    On a terminal it moves; elsewhere only the line is written. Bars of what runs inside are kept quiet.
    """
    if settings.quiet:
        yield lambda: None
        return
    start = time.monotonic()
    settings.quiet = True
    try:
        if sys.stderr.isatty():
            with _bar(what, steps) as advance:
                yield advance
        else:
            yield lambda: None
    finally:
        settings.quiet = False
    say(f"{what:<24} {time.monotonic() - start:5.1f} s", err=True)


@contextmanager
def _bar(what: str, steps: int) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    elapsed, left = TimeElapsedColumn(), TimeRemainingColumn()
    columns = (SpinnerColumn(), TextColumn("{task.description:<22}", markup=False), BarColumn(), elapsed, left)
    what = shown(what)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=steps if steps > 1 else None)
        yield lambda: bar.advance(task)

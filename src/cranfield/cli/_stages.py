"""A live display of the stages of a long command, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from cranfield._settings import settings
from cranfield._terminal import Progress, heard_by, shown
from cranfield.cli._output import say

_LOOK = 1.0  # seconds between checks whether a line is due


@contextmanager
def stages(what: str, steps: int = 1) -> Iterator[Callable[[], None]]:
    """Show a stage while it lasts, then leave a line with its time; yield the function that counts a step.

    On a terminal there is a bar; elsewhere a line is written now and then. Work inside has no separate bar: its
    progress, such as the loss of an epoch, is shown in this one.
    """
    if settings.quiet:
        yield lambda: None
        return
    start = time.monotonic()
    shown_as = _bar if sys.stderr.isatty() else _lines
    with shown_as(what, steps) as (advance, listener), heard_by(listener):
        yield advance
    say(f"{what:<24} {time.monotonic() - start:5.1f} s", err=True)


@contextmanager
def _lines(what: str, steps: int) -> Iterator[tuple[Callable[[], None], Callable[[str], None]]]:
    """Write a line now and then, even during a single long step."""
    progress, ended = Progress(what, steps), Event()

    def listen(text: str) -> None:
        progress.note = text
        progress.remind()

    def look() -> None:
        while not ended.wait(_LOOK):
            progress.remind()

    Thread(target=look, daemon=True).start()
    try:
        yield progress.advance, listen
    finally:
        ended.set()


@contextmanager
def _bar(what: str, steps: int) -> Iterator[tuple[Callable[[], None], Callable[[str], None]]]:
    """Show a bar, and the progress of the work inside below it, because there is no room for a loss next to it."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    elapsed, left = TimeElapsedColumn(), TimeRemainingColumn()
    columns = (SpinnerColumn(), TextColumn("{task.description:<22}", markup=False), BarColumn(), elapsed, left)
    bar, inside = Progress(*columns), Text()
    task = bar.add_task(shown(what), total=steps if steps > 1 else None)

    def advance() -> None:
        bar.update(task, advance=1)
        inside.plain = ""

    def listen(text: str) -> None:
        inside.plain = shown(text)

    def both() -> Group:
        return Group(bar, inside) if inside.plain else Group(bar)

    with Live(get_renderable=both, console=Console(stderr=True), transient=True):
        yield advance, listen

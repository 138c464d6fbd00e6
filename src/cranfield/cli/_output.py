"""What a command writes: results in the requested format, notes, the progress of stages; the streams may be closed."""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

import click
import polars as pl

from cranfield._errors import CranfieldError, CranfieldWarning, SettingError
from cranfield._files import whole_file, write_text
from cranfield._polars import sink_parquet
from cranfield._result import as_json, check_frame_file, frame_text, write_frame
from cranfield._settings import settings
from cranfield._table import Table
from cranfield._terminal import Progress, heard_by, shown, shown_lines
from cranfield.cli._options import Command, Decorator, in_words_of
from cranfield.tables import spark_session

# Text on standard output and standard error.


def say(text: object, *, err: bool = False) -> None:
    """Print lines without control characters from files or names."""
    click.echo(shown_lines(text), err=err)


def say_line(text: object, *, err: bool = False) -> None:
    """Print one line, whatever the names in it contain."""
    click.echo(shown(text), err=err)


def inform(*lines: object, err: bool = False) -> None:
    """Print lines besides the result, whatever the names in them contain; none with ``--quiet``."""
    for line in () if settings.quiet else lines:
        say_line(line, err=err)


def tell(notes: Iterable[object]) -> None:
    """Print notes on standard error; with ``--quiet`` only warnings."""
    for note in map(str, notes):
        if not settings.quiet or note.startswith("Warning: "):
            say_line(f"· {note}", err=True)


def tell_beside(format: str, notes: Iterable[object]) -> None:
    """Print notes on standard error beside data for machines; beside a table only warnings, or all details."""
    everything = settings.details or format != "table"
    tell(note for note in map(str, notes) if everything or note.startswith("Warning: "))


def put(text: str, out: str | None) -> None:
    """Print a text, or write it to a file."""
    if out is None:
        # A pipe or a file gets the data unchanged.
        text = text.rstrip("\n")
        click.echo(shown_lines(text) if sys.stdout.isatty() else text)
        return
    write_text(out, text if text.endswith("\n") else text + "\n")


def put_text(result: object, out: str | None) -> None:
    """Print a result for people, or write it to a file, without control characters."""
    put(shown_lines(result), out)


def put_result(result: Any, format: str, out: str | None) -> None:
    """Print a result for people, as JSON or as CSV, or write it to a file."""
    if format in ("table", "text"):
        put_text(result, out)
    elif format == "json" and hasattr(result, "as_dict"):
        put(as_json(result.as_dict()), out)
    else:
        put(frame_text(result.frame(), format), out)


def put_tables(tables: Sequence[Table], format: str, out: str | None, most_notes: int | None = None) -> None:
    """Print tables below each other as text, LaTeX or Markdown, or write them to one file; see `Table.text`."""
    forms: dict[str, Callable[[Table], str]] = {
        "table": lambda table: table.text(most_notes=most_notes), "latex": Table.latex, "markdown": Table.markdown
    }  # fmt: skip
    put("\n\n".join(forms[format](table).rstrip("\n") for table in tables), out)


@contextmanager
def printed_notes() -> Iterator[None]:
    """Print cranfield's warnings as notes, each once and on one line, without their place in the code."""
    said: set[str] = set()
    with warnings.catch_warnings():
        python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            context = click.get_current_context(silent=True)
            note = " ".join(str(message).split())
            note = note if context is None else in_words_of(context.command, note)
            if not issubclass(category, CranfieldWarning):
                python(message, category, *place, **more)
            elif note not in said:
                said.add(note)
                click.echo(f"note: {note}", err=True)

        warnings.showwarning = show
        warnings.simplefilter("always", CranfieldWarning)
        yield


# Formats and files.


def output_options(*formats: str) -> Decorator[Any]:
    """Give a command ``--format`` and ``--out``; the default format is by the file's extension, or the first."""

    def format_of(context: click.Context, _: click.Parameter, given: str | None) -> str:
        out = context.params.get("out")
        named = given or _ENDINGS.get(Path(out or "").suffix.lower(), formats[0])
        if named not in formats:
            raise click.UsageError(
                f"--out {out} cannot be written as {named}; give another ending, or --format {formats[0]}"
            )
        return named

    def unfold(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
        # The content of a file does not depend on the width of the terminal.
        settings.width = settings.width if given is None else math.inf
        return given

    def give(command: Command) -> Command:
        # Eager, so that it is known when the format is decided.
        out = click.option(
            "--out", metavar="FILE", is_eager=True, callback=unfold, help="Write to this file instead of the terminal."
        )
        help = f"The output format.  [default: by the ending of --out, or {formats[0]}]"
        how = click.option("--format", type=click.Choice(formats), callback=format_of, help=help)
        return how(out(command))

    return give


_ENDINGS = {".csv": "csv", ".json": "json", ".tex": "latex", ".md": "markdown", ".tsv": "tsv", ".parquet": "parquet"}
_ENDINGS |= {ending: ending[1:] for ending in (".xlsx", ".xls", ".html", ".pdf", ".png", ".svg")}


def refuse_file(out: str | Path) -> None:
    """Refuse a file if a folder is needed."""
    if Path(out).is_file():
        raise SettingError(f"--out {out} is a file; name a folder")


def make_folder(out: str | Path) -> None:
    """Create the folder for results before anything else, so that no work is lost if that fails."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CranfieldError(
            f"the folder {out} cannot be created ({error.strerror}); choose another with --out"
        ) from error


def put_values(scores: Any, out: str) -> None:
    """Write the values of every list to a file, or to a folder of Parquet files on a file system that Spark knows.

    Parquet is written one block of lists at a time, to save memory.
    """
    blocks, ending = scores.per_user_parts(), check_frame_file(out)
    if "://" in out:
        if ending != ".parquet":
            raise SettingError(f"Spark writes the values of users as Parquet; name a *.parquet folder instead of {out}")
        put_on_spark(spark_session().createDataFrame(pl.concat(blocks).to_arrow()), out)
    elif ending == ".parquet":
        with whole_file(out) as temporary:
            sink_parquet(blocks, temporary)
    else:
        write_frame(pl.concat(blocks), out)


def put_on_spark(frame: Any, out: str) -> None:
    """Let Spark write a dataframe as a folder of Parquet files; an existing folder is not replaced."""
    try:
        frame.write.parquet(out)
    except Exception as error:
        raise CranfieldError(f"{out}: Spark cannot write it: {str(error).splitlines()[0]}") from error


# A live display of the stages of a long command, on standard error.

_LOOK = 1.0  # seconds between checks whether a line is due
_Display = Iterator[tuple[Callable[[], None], Callable[[str], None]]]


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
    display = _bar if sys.stderr.isatty() else _lines
    with display(what, steps) as (advance, listener), heard_by(listener):
        yield advance
    say(f"{what:<24} {time.monotonic() - start:5.1f} s", err=True)


@contextmanager
def _lines(what: str, steps: int) -> _Display:
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
def _bar(what: str, steps: int) -> _Display:
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


# Standard output and standard error that may be closed, before a command starts or while it runs.


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

"""Results to the terminal or to a file, in the requested format."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import polars as pl

from cranfield._errors import CranfieldError, SettingError
from cranfield._files import whole_file, write_text
from cranfield._polars import sink_parquet, write_csv, write_parquet
from cranfield._settings import settings
from cranfield._table import Table, csv_of
from cranfield._terminal import shown, shown_lines
from cranfield.tables import spark_session, to_spark

Command = TypeVar("Command", bound=Callable[..., Any])


def written(frame: pl.DataFrame, format: str) -> str:
    """Return a tidy frame as CSV (in which no cell is a formula) or JSON (a list of rows; NaN is null)."""
    if format == "csv":
        return csv_of(frame)
    return as_json(plain_rows(frame))


def plain_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a tidy frame, ready for JSON."""
    return [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def as_json(value: Any) -> str:
    """Return a value as JSON text."""
    return json.dumps(value, indent=1, default=str, ensure_ascii=False) + "\n"


def output_options(*formats: str) -> Callable[[Command], Command]:
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


def say(text: object, *, err: bool = False) -> None:
    """Print lines without control characters from files or names."""
    click.echo(shown_lines(text), err=err)


def say_line(text: object, *, err: bool = False) -> None:
    """Print one line, whatever the names in it contain."""
    click.echo(shown(text), err=err)


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


def put_table(table: Table, format: str, out: str | None) -> None:
    """Print a table as text, LaTeX or Markdown, or write it to a file."""
    put(_text_of(table, format), out)


def _text_of(table: Table, format: str) -> str:
    return {"table": table.text, "latex": table.latex, "markdown": table.markdown}[format]()


def put_tables(tables: Sequence[Table], format: str, out: str | None) -> None:
    """Print tables below each other, or write them to one file."""
    put("\n\n".join(_text_of(table, format).rstrip("\n") for table in tables), out)


def put_text(result: object, out: str | None) -> None:
    """Print a result for people, or write it to a file, without control characters."""
    put(shown_lines(result), out)


def put(text: str, out: str | None) -> None:
    """Print a text, or write it to a file."""
    if out is None:
        # A pipe or a file gets the data unchanged.
        text = text.rstrip("\n")
        click.echo(shown_lines(text) if sys.stdout.isatty() else text)
        return
    write_text(out, text if text.endswith("\n") else text + "\n")


def check_frame_file(out: str) -> str:
    """Return the extension of a file that a frame can be written to."""
    ending = Path(out).suffix.lower()
    if ending not in (".parquet", ".csv", ".tsv", ".json") and (Path(out).is_file() or not Path(out).exists()):
        raise SettingError(f"{out} does not end in a known format; name it .parquet, .csv, .tsv or .json")
    return ending


def put_values(scores: Any, out: str) -> None:
    """Write the values of every list to a file, or to a folder of Parquet files on a file system that Spark knows."""
    if "://" not in out:
        put_parts(scores.per_user_parts(), out)
        return
    if check_frame_file(out) != ".parquet":
        raise SettingError(f"Spark writes the values of users as Parquet; name a *.parquet folder instead of {out}")
    put_on_spark(to_spark(pl.concat(scores.per_user_parts()), spark_session()), out)


def put_on_spark(frame: Any, out: str) -> None:
    """Let Spark write a dataframe as a folder of Parquet files; an existing folder is not replaced."""
    try:
        frame.write.parquet(out)
    except Exception as error:
        raise CranfieldError(f"{out}: Spark cannot write it: {str(error).splitlines()[0]}") from error


def put_parts(parts: Iterator[pl.DataFrame], out: str) -> None:
    """Write frames below each other to a file; Parquet is written one frame at a time, to save memory."""
    if check_frame_file(out) != ".parquet":
        put_frame(pl.concat(parts), out)
        return
    with whole_file(out) as temporary:
        sink_parquet(parts, temporary)


def put_frame(frame: pl.DataFrame, out: str) -> None:
    """Write a tidy frame to a file: Parquet, JSON, TSV or CSV, depending on its extension."""
    ending = check_frame_file(out)
    with whole_file(out) as temporary:
        if ending == ".parquet":
            write_parquet(frame, temporary)
        elif ending == ".json":
            temporary.write_text(written(frame, "json"), encoding="utf-8")
        elif ending == ".tsv":
            write_csv(frame, temporary, separator="\t")
        else:
            temporary.write_text(written(frame, "csv"), encoding="utf-8")

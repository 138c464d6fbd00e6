"""The options for reading files of ratings and of ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from cranfield._errors import SettingError, suggestion
from cranfield._files import meant
from cranfield.cli._options import add_options, choice_option, unpack_option
from cranfield.data import READING, Ratings, read
from cranfield.rankings import Gaps
from cranfield.tables import MissingColumnError, is_parquet

Read = TypeVar("Read")


def _with_tabs(text: str) -> str:
    # A shell hands over the two characters \\t where a tab is meant.
    return text.replace("\\t", "\t")


_OPTIONS = (
    click.option("--user", metavar="COLUMN", help="The column of users: its name, or its position counted from 1."),
    click.option("--item", metavar="COLUMN", help="The column of items."),
    click.option("--rating", metavar="COLUMN", help="The column of ratings."),
    click.option("--no-rating", is_flag=True, help="There are no ratings: count every row as 1 (implicit feedback)."),
    click.option("--time", metavar="COLUMN", help="The column of times."),
    click.option("--no-time", is_flag=True, help="Ignore times."),
    click.option(
        "--separator", type=_with_tabs, metavar="TEXT", help="The separator between fields: ',' or '::' or '\\t', ..."
    ),
    click.option("--header/--no-header", default=None, help="Whether the first row holds the column names."),
    click.option("--no-quote", is_flag=True, help="Treat quotes as ordinary characters."),
    click.option("--encoding", default=READING["encoding"], metavar="NAME", help="The text encoding."),
    click.option(
        "--repeated",
        default="auto",
        metavar="RULE",
        help="If a user has an item several times: error, or the rule that makes one rating of them (last, first, "
        "mean, max, sum, count, binary), or two for training and test (sum/max). Splits divide rows with times first. "
        "auto: sum/max for events, error for ratings.",
    ),
    click.option("--basket", metavar="COLUMN", help="The column of baskets or sessions, which splits keep together."),
    click.option("--session-gap", metavar="TIME", help="Make sessions: a longer pause, such as 30min, starts one."),
    click.option("--type", metavar="COLUMN", help="The column of types of events."),
    click.option(
        "--type-weight", "type_weights", multiple=True, metavar="TYPE=NUMBER", help="What events of a type are worth."
    ),
    choice_option(
        "--counts", ["keep", "to_ratings"], "Keep play counts, or turn them into ratings from 1 to 5 (Celma's method)."
    ),
    unpack_option,
)

READING_OPTIONS = (
    *(name for name in READING if name != "weights"),
    "type_weights",
    "no_rating",
    "no_time",
    "no_quote",
)
"""The names of the options that `reading_options` adds."""


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `cranfield.data.read`; it receives them as one dictionary, ``reading``.

    Options that are not given are detected by `read`. The dictionary's entries are the keyword arguments of `read`.
    """

    @wraps(command)
    def with_reading(*arguments: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in READING_OPTIONS if name != "quote"}
        reading = {name: given.get(name, usual) for name, usual in READING.items()}
        reading["weights"] = _weights(given["type_weights"])
        for name in ("rating", "time"):
            if given[f"no_{name}"]:
                if given[name] is not None:
                    raise click.UsageError(f"--{name} and --no-{name} exclude each other; give one of them")
                reading[name] = False
        if given["no_quote"]:
            reading["quote"] = None
        return command(*arguments, reading=reading, **options)

    return add_options(_OPTIONS, with_reading)


def _weights(given: Iterable[str]) -> dict[str, float] | None:
    """Return the weights of types of events; None if there are none."""
    weights = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise click.UsageError(f"--type-weight {text} is not a type and its weight; write --type-weight click=1")
    return weights or None


_RUN_OPTIONS = {
    "score": click.option("--score", metavar="COLUMN", help="The column of scores in the runs."),
    "rank": click.option("--rank", metavar="COLUMN", help="The column of ranks in the runs."),
    "prediction": click.option("--prediction", metavar="COLUMN", help="The column of predicted ratings in the runs."),
    "gaps": choice_option(
        "--gaps",
        get_args(Gaps),
        "Ranks without scores that leave places out: keep these places, with an unknown item, or close them.",
    ),
    "system": click.option(
        "--system", metavar="COLUMN", help="The column of systems, in a file with the runs of several systems."
    ),
    "run_user": click.option(
        "--run-user", metavar="COLUMN", help="The column of users in the runs, if it differs from --user."
    ),
    "run_item": click.option(
        "--run-item", metavar="COLUMN", help="The column of items in the runs, if it differs from --item."
    ),
    "run_separator": click.option(
        "--run-separator",
        type=_with_tabs,
        metavar="TEXT",
        help="The separator in the files of runs; --separator is for ratings.",
    ),
    "run_header": click.option(
        "--run-header/--no-run-header",
        default=None,
        help="Whether the first row of the runs holds the column names; --header is for ratings.",
    ),
}

RUN_READING_OPTIONS = tuple(_RUN_OPTIONS)
"""The names of the options that `run_reading_options` adds."""


def run_reading_options(command: Callable[..., Any], *, without: Collection[str] = ()) -> Callable[..., Any]:
    """Give a command the options of `cranfield.read_runs`; it receives them as one dictionary, ``run_reading``.

    The columns of users and items, quotes and encoding are in ``reading``, for ratings and runs alike. Options in
    ``without`` are left out, because the command has others of the same name.
    """

    @wraps(command)
    def with_run_reading(*arguments: Any, **options: Any) -> Any:
        given = {name.removeprefix("run_"): options.pop(name, None) for name in RUN_READING_OPTIONS}
        return command(*arguments, run_reading=given, **options)

    return add_options((option for name, option in _RUN_OPTIONS.items() if name not in without), with_run_reading)


def for_file(path: str, reading: Mapping[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Return the reading options of one of several files; a Parquet file does not get the options of text files.

    If every file is Parquet nothing is left out, so that reading refuses these options.
    """
    if not is_parquet(meant(path)) or all(is_parquet(meant(file)) for file in files):
        return dict(reading)
    of_text = ("separator", "header", "quote", "encoding")
    return {name: value for name, value in reading.items() if name not in of_text}


class SharedColumns:
    """Columns that are named once for several files, by role: each file that has a column of that name uses it."""

    def __init__(self, names: Mapping[str, str | None]) -> None:
        self._names = {role: name for role, name in names.items() if name is not None}
        self._taken: set[str] = set()
        self._missing: dict[str, MissingColumnError] = {}

    def read(self, reader: Callable[..., Read], path: str | Path, **reading: Any) -> Read:
        """Read a file with the named columns that it has, unless ``reading`` names others."""
        names = {role: name for role, name in self._names.items() if reading.get(role) is None}
        while True:
            try:
                content = reader(path, **{**reading, **names})
            except MissingColumnError as error:
                # A pipe cannot be read again.
                if error.role not in names or not (meant(path).is_file() or meant(path).is_dir()):
                    raise
                del names[error.role]
                self._missing.setdefault(error.role, error)
            else:
                self._taken.update(names)
                return content

    def check(self) -> None:
        """Refuse a column that no file has."""
        for role, error in self._missing.items():
            if role not in self._taken:
                raise error


def file_or_dataset(source: str, reading: dict[str, Any], part: str | None = None) -> Ratings:
    """Read a file of ratings, or load the known dataset of that name (a ``part`` of it, if published in parts)."""
    from cranfield import datasets

    known = source.lower() in datasets.known()
    path = Path(source)
    if path.is_file() or path.name != source or path.suffix or (path.is_dir() and not known):
        return read(source, **reading)
    if not known:
        raise SettingError(
            f"{source!r} is neither a file nor a known dataset; see: cranfield data list"
            f"{suggestion(source, datasets.known())}"
        )
    changed = [name for name, value in reading.items() if value != READING[name]]
    if changed:
        raise SettingError(
            f"{source} is a known dataset and needs no {', '.join(changed)}; those options are for files"
        )
    return datasets.load(source, part=part)

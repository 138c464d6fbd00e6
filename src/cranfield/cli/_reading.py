"""The options for reading files of ratings and of ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from cranfield._errors import SettingError, suggestion
from cranfield._files import meant
from cranfield._polars import read_parquet
from cranfield.cli._group import unpack_option
from cranfield.data import Ratings, Repeated, read
from cranfield.rankings import Gaps
from cranfield.splits import Split
from cranfield.tables import MissingColumnError, is_parquet

Read = TypeVar("Read")

DEFAULTS = {
    **dict.fromkeys(("user", "item", "rating", "time", "separator", "header")),
    "quote": '"',
    "encoding": "utf-8",
    "repeated": "error",
    "counts": "keep",
}
"""The content of ``reading`` if no option is given."""

_OPTIONS = (
    click.option("--user", metavar="COLUMN", help="The column of users: its name, or its position counted from 1."),
    click.option("--item", metavar="COLUMN", help="The column of items."),
    click.option("--rating", metavar="COLUMN", help="The column of ratings."),
    click.option("--no-rating", is_flag=True, help="There are no ratings: count every row as 1 (implicit feedback)."),
    click.option("--time", metavar="COLUMN", help="The column of times."),
    click.option("--no-time", is_flag=True, help="Ignore times."),
    click.option("--separator", metavar="TEXT", help="The separator between fields: ',' or '::' or '\\t', ..."),
    click.option("--header/--no-header", default=None, help="Whether the first row holds the column names."),
    click.option("--no-quote", is_flag=True, help="Treat quotes as ordinary characters."),
    click.option(
        "--encoding", default=DEFAULTS["encoding"], show_default=True, metavar="NAME", help="The text encoding."
    ),
    click.option(
        "--repeated",
        type=click.Choice(get_args(Repeated)),
        default=DEFAULTS["repeated"],
        show_default=True,
        help="What to do if a user rates an item several times.",
    ),
    click.option(
        "--counts",
        type=click.Choice(["keep", "celma"]),
        default=DEFAULTS["counts"],
        show_default=True,
        help="Keep play counts, or turn them into ratings from 1 to 5 (Celma's method).",
    ),
)


READING_OPTIONS = (*DEFAULTS, "no_rating", "no_time", "no_quote")
"""The names of the options that `reading_options` adds."""


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `cranfield.data.read`; it receives them as one dictionary, ``reading``.

    Options that are not given are detected by `read`. The dictionary's entries are the keyword arguments of `read`.
    """

    @wraps(command)
    def with_reading(
        *arguments: Any,
        user: str | None,
        item: str | None,
        rating: str | None,
        no_rating: bool,
        time: str | None,
        no_time: bool,
        separator: str | None,
        header: bool | None,
        no_quote: bool,
        encoding: str,
        repeated: str,
        counts: str,
        **options: Any,
    ) -> Any:
        for column, absent, name in ((rating, no_rating, "rating"), (time, no_time, "time")):
            if column is not None and absent:
                raise click.UsageError(f"--{name} and --no-{name} exclude each other; give one of them")
        reading = {
            "user": user,
            "item": item,
            "rating": False if no_rating else rating,
            "time": False if no_time else time,
            "separator": _separator(separator),
            "header": header,
            "quote": None if no_quote else DEFAULTS["quote"],
            "encoding": encoding,
            "repeated": repeated,
            "counts": counts,
        }
        return command(*arguments, reading=reading, **options)

    decorated: Callable[..., Any] = unpack_option(with_reading)
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_RUN_OPTIONS = {
    "score": click.option("--score", metavar="COLUMN", help="The column of scores in the runs."),
    "rank": click.option("--rank", metavar="COLUMN", help="The column of ranks in the runs."),
    "prediction": click.option("--prediction", metavar="COLUMN", help="The column of predicted ratings in the runs."),
    "gaps": click.option(
        "--gaps",
        type=click.Choice(get_args(Gaps)),
        default="keep",
        show_default=True,
        help="Ranks without scores that leave places out: keep these places, with an unknown item, or close them.",
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
        "--run-separator", metavar="TEXT", help="The separator in the files of runs; --separator is for ratings."
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
    def with_run_reading(
        *arguments: Any,
        score: str | None,
        rank: str | None,
        prediction: str | None,
        gaps: str,
        run_user: str | None,
        run_item: str | None,
        run_separator: str | None,
        run_header: bool | None,
        **options: Any,
    ) -> Any:
        system = None if "system" in without else options.pop("system")
        run_reading = {
            "score": score,
            "rank": rank,
            "prediction": prediction,
            "gaps": gaps,
            "system": system,
            "user": run_user,
            "item": run_item,
            "separator": _separator(run_separator),
            "header": run_header,
        }
        return command(*arguments, run_reading=run_reading, **options)

    decorated: Callable[..., Any] = with_run_reading
    for name, option in reversed(_RUN_OPTIONS.items()):
        decorated = decorated if name in without else option(decorated)
    return decorated


def _separator(given: str | None) -> str | None:
    # A shell hands over the two characters \t where a tab is meant.
    return None if given is None else given.replace("\\t", "\t")


def for_file(path: str, reading: Mapping[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Return the reading options of one of several files; a Parquet file does not get the options of text files.

    If every file is Parquet nothing is left out, so that reading refuses these options.
    """
    if not is_parquet(meant(path)) or all(is_parquet(meant(file)) for file in files):
        return dict(reading)
    return {name: value for name, value in reading.items() if name not in _OF_TEXT}


_OF_TEXT = ("separator", "header", "quote", "encoding")


class SharedColumns:
    """Columns that are named once for several files: each file that has a column of that name uses it.

    Parameters
    ----------
    names
        The name of the column of each role, or None if it is not named.
    """

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
                if error.role not in names or not (Path(path).is_file() or Path(path).is_dir()):
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
    changed = [name for name, value in reading.items() if value != DEFAULTS[name]]
    if changed:
        raise SettingError(
            f"{source} is a known dataset and needs no {', '.join(changed)}; those options are for files"
        )
    return datasets.load(source, part=part)


def is_in_parts(source: str) -> bool:
    """Whether a source is the name of a dataset with a training and a test part."""
    from cranfield import datasets

    named = not Path(source).exists() and source.lower() in datasets.known()
    return named and datasets.find(source.lower()).parts == ("train", "test")


def ratings_or_plays(source: str, reading: dict[str, Any]) -> Ratings | Split:
    """Read ratings; for Last.fm 1K read the plays, divided by time as in Bellogín et al. (2017)."""
    from cranfield import datasets
    from cranfield.datasets import cached
    from cranfield.splits import predefined

    divided = "lastfm-1k-temporal"
    if source.lower() not in ("lastfm-1k", divided) or Path(source).exists():
        return file_or_dataset(source, reading)
    # The archive fetched under the other name is the same one.
    there = None if cached(datasets.find(divided)) else cached(datasets.find("lastfm-1k"))
    archive = None if there is None else there.folder / there.source
    has_archive = archive is not None and archive.exists()
    return predefined(*datasets.load_pair(divided, from_path=archive if has_archive else None), overlap="train")


def observed_and_judged(source: str, reading: dict[str, Any]) -> tuple[Ratings, Ratings]:
    """Read the ratings that a service would have observed, and all judgments.

    They are the two parts of a dataset; or the ratings that the column ``known`` marks, and all of them; or the parts
    ``train`` and ``test`` named by the column ``split`` of a Parquet file.
    """
    from cranfield import datasets

    if not Path(source).is_file():
        file_or_dataset(source, reading)  # raises an error if the name is wrong
        return datasets.load_pair(source)
    if (parts := _parts_of(Path(source), reading)) is not None:
        return parts
    judged = read(source, **reading)
    flags = read(source, **{**reading, "rating": "known"})
    return judged.keep(flags.values > 0), judged


def _parts_of(path: Path, reading: dict[str, Any]) -> tuple[Ratings, Ratings] | None:
    """Return the parts named by the column ``split`` of a Parquet file; None if there is no such column."""
    if not is_parquet(path):
        return None
    frame = read_parquet(path)
    if "split" not in frame.columns or "known" in frame.columns:
        return None
    if set(frame["split"].unique()) != {"train", "test"}:
        raise SettingError(f"the column split of {path} must hold only train and test; give a column known instead")
    train, test = (read(frame.filter(split=part).drop("split"), **reading) for part in ("train", "test"))
    return replace(train, name=path.stem), replace(test, name=path.stem)

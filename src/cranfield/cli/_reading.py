"""The options that say how a file of ratings is to be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click

from cranfield._errors import SettingError
from cranfield._spelling import suggestion
from cranfield.cli._group import unpack_option
from cranfield.data import Ratings, read
from cranfield.data.repeated import Repeated

DEFAULTS = {
    **dict.fromkeys(("user", "item", "rating", "time", "separator", "header")),
    "quote": '"',
    "encoding": "utf-8",
    "repeated": "error",
    "counts": "keep",
}
"""What ``reading`` holds where no option is given."""

repeated_option = click.option(
    "--repeated",
    type=click.Choice(get_args(Repeated)),
    default=DEFAULTS["repeated"],
    show_default=True,
    help="What becomes of several ratings of a user for an item.",
)

_OPTIONS = (
    click.option("--user", metavar="COLUMN", help="The column of users: its name, or its position from 1."),
    click.option("--item", metavar="COLUMN", help="The column of items."),
    click.option("--rating", metavar="COLUMN", help="The column of ratings."),
    click.option("--no-rating", is_flag=True, help="Take every rating for 1: implicit feedback."),
    click.option("--time", metavar="COLUMN", help="The column of times."),
    click.option("--no-time", is_flag=True, help="Leave times aside."),
    click.option("--separator", metavar="TEXT", help="What divides the fields: ',' or '::' or '\\t', ..."),
    click.option("--header/--no-header", default=None, help="Whether the first row names the columns."),
    click.option("--no-quote", is_flag=True, help="Take quotes for characters like others."),
    click.option(
        "--encoding", default=DEFAULTS["encoding"], show_default=True, metavar="NAME", help="How the text is written."
    ),
    repeated_option,
    click.option(
        "--counts",
        type=click.Choice(["keep", "celma"]),
        default=DEFAULTS["counts"],
        show_default=True,
        help="Keep play counts, or make them ratings from 1 to 5 after Celma.",
    ),
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `cranfield.data.read`; it receives them as one dictionary, ``reading``.

    What is not given is found out by `read`. The dictionary's entries are the keyword arguments of `read`.
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
            # A shell hands over the two characters \t where a tab is meant.
            "separator": None if separator is None else separator.replace("\\t", "\t"),
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


def file_or_dataset(source: str, reading: dict[str, Any], part: str | None = None) -> Ratings:
    """Read a file of ratings, or load the known dataset of that name (a ``part`` of it, if published in parts)."""
    from cranfield.data import datasets

    known = source.lower() in datasets.known()
    path = Path(source)
    if path.is_file() or path.name != source or path.suffix or (path.is_dir() and not known):
        return read(source, **reading)
    if not known:
        raise SettingError(
            f"{source!r} is neither a file nor a known dataset; for these see: cranfield data list"
            f"{suggestion(source, datasets.known())}"
        )
    changed = [name for name, value in reading.items() if value != DEFAULTS[name]]
    if changed:
        raise SettingError(
            f"{source} is a known dataset and needs no {', '.join(changed)}; those options are for files"
        )
    return datasets.load(source, part=part)

"""``cranfield data describe``: what is in a file of ratings or a known dataset."""

from __future__ import annotations

import json
from typing import Any

import click

from cranfield.cli._group import process_options
from cranfield.cli._output import output_options, put, put_text, written
from cranfield.cli._reading import file_or_dataset, reading_options
from cranfield.data import describe

_EXAMPLES = """\b
Examples:
  cranfield data describe ratings.csv
  cranfield data describe ratings.dat.gz --separator '::'
  cranfield data describe log.csv --user visitor --item page --no-rating --repeated last
  cranfield data describe archive.zip/ml-1m/ratings.dat
  cranfield data describe ml-1m --format json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("source", metavar="FILE|NAME")
@output_options("table", "json", "csv")
@reading_options
@process_options
def command(source: str, format: str, out: str | None, reading: dict[str, Any]) -> None:
    """Describe a file of ratings, or a known dataset (see: cranfield data list).

    It prints users, items, ratings, density, the Gini index over users and over items, quartiles of the profile
    sizes, the histogram of the ratings, the time span, and how the file was read.
    """
    description = describe(file_or_dataset(source, reading))
    if format == "table":
        put_text(description, out)
    elif format == "json":
        put(json.dumps(description.as_dict(), indent=1, ensure_ascii=False, default=str) + "\n", out)
    else:
        put(written(description.frame(), "csv"), out)

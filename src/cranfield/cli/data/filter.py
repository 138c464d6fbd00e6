"""``cranfield data filter``: write a part of the ratings, and say what was removed."""

from __future__ import annotations

from typing import Any

import click

from cranfield._record import Step
from cranfield._settings import settings
from cranfield.cli._group import common_options
from cranfield.cli._output import say, say_line
from cranfield.cli._reading import file_or_dataset, reading_options
from cranfield.cli.data._written import check_outputs, write_with_record
from cranfield.data import filters as data_filters

_EPILOG = "\b\nFilters:\n" + "\n".join(f"  {line}" for line in data_filters.registry.signatures(without=("seed",)))
_EPILOG += """

\b
Examples:
  cranfield data filter ratings.csv --filter 'k_core(k=5)' --out core.parquet
  cranfield data filter ratings.csv --filter 'positives(threshold=4)' --filter 'min_ratings(user=5)' --out liked.csv
  cranfield data filter ratings.csv --filter 'drop_head(share=0.33, of=ratings)' --out tail.tsv
  cranfield data filter ratings.csv --filter 'time_window(start=2001-01-01, end=2002-01-01)' --out year.csv
"""


@click.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE|NAME")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    required=True,
    metavar="FILTER",
    help="A filter, as listed below. Repeat for several.",
)
@click.option("--out", required=True, metavar="FILE", help="Where to write: .parquet, .csv or .tsv.")
@reading_options
@common_options
def command(file: str, filters: tuple[str, ...], out: str, reading: dict[str, Any], seed: int) -> None:
    """Filter ratings, write the result, and print what was removed.

    FILE may be CSV, TSV or other text, plain or compressed, or Parquet, or the NAME of a known dataset. Filters are
    applied in the given order. A record of them is written next to the ratings: the same name, ending in .json.
    """
    check_outputs(out)
    ratings = file_or_dataset(file, reading)
    kept = data_filters.apply(ratings, filters, seed=seed)
    write_with_record(kept, out)
    if not settings.quiet:
        for step in kept.history[len(ratings.history) :]:
            say(_removed(step))
            for note in step.notes:
                say_line(f"  {note}")
        say_line(f"written to {out}: {kept}")


def _removed(step: Step) -> str:
    chosen = ", ".join(f"{name}={value}" for name, value in step.settings.items())
    lines = [f"{step.action}({chosen})"]
    for kind, (before, after) in step.effect.items():
        lines.append(f"  {kind:<8} {before:>13,} → {after:>13,}   removed {before - after:,}")
    return "\n".join(lines)

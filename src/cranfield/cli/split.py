"""``cranfield split``: divide ratings into training and test files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._settings import settings
from cranfield.cli._group import common_options
from cranfield.cli._output import refuse_file, say_line
from cranfield.cli._reading import file_or_dataset, for_file, reading_options
from cranfield.data import filters as data_filters
from cranfield.splits import Split, Splitting, apply, predefined, registry, write
from cranfield.tables import FORMATS

_DEFAULT = Splitting().split

_EPILOG = "\b\nMethods:\n" + "\n".join(f"  {line}" for line in registry.signatures(without=("seed", "validation")))
_EPILOG += """

\b
Examples:
  cranfield split ratings.csv --out parts
  cranfield split ratings.csv --method 'k_fold(k=5)' --seed 7 --out folds
  cranfield split ratings.csv --method 'leave_out(l=1, which=last)' --validation 1 --out parts
  cranfield split ratings.csv --filter 'k_core(k=5)' --method 'temporal(at=2001-01-01)' --out parts --format csv
  cranfield split train.csv --test test.csv --validation 0.1 --out parts
  cranfield split coat --test coat --out parts
"""


@click.command(epilog=_EPILOG)
@click.argument("file", metavar="FILE|NAME")
@click.option("--method", metavar="METHOD", help=f"How to split, as listed below.  [default: {_DEFAULT}]")
@click.option("--test", metavar="FILE|NAME", help="A given test set; FILE is then the training set.")
@click.option(
    "--overlap",
    type=click.Choice(["error", "test", "train"]),
    help="With --test: what to do with pairs in both files: an error, or keep them in one of the two.  [default: "
    "error]",
)
@click.option(
    "--validation",
    type=float,
    metavar="SHARE",
    help="Set aside this share of the training ratings for validation (leave_out: this many per user).",
)
@click.option(
    "--filter", "filters", multiple=True, metavar="FILTER", help="Filter FILE first; see: cranfield data filter."
)
@click.option("--out", required=True, metavar="FOLDER", help="Where to write the parts and split.json.")
@click.option("--format", type=click.Choice(FORMATS), default="parquet", show_default=True, help="The file format.")
@click.option("--force", is_flag=True, help="Replace another split, or files of the same names, in FOLDER.")
@reading_options
@common_options
def command(
    file: str,
    method: str | None,
    test: str | None,
    overlap: str | None,
    validation: float | None,
    filters: tuple[str, ...],
    out: str,
    format: str,
    force: bool,
    reading: dict[str, Any],
    seed: int,
) -> None:
    """Divide ratings into training and test files, with a record of how it was done.

    FILE may be CSV, TSV or other text, plain or compressed, or Parquet, or the NAME of a known dataset. A FOLDER that
    holds another split, or files of the same names, stays as it is unless --force is given.
    """
    if test is None and overlap is not None:
        raise SettingError("--overlap goes with --test; leave it out, or give the test set")
    refuse_file(out)
    files = [file, *([] if test is None else [test])]
    ratings = data_filters.apply(file_or_dataset(file, for_file(file, reading, files)), filters, seed=seed)
    splits: Sequence[Split]
    history = list(ratings.history)
    if test is None:
        splits = apply(ratings, _DEFAULT if method is None else method, seed=seed, validation=validation)
    elif method is not None:
        raise SettingError("--method and --test exclude each other; the test set is either drawn or given")
    else:
        judged = file_or_dataset(test, for_file(test, reading, files), "test")
        history += judged.history
        splits = [predefined(ratings, judged, overlap=overlap or "error", validation=validation, seed=seed)]
    whole = ratings.fingerprint if test is None else None
    record = write(splits, out, format=format, fingerprint=whole, force=force)
    if not settings.quiet:
        steps: list[Step | Split] = [*history, *splits]
        for step in steps:
            say_line(step)
            for note in step.notes:
                say_line(f"  {note}")
        say_line(f"written to {record.parent}, with the record {record.name}")

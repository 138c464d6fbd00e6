"""``cranfield split`` and ``check-split``: divide ratings into training and test files; check a split of any tool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from cranfield import splits
from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield._result import as_json, frame_text
from cranfield.cli._options import (
    HelpfulCommand,
    choice_option,
    common_options,
    completed,
    overlap_option,
    process_options,
)
from cranfield.cli._output import inform, output_options, put, put_text, refuse_file, say_line
from cranfield.cli._reading import file_or_dataset, for_file, reading_options
from cranfield.data import filters as data_filters
from cranfield.tables import FORMATS

_METHODS = completed(lambda: splits.registry)
_DEFAULT = splits.Splitting().split

_SIGNATURES = splits.registry.signatures(without=("seed", "validation"))
_EPILOG = "\b\nMethods:\n" + "\n".join(f"  {line}" for line in _SIGNATURES)
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


@click.command(cls=HelpfulCommand, epilog=_EPILOG)
@click.argument("file", metavar="FILE|NAME")
@click.option("--method", metavar="METHOD", help=f"How to split, as listed below.  [default: {_DEFAULT}]", **_METHODS)
@click.option("--test", metavar="FILE|NAME", help="A given test set; FILE is then the training set.")
@overlap_option
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
@choice_option("--format", FORMATS, "The file format.")
@click.option("--force", is_flag=True, help="Replace another split, or files of the same names, in FOLDER.")
@reading_options
@common_options
def split_command(
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
    folds: Sequence[splits.Split]
    history = list(ratings.history)
    if test is None:
        folds = splits.apply(ratings, _DEFAULT if method is None else method, seed=seed, validation=validation)
    elif method is not None:
        raise SettingError("--method and --test exclude each other; the test set is either drawn or given")
    else:
        judged = file_or_dataset(test, for_file(test, reading, files), "test")
        history += judged.history
        folds = [splits.predefined(ratings, judged, overlap=overlap or "error", validation=validation, seed=seed)]
    whole = ratings.fingerprint if test is None else None
    record = splits.write(folds, out, format=format, fingerprint=whole, force=force)
    steps: list[Step | splits.Split] = [*history, *folds]
    for step in steps:
        inform(step, *(f"  {note}" for note in step.notes))
    inform(f"written to {record.parent}, with the record {record.name}")


_CHECKS = """\b
Examples:
  cranfield check-split train.csv test.csv
  cranfield check-split train.csv test.csv validation.csv --promise global --fail
  cranfield check-split parts                     a folder that cranfield split wrote, or any with train and test
  cranfield check-split random temporal --report splits.html
"""


@click.command(cls=HelpfulCommand, epilog=_CHECKS)
@click.argument("sources", nargs=-1, required=True, metavar="TRAIN TEST [VALIDATION] | FOLDER...")
@click.option(
    "--promise",
    type=click.Choice(splits.PROMISES),
    help="What the split promises about time: nothing (any), or that no test rating is older than a training rating of "
    "the same user (user) or of any user (global).  [default: from the record of the split, else user]",
)
@click.option("--fail", is_flag=True, help="End with exit code 1 if something is wrong.")
@click.option("--report", metavar="FILE", help="Also write an HTML page with figures.")
@output_options("table", "json", "csv")
@reading_options
@process_options
def check_split_command(
    sources: tuple[str, ...],
    promise: Any,
    fail: bool,
    report: str | None,
    format: str,
    out: str | None,
    reading: dict[str, Any],
) -> None:
    """Check a split: overlap, leakage, cold starts, shifts, gaps, and what it can and cannot show.

    Give the files of one split, or folders with files named train and test (and validation). Several folders are shown
    side by side. Repeated pairs are counted, whatever --read says.
    """
    if report is not None:
        from cranfield._figures import check_libraries

        check_libraries()
    checks = _checks(sources, promise, reading)
    if format == "json":
        put(as_json([check.as_dict() for check in checks]), out)
    elif format == "csv":
        put(frame_text(pl.concat([check.frame() for check in checks]), "csv"), out)
    else:
        put_text("\n\n".join([*map(str, checks), splits.side_by_side(checks).text()]), out)
    if report is not None:
        from cranfield.reports import write_split_page

        say_line(f"written to {write_split_page(report, checks)}", err=True)
    if fail and any(check.wrong for check in checks):
        sys.exit(1)


def _checks(sources: Sequence[str], promise: Any, reading: dict[str, Any]) -> list[splits.SplitCheck]:
    folders = [source for source in sources if meant(source).is_dir()]
    if folders and len(folders) < len(sources):
        other = next(source for source in sources if source not in folders)
        raise SettingError(f"{folders[0]} is a folder and {other} is not; give folders, or the files of one split")
    if not folders and len(sources) == 1 and not meant(sources[0]).exists():
        raise SettingError(f"there is no folder {sources[0]}; give the folder of a split, or the files of one")
    if not folders and not 2 <= len(sources) <= 3:
        raise SettingError(
            f"{count_text(len(sources), 'file')} cannot be one split; give the training file, the test file and, if "
            "there is one, the validation file; or give folders"
        )
    if folders:
        homes = [home for folder in folders for home in splits.split_folders(folder)]
        return [splits.check_split(home, promise=promise, name=_name(home, homes), **reading) for home in homes]
    train, test, *further = (splits.read_part(source, **for_file(source, reading, sources)) for source in sources)
    name = " and ".join(Path(source).name for source in sources[:2])
    return [splits.check_split(train, test, *further, promise=promise, name=name, repeated=reading["repeated"])]


def _name(home: Path, homes: Sequence[Path]) -> str:
    """Return the name of a split: its folder, with the parent folder for folds and equal names."""
    several = sum(other.name == home.name for other in homes) > 1
    return f"{home.parent.name}/{home.name}" if home.name.startswith("fold-") or several else home.name

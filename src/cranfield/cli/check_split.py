"""``cranfield check-split``: check a split, whatever tool made it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._numbers import count_text
from cranfield.cli._group import process_options
from cranfield.cli._output import output_options, put, put_text, say_line, written
from cranfield.cli._reading import for_file, reading_options
from cranfield.data import read
from cranfield.splits import PROMISES, SplitCheck, check_split, side_by_side, split_folders

_EXAMPLES = """\b
Examples:
  cranfield check-split train.csv test.csv
  cranfield check-split train.csv test.csv validation.csv --promise global --fail
  cranfield check-split parts                     a folder that cranfield split wrote, or any with train and test
  cranfield check-split random temporal --report splits.html
"""


@click.command(epilog=_EXAMPLES)
@click.argument("sources", nargs=-1, required=True, metavar="TRAIN TEST [VALIDATION] | FOLDER...")
@click.option(
    "--promise",
    type=click.Choice(PROMISES),
    help="What the split promises about time: nothing (any), or that no test rating is older than a training rating of "
    "the same user (user) or of any user (global).  [default: from the record of the split, else user]",
)
@click.option("--fail", is_flag=True, help="End with exit code 1 if something is wrong.")
@click.option("--report", metavar="FILE", help="Also write an HTML page with figures.")
@output_options("table", "json", "csv")
@reading_options
@process_options
def command(
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
    side by side. Repeated pairs are counted, whatever --repeated says.
    """
    if report is not None:
        from cranfield._figures import check_libraries

        check_libraries()
    checks = _checks(sources, promise, reading)
    if format == "json":
        put(json.dumps([check.as_dict() for check in checks], indent=1, ensure_ascii=False) + "\n", out)
    elif format == "csv":
        import polars as pl

        put(written(pl.concat([check.frame() for check in checks]), "csv"), out)
    else:
        said = "\n\n".join("\n".join(check.sentences()) for check in checks)
        put_text(f"{said}\n\n{side_by_side(checks).text()}", out)
    if report is not None:
        from cranfield.reports import write_split_page

        say_line(f"written to {write_split_page(report, checks)}", err=True)
    if fail and any(check.wrong for check in checks):
        sys.exit(1)


def _checks(sources: Sequence[str], promise: Any, reading: dict[str, Any]) -> list[SplitCheck]:
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
        homes = [home for folder in folders for home in split_folders(folder)]
        names = _names(homes)
        return [check_split(home, promise=promise, name=name, **_options(reading)) for home, name in zip(homes, names)]
    train, test, *further = (
        read(source, **{**for_file(source, reading, sources), "repeated": "last"}) for source in sources
    )
    name = " and ".join(Path(source).name for source in sources[:2])
    return [check_split(train, test, *further, promise=promise, name=name)]


def _options(reading: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reading.items() if name != "repeated"}


def _names(homes: Sequence[Path]) -> list[str]:
    """Return the names of the splits: their folders, with the parent folder for folds and equal names."""
    names = [home.name for home in homes]
    return [
        f"{home.parent.name}/{home.name}" if home.name.startswith("fold-") or names.count(home.name) > 1 else home.name
        for home in homes
    ]

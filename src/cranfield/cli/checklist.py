"""``cranfield checklist``: what a reviewer looks for, and what is reported about it."""

from __future__ import annotations

import json
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield.cli._group import process_options
from cranfield.cli._output import output_options, put
from cranfield.cli._reading import reading_options
from cranfield.experiments import review

_EXAMPLES = """\b
Examples:
  cranfield checklist experiment                  the folder of an experiment that cranfield ran
  cranfield checklist experiment --format latex --out checklist.tex
  cranfield checklist train.csv test.csv mine.tsv theirs.tsv       the files of another experiment
"""


@click.command(epilog=_EXAMPLES)
@click.argument("sources", nargs=-1, required=True, metavar="FOLDER | TRAIN TEST [RUN...]")
@output_options("markdown", "latex", "json")
@reading_options
@process_options
def command(sources: tuple[str, ...], format: str, out: str | None, reading: dict[str, Any]) -> None:
    """Print a reviewer's checklist, filled in from the record of an experiment, and say what is missing.

    It covers data, filters, split, candidates, the tuning of every system (ranges and budget), metrics and definitions,
    tests, code, seeds, hardware and time.
    """
    if len(sources) == 1 or meant(sources[0]).is_dir():
        if len(sources) > 1:
            raise SettingError(
                f"{sources[0]} is a folder; give it alone, or the training and the test file of one split"
            )
        checked = review(sources[0])
    else:
        train, test, *runs = sources
        checked = review(train, test, runs, **{name: value for name, value in reading.items() if name != "repeated"})
    if format == "json":
        put(json.dumps(checked.as_dict(), indent=1, ensure_ascii=False) + "\n", out)
    else:
        put(checked.markdown() if format == "markdown" else checked.latex(), out)

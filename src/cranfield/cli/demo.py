"""``cranfield demo``: a whole evaluation on a simulated world, with a report."""

from __future__ import annotations

from pathlib import Path

import click

from cranfield.cli._options import HelpfulCommand, common_options
from cranfield.cli._output import make_folder, say, stages
from cranfield.cli._report import open_option, say_where, style_option
from cranfield.reports import SIZES, Style, check_libraries, demo

_EXAMPLES = """\b
Examples:
  cranfield demo
  cranfield demo small --seed 7 --open
  cranfield demo --out somewhere --style screen
"""


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@click.option("--out", default="cranfield-demo", metavar="FOLDER", help="The output folder.")
@open_option
@click.argument("size", type=click.Choice(list(SIZES)), default="medium")
@style_option
@common_options
def demo_command(out: str, show: bool, size: str, style: Style, seed: int) -> None:
    """Run a whole evaluation on a simulated world in which the truth is known, and write a report.

    By the size of the world, the run takes seconds, less than a minute, or minutes.
    """
    check_libraries()
    make_folder(out)
    result = demo(size, seed=seed, stages=stages)
    with stages("Writing the report"):
        page = result.write(out, style=style)
    say(result)
    say_where([], [Path(page)], show)

"""``cranfield clean``: what a folder holds besides the current experiment."""

from __future__ import annotations

import click

from cranfield.cli._output import output_options, put, written
from cranfield.experiments import clean

_EXAMPLES = """\b
Examples:
  cranfield clean experiment
  cranfield clean experiment --yes
"""


@click.command(epilog=_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@click.option("--yes", is_flag=True, help="Delete it.")
@output_options("text", "csv", "json")
def command(folder: str, yes: bool, format: str, out: str | None) -> None:
    """Show what FOLDER contains that the current experiment does not use, and delete it with --yes."""
    spare = clean(folder, free=yes)
    put(str(spare) if format == "text" else written(spare.frame(), format), out)

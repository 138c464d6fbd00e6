"""``cranfield show``: what is in the folder of an experiment."""

from __future__ import annotations

import click

from cranfield._terminal import shown_lines
from cranfield.cli._output import output_options, put, written
from cranfield.experiments import show

_EXAMPLES = """\b
Examples:
  cranfield show experiment
  cranfield show experiment --format json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@output_options("text", "csv", "json")
def command(folder: str, format: str, out: str | None) -> None:
    """Show what was run in FOLDER, what it contains, sizes and times, and the verdict."""
    overview = show(folder)
    put(shown_lines(overview) if format == "text" else written(overview.frame(), format), out)

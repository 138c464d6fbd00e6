"""``cranfield diff``: how two experiments differ."""

from __future__ import annotations

import click

from cranfield._terminal import shown_lines
from cranfield.cli._output import output_options, put, written
from cranfield.experiments import diff

_EXAMPLES = """\b
Examples:
  cranfield diff experiment condensed
  cranfield diff experiment condensed --format csv --out moved.csv
"""


@click.command(epilog=_EXAMPLES)
@click.argument("before", metavar="FOLDER")
@click.argument("after", metavar="FOLDER")
@output_options("text", "csv", "json")
def command(before: str, after: str, format: str, out: str | None) -> None:
    """Show which decisions differ between two experiments, and how the results changed."""
    differences = diff(before, after)
    put(shown_lines(differences) if format == "text" else written(differences.frame(), format), out)

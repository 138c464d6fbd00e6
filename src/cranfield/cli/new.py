"""``cranfield new``: a commented experiment file to start from."""

from __future__ import annotations

import json

import click

from cranfield.cli._given import refuse_idle
from cranfield.cli._output import say, say_line
from cranfield.experiments import PRESETS, new_experiment, schema

_EXAMPLES = """\b
Examples:
  cranfield new
  cranfield new movies.toml
  cranfield new --preset canamares2020
  cranfield new --schema > experiment.schema.json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("path", default="experiment.toml", metavar="[FILE]")
@click.option(
    "--preset",
    metavar="NAME",
    help="Start from the decisions of a paper: "
    + "; ".join(f"{name}, {preset.summary}" for name, preset in PRESETS.items())
    + ".  [default: cranfield's defaults]",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--schema", "schema_only", is_flag=True, help="Instead print a JSON schema for editors.")
def command(path: str, preset: str | None, force: bool, schema_only: bool) -> None:
    """Write an experiment file with every decision, its default and what it means."""
    if schema_only:
        refuse_idle("with --schema, which only prints", "path", "preset", "force")
        say(json.dumps(schema(), indent=1))
        return
    say_line(f"{new_experiment(path, preset=preset, force=force)}: change it, then: cranfield run {path}")

"""``cranfield data``: one module per command."""

from __future__ import annotations

import click

from cranfield.cli._group import LazyGroup

_COMMANDS = {
    "list": "List the known datasets.",
    "fetch": "Download a known dataset, or take it from a file you have.",
    "describe": "Say what is in a file of ratings or a known dataset.",
    "filter": "Filter ratings, write the result, and print what was removed.",
    "simulate": "Write simulated ratings, with the truth behind them.",
}


@click.group(cls=LazyGroup, package="cranfield.cli.data", commands_help=_COMMANDS)
def command() -> None:
    """List, fetch, describe, filter and simulate rating data."""

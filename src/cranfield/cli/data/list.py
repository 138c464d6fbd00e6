"""``cranfield data list``: the known datasets."""

from __future__ import annotations

import json

import click

_SHOWN = ("name", "users", "items", "ratings", "scale", "times", "get", "cached", "licence")

_EXAMPLES = """\b
Examples:
  cranfield data list
  cranfield data list ml-                     those whose name contains "ml-"
  cranfield data list --format csv > datasets.csv
"""


@click.command(epilog=_EXAMPLES)
@click.argument("text", default="")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="The output format; csv and json also contain the home page and the citation.",
)
def command(text: str, form: str) -> None:
    """List the known datasets, or those whose name contains TEXT."""
    import polars as pl

    from cranfield.datasets import listing

    frame = listing().filter(pl.col("name").str.contains(text.lower(), literal=True))
    if form == "csv":
        click.echo(frame.write_csv(), nl=False)
    elif form == "json":
        click.echo(json.dumps(frame.to_dicts(), indent=2, ensure_ascii=False))
    else:
        click.echo(_table([list(_SHOWN), *([_cell(row[name]) for name in _SHOWN] for row in frame.to_dicts())]))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_SHOWN))]
    numbers = [name in ("users", "items", "ratings") for name in _SHOWN]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numbers)
        ).rstrip()
        for row in rows
    )

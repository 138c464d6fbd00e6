"""``cranfield dialects``: what a metric's name means in other tools, on the user's data."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli._group import common_options
from cranfield.cli._measuring import load, measuring_options, metric_option
from cranfield.cli._output import put, written
from cranfield.measure.dialects import dialects, dialects_table

_EXAMPLES = """\b
Examples:
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --threshold 4
  cranfield dialects --test test.csv run.tsv -m AP@10 -m Recall@10 --format csv
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --published 0.2163
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(("nDCG@10",))
@click.option("--published", metavar="NUMBER", help="A number as a paper prints it: which dialects round to it?")
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "json", "latex", "markdown"]),
    default="table",
    show_default=True,
    help="How the values are printed.",
)
@click.option("--out", metavar="FILE", help="Write them to a file instead.")
@common_options
def command(
    runs: tuple[str, ...],
    test: str,
    threshold: float | None,
    condensed: bool,
    ties: str,
    train: str | None,
    run_format: str | None,
    tag: bool,
    metrics: tuple[str, ...],
    published: str | None,
    format: str,
    out: str | None,
    **_: Any,
) -> None:
    """Show what a metric's name means in other tools, on your data."""
    read, held_out, learnt = load(runs, test, ties, run_format, tag, train)
    frame = dialects(
        read, held_out, metrics, threshold=threshold, condensed=condensed, train=learnt, published=published
    )
    if format in ("csv", "json"):
        put(written(frame, format), out)
        return
    table = dialects_table(frame)
    put({"table": table.text, "latex": table.latex, "markdown": table.markdown}[format](), out)

"""``cranfield dialects``: what a metric's name means in other tools, on the user's data."""

from __future__ import annotations

import click

from cranfield.cli._group import process_options
from cranfield.cli._measuring import MeasuringOptions, measuring_options, metric_option, tell_of_grades
from cranfield.cli._output import output_options, put, put_table, written
from cranfield.measures import compare_tools, dialects_table

_EXAMPLES = """\b
Examples:
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --threshold 4
  cranfield dialects --test test.csv run.tsv -m AP@10 -m Recall@10 --format csv
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --published 0.2163
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(("nDCG@10",))
@click.option(
    "--published", metavar="NUMBER", help="A number as printed in a paper; the dialects that round to it are marked."
)
@output_options("table", "csv", "json", "latex", "markdown")
@process_options
def command(
    measuring: MeasuringOptions, metrics: tuple[str, ...], published: str | None, format: str, out: str | None
) -> None:
    """Show what a metric's name means in other tools, on your data."""
    loaded = measuring.load()
    frame = compare_tools(
        loaded.runs, loaded.test, metrics, threshold=measuring.threshold, lists=measuring.lists, train=loaded.train,
        published=published, negative_grades=measuring.negative_grades, strict=measuring.strict,
    )  # fmt: skip
    tell_of_grades(loaded, metrics)
    if format in ("csv", "json"):
        put(written(frame, format), out)
    else:
        put_table(dialects_table(frame), format, out)

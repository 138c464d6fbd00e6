"""``cranfield evaluate``: measure ranked lists against held-out ratings."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli._group import common_options
from cranfield.cli._measuring import load, measuring_options, metric_option
from cranfield.cli._output import put, put_frame, written
from cranfield.measure import DEFAULT_METRICS
from cranfield.measure.measure import measure

_EXAMPLES = """\b
Examples:
  cranfield evaluate --test test.csv runs/*.tsv --threshold 4
  cranfield evaluate --test qrels.txt bm25.trec -m P@10 -m 'nDCG(gain=exp)@100'
  cranfield evaluate --test test.csv a.csv b.csv -m Recall@50 --average 'weighted(by=relevant)'
  cranfield evaluate --test test.csv a.csv --per-user values.parquet --format json
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(DEFAULT_METRICS)
@click.option(
    "--average",
    default="mean",
    show_default=True,
    metavar="AVERAGE",
    help="mean, median, 'weighted(by=judged|relevant)', 'geometric(form=trec_eval|adjusted)', trimmed.",
)
@click.option(
    "--coverage",
    type=click.Choice(["full", "reduced"]),
    default="full",
    show_default=True,
    help="Users without a list count 0, or only covered users are averaged.",
)
@click.option(
    "--undefined",
    type=click.Choice(["zero", "leave out"]),
    default="zero",
    show_default=True,
    help="What a user counts for whom a metric is undefined.",
)
@click.option(
    "--by",
    type=click.Choice(["list", "user"]),
    default="list",
    show_default=True,
    help="Average over lists, or over users.",
)
@click.option(
    "--interval",
    type=click.Choice(["analytic", "bootstrap"]),
    default="analytic",
    show_default=True,
    help="How the confidence interval is made.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence of the interval.",
)
@click.option("--bounds", is_flag=True, help="Also what the averages would be if all unjudged items were relevant.")
@click.option("--per-user", metavar="FILE", help="Write every list's value (Parquet, CSV, TSV or JSON).")
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "json", "latex", "markdown"]),
    default="table",
    show_default=True,
    help="How the averages are printed.",
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
    per_user: str | None,
    format: str,
    out: str | None,
    bounds: bool,
    interval: Any,
    level: float,
    seed: int,
    **average: Any,
) -> None:
    """Measure ranked lists against held-out ratings."""
    read, held_out, learnt = load(runs, test, ties, run_format, tag, train)
    scores = measure(read, held_out, metrics, threshold=threshold, condensed=condensed, train=learnt, bounds=bounds)
    if per_user is not None:
        put_frame(scores.per_user(), per_user)
    if format in ("csv", "json"):
        put(written(scores.frame(**average, level=level, interval=interval, seed=seed), format), out)
        return
    table = scores.table(**average)
    put({"table": table.text, "latex": table.latex, "markdown": table.markdown}[format](), out)

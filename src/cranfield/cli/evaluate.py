"""``cranfield evaluate``: measure ranked lists against held-out ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from cranfield.cli._group import common_options
from cranfield.cli._measuring import (
    MeasuringOptions,
    averaging_options,
    catalogue_option,
    measuring_options,
    metric_option,
    tell,
)
from cranfield.cli._output import check_frame_file, output_options, put, put_frame, put_tables, written
from cranfield.cli._report import report_option, write_page
from cranfield.cli._segments import segment_option, segments_of, with_groups
from cranfield.measures import DEFAULT_METRICS, Averaging
from cranfield.measures.notes import notes_on_reading

_EXAMPLES = """\b
Examples:
  cranfield evaluate --test test.csv runs/*.tsv --threshold 4
  cranfield evaluate --test qrels.txt bm25.trec -m P@10 -m 'nDCG(gain=exp)@100'
  cranfield evaluate --test test.csv a.csv b.csv -m Recall@50 --average 'weighted(by=relevant)'
  cranfield evaluate --test test.csv a.csv --per-user values.parquet --format json
  cranfield evaluate --test test.csv a.csv b.csv --train train.csv --segment activity --segment users.csv:age
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(DEFAULT_METRICS)
@averaging_options(
    average="mean, median, 'weighted(by=judged|relevant|train|FILE:COLUMN)', 'geometric(form=trec_eval|adjusted)', "
    "trimmed, standardised, 'urisk(baseline=SYSTEM, alpha=1)', 'trisk(baseline=SYSTEM)', georisk.",
    coverage="Users without a list count 0, or only covered users are averaged.",
)
@click.option(
    "--interval",
    type=click.Choice(["analytic", "bootstrap"]),
    default="analytic",
    show_default=True,
    help="How the confidence interval of an average is made.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence of the interval; those of a report are analytic.",
)
@click.option("--bounds", is_flag=True, help="Also what the averages would be if all unjudged items were relevant.")
@catalogue_option
@click.option("--per-user", metavar="FILE", help="Write every list's value (Parquet, CSV, TSV or JSON).")
@segment_option
@report_option
@output_options("table", "csv", "json", "latex", "markdown")
@common_options
def command(
    measuring: MeasuringOptions,
    metrics: tuple[str, ...],
    bounds: bool,
    catalogue: str | None,
    per_user: str | None,
    by_segment: tuple[str, ...],
    report: str | None,
    format: str,
    out: str | None,
    interval: Any,
    level: float,
    seed: int,
    **decisions: Any,
) -> None:
    """Measure ranked lists against held-out ratings."""
    if per_user is not None:
        check_frame_file(per_user)
    loaded = measuring.load()
    averaging = Averaging(**decisions)
    scores = loaded.measure(metrics, bounds=bounds, catalogue=catalogue)
    scores.check_measured()
    scores = replace(scores, notes=(*scores.notes, *notes_on_reading(loaded.runs, loaded.test)))
    if per_user is not None:
        put_frame(scores.per_user(), per_user)
    segments = segments_of(loaded, metrics, by_segment)
    how: dict[str, Any] = {"interval": interval, "level": level, "seed": seed}
    if format in ("csv", "json"):
        frame = with_groups(scores.frame(averaging, **how), [segment.frame(averaging, **how) for segment in segments])
        put(written(frame, format), out)
        tell([scores.relevance] if scores.relevance else [])
        tell([*scores.notes, *(note for segment in segments for note in segment.notes)])
    else:
        tables = [
            scores.table(averaging, **how, services=True),
            *(segment.table(averaging, **how) for segment in segments),
        ]
        if format == "latex":
            names = ["averages", *(f"averages {k}" for k in range(1, len(tables)))]
            tables = [table.titled(loaded.test.name or "", name) for table, name in zip(tables, names)]
        put_tables(tables, format, out)
    write_page(report, loaded, scores, metrics, averaging=averaging, level=level, segments=segments)

"""``cranfield compare``: say which system is better, and how sure that is."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import click
import polars as pl

from cranfield._table import Table
from cranfield.cli._decisions import decision_options
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import common_options
from cranfield.cli._measuring import (
    MeasuringOptions,
    averaging_options,
    measuring_options,
    metric_option,
    tell_of_grades,
)
from cranfield.cli._output import output_options, put, put_text, written
from cranfield.cli._renamed import renamed_option
from cranfield.cli._report import report_option, write_page
from cranfield.cli._segments import segment_option, segments_of, with_groups
from cranfield.comparisons import Comparison, compare_segments
from cranfield.comparisons.comparing import Comparing, compare
from cranfield.comparisons.sentences import p_text
from cranfield.measures import DEFAULT_METRICS, Averaging

_EXAMPLES = """\b
Examples:
  cranfield compare --test test.csv runs/*.tsv -m nDCG@100 --threshold 4
  cranfield compare --test test.csv runs/*.tsv -m P@10 -m RR@100 --baseline popularity
  cranfield compare --test test.csv a.csv b.csv --significance 'wilcoxon(zeros=pratt)' --format csv
  cranfield compare --test test.csv a.csv b.csv --train train.csv --segment activity
  cranfield compare --test test.csv a.csv b.csv --margin 0.005        is a no worse than b?
  cranfield compare --test test.csv a.csv b.csv --power 0.005         could these users show it?
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(DEFAULT_METRICS)
@decision_options(
    Comparing,
    significance={
        "default": "permutation",
        "metavar": "TEST",
        "help": "permutation, student, wilcoxon, sign, bootstrap, tukey or log_student.",
    },
    correction={
        "default": None,
        "type": click.Choice(["none", "bonferroni", "holm", "benjamini_hochberg"]),
        "help": "For many comparisons, within each metric.  [default: holm; none for tukey]",
    },
    baseline={
        "default": None,
        "metavar": "SYSTEM",
        "help": "Compare each system with this one.  [default: every pair]",
    },
)
@click.option(
    "--method",
    type=click.Choice(["exact", "monte-carlo"]),
    help="How the permutation test is done.  [default: exact]",
)
@averaging_options(
    average="mean, 'weighted(by=judged|relevant)' or 'geometric(form=trec_eval|adjusted)'.",
    coverage="Users without a list count what an empty one scores, or only users that every system serves count.",
    by="user",
)
@renamed_option("--samples", "--resamples")
@click.option(
    "--resamples",
    type=int,
    help="How many resamples a test draws.  [default: 100,000 sign patterns, 1,000 resamples, 5,000 shuffles]",
)
@click.option("--subsets", type=int, default=0, help="Repeat the test in so many random subsets of the users.")
@click.option(
    "--subset-size", type=float, default=0.5, show_default=True, help="The share of the users that is in a subset."
)
@click.option("--margin", type=float, help="Show instead whether systems differ by no more than this (TOST).")
@click.option("--power", type=float, help="Show instead whether these users could show a difference of this size.")
@segment_option
@report_option
@output_options("table", "matrix", "latex", "markdown", "csv", "json")
@common_options
def command(
    measuring: MeasuringOptions,
    metrics: tuple[str, ...],
    significance: str,
    margin: float | None,
    power: float | None,
    by_segment: tuple[str, ...],
    report: str | None,
    format: str,
    out: str | None,
    **options: Any,
) -> None:
    """Say which system is better, and how sure that is."""
    if (margin is not None or power is not None) and format in ("matrix", "latex", "markdown"):
        raise click.UsageError(f"--margin and --power have no {format}; use --format table, csv or json")
    if margin is not None and power is not None:
        raise click.UsageError("--margin and --power exclude each other; give one of them")
    if not options["subsets"]:
        refuse_idle("without --subsets", "subset_size")
    if report is None and (margin is not None or power is not None):
        _refuse_tests("--power" if margin is None else "--margin", significance)
    if margin is not None or power is not None or format == "matrix":
        refuse_idle("with --margin, --power or --format matrix", "by_segment")
    loaded = measuring.load()
    scores = loaded.measure(metrics)
    result = compare(scores, significance=significance, **options)
    segments = [
        compare_segments(segment, significance=significance, **options)
        for segment in segments_of(loaded, metrics, by_segment)
    ]
    tell_of_grades(loaded, metrics)
    if margin is not None:
        put(_frame(result.equivalence(margin), format, result, "paired t-tests, two one-sided"), out)
    elif power is not None:
        put(_frame(result.power(power), format, result, "paired t-test"), out)
    elif format == "matrix":
        put_text("\n\n".join(_matrix(result, metric) for metric in result.metrics), out)
    elif format == "latex":
        tables = {"comparison": result.printed()}
        tables |= {f"comparison {k}": segment.table() for k, segment in enumerate(segments, start=1)}
        put("\n".join(table.titled(loaded.test.name or "", name).latex() for name, table in tables.items()), out)
    elif format == "markdown":
        put("\n".join((result.markdown(), *(segment.table().markdown() for segment in segments))), out)
    elif format == "csv":
        put(written(with_groups(result.frame(), [segment.frame() for segment in segments]), "csv"), out)
    elif format == "json":
        by_group = {"segments": [segment.as_dict() for segment in segments]} if segments else {}
        put(json.dumps({**result.as_dict(), **by_group}, indent=1, ensure_ascii=False), out)
    else:
        put_text("\n\n".join(map(str, (result, *segments))), out)
    averaging = Averaging(**{one.name: options[one.name] for one in fields(Averaging)})
    write_page(report, loaded, scores, metrics, averaging=averaging, comparison=result, segments=segments)


def _refuse_tests(instead: str, significance: str) -> None:
    """Refuse the options of the tests that are not done; the logarithms of log_student count all the same."""
    tests = ("method", "correction", "resamples", "subsets", "subset_size")
    refuse_idle(f"with {instead}", *tests, *([] if significance.startswith("log_student") else ["significance"]))


def _frame(frame: pl.DataFrame, format: str, result: Comparison, test: str) -> str:
    if format != "table":
        return written(frame, format)
    rows = [[_text(value) for value in row] for row in frame.iter_rows()]
    caption = replace(result, significance=test, correction="none").caption
    return Table(frame.columns, rows, caption, result.step.notes).text()


def _matrix(result: Comparison, metric: str) -> str:
    frame = result.matrix(metric)
    rows = [[row[0], *("" if p is None else p_text(p) for p in row[1:])] for row in frame.iter_rows()]
    return Table(frame.columns, rows, f"{metric}: corrected p-values; {result.caption}", result.step.notes).text()


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

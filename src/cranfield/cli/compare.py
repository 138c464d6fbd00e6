"""``cranfield compare``: say which system is better, and how certain that is."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import click

from cranfield._errors import InputError
from cranfield._files import meant
from cranfield._table import Table
from cranfield._version import __version__
from cranfield.cli import _measuring
from cranfield.cli._options import common_options, decision_options, refuse_idle
from cranfield.cli._output import as_json, output_options, put, put_text, tell, written
from cranfield.cli._report import report_option, write_page
from cranfield.cli.unjudged import (
    judgments_option,
    notes_on_judgments,
    put_tipping,
    refuse_layouts,
    tipping_options,
    with_judgments,
)
from cranfield.comparisons import Comparing, Comparison, Gate, compare, compare_segments
from cranfield.experiments import input_checksum
from cranfield.facts import gate as gate_facts
from cranfield.facts import p_text
from cranfield.measures import DEFAULT_METRICS, Average, Averaging, Scores, file_and_column

_EXAMPLES = """\b
Examples:
  cranfield compare --test test.csv runs/*.tsv -m nDCG@100 --threshold 4
  cranfield compare --test test.csv runs/*.tsv -m P@10 -m RR@100 --baseline popularity
  cranfield compare --test test.csv a.csv b.csv --significance 'wilcoxon(zeros=pratt)' --format csv
  cranfield compare --test test.csv a.csv b.csv --train train.csv --segment activity
  cranfield compare --test test.csv new.csv old.csv --baseline old --no-worse 1%    a gate: exit code 0, 1 or 2
  cranfield compare --test test.csv a.csv b.csv --power 0.005                       are these users enough?
  cranfield compare --test test.csv a.csv b.csv -m P@10 --tipping-point             what if unjudged items were liked?
  cranfield compare --test test.csv a.csv b.csv -m P@10 --judgments ask.csv         with the answers
"""


@click.command(epilog=_EXAMPLES)
@_measuring.measuring_options
@_measuring.metric_option(DEFAULT_METRICS)
@_measuring.levels_option
@decision_options(
    Comparing,
    significance={
        "metavar": "TEST",
        "help": "The test: permutation, student, wilcoxon, sign, bootstrap, tukey or log_student.",
    },
    correction={
        "default": None,
        "type": click.Choice(["max_t", "holm", "bonferroni", "benjamini_hochberg", "none"]),
        "help": "The correction for multiple comparisons within each metric.  [default: max_t; none for tukey, holm "
        "for wilcoxon, sign and log_student]",
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
    help="The method of the permutation test.  [default: exact]",
)
@_measuring.averaging_options(
    average="How to average: mean, 'weighted(by=judged|relevant|train|FILE:COLUMN)', "
    "'geometric(form=trec_eval|adjusted)', 'standardised(form=normal)' or 'urisk(baseline=SYSTEM, alpha=1)'."
)
@click.option(
    "--resamples",
    type=int,
    help="The number of resamples of a test.  [default: 100,000 sign patterns, 1,000 resamples, 5,000 shuffles]",
)
@click.option(
    "--subsets",
    type=int,
    default=0,
    show_default=False,
    help="Repeat the test in this many random subsets of the users.",
)
@click.option("--subset-size", type=float, default=0.5, help="The share of the users in each subset.")
@click.option(
    "--no-worse",
    metavar="MARGIN",
    help="Gate: exit with 1 unless every run is shown to be no worse than --baseline by more than 1% (relative) or "
    "0.01 (absolute).",
)
@click.option(
    "--better", is_flag=True, help="Gate: exit with 1 unless every run is shown to be better than --baseline."
)
@click.option(
    "--power", type=float, help="Instead say whether these users are enough to detect a difference of this size."
)
@_measuring.catalogue_option
@_measuring.engine_options
@tipping_options
@judgments_option
@_measuring.segment_option
@report_option
@output_options("table", "matrix", "latex", "markdown", "csv", "json")
@common_options
def compare_command(
    measuring: _measuring.MeasuringOptions,
    metrics: tuple[str, ...],
    significance: str,
    no_worse: str | None,
    better: bool,
    power: float | None,
    tipping_point: bool,
    tipping_figure: str | None,
    judgments: str | None,
    by_segment: tuple[str, ...],
    report: str | None,
    format: str,
    out: str | None,
    **options: Any,
) -> None:
    """Compare systems: which one is better, and how certain that is."""
    gated = _gated(no_worse, better, power, options["baseline"], format)
    if not options["subsets"]:
        refuse_idle("without --subsets", "subset_size")
    if report is None and power is not None:
        # log_student stays, because its logarithms are used.
        test = () if significance.startswith("log_student") else ("significance",)
        refuse_idle("with --power", "method", "correction", "resamples", "subsets", "subset_size", *test)
    if gated and report is None:
        refuse_idle(f"with {gated}", "correction", "subsets")
    if gated or power is not None or format == "matrix":
        refuse_idle("with --no-worse, --better, --power or --format matrix", "by_segment")
    margin = None if no_worse is None else gate_facts.Margin.read(no_worse)
    if tipping_point or tipping_figure is not None:
        refuse_idle("with --tipping-point or --tipping-figure", "catalogue", "levels", "engine", "memory", "master")
        put_tipping(measuring, metrics, options, judgments, tipping_figure, format, out)
        return
    loaded = measuring.open()
    loaded.refuse_in_parts({"--judgments": judgments, "--segment": by_segment, "--report": report})
    loaded = with_judgments(loaded, judgments)
    metrics = loaded.at_levels(metrics)
    scores = loaded.measure(metrics)
    result = compare(scores, significance=significance, **options)
    segments = [
        compare_segments(segment, significance=significance, **options)
        for segment in (loaded.segments(metrics, by_segment) if by_segment else ())
    ]
    answers = [] if judgments is None else notes_on_judgments(loaded, scores)
    if gated or format not in ("table", "json") or power is not None:
        tell(answers)
    gate = (result.no_worse(by=str(no_worse)) if margin else result.better()) if gated else None
    if format not in ("table", "json") or power is not None:
        tell(f"Warning: {warning}." for warning in scores.warnings)  # otherwise the verdict prints them
    result = replace(result, gate=gate)
    full: dict[str, Any] = {}
    if format == "json" and power is None:
        others = [("judgments", judgments), ("weights", Average.of(options["average"]).weights)]
        others += [("segment", text) for text in by_segment]
        full = _with_provenance(result.as_dict(), measuring, scores, others)
    if gate is not None:
        _put_gate(gate, result, format, full, out)
    elif power is not None:
        put(_power(result, power, format), out)
    elif format == "matrix":
        put_text("\n\n".join(_matrix(result, metric) for metric in result.metrics), out)
    elif format == "latex":
        tables = {"comparison": result.printed()}
        tables |= {f"comparison {k}": segment.table() for k, segment in enumerate(segments, start=1)}
        put("\n".join(table.titled(loaded.test.name or "", name).latex() for name, table in tables.items()), out)
    elif format == "markdown":
        put("\n".join((result.markdown(), *(segment.table().markdown() for segment in segments))), out)
    elif format == "csv":
        put(written(_measuring.with_groups(result.frame(), [segment.frame() for segment in segments]), "csv"), out)
    elif format == "json":
        by_group = {"segments": [segment.as_dict() for segment in segments]} if segments else {}
        unjudged = {"judgments": answers} if answers else {}
        put(as_json({**full, **by_group, **unjudged}), out)
    else:
        put_text("\n\n".join(map(str, (result, *segments, *answers))), out)
    tell(note for note in scores.notes if note not in scores.warnings)
    averaging = Averaging(**{declared.name: options[declared.name] for declared in fields(Averaging)})
    write_page(report, loaded, scores, metrics, average=averaging, comparison=result, segments=segments)
    if gate is not None and not gate:
        sys.exit(1)


def _gated(no_worse: str | None, better: bool, power: float | None, baseline: str | None, format: str) -> str:
    """Return the option that requests a gate, or an empty text; refuse options that contradict it."""
    options = {"--no-worse": no_worse is not None, "--better": better, "--power": power is not None}
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other; give one of them")
    if not given:
        return ""
    if baseline is None and given[0] != "--power":
        raise click.UsageError(f"{given[0]} needs a run to compare with; name it with --baseline")
    refuse_layouts(given[0], format)
    return "" if given[0] == "--power" else given[0]


def _put_gate(gate: Gate, result: Comparison, format: str, full: dict[str, Any], out: str | None) -> None:
    if format == "csv":
        put(written(gate.frame(), "csv"), out)
    elif format == "json":
        put(as_json({"gate": gate.as_dict(), **full}), out)
    else:
        put_text("\n".join((*result.verdict, "", gate.table().text())), out)


def _power(result: Comparison, difference: float, format: str) -> str:
    """Return whether the users are enough to detect a difference."""
    frame = result.power(difference)
    if format != "table":
        return written(frame, format)
    rows = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in frame.iter_rows()]
    caption = replace(result, significance="paired t", correction="none").caption
    return Table(frame.columns, rows, caption, result.notes).text()


def _matrix(result: Comparison, metric: str) -> str:
    frame = result.matrix(metric)
    rows = [[row[0], *("" if p is None else p_text(p) for p in row[1:])] for row in frame.iter_rows()]
    return Table(frame.columns, rows, f"{metric}: corrected p-values; {result.caption}", result.notes).text()


# What belongs to the work, not to the question: a hash of the test set, and the number of blocks.
_NOT_DECIDED = ("test", "blocks")


def _with_provenance(
    result: dict[str, Any], options: _measuring.MeasuringOptions, scores: Scores, others: list[tuple[str, str | None]]
) -> dict[str, Any]:
    """Return a result, ready for JSON, with the version, the input files and all decisions of measuring.

    ``others`` are the roles of further texts that may name a file, as FILE or FILE:COLUMN.
    """
    files = [("test", options.test), ("train", options.train), *(("run", run) for run in options.runs)]
    for role, text in (("catalogue", options.catalogue), *others):
        place = None if text is None else file_and_column(text)
        files += [] if place is None else [(role, str(place[0]))]
    inputs = [{"role": role, "file": file, "sha256": _checksum(file)} for role, file in files if file is not None]
    measured = {name: value for name, value in scores.step.settings.items() if name not in _NOT_DECIDED}
    read = {name: value for name, value in {**options.reading, **options.run_reading}.items() if value is not None}
    settings = {**measured, "catalogue": options.catalogue, "reading": read, **result["settings"]}
    return {"version": __version__, "inputs": inputs, **result, "settings": settings}


def _checksum(file: str) -> str | None:
    """Return the SHA-256 of a file, or a hash of those of all files in a folder; None if Spark reads it elsewhere."""
    with suppress(InputError, OSError):
        return input_checksum(meant(file))
    return None

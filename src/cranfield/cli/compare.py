"""``cranfield compare`` and ``suggest-judgments``: which system is better, how certain that is, and what to judge."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import click

from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._result import as_json, frame_text
from cranfield._table import Table, answer_and_table
from cranfield._version import __version__
from cranfield.cli import _measuring
from cranfield.cli._across import across_command
from cranfield.cli._options import (
    HelpfulCommand,
    common_options,
    completed,
    decision_options,
    process_options,
    refuse_idle,
)
from cranfield.cli._output import output_options, put, put_text, tell, tell_beside
from cranfield.cli._report import report_option, write_page
from cranfield.comparisons import (
    CAVEATS,
    LINEAR,
    SIGNIFICANCE_TESTS,
    Comparing,
    Comparison,
    Gate,
    add_judgments,
    compare,
    compare_segments,
    is_answered,
    suggest_judgments,
    tipping_points,
)
from cranfield.experiments import input_checksum
from cranfield.facts import gate as gate_facts
from cranfield.facts import p_text
from cranfield.measures import DEFAULT_METRICS, Average, Averaging, Scores, file_and_column
from cranfield.metrics import as_metrics

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
  cranfield compare --across movies music books                                     one verdict over experiments
  cranfield compare --table results.csv                                             one over a table from a paper
"""


_IDLE = (
    "lists", "train", "strict", "negative_grades", "significance", "correction", "method", "average", "coverage",
    "undefined", "by", "resamples", "subsets", "subset_size", "no_worse", "better", "power", "by_segment",
)  # fmt: skip
"""Options that do not apply to tipping points."""

judgments_option = click.option(
    "--judgments",
    metavar="FILE",
    help="Judgments collected with cranfield suggest-judgments: user, item and rating; rows without a rating are "
    "ignored.",
)


class _Comparing(HelpfulCommand):
    """The command on one test set or, with ``--across`` or ``--table``, over several datasets."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command that the options ask for."""
        several = any(argument.partition("=")[0] in ("--across", "--table") for argument in args)
        return (
            across_command.make_context(info_name, args, parent, **extra)
            if several
            else super().make_context(info_name, args, parent, **extra)
        )


@click.command(cls=_Comparing, epilog=_EXAMPLES)
@_measuring.measuring_options
@_measuring.metric_option(DEFAULT_METRICS)
@_measuring.levels_option
@decision_options(
    Comparing,
    significance={
        "metavar": "TEST",
        "help": "The test: permutation, student, wilcoxon, sign, bootstrap, tukey or log_student.",
        **completed(lambda: SIGNIFICANCE_TESTS),
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
@click.option(
    "--tipping-point",
    is_flag=True,
    help="Instead show how many more of the loser's unjudged items than of the winner's would have to be liked "
    "to reverse the order; --report draws it (.svg, .pdf, .png or .html).",
)
@judgments_option
@_measuring.segment_option
@click.option(
    "--across",
    is_flag=True,
    expose_value=False,
    help="Compare over the datasets of experiments, whose folders follow; see: cranfield compare --across --help",
)
@click.option(
    "--table", metavar="FILE", expose_value=False,
    help="Compare over the datasets of a table of averages, such as that of a paper.",
)  # fmt: skip
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
    if tipping_point:
        refuse_idle("with --tipping-point", "catalogue", "levels", "engine", "memory", "master")
        put_tipping(measuring, metrics, options, judgments, report, format, out)
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
        tables = {"comparison": result.summary()}
        tables |= {f"comparison {k}": segment.table() for k, segment in enumerate(segments, start=1)}
        put("\n".join(table.titled(loaded.test.name or "", name).latex() for name, table in tables.items()), out)
    elif format == "markdown":
        put("\n".join((result.summary().markdown(), *(segment.table().markdown() for segment in segments))), out)
    elif format == "csv":
        put(
            frame_text(
                _measuring.with_groups(result.rows, [segment.frame(detail=True) for segment in segments]), "csv"
            ),
            out,
        )
    elif format == "json":
        by_group = {"segments": [segment.as_dict() for segment in segments]} if segments else {}
        unjudged = {"judgments": answers} if answers else {}
        put(as_json({**full, **by_group, **unjudged}), out)
    else:
        put_text("\n\n".join(map(str, (result, *segments, *answers))), out)
    tell_beside(format, (note for note in scores.notes if note not in scores.warnings))
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
        put(frame_text(gate.frame(), "csv"), out)
    elif format == "json":
        put(as_json({"gate": gate.as_dict(), **full}), out)
    else:
        several = len(gate.facts()) > 1
        put_text(answer_and_table(gate.facts()[0].brief, gate.table(), result.verdict[several:]), out)


def _power(result: Comparison, difference: float, format: str) -> str:
    """Return whether the users are enough to detect a difference."""
    frame = result.power(difference)
    if format != "table":
        return frame_text(frame, format)
    rows = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in frame.iter_rows()]
    caption = replace(result, significance="student", correction="none").caption
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


def put_tipping(
    measuring: _measuring.MeasuringOptions,
    metrics: Sequence[str],
    options: Mapping[str, Any],
    judgments: str | None,
    figure: str | None,
    format: str,
    out: str | None,
) -> None:
    """Print the tipping points of every pair, or of every system and the baseline; draw them if a file is given."""
    refuse_layouts("--tipping-point", format)
    refuse_idle("with --tipping-point", *_IDLE)
    loaded = with_judgments(measuring.load(), judgments)
    how = {"threshold": measuring.threshold, "baseline": options["baseline"], "seed": options["seed"]}
    points = tipping_points(loaded.runs, loaded.test, metrics, **how)
    if figure is not None:
        points.save(figure)
    if format == "table":
        put_text(str(points), out)
    else:
        put(frame_text(points.frame(), format), out)


def refuse_layouts(option: str, format: str) -> None:
    """Refuse formats that an option does not have."""
    if format in ("matrix", "latex", "markdown"):
        raise click.UsageError(f"{option} has no {format} format; use --format table, csv or json")


def with_judgments(loaded: _measuring.Loaded, judgments: str | None) -> _measuring.Loaded:
    """Return the loaded files, with the judgments of a file added to the test ratings."""
    return loaded if judgments is None else replace(loaded, test=add_judgments(loaded.test, judgments))


def notes_on_judgments(loaded: _measuring.Loaded, scores: Scores) -> list[str]:
    """Return how comparisons of two systems stand with the collected judgments, and notes for the reader."""
    sentences = []
    if len(loaded.runs) == 2:
        for metric in as_metrics(scores.metrics):
            if metric.definition.name in LINEAR and metric.cutoff is not None:
                level = scores.step.settings["threshold"]
                sentences.append(suggest_judgments(loaded.runs, loaded.test, metric, threshold=level).state.sentence)
    return [*sentences, *CAVEATS]


_SUGGESTIONS = """\b
Examples:
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --budget 200 --out ask.csv
  cranfield compare --test test.csv a.csv b.csv -m P@10 --judgments ask.csv
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --judgments ask.csv --out more.csv    what to ask next
"""


@click.command(cls=HelpfulCommand, epilog=_SUGGESTIONS)
@_measuring.measuring_options
@click.option("-m", "--metric", default="P@10", metavar="METRIC", help="P, DCG or RBP with a cut-off.")
@click.option("--budget", type=int, default=200, help="The maximum number of pairs.")
@judgments_option
@click.option("--out", metavar="FILE", help="Write the pairs as CSV, with an empty column rating.")
@process_options
def suggest_judgments_command(
    measuring: _measuring.MeasuringOptions, metric: str, budget: int, judgments: str | None, out: str | None
) -> None:
    """List the (user, item) pairs whose judgments would settle a comparison of two systems soonest."""
    refuse_idle("here", "lists", "train", "negative_grades")
    if out is not None and is_answered(out):
        raise SettingError(f"--out {out} already holds answers; give them with --judgments, and name another file")
    loaded = with_judgments(measuring.load(), judgments)
    tell(f"Warning: {warning}." for warning in loaded.measure((metric,)).warnings)
    labelling = suggest_judgments(loaded.runs, loaded.test, metric, budget=budget, threshold=measuring.threshold)
    if out is None:
        put_text(str(labelling), None)
        return
    put(frame_text(labelling.frame(), "csv"), out)
    put_text("\n".join((str(labelling.state), *CAVEATS)), None)
    tell([f"{labelling.frame().height:,} pairs to ask about: {out}; fill in the column rating"])

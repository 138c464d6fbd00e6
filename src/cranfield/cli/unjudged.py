"""Unjudged items: ``cranfield suggest-judgments``, and the options of ``compare`` about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield.cli._measuring import Loaded, MeasuringOptions, measuring_options
from cranfield.cli._options import Command, add_options, process_options, refuse_idle
from cranfield.cli._output import put, put_text, tell, written
from cranfield.comparisons import CAVEATS, LINEAR, add_judgments, is_answered, suggest_judgments, tipping_points
from cranfield.measures import Scores
from cranfield.metrics import as_metrics

_IDLE = (
    "lists", "train", "strict", "negative_grades", "significance", "correction", "method", "average", "coverage",
    "undefined", "by", "resamples", "subsets", "subset_size", "no_worse", "better", "power", "by_segment", "report",
)  # fmt: skip
"""Options that do not apply to tipping points."""

judgments_option = click.option(
    "--judgments",
    metavar="FILE",
    help="Judgments collected with cranfield suggest-judgments: user, item and rating; rows without a rating are "
    "ignored.",
)


_TIPPING = (
    click.option(
        "--tipping-point",
        is_flag=True,
        help="Instead show how many more of the loser's unjudged items than of the winner's would have to be liked "
        "to reverse the order.",
    ),
    click.option(
        "--tipping-figure",
        metavar="FILE",
        help="Show tipping points, and draw the difference against the assumed relevance of unjudged items (SVG, "
        "PDF, PNG or HTML).",
    ),
)


def tipping_options(command: Command) -> Command:
    """Give a command the options of tipping points."""
    return add_options(_TIPPING, command)


def put_tipping(
    measuring: MeasuringOptions,
    metrics: Sequence[str],
    options: Mapping[str, Any],
    judgments: str | None,
    figure: str | None,
    format: str,
    out: str | None,
) -> None:
    """Print the tipping points of every pair, or of every system and the baseline; draw them if a file is named."""
    refuse_layouts("--tipping-point", format)
    refuse_idle("with --tipping-point", *_IDLE)
    loaded = with_judgments(measuring.load(), judgments)
    how = {"threshold": measuring.threshold, "baseline": options["baseline"], "seed": options["seed"]}
    points = tipping_points(loaded.runs, loaded.test, metrics, **how)
    if figure is not None:
        from cranfield._figures import save

        save(points.figure(), figure)
    if format == "table":
        put_text(str(points), out)
    else:
        put(written(points.frame(), format), out)


def refuse_layouts(option: str, format: str) -> None:
    """Refuse formats that an option does not have."""
    if format in ("matrix", "latex", "markdown"):
        raise click.UsageError(f"{option} has no {format} format; use --format table, csv or json")


def with_judgments(loaded: Loaded, judgments: str | None) -> Loaded:
    """Return the loaded files, with the judgments of a file added to the test ratings."""
    return loaded if judgments is None else replace(loaded, test=add_judgments(loaded.test, judgments))


def notes_on_judgments(loaded: Loaded, scores: Scores) -> list[str]:
    """Return how comparisons of two systems stand with the collected judgments, and notes for the reader."""
    sentences = []
    if len(loaded.runs) == 2:
        for metric in as_metrics(scores.metrics):
            if metric.definition.name in LINEAR and metric.cutoff is not None:
                level = scores.step.settings["threshold"]
                sentences.append(suggest_judgments(loaded.runs, loaded.test, metric, threshold=level).state.sentence)
    return [*sentences, *CAVEATS]


_EXAMPLES = """\b
Examples:
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --budget 200 --out ask.csv
  cranfield compare --test test.csv a.csv b.csv -m P@10 --judgments ask.csv
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --judgments ask.csv --out more.csv    what to ask next
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@click.option("-m", "--metric", default="P@10", metavar="METRIC", help="P, DCG or RBP with a cut-off.")
@click.option("--budget", type=int, default=200, help="The maximum number of pairs.")
@judgments_option
@click.option("--out", metavar="FILE", help="Write the pairs as CSV, with an empty column rating.")
@process_options
def suggest_judgments_command(
    measuring: MeasuringOptions, metric: str, budget: int, judgments: str | None, out: str | None
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
    put(written(labelling.frame(), "csv"), out)
    put_text("\n".join((str(labelling.state), *CAVEATS)), None)
    tell([f"{labelling.frame().height:,} pairs to ask about: {out}; fill in the column rating"])

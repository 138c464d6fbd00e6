"""The options of ``compare`` about unjudged items: tipping points, and judgments that were collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from cranfield.cli._given import refuse_idle
from cranfield.cli._measuring import Loaded, MeasuringOptions, tell
from cranfield.cli._output import put, put_text, written
from cranfield.comparisons import CAVEATS, LINEAR, add_judgments, suggest_judgments, tipping_points
from cranfield.measures import Scores
from cranfield.metrics import as_metrics

Command = TypeVar("Command", bound=Callable[..., Any])

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


def tipping_options(command: Command) -> Command:
    """Give a command the options of tipping points."""
    flag = click.option(
        "--tipping-point",
        is_flag=True,
        help="Instead show how many more of the loser's unjudged items than of the winner's would have to be liked "
        "to reverse the order.",
    )
    figure = click.option(
        "--tipping-figure",
        metavar="FILE",
        help="Show tipping points, and draw the difference against the assumed relevance of unjudged items (SVG, "
        "PDF, PNG or HTML).",
    )
    return flag(figure(command))


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
    if format in ("matrix", "latex", "markdown"):
        raise click.UsageError(f"--tipping-point has no {format} format; use --format table, csv or json")
    refuse_idle("with --tipping-point", *_IDLE)
    loaded = with_judgments(measuring.load(), judgments)
    points = tipping_points(
        loaded.runs,
        loaded.test,
        metrics,
        threshold=measuring.threshold,
        baseline=options["baseline"],
        seed=options["seed"],
    )
    if figure is not None:
        from cranfield._figures import save

        save(points.figure(), figure)
    if format == "table":
        put_text(str(points), out)
    else:
        put(written(points.frame(), format), out)


def with_judgments(loaded: Loaded, judgments: str | None) -> Loaded:
    """Return the loaded files, with the judgments of a file added to the test ratings."""
    return loaded if judgments is None else replace(loaded, test=add_judgments(loaded.test, judgments))


def notes_on_judgments(loaded: Loaded, scores: Scores, judgments: str | None) -> list[str]:
    """Return how comparisons of two systems stand with the collected judgments, and notes for the reader."""
    if judgments is None:
        return []
    sentences = []
    if len(loaded.runs) == 2:
        for metric in as_metrics(scores.metrics):
            if metric.definition.name in LINEAR and metric.cutoff is not None:
                level = scores.step.settings["threshold"]
<<<<<<< HEAD
                sentences.append(label(loaded.runs, loaded.test, metric, threshold=level).state.sentence)
=======
                sentences.append(suggest_judgments(loaded.runs, loaded.test, metric, threshold=level).sentence)
>>>>>>> 1a4c62ce (label is suggest-judgments, --levels is --relevance-levels)
    return [*sentences, *CAVEATS]


def show_labelling(labelling: Any, out: str | None) -> None:
    """Print how a comparison stands and which pairs to judge; write the pairs to a file if one is named."""
    if out is None:
        put_text(str(labelling), None)
        return
    put(written(labelling.frame(), "csv"), out)
    put_text("\n".join((str(labelling.state), *CAVEATS)), None)
    tell([f"{labelling.frame().height:,} pairs to ask about: {out}; fill in the column rating"])

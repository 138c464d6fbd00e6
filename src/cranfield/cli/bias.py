"""``cranfield bias``: how much of an evaluation is popularity, and what remains without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cranfield.cli._measuring import LIST_OPTIONS, Loaded, list_options, threshold_option
from cranfield.cli._options import (
    HelpfulCommand,
    choice_option,
    common_options,
    decision_option,
    jobs_option,
    refuse_idle,
    runs_named_code,
    systems_option,
)
from cranfield.cli._output import output_options, put_result, put_tables, tell_beside
from cranfield.cli._report import report_option
from cranfield.comparisons import Comparing
from cranfield.data import read

_EXAMPLES = """\b
Examples:
  cranfield bias --data ratings.csv
  cranfield bias --data ratings.csv -s knn -s 'wrmf(factors=50)' -m nDCG@10
  cranfield bias --test test.csv --train train.csv runs/*.tsv --threshold 4 --report bias.html
"""


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--data", metavar="FILE", help="Ratings on which systems are trained under each protocol.")
@systems_option("With --data: a system to train.  [default: popularity, random, average, knn, puresvd]")
@click.option("--test", metavar="FILE", help="The held-out ratings; RUN... are then ranked lists.")
@click.option("--train", metavar="FILE", help="With --test: the training ratings, which define popularity.")
@click.option(
    "--repeats",
    type=click.Choice(["exclude", "allow"]),
    help="With --test: whether test items that are in their user's training ratings count.",
)
@click.option("-m", "--metric", default="P@10", help="A metric with a cut-off.")
@threshold_option
@click.option(
    "--groups", type=click.IntRange(min=2), default=10, help="The number of popularity groups of the P1R protocol."
)
@click.option(
    "--nonrelevant",
    type=click.IntRange(min=1),
    help="The number of non-relevant items per list in the 1R, P1R and U1R protocols.  [default: 99, or as many as a "
    "popularity group has]",
)
@choice_option("--by", ["list", "user"], "Whether 1R, P1R and U1R are averaged over lists or over users.")
@click.option(
    "--splits", type=click.IntRange(min=1), default=5, help="With --data: the number of random splits of each kind."
)
@decision_option(Comparing.decisions()["alpha"])
@click.option(
    "--propensities",
    metavar="KIND|FILE:COLUMN",
    help="Also show IPS, SNIPS and doubly robust estimates, with propensities by popularity, by a logistic model, or "
    "from a column of a file with user and item.",
)
@click.option("--clip", type=click.FloatRange(0, 1), default=0.0, help="With --propensities: the smallest propensity.")
@jobs_option
@report_option
@output_options("table", "json", "markdown", "latex")
@list_options
@common_options
@runs_named_code("systems")
def bias_command(
    runs: tuple[str, ...],
    data: str | None,
    systems: tuple[str, ...],
    test: str | None,
    train: str | None,
    repeats: str | None,
    threshold: Any,
    splits: int,
    propensities: str | None,
    jobs: int | None,
    report: str | None,
    format: str,
    out: str | None,
    load: Callable[..., Loaded],
    reading: dict[str, Any],
    **options: Any,
) -> None:
    """Show how much of an evaluation is popularity, and which conclusions change without it.

    Train systems on ratings with --data, or measure ranked lists with --test and --train.
    """
    from cranfield.biases import bias

    if propensities is None:
        refuse_idle("without --propensities", "clip")
    options |= {"threshold": threshold, "propensities": _propensities(propensities)}
    if data is not None:
        refuse_idle("with --data", "test", "train", "runs", "repeats", *LIST_OPTIONS)
        answer = bias(read(data, **reading), list(systems) or None, splits=splits, jobs=jobs, **options)
    else:
        refuse_idle("without --data", "systems", "splits", "jobs")
        if not runs or test is None:
            raise click.UsageError("give ratings with --data, or ranked lists with --test and --train")
        if train is None:
            raise click.UsageError("popularity is counted in the training ratings; give them with --train")
        loaded = load(runs, test, train, threshold)
        options["strict"] = loaded.options.strict
        answer = bias(runs=loaded.runs, test=loaded.test, train=loaded.train, repeats=repeats, **options)
    if format in ("table", "json"):
        put_result(answer, format, out)
    else:
        put_tables(list(answer.tables().values()), format, out)
    tell_beside(format, answer.notes)
    if report is not None:
        from cranfield._files import write_text
        from cranfield.reports import TITLE, bias_sections, page

        write_text(report, page(TITLE, bias_sections(answer)))


def _propensities(given: str | None) -> Any:
    """Return the name of a model, or propensities from a column of a file."""
    from cranfield.biases import PROPENSITY_KINDS

    if given is None or given in PROPENSITY_KINDS:
        return given
    path, _, column = given.rpartition(":")
    if not path:
        raise click.UsageError(f"--propensities {given} is neither {' nor '.join(PROPENSITY_KINDS)} nor FILE:COLUMN")
    return read(path, rating=column)

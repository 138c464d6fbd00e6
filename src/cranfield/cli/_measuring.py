"""The options of every command that meets runs with a test set, and the loading they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cranfield.data import Ratings
from cranfield.rank import Run

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
    click.option("--test", required=True, metavar="FILE", help="The held-out ratings, or TREC qrels."),
    click.option("--threshold", type=float, metavar="R", help="The lowest rating that makes an item relevant."),
    click.option("--condensed", is_flag=True, help="Take items without a test rating out of the lists first."),
    click.option(
        "--ties",
        type=click.Choice(["trec_eval", "input", "average"]),
        default="trec_eval",
        show_default=True,
        help="How items of equal score are ordered.",
    ),
    click.option("--train", metavar="FILE", help="The training ratings, for metrics of popularity and novelty."),
    click.option("--run-format", metavar="NAME", help="The layout of the runs.  [default: detected]"),
    click.option("--tag", is_flag=True, help="Name systems by the tag of their TREC run, not by their file."),
)


def measuring_options(command: Command) -> Command:
    """Give a command runs, a test set, and how they are to be met; `load` makes use of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def metric_option(default: tuple[str, ...]) -> Callable[[Command], Command]:
    """Return the option ``-m``, that may be given several times or with several metrics split by spaces."""
    return click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        default=default,
        show_default=True,
        metavar="METRIC",
        help="A metric as it is spelled: P@10, 'nDCG(gain=exp)@100'. Repeat for more.",
    )


def load(
    runs: tuple[str, ...], test: str, ties: str, run_format: str | None, tag: bool, train: str | None
) -> tuple[list[Run], Ratings, Ratings | None]:
    """Read the runs, the test set and the training set of a command."""
    from cranfield.data import read
    from cranfield.rank import read_runs, read_test

    return (
        read_runs(runs if len(runs) > 1 else runs[0], ties=ties, format=run_format, tag=tag),
        read_test(test),
        None if train is None else read(train),
    )

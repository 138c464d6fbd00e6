"""``cranfield suggest-judgments``: name the judgments that would settle a comparison of two systems soonest."""

from __future__ import annotations

import click

from cranfield._errors import SettingError
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import process_options
from cranfield.cli._measuring import MeasuringOptions, measuring_options, tell
from cranfield.cli._unjudged import judgments_option, show_labelling, with_judgments
from cranfield.comparisons import is_answered, suggest_judgments

_EXAMPLES = """\b
Examples:
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --budget 200 --out ask.csv
  cranfield compare --test test.csv a.csv b.csv -m P@10 --judgments ask.csv
  cranfield suggest-judgments --test test.csv a.csv b.csv -m P@10 --judgments ask.csv --out more.csv    what to ask next
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@click.option(
    "-m",
    "--metric",
    default="P@10",
    show_default=True,
    metavar="METRIC",
    help="P, DCG or RBP with a cut-off.",
)
@click.option("--budget", type=int, default=200, show_default=True, help="The maximum number of pairs.")
@judgments_option
@click.option("--out", metavar="FILE", help="Write the pairs as CSV, with an empty column rating.")
@process_options
def command(measuring: MeasuringOptions, metric: str, budget: int, judgments: str | None, out: str | None) -> None:
    """List the (user, item) pairs whose judgments would settle a comparison of two systems soonest."""
    refuse_idle("here", "lists", "train", "negative_grades")
    if out is not None and is_answered(out):
        raise SettingError(f"--out {out} already holds answers; give them with --judgments, and name another file")
    loaded = with_judgments(measuring.load(), judgments)
    tell(f"Warning: {warning}." for warning in loaded.measure((metric,)).warnings)
    labelling = suggest_judgments(loaded.runs, loaded.test, metric, budget=budget, threshold=measuring.threshold)
    show_labelling(labelling, out)

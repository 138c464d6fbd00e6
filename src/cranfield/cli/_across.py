"""``cranfield compare --across`` and ``--table``: one verdict over several datasets."""

from __future__ import annotations

from typing import Any

import click

from cranfield._errors import SettingError
from cranfield.across import SCALES, WEIGHTS, compare_datasets
from cranfield.cli._options import HelpfulCommand, choice_option, process_options
from cranfield.cli._output import output_options, put, put_result
from cranfield.experiments import Results

_EXAMPLES = """\b
Examples:
  cranfield compare --across movies music books --baseline popularity
  cranfield compare --across movies --family ml-1m=movielens --family ml-100k=movielens
  cranfield compare --table results.csv -m nDCG@10 --figure forest.svg
"""


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option(
    "--across", is_flag=True, help="Compare over the datasets of experiments; each DIR is one of their folders."
)
@click.option(
    "--table",
    metavar="FILE",
    help="Compare over the datasets of a CSV table of averages: a first column dataset or system, or the columns "
    "system, dataset, value and perhaps error; a cell may be 0.310 ± 0.004.",
)
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Which metric; may be repeated.  [default: those that all datasets have]",
)
@click.option("--baseline", metavar="SYSTEM", help="Compare each system with this one.  [default: every pair]")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="DATASET=FAMILY",
    help="Datasets of a family count as one; may be repeated.",
)
@click.option("--margin", metavar="MARGIN", help="The smallest lead that matters, such as 2%.")
@click.option("--alpha", type=float, help="The level of significance.  [default: 0.05, or that of the experiments]")
@choice_option("--scale", SCALES, "What is averaged over datasets.")
@choice_option("--weights", WEIGHTS, "Whether datasets weigh the same, or by precision.")
@click.option("--figure", metavar="FILE", help="Draw the forest plot of the best two systems (SVG, PDF, PNG or JSON).")
@output_options("table", "latex", "markdown", "csv", "json")
@process_options
def across_command(
    folders: tuple[str, ...],
    across: bool,
    table: str | None,
    metrics: tuple[str, ...],
    families: tuple[str, ...],
    figure: str | None,
    format: str,
    out: str | None,
    **options: Any,
) -> None:
    """Compare systems over several datasets: on these datasets, and for datasets like these."""
    named = dict(_family(text) for text in families)
    given = {name: value for name, value in options.items() if value is not None}
    given |= {"metrics": list(metrics)} if metrics else {}
    given |= {"families": named} if named else {}
    if across == (table is not None):
        raise click.UsageError("--across and --table exclude each other; give one of them")
    if table is not None:
        if folders:
            raise click.UsageError(f"{folders[0]} does nothing with --table; leave it out")
        result = compare_datasets(table, **given)
    else:
        if not folders:
            raise click.UsageError("--across needs the folders of experiments; name them")
        first, *others = map(Results, folders)
        result = first.over_datasets(*others, **given)
    if figure is not None:
        from cranfield._figures import save

        save(result.plot(), figure)
    if format in ("latex", "markdown"):
        put(result.to_latex() if format == "latex" else result.markdown(), out)
    else:
        put_result(result, format, out)


def _family(text: str) -> tuple[str, str]:
    name, sign, family = text.partition("=")
    if not (name and sign and family):
        raise SettingError(f"--family {text} cannot be read; write DATASET=FAMILY")
    return name, family

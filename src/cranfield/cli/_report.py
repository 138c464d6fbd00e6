"""``--report FILE``, the page, for any command that measures; ``--style`` of figures; the report of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from cranfield._errors import MissingExtraError
from cranfield._figures import STYLES, check_libraries
from cranfield.cli._measuring import Loaded
from cranfield.cli._options import Decorator, add_options
from cranfield.cli._output import say, say_line
from cranfield.experiments import Results
from cranfield.measures import Scores, examine_for

report_option = click.option("--report", metavar="FILE", help="Also write a report, one self-contained HTML file.")
style_option = click.option(
    "--style", type=click.Choice(STYLES), default="paper", help="The sizes and fonts of the figures."
)
open_option = click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
out_option = click.option(
    "--out", metavar="FOLDER", help="The output folder.  [default: the file's name without its ending]"
)
_OF_EXPERIMENTS = (
    click.option("--report/--no-report", "wanted", default=True, help="Also write a report and figures."),
    open_option,
    click.option(
        "--allow-code", is_flag=True, help="Allow the file to run the code that it names. Look at the code first."
    ),
)


experiment_options: Decorator[Any] = partial(add_options, _OF_EXPERIMENTS)
"""Gives a command that runs an experiment file the options of its report and of its code."""


def experiment_report(wanted: bool) -> Callable[[Results, Path], list[Path]] | None:
    """Return the function that writes the report of an experiment, or None if none is wanted or it cannot be drawn."""
    if not wanted or not can_draw():
        return None
    from cranfield.reports import report_experiment

    return report_experiment


def can_draw() -> bool:
    """Return whether the libraries that draw a report are installed; print a note on standard error if not."""
    try:
        check_libraries()
    except MissingExtraError as error:
        say(f"note: there will be no report: {error}", err=True)
        return False
    return True


def say_where(places: Sequence[str], pages: Sequence[Path], show: bool = False) -> None:
    """Print where the results and the pages of the report are, and open the first page if it is to be shown."""
    for line in ("", *places, *(f"The report: {page}" for page in pages)):
        say_line(line)
    if show and pages:
        import webbrowser

        webbrowser.open(pages[0].resolve().as_uri())


def write_page(
    report: str | None,
    loaded: Loaded,
    scores: Scores,
    metrics: tuple[str, ...],
    **shown: Any,
) -> None:
    """Write the page if it is requested; its decision explorer shows the same runs under other decisions.

    ``shown`` are the other arguments of `cranfield.reports.write_report`.
    """
    if report is None:
        return
    from cranfield.reports import other_decisions, write_report

    variants = other_decisions(
        loaded.lists, loaded.test, metrics, train=loaded.train, negative_grades=loaded.options.negative_grades
    )
    predictions, data = examine_for(metrics, loaded.runs, loaded.test, train=loaded.train), loaded.test.name or ""
    other_lists = _other_lists(loaded, metrics)
    write_report(
        scores, report, variants=variants, other_lists=other_lists, predictions=predictions, data=data, **shown
    )


def _other_lists(loaded: Loaded, metrics: tuple[str, ...]) -> Scores | None:
    """Return the runs measured with the other kind of lists; None for one-relevant runs, whose lists are fixed."""
    if any(run.one_relevant for run in loaded.runs):
        return None
    other = "full" if loaded.options.lists == "condensed" else "condensed"
    return replace(loaded, options=replace(loaded.options, lists=other)).measure(metrics)

"""``--report FILE``, the page, from any command that measures; ``--style`` of the figures of any that draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cranfield._figures import STYLES
from cranfield.assessments import Assessment
from cranfield.cli._measuring import Loaded
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.measures import Averaging, Scores, Segments
from cranfield.measures.averaging import PLAIN
from cranfield.measures.scores import LEVEL

if TYPE_CHECKING:
    from cranfield.reports.section import Section

Command = TypeVar("Command", bound=Callable[..., Any])


def report_option(command: Command) -> Command:
    """Give a command the option ``--report``."""
    return click.option("--report", metavar="FILE", help="Also write a self-contained page (HTML).")(command)


def style_option(command: Command) -> Command:
    """Give a command that writes figures the option ``--style``."""
    return click.option(
        "--style",
        type=click.Choice(STYLES),
        default="paper",
        show_default=True,
        help="The sizes and fonts of the figures.",
    )(command)


def write_page(
    report: str | None,
    loaded: Loaded,
    scores: Scores,
    metrics: tuple[str, ...],
    *,
    averaging: Averaging = PLAIN,
    level: float = LEVEL,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    segments: Sequence[Segments | SegmentComparison] = (),
    sections: Sequence[Section] = (),
) -> None:
    """Write the page if one was asked for; the decision explorer in it has the same runs under other decisions."""
    if report is None:
        return
    from cranfield.reports import other_decisions, write_report

    variants = other_decisions(
        loaded.runs, loaded.test, metrics, train=loaded.train, negative_grades=loaded.options.negative_grades
    )
    write_report(
        report,
        scores,
        comparison,
        assessment,
        average=averaging,
        level=level,
        variants=variants,
        other_lists=_other_lists(loaded, metrics),
        segments=segments,
        sections=sections,
        data=loaded.test.name or "",
    )


def _other_lists(loaded: Loaded, metrics: tuple[str, ...]) -> Scores | None:
    """Return the runs measured with the other kind of lists; None for lists that hold what they hold."""
    if any(run.one_relevant for run in loaded.runs):
        return None
    other = "full" if loaded.options.lists == "condensed" else "condensed"
    return replace(loaded, options=replace(loaded.options, lists=other)).measure(metrics)

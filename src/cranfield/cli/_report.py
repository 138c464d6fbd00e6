"""``--report FILE``, the page, from any command that measures; ``--style`` of the figures of any that draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from cranfield._figures import STYLES
from cranfield.measures import Scores

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
    report: str | None, loaded: Mapping[str, Any], scores: Scores, metrics: tuple[str, ...], **results: Any
) -> None:
    """Write the page if one was asked for; the decision explorer in it has the same runs under other decisions."""
    if report is None:
        return
    from cranfield.reports import other_decisions, write_report

    variants = other_decisions(
        loaded["runs"], loaded["test"], metrics, train=loaded["train"], negative_grades=loaded["negative_grades"]
    )
    write_report(report, scores, variants=variants, **results)

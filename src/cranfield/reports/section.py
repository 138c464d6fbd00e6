"""`Section`: a part of the page with its tables and numbers; and which sections a page has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from cranfield._record import Step
from cranfield.assessments import Assessment
from cranfield.audits import Audit
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.measures import Averaging, PredictedRatings, Scores, Segments


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    name
        Its anchor: letters and hyphens.
    title
        Its heading, plain text.
    html
        Its markup, with everything from users escaped (see `cranfield.reports.markup`).
    tables
        Frames to download as CSV, by file name without extension.
    files
        Further texts to download, by file name.
    data
        What the page's script needs, ready for JSON.
    """

    name: str
    title: str
    html: str
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    data: Any = None


@dataclass(frozen=True)
class Reported:
    """Everything that a page reports: measurements, findings, how they are averaged, and the steps before."""

    scores: Scores
    comparison: Comparison | None
    assessment: Assessment | None
    averaging: Averaging
    level: float
    variants: Sequence[Scores]
    steps: Sequence[tuple[str, Step]]
    segments: Sequence[Segments | SegmentComparison] = ()
    data: str = ""
    other_lists: Scores | None = None
    audit: Audit | None = None
    predictions: PredictedRatings | None = None


OnPage = Callable[[Reported], Section | None]

SECTIONS: list[tuple[int, OnPage]] = []
"""The sections of a page, each with its place. A page imports all modules of `cranfield.reports.sections`, so that
a new file is enough to add a section."""

FURTHER = 90
"""The place of sections added by users: before the card."""


def on_page(place: int) -> Callable[[OnPage], OnPage]:
    """Register a section for every page, at a place among the others; it returns None if it does not apply."""

    def add(section: OnPage) -> OnPage:
        SECTIONS.append((place, section))
        return section

    return add


def sections_of(reported: Reported, further: Sequence[Section] = ()) -> list[Section]:
    """Return the sections of a page in order, including those that a user adds."""
    from cranfield.reports import sections  # noqa: F401, each file registers its own

    placed = [(place, section(reported)) for place, section in SECTIONS]
    placed += [(FURTHER, section) for section in further]
    return [section for _, section in sorted(placed, key=lambda pair: pair[0]) if section is not None]

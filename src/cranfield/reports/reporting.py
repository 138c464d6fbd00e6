"""The report of an evaluation: turns results into one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Unpack

from cranfield._checks import share
from cranfield._decisions import takes_decisions
from cranfield._figures import drawn_beside
from cranfield._files import write_text
from cranfield._record import Step
from cranfield.assessments import Assessment
from cranfield.audits import Audit
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.measures import LEVEL, Averaging, AveragingOptions, PredictedRatings, Scores, Segments
from cranfield.reports.html_page import page
from cranfield.reports.section import Reported, Section, sections_of

_TITLE = "Which system is better?"
_TITLE_OF_METRICS = "Which metric to trust?"


@takes_decisions(Averaging)
@drawn_beside
def report(
    scores: Scores,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    *,
    average: str | Averaging = "mean",
    level: float = LEVEL,
    variants: Iterable[Scores] = (),
    other_lists: Scores | None = None,
    segments: Sequence[Segments | SegmentComparison] = (),
    audit: Audit | None = None,
    predictions: PredictedRatings | None = None,
    title: str = _TITLE,
    lead: str = "",
    data: str = "",
    steps: Sequence[tuple[str, Step]] = (),
    sections: Sequence[Section] = (),
    **decisions: Unpack[AveragingOptions],
) -> str:
    """Return the report of an evaluation as one self-contained HTML page.

    Parameters
    ----------
    scores
        What was measured.
    comparison
        The results of the tests, if there were tests.
    assessment
        The assessment of the metrics themselves, if they were assessed.
    average, coverage, undefined, by, groups, level
        How the leaderboard averages, and the confidence of its intervals; see `Scores.frame`.
    variants
        The same systems measured under other decisions (threshold, condensed lists, further metrics and cut-offs), for
        the reader to choose from: see `other_decisions`. Kinds of average and coverage policies are varied in any case.
    other_lists
        The same metrics with the other kind of lists (condensed instead of full), shown for comparison; by default
        taken from the variants.
    segments
        The scores by group, compared or not; see `measure_segments` and `compare_segments`.
    audit
        Whether the winner survives other decisions, if it was audited; see `cranfield.audit`.
    predictions
        Predicted and true ratings, if systems predict ratings; see `cranfield.examine_predictions`.
    title, lead
        The heading, and a line below it.
    data
        The name of the data, for captions.
    steps
        Earlier stages by name, for the card.
    sections
        Further sections, shown before the card.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}, "other": {"ann": ["z", "y"], "bob": ["y"]}}
    >>> html = report(cf.measure(runs, test, ["P@2", "RR"], threshold=4))
    >>> html.startswith("<!doctype html>") and "has the best average" in html
    True
    """
    averaging = Averaging.of(average, **decisions)
    reported = Reported(
        scores,
        comparison,
        assessment,
        averaging,
        share("level", level),
        list(variants),
        steps,
        tuple(segments),
        data,
        other_lists,
        audit,
        predictions,
    )
    if title == _TITLE and comparison is None and assessment is not None:
        title = _TITLE_OF_METRICS
    return page(title, sections_of(reported, sections), lead=lead)


@takes_decisions(Averaging)
def write_report(
    path: str | Path,
    scores: Scores,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    *,
    average: str | Averaging = "mean",
    level: float = LEVEL,
    variants: Iterable[Scores] = (),
    other_lists: Scores | None = None,
    segments: Sequence[Segments | SegmentComparison] = (),
    audit: Audit | None = None,
    predictions: PredictedRatings | None = None,
    title: str = _TITLE,
    lead: str = "",
    data: str = "",
    steps: Sequence[tuple[str, Step]] = (),
    sections: Sequence[Section] = (),
    **decisions: Unpack[AveragingOptions],
) -> Path:
    """Write the report of an evaluation to an HTML file, and return its path; the options are those of `report`."""
    written = report(
        scores,
        comparison,
        assessment,
        average=average,
        **decisions,
        level=level,
        variants=variants,
        other_lists=other_lists,
        segments=segments,
        audit=audit,
        predictions=predictions,
        title=title,
        lead=lead,
        data=data,
        steps=steps,
        sections=sections,
    )
    return write_page(path, written)


def write_page(path: str | Path, html: str) -> Path:
    """Write a page; the file is complete or not written at all."""
    path = Path(path)
    write_text(path, html)
    return path

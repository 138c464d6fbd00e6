"""The report of an evaluation: results in, one page out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cranfield._checks import share
from cranfield._files import write_text
from cranfield._record import Step
from cranfield.assessments import Assessment
from cranfield.comparisons import Comparison
from cranfield.measures import Averaging, Scores
from cranfield.measures.averaging import By, Coverage, GroupPolicy, Undefined
from cranfield.measures.scores import LEVEL
from cranfield.reports.explore import DIMENSIONS, Explored, explore, label_of
from cranfield.reports.page import page
from cranfield.reports.section import Section
from cranfield.reports.sections.card import card
from cranfield.reports.sections.explorer import explorer
from cranfield.reports.sections.leaderboard import leaderboard
from cranfield.reports.sections.pairs import pairs
from cranfield.reports.sections.trust import trust
from cranfield.reports.sections.users import users
from cranfield.reports.sections.verdict import verdict

_TITLE = "Which system is better?"


def report(
    scores: Scores,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    *,
    average: str | Averaging = "mean",
    coverage: Coverage = "full",
    undefined: Undefined = "zero",
    by: By = "list",
    groups: GroupPolicy = "pooled",
    level: float = LEVEL,
    variants: Iterable[Scores] = (),
    title: str = _TITLE,
    lead: str = "",
    steps: Sequence[tuple[str, Step]] = (),
    sections: Sequence[Section] = (),
) -> str:
    """Return the report of an evaluation as one HTML page that holds all it needs.

    Parameters
    ----------
    scores
        What was measured.
    comparison
        What the tests say of it, if there were tests.
    assessment
        What was found out about the metrics themselves, if they were assessed.
    average, coverage, undefined, by, groups, level
        How the leaderboard averages, and the confidence of its intervals; see `Scores.frame`.
    variants
        The same systems measured under other decisions (threshold, condensed lists, further metrics and cut-offs), for
        the reader to choose from: see `other_decisions`. Kinds of average and coverage policies are varied in any case.
    title, lead
        The heading, and a line below it.
    steps
        What was done before, for the card: stages by name.
    sections
        Further sections, to stand before the card.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}, "other": {"ann": ["z", "y"], "bob": ["y"]}}
    >>> html = report(cf.measure(runs, test, ["P@2", "RR"], threshold=4))
    >>> html.startswith("<!doctype html>") and "has the best average" in html
    True
    """
    averaging = Averaging.of(average, coverage=coverage, undefined=undefined, by=by, groups=groups)
    if comparison is not None:
        scores = scores.over_common_lists()
    made: list[Section | None] = [
        verdict(scores, comparison, averaging),
        leaderboard(scores, comparison, averaging=averaging, level=share("level", level)),
    ]
    if comparison is not None:
        made.append(pairs(comparison))
    made.append(users(scores))
    if assessment is not None:
        made.append(trust(assessment))
    if len(scores.systems) > 1 and scores.n_lists:
        measured = [("test", one) for one in (scores, *variants)]
        explored = explore(measured, averaging=averaging)
        made.append(explorer(explored, _start(explored, scores, averaging)))
    results = (("compare", comparison), ("assess", assessment))
    done = [*steps, ("measure", scores.step), *((name, one.step) for name, one in results if one is not None)]
    made += [*sections, card(done)]
    return page(title, [one for one in made if one is not None], lead=lead)


def write_report(
    path: str | Path,
    scores: Scores,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    *,
    average: str | Averaging = "mean",
    coverage: Coverage = "full",
    undefined: Undefined = "zero",
    by: By = "list",
    groups: GroupPolicy = "pooled",
    level: float = LEVEL,
    variants: Iterable[Scores] = (),
    title: str = _TITLE,
    lead: str = "",
    steps: Sequence[tuple[str, Step]] = (),
    sections: Sequence[Section] = (),
) -> Path:
    """Write the report of an evaluation to an HTML file, and return its path; the options are those of `report`."""
    made = report(
        scores,
        comparison,
        assessment,
        average=average,
        coverage=coverage,
        undefined=undefined,
        by=by,
        groups=groups,
        level=level,
        variants=variants,
        title=title,
        lead=lead,
        steps=steps,
        sections=sections,
    )
    return write_page(path, made)


def _start(explored: Explored, scores: Scores, averaging: Averaging) -> int:
    """Return where the explorer begins: at the first metric as the leaderboard averages it."""
    # Where every user has a list, one policy stands for both.
    known = averaging.coverage in explored.options[DIMENSIONS.index("coverage")]
    policy = averaging.coverage if known else "full"
    label = label_of("test", scores, scores.metrics[0], average=str(averaging.average), coverage=policy)
    return explored.find(**label)


def write_page(path: str | Path, html: str) -> Path:
    """Write a page whole."""
    path = Path(path)
    write_text(path, html)
    return path

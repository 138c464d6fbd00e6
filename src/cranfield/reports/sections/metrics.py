"""The metrics themselves: which to trust; and predicted against true ratings."""

from __future__ import annotations

from dataclasses import replace

from cranfield._table import Cell
from cranfield.assessments import Assessment
from cranfield.measures import PredictedRatings
from cranfield.metrics import metric_label
from cranfield.reports.html_page import Reported, Section, on_page
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, sortable, table, text

_CAPTIONS = {
    "advice": "The score of each metric, with its 95 % interval over draws of the systems: power and robustness.",
    "robustness": "How well each metric keeps its order of the systems when parts of the test set are missing.",
    "power": "The largest p-values of each metric, in decreasing order: a lower curve tells more systems apart.",
    "correlation": "Kendall's tau between the orders of systems that the metrics give.",
}


def trust(assessment: Assessment) -> Section:
    """Return the findings about the metrics themselves."""
    shown = ["advice", *(["robustness"] if assessment.scenarios else [])]
    shown += [*(["power"] if assessment.curves.height else []), "correlation"]
    named = assessment.part({metric: metric_label(metric) for metric in assessment.metrics})
    drawn = [figure(f"trust-{study}", named.plot(study), _CAPTIONS[study]) for study in shown]
    tables = {f"trust-{study}": assessment.frame(study) for study in shown}
    advice = assessment.advice().table(first=None)
    columns = [Column(name, numeric=k > 0) for k, name in enumerate(advice.header)]
    listed = table(advice.caption, columns, [list(map(_cell, row)) for row in advice.rows])
    answer, *others = assessment.verdict
    more = paragraphs(others) + listed + "".join(drawn[1:]) + notes(assessment.advice().limits) + downloads(*tables)
    return Section("trust", "Which metric can be trusted?", paragraphs([answer]) + "".join(drawn[:1]), more, tables)


@on_page(5)
def _opening(reported: Reported) -> Section | None:
    """Put the assessment first on a page without a comparison."""
    if reported.assessment is None or reported.comparison is not None:
        return None
    section = trust(reported.assessment)
    return replace(section, html=section.html.replace("<p>", '<p class="answer">', 1))


@on_page(50)
def _trust_on_page(reported: Reported) -> Section | None:
    return trust(reported.assessment) if reported.assessment is not None and reported.comparison is not None else None


def _cell(cell: str | Cell) -> Value:
    content = cell if isinstance(cell, Cell) else Cell(cell)
    shown = f'<span class="average">{text(content.text)}</span>'
    return Value(shown, _key(content.text), "best" if content.best else "")


def _key(shown: str) -> float | str | None:
    """Return the sort key of a cell: its number, the lower end of an interval, or its text."""
    number = shown.split("–")[0].rstrip("%")
    try:
        return float(number)
    except ValueError:
        return shown if shown != "–" else None


_ERRORS = (
    "Errors of predicted ratings say little about what is at the top of a list, and the order of errors (SDCSE) "
    "does not show their size. The figures here show where predictions are too high or too low, on the rating scale."
)
_PREDICTIONS = {
    "migration": "Migration: share of the items of each true rating (rows) that are predicted each rating (columns).",
    "rating": "Calibration: the mean rating of items by their predicted rating. On the dashed line predictions are "
    "right on average; below it they are too high.",
    "rank": "Mean of predicted minus true rating at each place of the lists of rated items; above 0 is too high.",
}


@on_page(48, "predictions")
def rating_predictions(predictions: PredictedRatings | None) -> Section | None:
    """Return the section of predicted ratings, if there are any."""
    if predictions is None:
        return None
    shown = predictions.table()
    drawn = [figure(f"predictions-{kind}", predictions.plot(kind), said) for kind, said in _PREDICTIONS.items()]
    more = paragraphs([_ERRORS]) + sortable(shown, names=1) + notes(shown.notes) + "".join(drawn[:1] + drawn[2:])
    tables = {
        "predictions-shares": predictions.frame(),
        "predictions-migration": predictions.migration(),
        "predictions-by-rating": predictions.curve("rating"),
        "predictions-by-rank": predictions.curve("rank"),
    }
    return Section("predictions", "Are predicted ratings right?", drawn[1], more + downloads(*tables), tables)

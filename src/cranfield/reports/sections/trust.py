"""Which metric to trust: advice, robustness, p-value curves and correlation."""

from __future__ import annotations

from cranfield._table import Cell
from cranfield.assessments import Assessment
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_CAPTIONS = {
    "robustness": "How well each metric keeps its order of the systems when parts of the test set are missing.",
    "power": "The largest p-values of each metric, in decreasing order: a lower curve tells more systems apart.",
    "correlation": "Kendall's tau between the orders of systems that the metrics give.",
}


def trust(assessment: Assessment) -> Section:
    """Return the findings about the metrics themselves."""
    shown = ["robustness"] if assessment.scenarios else []
    shown += [*(["power"] if assessment.curves.height else []), "correlation"]
    drawn = "".join(figure(f"trust-{study}", assessment.plot(study), _CAPTIONS[study]) for study in shown)
    tables = {f"trust-{study}": assessment.frame(study) for study in ("advice", *shown)}
    advice = assessment.advice()
    markup = (
        paragraphs(assessment.sentences()) + _advice(assessment) + drawn + notes(advice.limits) + downloads(*tables)
    )
    return Section("trust", "Which metric to trust", markup, tables=tables)


@on_page(5)
def _opening(reported: Reported) -> Section | None:
    """Put the assessment first on a page without a comparison."""
    return trust(reported.assessment) if reported.assessment is not None and reported.comparison is None else None


@on_page(50)
def _on_page(reported: Reported) -> Section | None:
    return trust(reported.assessment) if reported.assessment is not None and reported.comparison is not None else None


def _advice(assessment: Assessment) -> str:
    advice = assessment.advice().table(first=None)
    columns = [Column(name, numeric=k > 0) for k, name in enumerate(advice.header)]
    rows = [[_cell(cell) for cell in row] for row in advice.rows]
    return table(advice.caption, columns, rows)


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

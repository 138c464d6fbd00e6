"""Predicted against true ratings: shares predicted too high or too low, migration matrices, calibration curves."""

from __future__ import annotations

from cranfield._table import Cell
from cranfield.measures import PredictedRatings
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_SAID = (
    "Errors of predicted ratings say little about what is at the top of a list, and the order of errors (SDCSE) "
    "does not show their size. The figures here show where predictions are too high or too low, on the rating scale."
)
_FIGURES = {
    "migration": "Migration: share of the items of each true rating (rows) that are predicted each rating (columns).",
    "rating": "Calibration: the mean rating of items by their predicted rating. On the dashed line predictions are "
    "right on average; below it they are too high.",
    "rank": "Mean of predicted minus true rating at each place of the lists of rated items; above 0 is too high.",
}


def rating_predictions(predicted: PredictedRatings) -> Section:
    """Return the section of predicted ratings."""
    shown = predicted.table()
    columns = [Column(title, numeric=place > 0) for place, title in enumerate(shown.header)]
    rows = [[_value(cell, column) for cell, column in zip(row, columns)] for row in shown.rows]
    html = paragraphs([_SAID]) + table(shown.caption, columns, rows) + notes(shown.notes)
    html += "".join(figure(f"predictions-{kind}", predicted.plot(kind), said) for kind, said in _FIGURES.items())
    tables = {
        "predictions-shares": predicted.sells(),
        "predictions-migration": predicted.migration(),
        "predictions-by-rating": predicted.curve("rating"),
        "predictions-by-rank": predicted.curve("rank"),
    }
    return Section("predictions", "Predicted ratings", html + downloads(*tables), tables=tables)


def _value(cell: str | Cell, column: Column) -> Value:
    shown = cell if isinstance(cell, Cell) else Cell(cell)
    html = f"<b>{text(shown.text)}</b>" if shown.best else text(shown.text)
    return Value(html, float(shown.text) if column.numeric else shown.text)


@on_page(48)
def _on_page(reported: Reported) -> Section | None:
    return None if reported.predictions is None else rating_predictions(reported.predictions)

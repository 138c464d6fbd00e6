"""The section of predicted ratings: its shares, its figures, its tables; names are escaped."""

from __future__ import annotations

import polars as pl

from cranfield import Ratings
from cranfield.measures import examine_predictions
from cranfield.rankings import read_run
from cranfield.reports.sections.metrics import rating_predictions


def test_the_section_has_shares_figures_and_tables():
    test = Ratings.of([1, 1, 2], [*"aba"], [5, 3, 4])
    runs = [
        read_run(pl.DataFrame({"user": [1, 1, 2], "item": [*"aba"], "prediction": [4.0, 3.0, 2.0]}), name=name)
        for name in ("mine", "other <b>")
    ]
    section = rating_predictions(examine_predictions(runs, test, n=2))
    assert "Predicted ratings of the first 2 rated items" in section.more
    assert "other &lt;b&gt;" in section.more
    assert "other <b>" not in section.html + section.more
    assert (section.html.count("<figure"), section.more.count("<figure")) == (1, 2)
    assert set(section.tables) == {
        "predictions-shares", "predictions-migration", "predictions-by-rating", "predictions-by-rank",
    }  # fmt: skip

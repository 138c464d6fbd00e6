"""Predicted ratings beside true ones: matrices and shares by hand, figures that draw, and the section on the page."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.judgments import judge
from cranfield.measures import examine_predictions
from cranfield.measures.predicted_ratings import MOST_GRADES, PredictedRatings, examine_for
from cranfield.metrics import Metric
from cranfield.rankings import read_run

TEST = Ratings.of([1, 1, 1, 2, 2], [*"abcab"], [5, 3, 1, 4, 2])


def _run(*predictions, name="mine"):
    rows = {"user": [1, 1, 1, 2, 2], "item": [*"abcab"], "prediction": [*map(float, predictions)]}
    return read_run(pl.DataFrame(rows), name=name)


def test_a_rating_migrates_to_the_nearest_grade_and_halves_go_up():
    matrix = examine_predictions(_run(4.6, 3.5, -2.0, 4.4, 9.0), TEST).migration()
    held = matrix.filter(pl.col("count") > 0).select("rating", "predicted", "count", "share").rows()
    assert held == [(1, 1, 1, 1.0), (2, 5, 1, 1.0), (3, 4, 1, 1.0), (4, 4, 1, 1.0), (5, 5, 1, 1.0)]
    assert len(matrix) == 25


@given(
    predictions=st.lists(st.floats(0, 6, width=16), min_size=5, max_size=5),
    n=st.none() | st.integers(1, 3),
    margin=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_shares_are_those_of_the_metrics(predictions, n, margin):
    run = _run(*predictions)
    judged, cut = judge(run, TEST), "" if n is None else f"@{n}"
    row = examine_predictions(run, TEST, n=n, margin=margin).frame().row(0, named=True)
    for kind in ("Up", "Down", "Perfect"):
        share = float(np.mean(Metric.of(f"{kind}Sell(margin={margin}){cut}")(judged)))
        assert row[f"{kind.lower()}_sell"] == pytest.approx(share)
        pooled = Metric.of(f"Pooled{kind}Sell(margin={margin}){cut}")(judged)
        assert row[f"{kind.lower()}_sell_pooled"] == pytest.approx(pooled)
    assert row["up_sell"] + row["down_sell"] + row["perfect_sell"] == pytest.approx(1)


def test_many_grades_are_shown_in_ten_parts_of_the_scale():
    grades = np.linspace(0, 10, MOST_GRADES + 1)
    test = Ratings.of([1] * len(grades), range(len(grades)), grades)
    run = pl.DataFrame({"user": [1] * len(grades), "item": range(len(grades)), "prediction": grades})
    assert examine_predictions({"m": run}, test).grades == tuple(np.arange(10) + 0.5)


def test_folds_are_put_together():
    first, second = (examine_predictions(_run(*p), TEST) for p in ((5, 3, 1, 4, 2), (4, 4, 4, 4, 4)))
    both = PredictedRatings.join([first, second])
    assert both.migration()["count"].sum() == 10
    means = [part.frame()["perfect_sell"][0] for part in (first, second)]
    assert both.frame()["perfect_sell"][0] == pytest.approx(np.mean(means))
    assert PredictedRatings.join([first]) is first


def test_they_are_examined_down_to_the_cutoff_of_the_first_metric_that_looks_at_them():
    run = _run(5, 3, 1, 4, 2)
    assert examine_for(["P@3", "nDCG@10"], run, TEST) is None
    found = examine_for(["P@3", "RMSE@2", "UpSell(margin=1)@3"], run, TEST)
    assert (found.cutoff, found.margins) == (2, (1.0,))
    with pytest.raises(SettingError, match="examine_predictions needs predicted ratings, and the scores of mine"):
        examine_predictions({"mine": {1: {"a": 90.0, "b": 80.0}}}, TEST)


@pytest.mark.parametrize("kind", ["migration", "rating", "rank"])
def test_every_figure_is_drawn_in_both_styles(kind):
    found = examine_predictions([_run(5, 3, 1, 4, 2), _run(4, 4, 4, 4, 3, name="other")], TEST)
    for style in ("screen", "paper"):
        assert "mine" in str(found.plot(kind, style=style).to_dict())
    with pytest.raises(SettingError, match="kind='matrix' is not one of migration, rating, rank"):
        found.plot("matrix")


def test_the_figure_by_rank_shows_by_how_much_predictions_are_too_high():
    pytest.importorskip("altair")
    predicted = examine_predictions(_run(5.5, 3, 1, 4, 1.5), TEST)
    _, line = predicted.plot("rank").to_dict()["layer"]
    assert [row["gap"] for row in line["data"]["values"]] == [0.25, -0.25, 0]

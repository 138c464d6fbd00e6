"""The figures of predicted ratings: migration matrices, and calibration curves by rating and by rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from cranfield._figures import MUTED, Style, altair, data_of, look, series, themed, tips

if TYPE_CHECKING:
    from cranfield.measures.predicted_ratings import PredictedRatings

MOST_SYSTEMS = 9
"""Maximum number of systems in a figure; the first ones are shown."""


def migration(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
    """Return a heat map for each system: the share of the items of each true grade that is predicted each grade."""
    alt = altair()
    side = max(0.7 * look(style)["panel"][0], 2.4 * look(style)["size"] * len(predicted.grades))
    grades = [f"{grade:g}" for grade in predicted.grades]
    frame = predicted.migration().with_columns(
        pl.col("rating", "predicted").replace_strict(dict(zip(predicted.grades, grades)), return_dtype=pl.String)
    )
    charts = []
    for system in predicted.systems[:MOST_SYSTEMS]:
        base = alt.Chart(data_of(frame.filter(system=system).drop("system"))).encode(
            x=alt.X("predicted:N", sort=grades, title="predicted", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("rating:N", sort=grades[::-1], title="rating"),
            tooltip=tips(
                rating="rating", predicted="predicted", share=("share of the rating", ".1%"), count=("items", ",d")
            ),
        )
        colour = alt.Color("share:Q", title=None, scale=alt.Scale(scheme="yellowgreenblue", domain=[0, 1]), legend=None)
        dark = alt.condition("datum.share > 0.5", alt.value("white"), alt.value("black"))
        text = base.mark_text(fontSize=look(style)["size"] - 3).encode(
            text=alt.Text("share:Q", format=".0%"), color=dark
        )
        cells = base.mark_rect().encode(color=colour)
        charts.append((cells + text).properties(title=system, width=side, height=side))
    return themed(alt.concat(*charts, columns=2 if style == "paper" else 3), style)


def by_rating(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
    """Return the mean true rating against the mean prediction, by parts of the scale; the diagonal is correct."""
    alt = altair()
    width, height = look(style)["panel"]
    x = alt.X("predicted:Q", title="mean predicted rating", scale=alt.Scale(zero=False))
    base = alt.Chart(data_of(predicted.curve("rating"))).encode(
        x=x,
        y=alt.Y("rating:Q", title="mean rating", scale=alt.Scale(zero=False)),
        tooltip=tips(system="system", predicted=("predicted", ".2f"), rating=("rated", ".2f"), count=("items", ",d")),
        **series("system", predicted.systems),
    )
    # The mean of a few items is not reliable.
    points = base.mark_point(filled=True, opacity=1).encode(size=alt.Size("count:Q", legend=None))
    ends = [{"predicted": value, "rating": value} for value in (predicted.scale.low, predicted.scale.high)]
    right = alt.Chart(data_of(ends)).mark_line(color=MUTED, strokeDash=[3, 3]).encode(x=x, y="rating:Q")
    chart = right + base.mark_line() + points
    return themed(chart.properties(width=1.6 * width, height=1.3 * height), style)


def by_rank(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
    """Return by how much predictions are too high on average at each rank of the lists; 0 is correct."""
    alt = altair()
    rows = predicted.curve("rank").with_columns(gap=pl.col("predicted") - pl.col("rating"))
    width, height = look(style)["panel"]
    line = (
        alt.Chart(data_of(rows))
        .mark_line(point={"size": 18, "filled": True})
        .encode(
            x=alt.X("group:Q", title="place in the list of rated items"),
            y=alt.Y("gap:Q", title="mean prediction − mean rating"),
            tooltip=tips(system="system", group="place", gap=("too high by", ".3f"), count=("lists", ",d")),
            **series("system", predicted.systems),
        )
    )
    right = alt.Chart(data_of([{"gap": 0.0}])).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(y="gap:Q")
    return themed((right + line).properties(width=1.6 * width, height=1.3 * height), style)


FIGURES: Mapping[str, Callable[..., Any]] = {"migration": migration, "rating": by_rating, "rank": by_rank}
"""The figures by kind."""

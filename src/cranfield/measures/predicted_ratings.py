"""`examine_predictions`: migration matrices and calibration curves of predicted ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._figures import MUTED, Style, altair, data_of, look, series, themed, tips
from cranfield._own_code import may_be_called
from cranfield._result import Figures, Result
from cranfield._table import Cell, Table
from cranfield.data import Ratings, RatingScale
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import Context, as_judged
from cranfield.metrics import Metric, Predicted, check_predictions, margin_of, scale_of
from cranfield.rankings import Gaps, Ties

MOST_GRADES = 20
"""If ratings have more distinct grades than this, they are shown in ten equal parts of the scale."""

CurveBy = Literal["rating", "rank"]


@dataclass(frozen=True, eq=False)
class PredictedRatings(Result):
    """The predicted and true ratings of some systems: the result of `examine_predictions`."""

    systems: tuple[str, ...]
    items: tuple[Predicted, ...]  # the items of each system's lists, with true and predicted ratings
    scale: RatingScale  # the rating scale
    # The grades of the migration matrix, ascending: those of the ratings, or the middles of ten equal parts.
    grades: tuple[float, ...]
    margins: tuple[float, ...]  # λ of each system, the margin within which a prediction is right
    cutoff: int | None = None  # the number of items of a list that count; None for all

    def migration(self) -> pl.DataFrame:
        """Return the migration matrices: ``system, rating, predicted, count, share``, the share of the true grade.

        A rating or a prediction belongs to the nearest grade, and to the higher of two equally near ones.
        """
        n, frames = len(self.grades), []
        for system, items in zip(self.systems, self.items):
            true, predicted = (self._nearest(values[items.rated]) for values in (items.ratings, items.predictions))
            counts = np.bincount(true * n + predicted, minlength=n * n).reshape(n, n)
            share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
            columns = {"rating": np.repeat(self.grades, n), "predicted": np.tile(self.grades, n)}
            columns |= {"count": counts.ravel(), "share": share.ravel()}
            frames.append(pl.DataFrame({"system": [system] * (n * n), **columns}))
        return pl.concat(frames)

    def _nearest(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        grades = np.array(self.grades)
        return np.searchsorted((grades[1:] + grades[:-1]) / 2, values, side="right")

    def curve(self, by: CurveBy = "rating", bins: int = 10) -> pl.DataFrame:
        """Return the calibration curves: ``system, group, count, predicted, rating``.

        ``predicted`` and ``rating`` are means over the items of a group: a part of the rating scale by prediction, or a
        rank of the lists (``by="rank"``).
        """
        check.one_of("by", by, ("rating", "rank"))
        curves = [
            items.curve(self.scale, by=by, bins=check.whole("bins", bins)).select(
                pl.lit(system).alias("system"), pl.all()
            )
            for system, items in zip(self.systems, self.items)
        ]
        return pl.concat(curves)

    def frame(self) -> pl.DataFrame:
        """Return the shares of up-sell, down-sell and perfect-sell, as a mean over users and over all items together.

        Columns ``system, margin, up_sell, down_sell, perfect_sell`` and the latter three with ``_pooled``.
        """
        rows = []
        for system, items, margin in zip(self.systems, self.items, self.margins):
            kinds = items.sells(margin)
            means = {name: float(np.nanmean(items.mean(which))) for name, which in kinds.items()}
            pooled = {f"{name}_pooled": items.overall(which) for name, which in kinds.items()}
            rows.append({"system": system, "margin": margin, **means, **pooled})
        return pl.DataFrame(rows)

    def table(self) -> Table:
        """Return the shares of up-sell, down-sell and perfect-sell as a table for people."""
        frame = self.frame()
        best = {name: frame[name].max() if "perfect" in name else frame[name].min() for name in frame.columns[2:]}
        rows: list[list[str | Cell]] = [
            [
                row["system"], f"{row['margin']:.3g}",
                *(Cell(f"{row[name]:.3f}", best=row[name] == best[name]) for name in frame.columns[2:]),
            ]
            for row in frame.iter_rows(named=True)
        ]  # fmt: skip
        header = ["system", "margin", "up", "down", "right", "up, all items", "down, all items", "right, all items"]
        top = "" if self.cutoff is None else f" of the first {self.cutoff} rated items"
        caption = f"Predicted ratings{top}: share too high, too low and right within the margin"
        return Table(
            header, rows, caption, ["the first shares are means over users, the others over all items together"]
        )

    def facts(self) -> list[Fact]:
        """Return how many predictions of each system are right, the best system first."""
        rows = self.frame().sort("perfect_sell", descending=True, maintain_order=True).iter_rows(named=True)
        return [scores_facts.PredictionsRight(row["system"], row["perfect_sell"], row["margin"]) for row in rows]

    @property
    def figures(self) -> Figures:
        """``migration``, and the calibration curves by ``rating`` and by ``rank``."""
        return _FIGURES

    @staticmethod
    def join(folds: Sequence[PredictedRatings]) -> PredictedRatings:
        """Return the predictions of the same systems on several folds together; margins are means over the folds.

        A user in two folds counts as two.
        """
        if len(folds) == 1:
            return folds[0]
        return replace(
            folds[0],
            items=tuple(_joined(items) for items in zip(*(fold.items for fold in folds), strict=True)),
            grades=tuple(sorted({grade for fold in folds for grade in fold.grades})),
            margins=tuple(np.mean([fold.margins for fold in folds], axis=0).tolist()),
        )

    def __repr__(self) -> str:
        return f"PredictedRatings({', '.join(self.systems)})"


def _joined(folds: Sequence[Predicted]) -> Predicted:
    before = np.cumsum([0, *(fold.n_lists for fold in folds)])
    values = ([getattr(fold, name) for fold in folds] for name in ("ratings", "predictions", "errors"))
    lists = np.concatenate([fold.lists + offset for fold, offset in zip(folds, before)])
    return Predicted(lists, int(before[-1]), *(np.concatenate(column) for column in values))


def examine_predictions(
    runs: Any,
    test: Any = None,
    *,
    n: int | None = None,
    margin: float | Literal["half", "spread"] = "half",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
) -> PredictedRatings:
    """Compare predicted ratings with the true ones: migration matrices, shares of up-sell, calibration curves.

    Parameters
    ----------
    runs, test, ties, gaps, train
        As for `measure`; the runs have predictions, or scores that are ratings.
    n
        Only the first ``n`` rated items of each list; None for all.
    margin
        λ, the margin within which a prediction is right: a number, ``half`` a step of the scale, or the ``spread`` of
        residuals.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 3, 1])
    >>> found = examine_predictions({"mine": {"ann": {"x": 4.8, "y": 3.9}, "bob": {"x": 1.2}}}, test)
    >>> found.migration().filter(pl.col("count") > 0).select("rating", "predicted", "count").rows()
    [(1.0, 1.0, 1), (3.0, 3.0, 1), (5.0, 5.0, 1)]
    >>> found.frame().select("up_sell", "down_sell", "perfect_sell").row(0)
    (0.0, 0.0, 1.0)
    """
    judged = as_judged(runs, test, None, Context(train), ties=ties, gaps=gaps)
    check_predictions(judged, ["examine_predictions"])
    cutoff = None if n is None else check.whole("n", n)
    scale, margin = scale_of(judged[0]), margin if isinstance(margin, str) else check.number("margin", margin)
    condensed = [lists.condensed().with_ties_broken() for lists in judged]
    cut = condensed if cutoff is None else [lists.cut(cutoff) for lists in condensed]
    names = [lists.ranked.name if lists.ranked is not None else "the run" for lists in judged]
    known = np.unique(np.concatenate([judged[0].judgments.distinct, *([] if train is None else [train.grades])]))
    if len(known) > MOST_GRADES:
        edges = np.linspace(scale.low, scale.high, 11)
        known = (edges[1:] + edges[:-1]) / 2
    return PredictedRatings(
        systems=tuple(names),
        items=tuple(Predicted.of(lists, "examine_predictions") for lists in cut),
        scale=scale,
        grades=tuple(known.tolist()),
        margins=tuple(margin_of(lists, margin) for lists in judged),
        cutoff=cutoff,
    )


def examine_for(
    metrics: Sequence[str], runs: Any, test: Any = None, *, train: Ratings | None = None
) -> PredictedRatings | None:
    """Examine predictions down to the cut-off of the first metric that uses them; None if none does.

    The margin is the first that a metric gives.
    """
    wanting = [Metric.of(name) for name in metrics if may_be_called(name)]
    wanting = [metric for metric in wanting if "predictions" in metric.definition.needs]
    if not wanting:
        return None
    margins = [dict(metric.parameters).get("margin") for metric in wanting]
    margin: Any = next((margin for margin in margins if margin is not None), "half")
    return examine_predictions(runs, test, n=wanting[0].cutoff, margin=margin, train=train)


# Maximum number of systems in a figure; the first ones are shown.
_MOST_SYSTEMS = 9


def _migration(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
    """Return a heat map for each system: the share of the items of each true grade that is predicted each grade."""
    alt = altair()
    side = max(0.7 * look(style)["panel"][0], 2.4 * look(style)["size"] * len(predicted.grades))
    grades = [f"{grade:g}" for grade in predicted.grades]
    frame = predicted.migration().with_columns(
        pl.col("rating", "predicted").replace_strict(dict(zip(predicted.grades, grades)), return_dtype=pl.String)
    )
    charts = []
    for system in predicted.systems[:_MOST_SYSTEMS]:
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


def _by_rating(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
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


def _by_rank(predicted: PredictedRatings, *, style: Style = "screen") -> Any:
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


_FIGURES: Mapping[str, Callable[..., Any]] = {"migration": _migration, "rating": _by_rating, "rank": _by_rank}

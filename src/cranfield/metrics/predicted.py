"""`Predicted`: the items of all lists with their true and their predicted ratings, by descending prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import RatingScale
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values, power_of_two
from cranfield.rankings import Run, stable_argsort

OFFER = (
    "give a column of predicted ratings, or calibrate the scores onto the rating scale: "
    "calibration='isotonic' when systems are trained here, cranfield calibrate (cf.calibrate) for "
    "existing lists"
)
"""What to do if scores are not ratings."""

# An error that exceeds the margin by less than this counts as within it.
_ROUNDING = 1e-6
# Share of the scores that must be within one range of the scale's ends; the median must be on the scale.
_MOST = 0.95


@dataclass(frozen=True, eq=False)
class Predicted:
    """The measured items of all lists, list by list, each in descending order of predictions.

    Items of equal prediction keep the order of the list.
    """

    lists: NDArray[np.intp]  # the list of each item
    n_lists: int
    # The user's rating of each item, y; NaN for an item without one, which keeps its rank and has no error.
    ratings: Values
    predictions: Values  # the predicted rating of each item, p
    errors: Values  # y − p of each item, 0 without a rating

    @classmethod
    def of(cls, judged: Judged, metric_name: str, unrated: float | None = None) -> Predicted:
        """Return the items of judged lists with their predictions.

        For condensed lists these are the rated items. For full lists they are all items: one without a rating keeps its
        rank, and has the rating ``unrated`` if that is given. Items without a prediction are ignored.
        """
        run, predictions = _predictions(judged, metric_name)
        assert judged.places is not None  # the predictions belong to them

        def condensed() -> Predicted:
            return _by_prediction(judged.lists, judged.n_lists, judged.grades, predictions[judged.places])

        def whole() -> Predicted:
            entries = judged.entries
            ratings = np.full(len(run.items), np.nan if unrated is None else float(unrated))
            ratings[judged.places] = judged.grades
            return _by_prediction(entries.lists, judged.n_lists, ratings[entries.places], predictions[entries.places])

        if judged.is_condensed:
            return judged.once("predicted", condensed)
        return judged.once(("predicted", unrated), whole)

    @cached_property
    def rated(self) -> NDArray[np.bool_]:
        """Whether each item has a rating."""
        return ~np.isnan(self.ratings)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of rated items of each list."""
        return np.bincount(self.lists[self.rated], minlength=self.n_lists)

    @cached_property
    def squares(self) -> Values:
        """SE, the squared error of each item."""
        return self.errors**2

    @cached_property
    def powers(self) -> NDArray[np.int32]:
        """The exponent of two that the errors of each list are divided by in ``in_reach``."""
        largest = np.zeros(self.n_lists)
        np.maximum.at(largest, self.lists, np.abs(self.errors))
        return power_of_two(largest)

    def in_reach(self) -> Predicted:
        """Return the same with errors scaled by a power of two if those of a list cannot be squared."""
        return self if not self.powers.any() else replace(self, errors=np.ldexp(self.errors, -self.powers[self.lists]))

    @cached_property
    def worst(self) -> Values:
        """The squared errors of each list in descending order."""
        by_error = np.argsort(-self.squares)
        return self.squares[by_error[stable_argsort(self.lists[by_error])]]

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """The position of each item in its list by prediction, from 0."""
        sizes = np.bincount(self.lists, minlength=self.n_lists)
        return np.arange(len(self.lists)) - np.repeat(np.cumsum(sizes) - sizes, sizes)

    def total(self, values: NDArray[Any]) -> Values:
        """Return the sum over each list; NaN for a list without rated items."""
        sums = np.bincount(self.lists, weights=values, minlength=self.n_lists)
        return np.where(self.counts > 0, sums, np.nan)

    def mean(self, values: NDArray[Any]) -> Values:
        """Return the mean over the rated items of each list; NaN for a list without any."""
        return self.total(values * self.rated) / np.maximum(self.counts, 1)

    def overall(self, values: NDArray[Any]) -> float:
        """Return the mean over the rated items of all lists together; NaN without any."""
        return float(values[self.rated].mean()) if self.rated.any() else float("nan")

    def discounted(self, values: Values) -> Values:
        """Return Σ_k value_k / log2(k + 1) over each list, in the order of the values."""
        return self.total(values / np.log2(self.places + 2.0))

    def sells(self, margin: float) -> dict[str, NDArray[np.bool_]]:
        """Return whether each item is predicted too high, too low, or right within a margin."""
        # 3.1 − 3 is a little more than 0.1, and in single precision a little less.
        limit = margin + _ROUNDING
        return {
            "up_sell": self.errors < -limit,
            "down_sell": self.errors > limit,
            "perfect_sell": np.abs(self.errors) <= limit,
        }

    def curve(self, scale: RatingScale, *, by: str = "rating", bins: int = 10) -> pl.DataFrame:
        """Return the mean rating and prediction of the rated items in groups: ``group, count, predicted, rating``.

        Groups are ``bins`` equal parts of the scale by predicted rating, where an edge belongs to the part below it and
        predictions beyond the scale to the parts at its ends; or, with ``by="rank"``, the ranks of the lists from 1.
        """
        groups = self.places + 1
        if by == "rating":
            edges = np.linspace(scale.low, scale.high, bins + 1)[1:-1]
            groups = np.searchsorted(edges, self.predictions) + 1
        columns = {"group": groups, "predicted": self.predictions, "rating": self.ratings}
        frame = pl.DataFrame({name: values[self.rated] for name, values in columns.items()})
        means = pl.col("predicted", "rating").mean()
        return frame.group_by("group").agg(pl.len().alias("count"), means).sort("group")


def _by_prediction(lists: NDArray[Any], n_lists: int, ratings: Values, predictions: Values) -> Predicted:
    known = ~np.isnan(predictions)
    if not known.all():
        lists, ratings, predictions = lists[known], ratings[known], predictions[known]
    # Most lists are already ordered by their predictions.
    if not ((predictions[1:] <= predictions[:-1]) | (lists[1:] != lists[:-1])).all():
        order = np.lexsort((-predictions, lists))
        lists, ratings, predictions = lists[order], ratings[order], predictions[order]
    errors = np.where(np.isnan(ratings), 0.0, ratings - predictions)
    return Predicted(lists.astype(np.intp), n_lists, ratings, predictions, errors)


def _predictions(judged: Judged, metric_name: str) -> tuple[Run, Values]:
    """Return the run and the predicted ratings of its entries: its predictions, or its scores if it has none."""
    run = judged.run
    if run is not None and judged.places is not None:
        if run.predictions is not None:
            return run, run.predictions
        if run.scores is not None and not run.made_scores:
            return run, run.scores
    name = "the run" if run is None else f"the run {run.name}"
    raise SettingError(
        f"{metric_name} needs predicted ratings, and {name} has neither predictions nor scores; give it a column of "
        "either"
    )


def check_predictions(judged: Sequence[Judged], metrics: Sequence[str]) -> None:
    """Refuse scores that are not ratings, if metrics would use them as predicted ratings.

    Scores of a system that is known only to rank are always refused. Others are accepted as ratings if their median is
    on the scale of the ratings, and 95 % of them are within one range of its ends.
    """
    for lists in judged if metrics else ():
        run = lists.run
        if run is None or run.predictions is not None or run.scores is None or run.made_scores or lists.places is None:
            continue
        check_scores(run.name, run.only_ranks, run.scores[lists.places], scale_of(lists), metrics)


def check_scores(name: str, only_ranks: bool, scores: Values, scale: RatingScale, metrics: Sequence[str]) -> None:
    """Refuse the scores of a system, given those of its rated items, if they are not ratings."""
    names = f"{', '.join(metrics)} need{'s' if len(metrics) == 1 else ''} predicted ratings, and"
    if only_ranks:
        raise SettingError(f"{names} {name} gives scores that only rank; {OFFER}")
    scores = scores[~np.isnan(scores)]
    if len(scores) and not _are_ratings(scores, scale):
        low, middle, high = np.quantile(scores, [0.05, 0.5, 0.95])
        raise SettingError(
            f"{names} the scores of {name} are not on the rating scale of {scale.low:g} to {scale.high:g} "
            f"(median {middle:.4g}, 90 % from {low:.4g} to {high:.4g}); {OFFER}"
        )


def _are_ratings(scores: Values, scale: RatingScale) -> bool:
    # Clicks may all have grade 1; no click is 0.
    low = min(scale.low, 0.0) if scale.range == 0 else scale.low
    margin = scale.high - low
    near = (scores >= low - margin) & (scores <= scale.high + margin)
    return bool(near.mean() >= _MOST and low <= np.median(scores) <= scale.high)


def scale_of(judged: Judged) -> RatingScale:
    """Return the scale of the test ratings, and of the training ratings if they are known."""
    train = judged.context.train
    return RatingScale.of(judged.judgments.distinct, *([] if train is None else [train.grades]))

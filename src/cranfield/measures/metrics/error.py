"""Rank and error: how far the predicted ratings are from the user's, and where in the list (Aftab and Ramampiaro 2022).

All of these look at condensed lists, ordered by the predicted rating (descending; equal ones as the system has them),
so that a cut-off counts items with a test rating. SE_k = (y_k − p_k)², y_k and p_k being the true and the predicted
rating of the k-th. An item whose prediction is missing plays no part; a list without any is undefined (NaN).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._errors import SettingError
from cranfield.measures._scale import power_for, power_of_two
from cranfield.measures.definition import Values, metric
from cranfield.measures.judged import Judged
from cranfield.measures.metrics.graded import logarithmic
from cranfield.rankings.lists import stable_argsort

_of_predictions = partial(
    metric,
    family="error",
    requires="judged items in the list",
    zero_if_undefined=False,
    bounds=False,
    needs=("predictions",),
    condensed=True,
)

# An error beyond the margin by less than this is within it.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class _Predicted:
    """The judged items of all lists by descending prediction."""

    lists: NDArray[np.intp]
    n_lists: int
    errors: Values
    """y − p of each."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.lists, minlength=self.n_lists)

    @cached_property
    def squares(self) -> Values:
        """SE of each."""
        return self.errors**2

    @cached_property
    def powers(self) -> NDArray[np.int32]:
        """The power of two of each list that its errors are divided by in ``in_reach``."""
        largest = np.zeros(self.n_lists)
        np.maximum.at(largest, self.lists, np.abs(self.errors))
        return power_of_two(largest)

    def in_reach(self) -> _Predicted:
        """Return the same with huge or tiny errors of a list divided by a power of two, so that they can be squared."""
        return self if not self.powers.any() else replace(self, errors=np.ldexp(self.errors, -self.powers[self.lists]))

    @cached_property
    def worst(self) -> Values:
        """The squared errors of each list in descending order."""
        by_error = np.argsort(-self.squares)
        return self.squares[by_error[stable_argsort(self.lists[by_error])]]

    @cached_property
    def _discount(self) -> Values:
        places = np.arange(len(self.lists)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return logarithmic(int(places.max(initial=0)) + 1)[places]

    def total(self, values: NDArray[Any]) -> Values:
        """Return the sum over each list; NaN for a list without items."""
        sums = np.bincount(self.lists, weights=values, minlength=self.n_lists)
        return np.where(self.counts > 0, sums, np.nan)

    def mean(self, values: NDArray[Any]) -> Values:
        """Return the mean over each list; NaN for a list without items."""
        return self.total(values) / np.maximum(self.counts, 1)

    def discounted(self, values: Values) -> Values:
        """Return Σ_k value_k / log2(k + 1) over each list, in the order in which the values stand."""
        return self.total(values * self._discount)


def _predicted(judged: Judged, metric_name: str) -> _Predicted:
    run = judged.run
    predictions = None if run is None else run.predictions
    if run is not None and predictions is None and not run.made_scores:
        predictions = run.scores
    if predictions is None or judged.places is None:
        name = "the run" if run is None else f"the run {run.name}"
        raise SettingError(
            f"{metric_name} needs predicted ratings, and {name} has neither predictions nor scores; "
            "give it a column of either"
        )
    given, places = predictions, judged.places
    return judged.once("predicted", lambda: _by_prediction(judged, given[places]))


def _by_prediction(judged: Judged, predicted: Values) -> _Predicted:
    known = ~np.isnan(predicted)
    lists, predicted, ratings = judged.lists[known].astype(np.intp), predicted[known], judged.grades[known]
    errors = ratings - predicted
    # Lists are mostly ordered by their predictions already.
    if not ((predicted[1:] <= predicted[:-1]) | (lists[1:] != lists[:-1])).all():
        errors = errors[np.lexsort((-predicted, lists))]
    return _Predicted(lists, judged.n_lists, errors)


def _error(name: str, *aliases: str) -> Callable[[Callable[..., Values]], Callable[..., Values]]:
    return _of_predictions(name, lower_is_better=True, aliases=tuple(aliases))


@_error("CSE")
def cumulative_squared_error(judged: Judged) -> Values:
    """Cumulative squared error: Σ_{k≤n} SE_k. Aftab and Ramampiaro (2022), equation (10)."""
    predicted = _predicted(judged, "CSE")
    return predicted.total(predicted.squares)


@_error("DCSE")
def discounted_error(judged: Judged) -> Values:
    """Discounted cumulative squared error: Σ_{k≤n} SE_k / log2(k + 1). Equation (11)."""
    predicted = _predicted(judged, "DCSE")
    return predicted.discounted(predicted.squares)


@_error("WDCSE")
def worst_discounted_error(judged: Judged) -> Values:
    """The worst DCSE: the same with the errors in descending order. Equations (12) and (13)."""
    predicted = _predicted(judged, "WDCSE")
    return predicted.discounted(predicted.worst)


@_error("SDCSE")
def standard_discounted_error(judged: Judged) -> Values:
    """Standard DCSE: DCSE / WDCSE, in 0 … 1; 0 without any error. Equation (14).

    It tells whether the larger errors stand higher, not how large they are: it does not change if all errors are
    scaled, and is 1 wherever they stand in descending order, as in any list of one wrong item.
    """
    predicted = _predicted(judged, "SDCSE").in_reach()
    worst = predicted.discounted(predicted.worst)
    ratio = predicted.discounted(predicted.squares) / np.where(worst > 0, worst, 1.0)
    # Beside rounding the ratio cannot exceed 1.
    return np.where(np.isnan(worst), np.nan, np.minimum(ratio, 1.0))


@_of_predictions("SDCSEacc", aliases=("SDCSEaccuracy",))
def standard_discounted_accuracy(judged: Judged) -> Values:
    """The accuracy form of SDCSE, 1 − SDCSE: higher is better. The form of the paper's tables and examples."""
    return 1.0 - standard_discounted_error(judged)


Margin = Annotated[float, Limits(low=0)]


def _margin(value: float) -> float:
    # 3.1 − 3 is a little more than 0.1, and in single precision a little less.
    return float(value) + _ROUNDING


@_error("UpSell")
def up_sell(judged: Judged, *, margin: Margin = 0.5) -> Values:
    """Up-sell: the share of the items predicted too high, p_k > y_k + λ, λ being ``margin``.

    Up-sell, down-sell and perfect-sell of a list sum to 1. Aftab and Ramampiaro (2022), equations (16) and (19).
    """
    predicted, margin = _predicted(judged, "UpSell"), _margin(margin)
    return predicted.mean(predicted.errors < -margin)


@_error("DownSell")
def down_sell(judged: Judged, *, margin: Margin = 0.5) -> Values:
    """Down-sell: the share of the items predicted too low, p_k < y_k − λ, λ being ``margin``.

    Equation (17) prints y_k + λ, by which every item that is not an up-sell would be a down-sell; see the
    documentation.
    """
    predicted, margin = _predicted(judged, "DownSell"), _margin(margin)
    return predicted.mean(predicted.errors > margin)


@_of_predictions("PerfectSell")
def perfect_sell(judged: Judged, *, margin: Margin = 0.5) -> Values:
    """Perfect-sell: the share of the items predicted within the margin, |p_k − y_k| ≤ λ. Equation (18)."""
    predicted, margin = _predicted(judged, "PerfectSell"), _margin(margin)
    return predicted.mean(np.abs(predicted.errors) <= margin)


@_error("RMSE")
def root_mean_squared_error(judged: Judged) -> Values:
    """Root mean squared error of a list's predictions, √((1/n) Σ SE_k); their mean weighs users equally.

    For one figure over all ratings see ``PooledRMSE``.
    """
    predicted = _predicted(judged, "RMSE")
    squares = predicted.in_reach().squares
    return np.ldexp(np.sqrt(predicted.mean(squares)), predicted.powers)


@_error("MAE")
def mean_absolute_error(judged: Judged) -> Values:
    """Mean absolute error of a list's predictions, (1/n) Σ |y_k − p_k|; their mean weighs users equally."""
    predicted = _predicted(judged, "MAE")
    return np.ldexp(predicted.mean(np.abs(predicted.in_reach().errors)), predicted.powers)


@dataclass(frozen=True)
class PooledErrors:
    """The errors of all predictions together: how many, their sum and that of their squares, over a power of two."""

    count: int
    size: float
    squares: float
    power: int

    @classmethod
    def of(cls, judged: Judged) -> PooledErrors:
        """Add up the errors of judged lists."""
        errors = _predicted(judged, "a pooled error").errors
        power = power_for(errors)
        scaled = np.ldexp(errors, -power)
        return cls(len(errors), float(np.abs(scaled).sum()), float((scaled**2).sum()), power)

    def __add__(self, other: PooledErrors) -> PooledErrors:
        power = max((part.power for part in (self, other) if part.count), default=0)
        sums = [
            (np.ldexp(part.size, part.power - power), np.ldexp(part.squares, 2 * (part.power - power)))
            for part in (self, other)
        ]
        sizes, squares = zip(*sums)
        return PooledErrors(self.count + other.count, float(sum(sizes)), float(sum(squares)), power)


def _pooled(name: str) -> Callable[[Callable[..., float]], Callable[..., float]]:
    return _of_predictions(name, lower_is_better=True, whole_system=True, gather=PooledErrors.of)


@_pooled("PooledRMSE")
def pooled_rmse(errors: PooledErrors) -> float:
    """Root mean squared error over the predictions of all lists together."""
    if not errors.count:
        return float("nan")
    return float(np.ldexp(np.sqrt(errors.squares / errors.count), errors.power))


@_pooled("PooledMAE")
def pooled_mae(errors: PooledErrors) -> float:
    """Mean absolute error over the predictions of all lists together."""
    return float(np.ldexp(errors.size / errors.count, errors.power)) if errors.count else float("nan")

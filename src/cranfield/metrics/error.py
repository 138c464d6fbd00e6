"""Rank and error: how far the predicted ratings are from the user's, and where in the list (Aftab and Ramampiaro 2022).

All of these use condensed lists, ordered by the predicted rating (descending; equal ones in the system's order), so
that a cut-off counts items with a test rating. SE_k = (y_k − p_k)², where y_k and p_k are the true and the predicted
rating of the k-th item. An item without a prediction is ignored; a list without any prediction is undefined (NaN).

With ``condensed=false`` a cut-off counts all items of a list. An item without a test rating keeps its rank and adds no
error; with ``unrated=0`` it counts as rated 0, for example for data of clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._errors import SettingError
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values, power_for
from cranfield.metrics.definition import SHARE, Pooled, metric
from cranfield.metrics.predicted import Predicted, scale_of

_of_predictions = partial(
    metric,
    family="error",
    requires="judged items in the list",
    zero_if_undefined=False,
    bounds=False,
    needs=("predictions",),
    condensed=True,
    between=(0.0, np.inf),
)


def _error(name: str, **properties: Any) -> Callable[[Callable[..., Values]], Callable[..., Values]]:
    return _of_predictions(name, lower_is_better=True, **properties)


@_error("CSE")
def cumulative_squared_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """Cumulative squared error: Σ_{k≤n} SE_k. Aftab and Ramampiaro (2022), equation (10)."""
    predicted = Predicted.of(judged, "CSE", unrated)
    return predicted.total(predicted.squares)


@_error("DCSE")
def discounted_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """Discounted cumulative squared error: Σ_{k≤n} SE_k / log2(k + 1). Equation (11)."""
    predicted = Predicted.of(judged, "DCSE", unrated)
    return predicted.discounted(predicted.squares)


@_error("WDCSE")
def worst_discounted_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """The worst DCSE: the same with the errors in descending order. Equations (12) and (13)."""
    predicted = Predicted.of(judged, "WDCSE", unrated)
    return predicted.discounted(predicted.worst)


@_error("SDCSE", aliases=("MSDCSE",), between=SHARE)
def standard_discounted_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """Standard DCSE: DCSE / WDCSE, in 0 … 1; 0 without any error. Equation (14); its mean over users is MSDCSE, (15).

    It shows whether the larger errors are ranked higher, not how large they are: it does not change if all errors are
    scaled, and is 1 if they are in descending order, as in any list of one wrong item.
    """
    predicted = Predicted.of(judged, "SDCSE", unrated).in_reach()
    worst = predicted.discounted(predicted.worst)
    ratio = predicted.discounted(predicted.squares) / np.where(worst > 0, worst, 1.0)
    # The ratio can only exceed 1 by rounding.
    return np.where(np.isnan(worst), np.nan, np.minimum(ratio, 1.0))


@_of_predictions("SDCSEacc", aliases=("SDCSEaccuracy",), between=SHARE)
def standard_discounted_accuracy(judged: Judged, *, unrated: float | None = None) -> Values:
    """The accuracy form of SDCSE, 1 − SDCSE: higher is better. The form of the paper's tables and examples."""
    return 1.0 - standard_discounted_error(judged, unrated=unrated)


SellMargin = Annotated[float | Literal["half", "spread"], Limits(choices=("half", "spread"), low=0)]
"""λ: a number, half a step of the rating scale, or the spread of the residuals on a validation part."""


def margin_of(judged: Judged, margin: float | str) -> float:
    """Return λ as a number: ``half`` a step of the rating scale, or the ``spread`` that a calibration measured."""
    if margin == "half":
        return scale_of(judged).step / 2
    if margin != "spread":
        return float(margin)
    calibration = None if judged.run is None else judged.run.calibration
    if calibration is None:
        name = "the run" if judged.run is None else judged.run.name
        raise SettingError(
            f"margin=spread is the spread of residuals on a validation part, and {name} has none; train it with "
            "calibration='isotonic' or 'linear', or give a number"
        )
    return calibration.spread


def _sold(
    judged: Judged, metric_name: str, kind: str, margin: float | str, unrated: float | None
) -> tuple[Predicted, NDArray[np.bool_]]:
    """Return the items of all lists, and which of them are predicted too high, too low or right."""
    predicted = Predicted.of(judged, metric_name, unrated)
    return predicted, predicted.sells(margin_of(judged, margin))[kind]


@_error("UpSell", between=SHARE)
def up_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Values:
    """Up-sell: the share of the items predicted too high, p_k > y_k + λ, where λ is ``margin``.

    Up-sell, down-sell and perfect-sell of a list sum to 1. Aftab and Ramampiaro (2022), equations (16) and (19).
    """
    return Predicted.mean(*_sold(judged, "UpSell", "up_sell", margin, unrated))


@_error("DownSell", between=SHARE)
def down_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Values:
    """Down-sell: the share of the items predicted too low, p_k < y_k − λ, where λ is ``margin``.

    Equation (17) prints y_k + λ, by which every item that is not an up-sell would be a down-sell; see the
    documentation.
    """
    return Predicted.mean(*_sold(judged, "DownSell", "down_sell", margin, unrated))


@_of_predictions("PerfectSell", between=SHARE)
def perfect_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Values:
    """Perfect-sell: the share of the items predicted within the margin, |p_k − y_k| ≤ λ. Equation (18)."""
    return Predicted.mean(*_sold(judged, "PerfectSell", "perfect_sell", margin, unrated))


@_error("RMSE")
def root_mean_squared_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """Root mean squared error of a list's predictions, √((1/n) Σ SE_k); their mean weighs users equally.

    For one value over all ratings, see ``PooledRMSE``.
    """
    predicted = Predicted.of(judged, "RMSE", unrated)
    squares = predicted.in_reach().squares
    return np.ldexp(np.sqrt(predicted.mean(squares)), predicted.powers)


@_error("MAE")
def mean_absolute_error(judged: Judged, *, unrated: float | None = None) -> Values:
    """Mean absolute error of a list's predictions, (1/n) Σ |y_k − p_k|; their mean weighs users equally."""
    predicted = Predicted.of(judged, "MAE", unrated)
    return np.ldexp(predicted.mean(np.abs(predicted.in_reach().errors)), predicted.powers)


@dataclass(frozen=True)
class PooledMean:
    """The mean over the rated items of all lists of values x, as Σ (x / 2^power)^degree and their count."""

    count: int
    total: float
    power: int = 0
    degree: int = 1

    @classmethod
    def of(cls, predicted: Predicted, values: NDArray[Any], degree: int = 1) -> PooledMean:
        """Add up one value per item."""
        rated = values[predicted.rated]
        power = power_for(rated) if rated.dtype.kind == "f" else 0
        scaled = np.ldexp(rated, -power) if power else rated
        return cls(len(rated), float((scaled**degree if degree > 1 else scaled).sum()), power, degree)

    def __add__(self, other: PooledMean) -> PooledMean:
        power = max((part.power for part in (self, other) if part.count), default=0)
        total = sum(float(np.ldexp(part.total, part.degree * (part.power - power))) for part in (self, other))
        return PooledMean(self.count + other.count, total, power, self.degree)

    def mean(self) -> float:
        """Return the root of the mean of their powers; NaN of nothing."""
        if not self.count:
            return float("nan")
        mean = self.total / self.count
        return float(np.ldexp(np.sqrt(mean) if self.degree == 2 else mean, self.power))


def _pooled(name: str, *, lower_is_better: bool = True) -> Callable[[Callable[..., Pooled]], Callable[..., Pooled]]:
    return _of_predictions(name, lower_is_better=lower_is_better, whole_system=True)


def _mean_of(predicted: Predicted, values: NDArray[Any], degree: int = 1) -> Pooled:
    return Pooled(PooledMean.of(predicted, values, degree), PooledMean.mean)


@_pooled("PooledRMSE")
def pooled_rmse(judged: Judged, *, unrated: float | None = None) -> Pooled:
    """Root mean squared error over the predictions of all lists together."""
    predicted = Predicted.of(judged, "PooledRMSE", unrated)
    return _mean_of(predicted, predicted.errors, degree=2)


@_pooled("PooledMAE")
def pooled_mae(judged: Judged, *, unrated: float | None = None) -> Pooled:
    """Mean absolute error over the predictions of all lists together."""
    predicted = Predicted.of(judged, "PooledMAE", unrated)
    return _mean_of(predicted, np.abs(predicted.errors))


@_pooled("PooledUpSell")
def pooled_up_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Pooled:
    """Up-sell over the items of all lists together, so that users weigh by their items."""
    return _mean_of(*_sold(judged, "PooledUpSell", "up_sell", margin, unrated))


@_pooled("PooledDownSell")
def pooled_down_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Pooled:
    """Down-sell over the items of all lists together, so that users weigh by their items."""
    return _mean_of(*_sold(judged, "PooledDownSell", "down_sell", margin, unrated))


@_pooled("PooledPerfectSell", lower_is_better=False)
def pooled_perfect_sell(judged: Judged, *, margin: SellMargin = "half", unrated: float | None = None) -> Pooled:
    """Perfect-sell over the items of all lists together, so that users weigh by their items."""
    return _mean_of(*_sold(judged, "PooledPerfectSell", "perfect_sell", margin, unrated))


@dataclass(frozen=True, eq=False)
class GroupGaps:
    """The number of items of each group, and Σ (y − p) over them; groups are indices of the arrays."""

    count: NDArray[np.float64]
    gap: NDArray[np.float64]

    @classmethod
    def of(cls, curve: pl.DataFrame) -> GroupGaps:
        """Return the gaps of the groups of a calibration curve."""
        count, group = curve["count"].to_numpy(), curve["group"].to_numpy()
        gap = count * (curve["rating"].to_numpy() - curve["predicted"].to_numpy())
        return cls(np.bincount(group, count).astype(np.float64), np.bincount(group, gap).astype(np.float64))

    def __add__(self, other: GroupGaps) -> GroupGaps:
        groups = max(len(self.count), len(other.count))
        count, gap = np.zeros(groups), np.zeros(groups)
        for part in (self, other):
            count[: len(part.count)] += part.count
            gap[: len(part.gap)] += part.gap
        return GroupGaps(count, gap)

    def mean(self) -> float:
        """Return the mean over items of the absolute mean gap of their group; NaN of nothing."""
        return float(np.abs(self.gap).sum() / self.count.sum()) if self.count.any() else float("nan")


@_pooled("ECE")
def expected_calibration_error(
    judged: Judged,
    *,
    by: Literal["rating", "rank"] = "rating",
    bins: Annotated[int, Limits(low=1)] = 10,
    unrated: float | None = None,
) -> Pooled:
    """Expected calibration error of predicted ratings: Σ_b (n_b / n) |mean of y − mean of p in group b|.

    Over the items of all lists together. The groups are ``bins`` equal parts of the rating scale by predicted rating
    (``by=rating``; Naeini, Cooper and Hauskrecht 2015), or the ranks of the list (``by=rank``): by how much the k-th
    item of the lists is oversold or undersold on average. It is 0 if predictions are right on average in every group,
    even if single predictions are wrong.
    """
    curve = Predicted.of(judged, "ECE", unrated).curve(scale_of(judged), by=by, bins=bins)
    return Pooled(GroupGaps.of(curve), GroupGaps.mean)

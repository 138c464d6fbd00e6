"""`Calibration`: an order-preserving map from the scores of a system to the rating scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Registry
from cranfield.data import RatingScale

Values = NDArray[np.float64]
Knots = tuple[Values, Values]

CALIBRATIONS: Registry[Any] = Registry("calibration")
"""The calibration methods by name: functions of scores, ratings and the scale that return the knots of the map."""

SHARE = 0.1
"""The share of the training ratings that is held out for calibration if a split has no validation part."""


@dataclass(frozen=True)
class Calibration:
    """A map from scores to predicted ratings, and the ratings it was fitted on.

    The map is linear between its knots and constant beyond the first and the last. It never decreases, so predictions
    keep the order of the scores, except that they may tie.

    Parameters
    ----------
    method
        ``linear`` or ``isotonic``; ``own`` for a system that predicts ratings itself, whose scores are not changed.
    scores, ratings
        The knots, by ascending score.
    pairs
        The number of held-out ratings it was fitted on.
    held_out
        Which ratings these were, in words.
    spread
        The standard deviation of the residuals, rating minus prediction, of these pairs.

    Examples
    --------
    >>> calibration = fitted_calibration("linear", np.array([0.0, 1, 2]), np.array([1.0, 2, 3]), RatingScale(1, 5))
    >>> calibration(np.array([-1.0, 0.5, 9.0])).tolist(), calibration.spread
    ([1.0, 1.5, 5.0], 0.0)
    """

    method: str
    scores: tuple[float, ...]
    ratings: tuple[float, ...]
    pairs: int
    held_out: str
    spread: float

    def __call__(self, scores: NDArray[Any]) -> Values:
        """Return the predicted ratings of scores; NaN stays."""
        if self.method == "own":
            return np.asarray(scores, dtype=np.float64)
        knots = np.array(self.ratings)
        above = knots[np.minimum(np.searchsorted(self.scores, scores), len(knots) - 1)]
        # Rounding could push a prediction above the next knot and change the order.
        predictions = np.minimum(np.interp(scores, self.scores, knots), above)
        return np.where(np.isnan(scores), np.nan, predictions)

    @property
    def step(self) -> Step:
        """The step for the record of a run; the map itself is stored separately."""
        effect = {"ratings": self.pairs, "knots": len(self.scores), "spread": self.spread}
        return Step("calibrate", {"method": self.method, "fitted on": self.held_out}, effect)

    def as_dict(self) -> dict[str, Any]:
        """Return the calibration as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `as_dict` wrote."""
        knots = {name: tuple(map(float, record[name])) for name in ("scores", "ratings")}
        return cls(**{**record, **knots})


def fitted_calibration(
    method: str, scores: NDArray[Any], ratings: NDArray[Any], scale: RatingScale, held_out: str = "the given pairs"
) -> Calibration:
    """Fit a calibration on pairs of a score and a rating that the system did not learn from.

    Parameters
    ----------
    method
        ``linear`` or ``isotonic``; ``own`` only measures the spread of the residuals.
    scores, ratings
        The pairs; those without a finite score are left out.
    scale
        The rating scale, which bounds the predictions.
    held_out
        Which ratings these are, in words.
    """
    known = np.isfinite(scores)
    scores, ratings = (np.asarray(values, dtype=np.float64)[known] for values in (scores, ratings))
    if len(scores) < 2 or (method != "own" and np.ptp(ratings) == 0):
        what = (
            f"{len(scores)} of the held-out ratings have a score"
            if len(scores) < 2
            else f"every held-out rating is {ratings[0]:g}"
        )
        raise SettingError(
            f"scores cannot be calibrated onto the rating scale: {what}; give data with more ratings, or leave "
            "calibration and metrics of predicted ratings out"
        )
    x, y = (np.zeros(0), np.zeros(0)) if method == "own" else CALIBRATIONS[method](scores, ratings, scale)
    calibration = Calibration(method, tuple(x.tolist()), tuple(y.tolist()), len(scores), held_out, 0.0)
    spread = float(np.std(ratings - calibration(scores), ddof=1))
    return Calibration(method, calibration.scores, calibration.ratings, len(scores), held_out, spread)


@CALIBRATIONS.register
def linear(scores: Values, ratings: Values, scale: RatingScale) -> Knots:
    """A least-squares line, clipped to the rating scale; the mean rating if the line would fall."""
    unit = np.abs(scores).max() or 1.0  # large scores could overflow when summed or squared
    middle, mean = (scores / unit).mean(), ratings.mean()
    away = scores / unit - middle
    slope = float(away @ (ratings - mean) / (away @ away)) if away.any() else 0.0
    ends = np.array([scale.low, scale.high])
    with np.errstate(over="ignore"):
        places = (middle + (ends - mean) / slope) * unit if slope > 0 else np.full(2, np.inf)
    return (places, ends) if np.isfinite(places).all() else (np.array([middle * unit]), np.array([mean]))


@CALIBRATIONS.register
def isotonic(scores: Values, ratings: Values, scale: RatingScale) -> Knots:  # noqa: ARG001, means stay on the scale
    """The least-squares non-decreasing map (Ayer et al. 1955); equal scores are one point with their mean rating."""
    from scipy.optimize import isotonic_regression

    x, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=ratings) / count
    fitted = isotonic_regression(means, weights=count).x
    # Of a constant stretch only the ends are needed.
    inner = np.zeros(len(x), dtype=np.bool_)
    inner[1:-1] = (fitted[1:-1] == fitted[:-2]) & (fitted[1:-1] == fitted[2:])
    return x[~inner], fitted[~inner]

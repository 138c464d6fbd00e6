"""Calibration: order-preserving maps from the scores of a system to the rating scale, fitted on held-out ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Registry
from cranfield._streams import stream
from cranfield.data import Ratings, RatingScale
from cranfield.recommenders import Recommender, pair_scores, predicts_ratings
from cranfield.splits import Split

if TYPE_CHECKING:
    from cranfield.rankings.run import Run

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
    """

    method: str  # ``own`` for a system that predicts ratings itself, whose scores are not changed
    scores: tuple[float, ...]  # the knots, by ascending score
    ratings: tuple[float, ...]
    pairs: int  # the number of held-out ratings it was fitted on
    held_out: str  # which ratings these were, in words
    spread: float  # the standard deviation of their residuals, rating minus prediction

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
    """Fit a calibration on pairs of a score, if it is finite, and a rating; the scale bounds the predictions."""
    known = np.isfinite(scores)
    scores, ratings = (np.asarray(values, dtype=np.float64)[known] for values in (scores, ratings))
    what = f"{len(scores)} of the held-out ratings have a score" if len(scores) < 2 else ""
    if not what and method != "own" and np.ptp(ratings) == 0:
        what = f"every held-out rating is {ratings[0]:g}"
    if what:
        raise SettingError(
            f"scores cannot be calibrated onto the rating scale: {what}; give data with more ratings, or leave "
            "calibration and metrics of predicted ratings out"
        )
    x, y = (np.zeros(0), np.zeros(0)) if method == "own" else CALIBRATIONS[method](scores, ratings, scale)
    calibration = Calibration(method, tuple(x.tolist()), tuple(y.tolist()), len(scores), held_out, 0.0)
    return replace(calibration, spread=float(np.std(ratings - calibration(scores), ddof=1)))


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


class HeldOut(NamedTuple):
    """Ratings divided for a calibration, which is fitted on ratings that no system learned from."""

    train: Ratings
    validation: Ratings
    seen: Ratings  # both, which lists do not recommend again
    words: str = "the validation part of the split"

    @classmethod
    def of(cls, data: Split | Ratings, seed: int) -> HeldOut:
        """Hold out the validation part of a split; without one, a tenth of the training ratings, drawn at random."""
        train, validation = (data, None) if isinstance(data, Ratings) else (data.train, data.validation)
        if isinstance(data, Split) and validation is not None and len(validation):
            return cls(train, validation, data.joined.train)
        drawn = stream(seed, "calibration").random(len(train)) < SHARE
        if drawn.all() or not drawn.any():
            raise SettingError(
                f"{len(train):,} training ratings are too few to hold some out for a calibration; give more, or leave "
                "calibration out"
            )
        step = Step("hold out for calibration", {"share": SHARE, "seed": seed}, {"ratings": int(drawn.sum())})
        words = f"{SHARE:.0%} of the training ratings, which no system learned from"
        return cls(train.keep(~drawn, step), train.keep(drawn, step), train, words)


def calibrate_system(name: str, system: Recommender, held_out: HeldOut, method: str) -> Calibration:
    """Fit the calibration of a system that learned from ``held_out.train``, whose scores are too high."""
    validation = held_out.validation
    scores = pair_scores(name, system, validation.users, validation.items, validation.n_items)
    # A system that predicts ratings keeps its predictions; only the spread of its residuals is measured.
    kind, scale = "own" if predicts_ratings(system) else method, RatingScale.of(held_out.seen.grades)
    try:
        return fitted_calibration(kind, scores, validation.values, scale, held_out.words)
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from None


def calibrate(run: Run, validation_run: Run, validation: Ratings, method: str = "isotonic") -> Run:
    """Return a run with predicted ratings: its scores, calibrated on the lists and ratings of a validation part.

    Parameters
    ----------
    run
        The lists to calibrate, with scores.
    validation_run
        Lists with scores that contain items of the validation part, made by the system of ``run`` if it did not learn
        from these ratings, otherwise by the same system trained without them.
    validation
        The held-out ratings; not the test ratings.
    method
        ``isotonic`` or ``linear``.

    Examples
    --------
    >>> import cranfield as cf
    >>> lists = cf.read_run({"ann": {"x": 12.0, "y": 3.0}}, name="mine")
    >>> held_out = cf.read_run({"bob": {"x": 10.0, "y": 2.0, "z": 6.0}}, name="mine")
    >>> calibrate(lists, held_out, cf.Ratings.of(["bob"] * 3, ["x", "y", "z"], [5, 1, 3])).predictions.tolist()
    [5.0, 1.5]
    """
    method = check.one_of("method", method, tuple(CALIBRATIONS))
    for lists in (run, validation_run):
        if lists.scores is None or lists.made_scores:
            raise SettingError(f"{lists.name} has no scores to calibrate; give lists with a column of scores")
    scores, ratings = _met(validation_run, validation)
    scale, held_out = RatingScale.of(validation.grades), "the validation ratings that were given"
    calibration = fitted_calibration(method, scores, ratings, scale, held_out)
    assert run.scores is not None
    history = (*run.history, calibration.step)
    return replace(run, predictions=calibration(run.scores), calibration=calibration, history=history)


def _met(run: Run, ratings: Ratings) -> tuple[Any, Any]:
    """Return the scores and ratings of the rated items in the lists."""
    users = ratings.user_ids.recoded(np.repeat(run.users, np.diff(run.indptr)), run.user_ids)
    places = ratings.places(users, ratings.item_ids.recoded(run.items, run.item_ids))
    assert run.scores is not None
    return run.scores[places >= 0], ratings.values[places[places >= 0]]

"""Averages over lists or users (decision C3), each with an interval for the value it estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._errors import SettingError
from cranfield._numbers import share_of
from cranfield._registry import Registry, Spelling, parse
from cranfield._streams import MOST_BLOCKS, Keys, stream, user_blocks
from cranfield.metrics import power_for, power_of_two

Values = NDArray[np.float64]
Interval = tuple[float, float]

_RESAMPLES = 1000


@dataclass(frozen=True)
class Average:
    """A kind of average.

    Parameters
    ----------
    spelling
        Its name with parameters, as in ``geometric(form=adjusted, epsilon=0.01)``.
    value
        The average of values under weights, taken along the last axis.
    interval
        The interval of that average at a level of confidence.
    method
        The method of the interval, in words.
    weights
        Which weights it uses: None, ``"judged"``, ``"relevant"``, ``"train"``, or ``"FILE:COLUMN"``.
    of_all
        For an average that depends on all systems: a function that transforms their scores, under an `Averaging`,
        before each system is averaged.
    """

    spelling: Spelling
    value: Callable[[Values, Values], Any]
    interval: Callable[[Values, Values, float], Interval]
    method: str
    weights: str | None = None
    of_all: Callable[[Any, Any], Any] | None = None

    @classmethod
    def of(cls, spelling: str | Average) -> Average:
        """Parse the spelling of an average.

        Examples
        --------
        >>> Average.of("geometric")(np.array([1.0, 0.25]))
        0.5
        """
        if isinstance(spelling, Average):
            return spelling
        average: Average = AVERAGES.call(spelling, parse(spelling))
        return average

    def __str__(self) -> str:
        return str(self.spelling)

    def __call__(self, values: Values, weights: Values | None = None) -> float:
        """Return the average; NaN of nothing."""
        if len(values) == 0:
            return float("nan")
        return float(self.value(values, np.ones(len(values)) if weights is None else weights))

    def of_rows(self, rows: Values, weights: Values | None = None) -> Values:
        """Return the average of each row, much faster than row by row.

        Examples
        --------
        >>> Average.of("median").of_rows(np.array([[1.0, 2.0, 6.0], [0.0, 0.0, 1.0]])).tolist()
        [2.0, 0.0]
        """
        if rows.shape[1] == 0:
            return np.full(len(rows), np.nan)
        averages: Values = self.value(rows, np.ones(rows.shape[1]) if weights is None else weights)
        return averages

    def bootstrap(
        self, values: Values, weights: Values | None, level: float, seed: int, keys: Callable[[], Keys]
    ) -> Interval:
        """Return the percentile interval over 1,000 resamples of the users, the same ones for every system.

        More than 10,000 users are put into 10,000 blocks by a hash of ``keys``, and blocks are drawn (`user_blocks`).
        """
        if len(values) < 2:
            return float("nan"), float("nan")
        weights = np.ones(len(values)) if weights is None else weights
        rng, n = stream(seed, "bootstrap", len(values)), min(len(values), MOST_BLOCKS)
        block = None if n == len(values) else user_blocks(keys(), n, seed, "average")
        draws = np.empty(_RESAMPLES)
        for b in range(_RESAMPLES):
            chosen = (rng.random(n) * n).astype(np.intp)
            if block is None:
                draws[b] = self.value(values[chosen], weights[chosen])
            else:
                times = np.bincount(chosen, minlength=n)[block]
                draws[b] = self.value(np.repeat(values, times), np.repeat(weights, times))
        tail = (1.0 - level) / 2.0
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return float(lower), float(upper)


AVERAGES: Registry[Callable[..., Average]] = Registry("average")
"""The averages by name: functions from a spelling, with its parameters, to an `Average`."""


def _value_in_reach(value: Callable[[Values, Values], Any]) -> Callable[[Values, Values], Any]:
    """Return the same average, computed on values scaled by a power of two if they are huge or tiny."""

    def scaled(x: Values, w: Values) -> Any:
        power = power_of_two(np.fmax.reduce(np.abs(x), axis=-1, initial=0.0))
        return np.ldexp(value(np.ldexp(x, -power[..., None]), w), power) if power.any() else value(x, w)

    return scaled


def _interval_in_reach(interval: Callable[[Values, Values, float], Interval]) -> Callable[..., Interval]:
    """Return the same interval, computed on values scaled by a power of two if they are huge or tiny."""

    def scaled(x: Values, w: Values, level: float) -> Interval:
        power = power_for(x)
        if not power:
            return interval(x, w, level)
        with np.errstate(over="ignore"):  # an end may overflow, and is then infinite
            lower, upper = np.ldexp(interval(np.ldexp(x, -power), w, level), power)
        return float(lower), float(upper)

    return scaled


def _student(values: Values, level: float, degrees: float | None = None, error: float | None = None) -> Interval:
    """Return mean ± t · standard error."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return float("nan"), float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if error is None else error
    half = float(stdtrit(len(values) - 1 if degrees is None else degrees, 0.5 + level / 2.0)) * error
    middle = float(values.mean())
    return middle - half, middle + half


def mean_of(spelling: Spelling, of_all: Callable[[Any, Any], Any] | None = None) -> Average:
    """Return the arithmetic mean, (1/n) Σ x, of the scores of all systems after ``of_all``."""
    return Average(
        spelling,
        value=_value_in_reach(lambda x, _: x.mean(axis=-1)),
        interval=_interval_in_reach(lambda x, _, level: _student(x, level)),
        method="Student's t",
        of_all=of_all,
    )


@AVERAGES.register("mean")
def _mean(spelling: Spelling) -> Average:
    """Arithmetic mean: (1/n) Σ x."""
    return mean_of(spelling)


WEIGHTS = ("judged", "relevant", "train")
"""What lists can be weighted by, in addition to the columns of files."""


def check_weights(by: str) -> None:
    """Refuse weights that are neither a known kind nor a column of a file."""
    file, colon, column = str(by).rpartition(":")
    if by not in WEIGHTS and not (file and colon and column):
        raise SettingError(
            f"weighted(by={by}) cannot be read; write by=judged, relevant or train, or a column of a file with one row "
            "per user, as in by=users.csv:spend"
        )


@AVERAGES.register("weighted")
def _weighted(spelling: Spelling, by: str = "judged") -> Average:
    """Weighted mean: Σ w x / Σ w.

    ``by`` chooses w: the number of test ratings of a list (``judged``), the relevant ones (``relevant``), the user's
    training ratings (``train``), or a column of a file with one row per user (``users.csv:spend``).
    """
    check_weights(by)

    def value(x: Values, w: Values) -> Any:
        total = float(w.sum())
        return (w * x).sum(axis=-1) / (total if total > 0 else np.nan)

    def interval(x: Values, w: Values, level: float) -> Interval:
        if len(x) < 2 or not w.sum() > 0:
            return float("nan"), float("nan")
        middle, mean_weight = float(value(x, w)), float(w.mean())
        # The linearised ratio estimator: residuals w (x − mean) over the mean weight.
        residuals = w * (x - middle) / mean_weight
        return _student(residuals - residuals.mean() + middle, level)

    return Average(
        spelling,
        _value_in_reach(value),
        _interval_in_reach(interval),
        "Student's t, linearised ratio",
        weights=by,
    )


@AVERAGES.register("median")
def _median(spelling: Spelling) -> Average:
    """Median, with the exact interval of its order statistics."""

    def interval(x: Values, _: Values, level: float) -> Interval:
        from scipy.special import bdtrik

        if len(x) < 2:
            return float("nan"), float("nan")
        place = int(np.floor(bdtrik((1.0 - level) / 2.0, len(x), 0.5)))
        ordered = np.sort(x)
        return float(ordered[max(place, 0)]), float(ordered[min(len(x) - 1 - place, len(x) - 1)])

    return Average(spelling, _value_in_reach(lambda x, _: np.median(x, axis=-1)), interval, "exact order statistics")


@AVERAGES.register("geometric")
def _geometric(
    spelling: Spelling,
    form: Literal["trec_eval", "adjusted"] = "trec_eval",
    epsilon: Annotated[float, Limits(above=0)] = 1e-5,
) -> Average:
    """Geometric mean, of values that may be 0.

    ``trec_eval``: exp(mean log max(x, ε)), ε = 1e-5. ``adjusted``: exp(mean log(x + ε)) − ε (Robertson 2006; Cañamares
    et al. 2020 with ε = 0.01).
    """
    shift = epsilon if form == "adjusted" else 0.0

    def logs(x: Values) -> Values:
        return np.log(x + epsilon) if form == "adjusted" else np.log(np.maximum(x, epsilon))

    def back(log: Any) -> Any:
        return np.exp(log) - shift

    def interval(x: Values, _: Values, level: float) -> Interval:
        lower, upper = _student(logs(x), level)
        return float(back(lower)), float(back(upper))

    method = "Student's t of the logs"
    return Average(spelling, lambda x, _: back(logs(x).mean(axis=-1)), interval, method)


@AVERAGES.register("trimmed")
def _trimmed(spelling: Spelling, share: Annotated[float, Limits(low=0, below=0.5)] = 0.1) -> Average:
    """Trimmed mean: the mean without the lowest and highest share of the values."""

    def kept(x: Values) -> Values:
        n = x.shape[-1]
        cut = int(share_of(n, share))
        return np.sort(x, axis=-1)[..., cut : n - cut]

    def interval(x: Values, _: Values, level: float) -> Interval:
        if len(x) < 3:
            return float("nan"), float("nan")
        middle = kept(x)
        winsorised = np.clip(x, middle[0], middle[-1])
        error = float(winsorised.std(ddof=1) / ((1.0 - 2.0 * share) * np.sqrt(len(x))))
        return _student(middle, level, degrees=len(middle) - 1, error=error)

    return Average(
        spelling,
        _value_in_reach(lambda x, _: kept(x).mean(axis=-1)),
        _interval_in_reach(interval),
        "Student's t, winsorised (Tukey-McLaughlin)",
    )


def by_user(values: Values, users: NDArray[Any], weights: Values) -> tuple[Values, Values]:
    """Return the mean value and the summed weight of each user's lists."""
    if (users[1:] > users[:-1]).all():
        return values, weights  # each user has one list
    _, user = np.unique(users, return_inverse=True)
    count, power = np.bincount(user), power_for(values)
    means = np.bincount(user, weights=np.ldexp(values, -power)) / count
    return np.ldexp(means, power), np.bincount(user, weights=weights).astype(np.float64)

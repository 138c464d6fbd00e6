"""Gains: the value of a judged item in a graded metric.

An exponential gain 2^r − 1 overflows for a rating above 1,023. A metric that divides by the gain of the best list, or
by 2^rmax, never needs the gain itself, so it is computed relative to a power of two that the metric divides by anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._errors import SettingError
from cranfield._registry import Entry, Registry
from cranfield.judgments import Judgments
from cranfield.metrics.arithmetic import Values, power_of_two

Gain = Callable[[Judgments], Values]
RatingGain = Callable[[Values], Values]

EXPONENTIAL = ("exp", "expfull", "exp1", "exp1full", "exprelevant")
"""The gains that grow with 2^r."""

_LN_2 = float(np.log(2.0))


@dataclass(frozen=True)
class GainEntry(Entry[Callable[..., Values]]):
    """A registered gain."""

    # For a gain that is 2^e − 1 up to a constant factor: e of each judgment. A metric that divides by the ideal needs
    # only that, since a constant factor per list cancels out.
    exponent: Gain | None = None
    # Whether the function takes ratings, as a user's own function does, instead of `Judgments`.
    of_ratings: bool = False


GAINS: Registry[Gain] = Registry("gain", GainEntry)
"""The gains by name; `gain` registers another one."""

GainName = Annotated[str, Limits(choices=GAINS)]
"""A parameter that names a gain."""


def gain(name: str, *, replace: bool = False) -> Callable[[RatingGain], RatingGain]:
    """Register your own gain: a function from ratings to gains, for ``nDCG(gain=name)``.

    A name that is taken is an error unless ``replace`` is true; the same function may be registered again.

    Examples
    --------
    >>> @gain("root")
    ... def root(ratings):
    ...     return ratings**0.5
    """
    decorator: Callable[[RatingGain], RatingGain] = GAINS.register(name, replace=replace, of_ratings=True)
    return decorator


def powers_less_one(exponents: Values, shift: NDArray[np.float64] | float = 0.0) -> Values:
    """Return (2^e − 1) / 2^shift without computing 2^e; ``shift`` is a non-negative integer."""
    small = exponents < 1.0
    unit = np.exp2(-np.asarray(shift, dtype=np.float64))
    # Below 1, the difference of two powers would lose digits, and all of them for a tiny exponent.
    below = np.expm1(np.where(small, exponents, 0.0) * _LN_2) * unit
    return np.where(small, below, np.exp2(np.where(small, 0.0, exponents) - shift) - unit)


def over_power(exponents: Values, top: NDArray[np.float64] | float) -> Values:
    """Return (2^e − 1) / 2^top."""
    shift = np.floor(np.maximum(top, 0.0))
    return powers_less_one(exponents, shift) / np.exp2(top - shift)


def relative_powers(judgments: Judgments, exponents: Values) -> Values:
    """Return 2^e − 1 of each judgment, divided by a power of two near the largest of its list."""
    highest = np.floor(np.maximum(judgments.highest(exponents), 0.0))
    return powers_less_one(exponents, highest[judgments.lists])


@GAINS.register("rating")
def _rating(judgments: Judgments) -> Values:
    """The rating itself; a grade below 0 counts as 0."""
    return np.maximum(judgments.grades, 0.0)


@GAINS.register("binary")
def _binary(judgments: Judgments) -> Values:
    """1 for relevant items, 0 for others."""
    return judgments.relevant.astype(np.float64)


@GAINS.register("relevant")
def _rating_of_relevant(judgments: Judgments) -> Values:
    """The rating of relevant items, 0 for others (Bellogín et al. 2017, section 6.3)."""
    return np.where(judgments.relevant, np.maximum(judgments.grades, 0.0), 0.0)


@GAINS.register("exp", exponent=_rating)
def _exponential(judgments: Judgments) -> Values:
    """2^r − 1."""
    return powers_less_one(_rating(judgments))


@GAINS.register("expfull", exponent=_rating)
def _exponential_full_range(judgments: Judgments) -> Values:
    """(2^r − 1) / (2^rmax − 1), Cañamares et al. (2020), Table 3: ``exp`` scaled to 0 … 1."""
    return _over_the_highest(_rating(judgments))


def _above_threshold(judgments: Judgments) -> Values:
    """Return r − threshold + 1 for relevant items and 0 for others, the exponent of the gain ``exprelevant``."""
    return np.where(judgments.relevant, judgments.grades - judgments.threshold + 1.0, 0.0)


@GAINS.register("exprelevant", exponent=_above_threshold)
def _exponential_of_relevant(judgments: Judgments) -> Values:
    """2^(r − threshold + 1) − 1 for relevant items, 0 for others (Cañamares and Castells 2018)."""
    return powers_less_one(_above_threshold(judgments))


def above_one(judgments: Judgments) -> Values:
    """Return max(r − 1, 0), the exponent of the gains ``exp1`` and ``exp1full``."""
    return np.maximum(judgments.grades - 1.0, 0.0)


@GAINS.register("exp1", exponent=above_one)
def _chapelle(judgments: Judgments) -> Values:
    """(2^(r−1) − 1) / 2^(rmax−1), Cañamares et al. (2020), decision C2, after Chapelle et al. (2009)."""
    return over_power(above_one(judgments), judgments.top_grade - 1.0)


@GAINS.register("exp1full", exponent=above_one)
def _full_range(judgments: Judgments) -> Values:
    """(2^(r−1) − 1) / (2^(rmax−1) − 1): the same, scaled to 0 … 1."""
    return _over_the_highest(above_one(judgments))


def _over_the_highest(exponents: Values) -> Values:
    """Return 2^e − 1, divided by that of the highest exponent: values in 0 … 1."""
    shift = float(np.floor(exponents.max(initial=0.0)))
    gains = powers_less_one(exponents, shift)
    top = gains.max(initial=0.0)
    return gains / (top if top > 0 else 1.0)


def gain_of(name: str) -> Gain:
    """Return a gain by its name, including a user's own."""
    entry: GainEntry = GAINS.find(name)
    return (lambda judgments: _own_gains(entry, judgments)) if entry.of_ratings else entry.thing


def relative_gain_of(name: str) -> Gain:
    """Return a gain for a metric that does not change if all gains of a list are divided by a constant."""
    exponent = GAINS.find(name).exponent
    return gain_of(name) if exponent is None else lambda judgments: relative_powers(judgments, exponent(judgments))


def within_reach(judgments: Judgments, gains: Values) -> Values:
    """Return the gains, scaled by a power of two if those of a list are too large or small to be summed."""
    scale = power_of_two(judgments.highest(np.abs(gains)))
    return gains if (scale == 0).all() else np.ldexp(gains, -scale[judgments.lists])


def _own_gains(entry: GainEntry, judgments: Judgments) -> Values:
    ratings = judgments.grades
    with np.errstate(all="warn"):
        gains = np.asarray(entry.thing(ratings), dtype=np.float64)
    if gains.shape != ratings.shape:
        raise SettingError(
            f"gain={entry.name} returned {gains.shape} values for {len(ratings):,} ratings; return one for each"
        )
    if not np.isfinite(gains).all():
        place = int(np.flatnonzero(~np.isfinite(gains))[0])
        raise SettingError(
            f"gain={entry.name} returned {gains[place]} for the rating {ratings[place]:g}; return a finite number for "
            "each"
        )
    return gains if judgments.level is None else np.where(judgments.relevant, gains, 0.0)


def kept_name(name: str) -> str | None:
    """Return the name that a gain can be cached under: None for a user's own, which may change."""
    return None if GAINS.find(name).of_ratings else name

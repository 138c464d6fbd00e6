"""Effect sizes: how large a difference is, whether it is small enough not to matter, and what users can show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._numbers import DASH, number_text
from cranfield._roots import enclosed
from cranfield._table import Table
from cranfield.comparisons.errors import moments, standard_errors
from cranfield.comparisons.sample import Floats, Sample, log_in_units
from cranfield.facts import ends_text, p_text, share_text

# Above this non-centrality, SciPy's series converge slowly or not at all.
_FAR = 40.0


def power(n: ArrayLike, effect: ArrayLike, alpha: ArrayLike = 0.05) -> Floats:
    """Return the chance that a two-sided paired t-test with n users rejects at ``alpha``.

    P(|T| > t_{1−α/2, n−1}) for T of the non-central t distribution with n − 1 degrees of freedom and non-centrality
    √n |d_z|, d_z = difference / standard deviation of the differences.
    """
    n, effect = np.asarray(n, dtype=np.float64), np.abs(np.asarray(effect, dtype=np.float64))
    return np.where(n > 1, power_of_shift(np.sqrt(n) * effect, np.maximum(n - 1, 1), alpha), 0.0)


def power_of_shift(shift: ArrayLike, degrees: ArrayLike, alpha: ArrayLike = 0.05) -> Floats:
    """Return P(|T| > t_{1−α/2}) for T of the non-central t distribution with a non-centrality of 0 or more, ``shift``.

    The shift is a difference in standard errors.
    """
    from scipy.stats import nct, t

    shift, freedom = np.broadcast_arrays(np.asarray(shift, dtype=np.float64), np.asarray(degrees, dtype=np.float64))
    critical = t.isf(np.asarray(alpha) / 2, freedom)
    # Far from 0 the other tail adds nothing, and its cdf is numerically unreliable there.
    other = np.where(shift < 5, np.nan_to_num(nct.cdf(-critical, freedom, np.minimum(shift, 5))), 0.0)
    return np.clip(chance_above(critical, shift, freedom) + other, 0.0, 1.0)


def chance_above(t: Floats, shift: Floats, degrees: Floats) -> Floats:
    """Return P(T > t) for T of the non-central t distribution with non-centrality ``shift``, for t of 0 or more."""
    from scipy.stats import nct

    near, far = nct.sf(t, degrees, np.clip(shift, -_FAR, _FAR)), shift > _FAR
    chance: Floats = np.where(far, _far(shift, t, degrees), near) if far.any() else near
    return chance


def _far(shift: Floats, t: Floats, degrees: Floats) -> Floats:
    """Return P(T > t) for a large shift, T = (shift + Z) / C with Z normal and C = √(χ²/ν).

    It is the mean over Z of a probability of C, or the other way round, whichever of the two changes more slowly.
    """
    from scipy.special import gammainc, gammaincinv, ndtr

    z, weights = np.polynomial.hermite_e.hermegauss(41)
    shift, t, half = np.maximum(shift, _FAR)[..., None], t[..., None], degrees[..., None] / 2
    with np.errstate(divide="ignore"):
        of_c = gammainc(half, half * ((shift + z) / t) ** 2)
    of_z = ndtr(shift - t * np.sqrt(gammaincinv(half, ndtr(z)) / half))
    chance: Floats = (np.where(t**2 > 4 * half, of_c, of_z) * weights).sum(axis=-1) / weights.sum()
    return chance


def users_needed(effect: ArrayLike, alpha: ArrayLike = 0.05, wanted: float = 0.8) -> Floats:
    """Return the smallest number of users that gives the test the ``wanted`` power; infinite if there is no effect."""
    from scipy.special import ndtri

    effect, alpha = np.abs(np.atleast_1d(np.asarray(effect, dtype=np.float64))), np.asarray(alpha)
    possible = effect > 1e-7
    # Normal quantiles give a slightly smaller number than t quantiles, so the search starts there.
    fewest = np.floor(((ndtri(wanted) - ndtri(alpha / 2)) / np.where(possible, effect, 1.0)) ** 2)
    low = np.where(power(fewest, effect, alpha) < wanted, np.maximum(fewest, 1.0), 1.0)
    high = low + 4.0
    while True:
        short = possible & (power(high, effect, alpha) < wanted)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        enough = power(middle, effect, alpha) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(np.isnan(effect), np.nan, np.where(possible, high, np.inf))


def smallest_shift(degrees: ArrayLike, alpha: ArrayLike = 0.05, wanted: float = 0.8) -> Floats:
    """Return the smallest difference, in standard errors, that a two-sided t-test detects with the ``wanted`` power."""
    tests = np.stack(np.broadcast_arrays(np.atleast_1d(np.asarray(degrees, dtype=np.float64)), alpha))
    tests, place = np.unique(tests, axis=1, return_inverse=True)
    return np.array(_smallest_shifts(*map(tuple, tests.tolist()), wanted))[place.ravel()]


@lru_cache(maxsize=256)
def _smallest_shifts(degrees: tuple[float, ...], levels: tuple[float, ...], wanted: float) -> list[float]:
    """Return the smallest shift of each test; cached, since every verdict needs the same few."""
    freedom, alpha = np.array(degrees), np.array(levels)
    low, high = np.zeros(freedom.shape), np.full(freedom.shape, 4.0)
    while (short := (high < 1e150) & (power_of_shift(high, freedom, alpha) < wanted)).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    for _ in range(50):
        middle = (low + high) / 2
        enough = power_of_shift(middle, freedom, alpha) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return list(high.tolist())


class Equivalence(NamedTuple):
    """p-values against the claim that the difference lies beyond the margin."""

    equivalent: Floats
    not_below: Floats
    not_above: Floats


def two_one_sided(difference: ArrayLike, standard_error: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Equivalence:
    """Two one-sided t-tests (TOST, Schuirmann 1987).

    ``not_below`` is the p-value against difference ≤ −margin, P(T ≥ (difference + margin) / standard error);
    ``not_above`` is the p-value against difference ≥ margin; ``equivalent`` is the larger of the two. A small p-value
    means "not below", "not above" or "equivalent". Without any spread the answer is certain: 0 inside the margin, 1 at
    it and outside.
    """
    from scipy.special import stdtr

    difference, error, n, margin = (
        np.asarray(number, dtype=np.float64) for number in (difference, standard_error, n, margin)
    )
    freedom = np.maximum(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (difference + margin) / error, (margin - difference) / error
    # Without spread, 0 / 0 means that the difference equals the margin.
    not_below, not_above = (np.where((n > 1) & ~np.isnan(t), stdtr(freedom, -t), 1.0) for t in (above, below))
    return Equivalence(np.maximum(not_below, not_above), not_below, not_above)


PAIR = ["metric", "system_a", "system_b"]
_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "metric": itemgetter("metric"),
    "a": itemgetter("system_a"),
    "b": itemgetter("system_b"),
    "mean a": lambda row: number_text(row["mean_a"]),
    "mean b": lambda row: number_text(row["mean_b"]),
    "a - b": lambda row: number_text(row["difference"], sign="+"),
    "{} interval": lambda row: ends_text(row["lower"], row["upper"]),
    "relative": share_text,
    "d_z": lambda row: number_text(row["effect"], 2, "+"),
    "better/equal/worse": lambda row: f"{row['wins']}/{row['ties']}/{row['losses']}",
    "p": lambda row: p_text(row["p"]),
    "p corrected": lambda row: p_text(row["p_corrected"]),
    "better": lambda row: row["better"] or DASH,
}
"""The titles of a table of pairs, and the text of a row of `Comparison.frame` below each."""


def pairs_table(rows: pl.DataFrame, alpha: float, caption: str, notes: Sequence[str]) -> Table:
    """Return rows of `Comparison.frame` as a table for people."""
    header = [title.format(f"{100 * (1 - alpha):g}%") for title in _COLUMNS]
    cells = [[cell(row) for cell in _COLUMNS.values()] for row in rows.iter_rows(named=True)]
    return Table(header, cells, caption, notes)


def smallest_differences(rows: pl.DataFrame, wanted: float = 0.8, *, shift: float | None = None) -> Floats:
    """Return the smallest difference that the users of each row of `Comparison.frame` show with the wanted power."""
    n, error, degrees, mean_b, level = _columns(rows, "n", "standard_error", "degrees", "mean_b", "level")
    size = smallest_shift(degrees, level, wanted) * _tested(error, mean_b, shift)
    return np.where(n > 1, _in_units(size, mean_b, shift), np.nan)


def _tested(size: Floats, mean_b: Floats, shift: float | None) -> Floats:
    """Return sizes in the metric's unit on the scale of the test, which has logarithms if there is a ``shift``."""
    if shift is None:
        return size
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log1p(np.maximum(size / (mean_b + shift), -1.0))


def _in_units(size: Floats, mean_b: Floats, shift: float | None) -> Floats:
    """Return sizes on the scale of the test in the metric's unit."""
    return size if shift is None else log_in_units(size, mean_b, shift)


def power_frame(
    rows: pl.DataFrame,
    difference: float | None,
    wanted: float,
    *,
    repeated: bool,
    shift: float | None = None,
) -> pl.DataFrame:
    """Return what the users of each row of `Comparison.frame` can show; see `Comparison.power`."""
    _checks.share("wanted", wanted)
    difference = _checks.number_or_none("difference", difference)
    if difference is not None and not 0 < difference < np.inf:
        raise SettingError(
            f"difference={difference:g} is not a difference to detect; give a number above 0, such as 0.01"
        )
    n, error, degrees, observed = _columns(rows, "n", "standard_error", "degrees", "difference")
    mean_b, level = _columns(rows, "mean_b", "level")
    sd = _tested(error, mean_b, shift) * np.sqrt(n)
    size = np.abs(observed) if difference is None else np.full(len(n), difference)
    tested = np.abs(_tested(observed if difference is None else size, mean_b, shift))
    with np.errstate(divide="ignore", invalid="ignore"):
        known = np.where(np.isnan(sd), np.nan, np.minimum(tested / sd, 1e6))
    effect = np.where(size == 0, 0.0, known)
    return rows.select(*PAIR, "n").with_columns(
        sd=_in_units(sd, mean_b, shift),
        smallest_difference=smallest_differences(rows, wanted, shift=shift),
        difference=size,
        power=np.where(n > 1, power_of_shift(np.sqrt(n) * effect, degrees, level), 0.0),
        users_needed=np.full(len(n), np.nan) if repeated else users_needed(effect, level, wanted),
    )


def equivalence_frame(
    rows: pl.DataFrame,
    lower_is_better: NDArray[np.bool_],
    alpha: float,
    margin: float,
    relative: bool,
    shift: float | None = None,
) -> pl.DataFrame:
    """Return whether the systems of each row of `Comparison.frame` are equivalent; see `Comparison.equivalence`."""
    from scipy.special import stdtrit

    if not _checks.number("margin", margin) > 0:
        raise SettingError(f"margin={margin!r} is not above 0; give the largest difference that would not matter")
    difference, error, degrees, mean_b = _columns(rows, "difference", "standard_error", "degrees", "mean_b")
    margins = np.full(len(rows), float(margin)) * (np.abs(mean_b) if relative else 1.0)
    difference, error, above, below = (_tested(size, mean_b, shift) for size in (difference, error, margins, -margins))
    not_above = two_one_sided(difference, error, degrees + 1, above).not_above
    not_below = two_one_sided(difference, error, degrees + 1, -below).not_below
    equivalent = np.maximum(not_above, not_below)
    no_worse = np.where(lower_is_better, not_above, not_below)
    reach = stdtrit(degrees, 1 - alpha) * error
    return rows.select(*PAIR, "difference").with_columns(
        lower=_in_units(difference - reach, mean_b, shift),
        upper=_in_units(difference + reach, mean_b, shift),
        margin=margins,
        p_equivalent=equivalent,
        p_no_worse=no_worse,
        equivalent=equivalent < alpha,
        no_worse=no_worse < alpha,
        n=rows["n"],
    )


def _columns(rows: pl.DataFrame, *names: str) -> list[Floats]:
    return [rows[name].to_numpy().astype(np.float64) for name in names]


@dataclass(frozen=True, eq=False)
class Effects:
    """The effect sizes of every pair of a sample; differences, errors and intervals are on the scale of the test."""

    mean_a: Floats
    mean_b: Floats
    difference: Floats
    standard_error: Floats
    degrees: Floats  # of freedom with which Student's t has the same interval
    lower: Floats  # the interval of the difference, by Student's t
    upper: Floats
    users_error: Floats  # the standard error over users alone
    spread: Floats | None  # the standard deviation of the difference between repetitions
    effect: Floats  # d_z = mean(d) / sd(d), the standardised paired difference
    effect_lower: Floats  # its interval: that of the non-centrality of t, times the standard error over sd(d)
    effect_upper: Floats
    wins: Floats  # for how many users the first system is better
    ties: Floats
    losses: Floats
    superiority: Floats  # (wins + ties/2) / n: the chance that the first system serves a user better
    p_of_t: Floats  # the p-value that belongs to the interval; NaN where there is no standard error

    def level_of(self, reach: Floats) -> Floats:
        """Return the level of Student's interval with this half width; 1 where there is no spread."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.standard_error > 0, reach / self.standard_error, 0.0)
        return np.asarray(2 * stdtr(self.degrees, -t))


def effects(sample: Sample, outcomes: Outcomes, alpha: float, level: float | None = None) -> Effects:
    """Return the effect sizes of every pair, given its `Outcomes`; NaN if there are too few users.

    ``level`` is the level of each pair's interval, if it is not α: see `LargestStatistics.level`.
    """
    level = alpha if level is None else level
    a, b = sample.averages(slice(0, sample.n_pairs))
    n, sd, wins, losses = outcomes
    ties, errors, difference = n - wins - losses, standard_errors(sample, n, sd), sample.tested_difference(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = errors.reach(level)
        degrees = errors.degrees(level, reach)
        d_z = np.where((sd > 0) & (n > 1), difference / sd, np.where(difference == 0, 0.0, np.nan))
        t = np.where(difference == 0, 0.0, difference / errors.error)
        scale = np.where(sd > 0, errors.error / sd, 1 / np.sqrt(n))
        least, most = noncentralities(t, degrees, level)
        superiority = (wins + ties / 2) / n
    if sample.lower_is_better:
        wins, losses, superiority = losses, wins, 1 - superiority
    return Effects(
        a,
        b,
        difference,
        errors.error,
        degrees,
        difference - reach,
        difference + reach,
        errors.users_error,
        errors.spread,
        d_z,
        np.where(n > 1, scale * least, np.nan),
        np.where(n > 1, scale * most, np.nan),
        wins,
        ties,
        losses,
        superiority,
        errors.p(difference),
    )


def noncentralities(t: Floats, degrees: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the 1 − α interval of the non-centrality behind each t: where P(T ≥ t), and P(T ≤ t), is α/2."""
    from scipy.special import ndtri

    size, ends = np.where(np.isfinite(t), np.abs(t), 0.0), []
    degrees, z = np.maximum(np.nan_to_num(degrees), 1.0), -float(ndtri(alpha / 2))
    for side in (-1.0, 1.0):

        def inside(shift: Floats, side: float = side) -> Floats:
            """Return how far inside the interval a shift is, in normal deviates, which are almost linear in it."""
            chance = np.clip(chance_above(size, shift, degrees), 1e-300, 1 - 1e-16)
            return np.asarray(z - side * ndtri(chance))

        far = size + side * (1.5 * z * np.sqrt(1 + size**2 / (2 * degrees)) + 1)
        ends.append(enclosed(inside, size, far, inside(size), inside(far), np.full(len(size), 1e-8))[1])
    lower, upper = (np.where(np.isfinite(t), end, np.nan) for end in ends)
    return np.where(t < 0, -upper, lower), np.where(t < 0, -lower, upper)


Outcomes = tuple[Floats, Floats, Floats, Floats]
"""For each pair: n, the deviation of the influences, and for how many users each system has the larger value."""


def outcomes_of(sample: Sample) -> Outcomes:
    """Return the `Outcomes` of every pair."""
    parts = []
    for pairs in sample.blocks():
        d = influences = sample.raw_differences(pairs)
        if sample.geometric or sample.weights is not None:
            influences = sample.influences(pairs)
        n, _, sd = moments(influences)
        parts.append((n, sd, np.count_nonzero(d > 0, axis=1), np.count_nonzero(d < 0, axis=1)))
    n, sd, wins, losses = (np.concatenate(column) for column in zip(*parts))
    return n, sd, wins, losses

"""Power: how many users would show a difference, and how small a difference these users can show."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cranfield.comparisons.sample import Floats

# Above this non-centrality, SciPy's series converge slowly or not at all.
_FAR = 40.0


def power(n: ArrayLike, effect: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return the chance that a two-sided paired t-test with n users rejects at ``alpha``.

    P(|T| > t_{1−α/2, n−1}) for T of the non-central t distribution with n − 1 degrees of freedom and non-centrality
    √n |d_z|, d_z = difference / standard deviation of the differences.

    Examples
    --------
    >>> round(float(power(34, 0.5)), 3)
    0.808
    """
    n, effect = np.asarray(n, dtype=np.float64), np.abs(np.asarray(effect, dtype=np.float64))
    return np.where(n > 1, power_of_shift(np.sqrt(n) * effect, np.maximum(n - 1, 1), alpha), 0.0)


def power_of_shift(shift: ArrayLike, degrees: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return P(|T| > t_{1−α/2}) for T of the non-central t distribution with a non-centrality of 0 or more, ``shift``.

    The shift is a difference in standard errors.

    Examples
    --------
    >>> power_of_shift([0.0, 3.0], 100.0).round(3).tolist()
    [0.05, 0.844]
    """
    from scipy.stats import nct, t

    shift, freedom = np.broadcast_arrays(np.asarray(shift, dtype=np.float64), np.asarray(degrees, dtype=np.float64))
    critical = t.isf(alpha / 2, freedom)
    # Far from 0 the other tail adds nothing, and its cdf is numerically unreliable there.
    other = np.where(shift < 5, np.nan_to_num(nct.cdf(-critical, freedom, np.minimum(shift, 5))), 0.0)
    return np.clip(chance_above(critical, shift, freedom) + other, 0.0, 1.0)


def chance_above(t: Floats, shift: Floats, degrees: Floats) -> Floats:
    """Return P(T > t) for T of the non-central t distribution with a non-centrality of ``shift``, for t of 0 or more.

    Examples
    --------
    >>> chance_above(np.array([2.0, 60.0]), np.array([2.0, 60.0]), np.array([10.0, 10.0])).round(3).tolist()
    [0.519, 0.559]
    """
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


def users_needed(effect: ArrayLike, alpha: float = 0.05, wanted: float = 0.8) -> Floats:
    """Return the smallest number of users with which the test has the ``wanted`` power; infinite if there is no effect.

    Examples
    --------
    >>> users_needed([0.5, 0.1, 0.0]).tolist()
    [34.0, 787.0, inf]
    """
    from scipy.special import ndtri

    effect = np.abs(np.atleast_1d(np.asarray(effect, dtype=np.float64)))
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


def smallest_shift(degrees: ArrayLike, alpha: float = 0.05, wanted: float = 0.8) -> Floats:
    """Return the smallest difference, in standard errors, that a two-sided t-test detects with the ``wanted`` power.

    Examples
    --------
    With 34 users, and with the two degrees of freedom that three repetitions may leave:

    >>> smallest_shift([33, 2]).round(2).tolist()
    [2.89, 5.65]
    """
    degrees, place = np.unique(np.atleast_1d(np.asarray(degrees, dtype=np.float64)), return_inverse=True)
    return np.array(_smallest_shifts(tuple(degrees.tolist()), alpha, wanted))[place]


@lru_cache(maxsize=256)
def _smallest_shifts(degrees: tuple[float, ...], alpha: float, wanted: float) -> list[float]:
    """Return the smallest shift for each number of degrees; cached, since every verdict needs the same few."""
    freedom = np.array(degrees)
    low, high = np.zeros(freedom.shape), np.full(freedom.shape, 4.0)
    while (short := (high < 1e150) & (power_of_shift(high, freedom, alpha) < wanted)).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    for _ in range(50):
        middle = (low + high) / 2
        enough = power_of_shift(middle, freedom, alpha) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return list(high.tolist())

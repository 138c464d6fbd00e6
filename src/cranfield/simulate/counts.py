"""Whole numbers of ratings, one per item or per user, that add up to a given total."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError

CountArray = NDArray[np.int64]

_HALVINGS = 200

WIDEST_SPREAD = 20
"""Maximum spread of log-normal profile sizes; larger ones change nothing except that they overflow."""


def counts_of_shape(
    shape: NDArray[np.float64], total: int, *, low: int, high: int, offset: float = 0.0
) -> tuple[CountArray, float]:
    r"""Return the counts :math:`n_k = \min(\max(c_1 + \beta x_k, \text{low}), \text{high})`, and β.

    β is the number that makes the counts add up to ``total``. They are rounded by the largest remainder method: all are
    rounded down, and those that lost most get one back until the total is met.

    Parameters
    ----------
    shape
        The positive weights :math:`x_k`.
    total
        The sum of the counts.
    low, high
        The smallest and the largest count allowed.
    offset
        The constant :math:`c_1`.

    Examples
    --------
    >>> counts, beta = counts_of_shape(np.array([4.0, 2.0, 1.0]), 10, low=1, high=5)
    >>> counts.tolist(), round(beta, 3)
    ([5, 3, 2], 1.667)
    """

    def curve(beta: float) -> NDArray[np.float64]:
        return np.clip(offset + beta * shape, low, high)

    if curve(0.0).sum() > total:
        raise SettingError(
            f"{len(shape):,} counts of at least {max(offset, low):g} are more than {total:,} ratings; "
            "ask for more ratings or lower the minimum"
        )
    if total > high * len(shape):
        raise SettingError(f"{total:,} ratings do not fit into {len(shape):,} x {high:,} pairs; ask for fewer ratings")
    below, above = 0.0, 1.0
    while curve(above).sum() < total:
        above *= 2.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2.0
        if curve(middle).sum() > total:
            above = middle
        else:
            below = middle
    exact = curve(below)
    counts = np.floor(exact).astype(np.int64)
    lost = np.where(counts < high, exact - counts, -1.0)
    counts[np.argsort(-lost, kind="stable")[: total - int(counts.sum())]] += 1
    return counts, below


def log_normal_sizes(users: int, total: int, *, spread: float, low: int, high: int) -> CountArray:
    r"""Return profile sizes at the quantiles of a log-normal distribution, smallest first.

    User *k* of *n* has a size in proportion to :math:`e^{\sigma \Phi^{-1}((k - 1/2) / n)}`; the Gini coefficient of
    such sizes is about :math:`\mathrm{erf}(\sigma / 2)`. With a spread σ of 0 all profiles have the same size (give or
    take one rating).

    Examples
    --------
    >>> log_normal_sizes(5, 100, spread=1.0, low=1, high=60).tolist()
    [4, 8, 14, 24, 50]
    """
    from scipy.special import ndtri

    shape = np.exp(spread * ndtri((np.arange(users) + 0.5) / users))
    return counts_of_shape(shape, total, low=low, high=high)[0]


def sizes_like(sizes: NDArray[Any], users: int, total: int, *, low: int, high: int) -> CountArray:
    """Return profile sizes distributed like the given ones, smallest first, for other numbers of users and ratings.

    If the numbers are the same, so are the sizes.

    Examples
    --------
    >>> sizes_like(np.array([9, 1, 2]), 3, 12, low=1, high=9).tolist()
    [1, 2, 9]
    >>> sizes_like(np.array([9, 1, 2]), 6, 48, low=1, high=20).tolist()
    [2, 3, 4, 7, 14, 18]
    """
    ordered = np.sort(np.asarray(sizes, dtype=np.int64))
    if len(ordered) == users and ordered.sum() == total and ordered[0] >= low and ordered[-1] <= high:
        return ordered
    places = (np.arange(users) + 0.5) / users
    shape = np.quantile(np.maximum(ordered, 1), places, method="hazen")
    return counts_of_shape(shape, total, low=low, high=high)[0]

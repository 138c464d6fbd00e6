"""How many ratings each item and each user has: a shifted power law, log-normal sizes, and pairs that meet both."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._terminal import progress

CountArray = NDArray[np.int64]

WIDEST_SPREAD = 20
"""Maximum spread of log-normal profile sizes; larger ones change nothing except that they overflow."""

_HALVINGS = 200
# The steepest curve: anything steeper is exponential rather than a power law. Even with the largest shift its values
# are representable.
_STEEPEST, _FARTHEST = 20.0, 1e12
# The weights of a user who must take every remaining item, and of one whose profile is already full.
_MUST, _FULL = 1e150, 1e-150


def check_bounds(name: str, value: object, low: float, high: float) -> float:
    """Return a value, if it is a finite number within the bounds."""
    given = float(value) if not isinstance(value, bool) and isinstance(value, Real) else np.nan
    if not (np.isfinite(given) and low <= given <= high):
        shown = repr(value) if isinstance(value, str) else value
        bounds = f"from {low:,g} to {high:,g}" if np.isfinite(high) else f"of at least {low:g}"
        raise SettingError(f"{name} is {shown}; give a finite number {bounds}")
    return given


def counts_of_shape(
    shape: NDArray[np.float64], total: int, *, low: int, high: int, offset: float = 0.0
) -> tuple[CountArray, float]:
    r"""Return the counts :math:`n_k = \min(\max(c_1 + \beta x_k, \text{low}), \text{high})`, and β.

    The ``shape`` has the positive weights :math:`x_k`, the ``offset`` is :math:`c_1`, and β makes the counts add up to
    ``total``. They are rounded by the largest remainder method: all are rounded down, and those that lost most get one
    back until the total is met.

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


@dataclass(frozen=True)
class PowerLaw:
    r"""The popularity of the *k*-th most popular item: :math:`|R(i_k)| = c_1 + \beta (c_2 + k)^{-\alpha}`.

    Parameters
    ----------
    alpha
        The skewness α: 0 makes all items equally popular, 2 is a very steep long tail; MovieLens 1M has about 1.4.
    c1
        The number of ratings that even the least popular item has.
    c2
        The shift of the ranks, which flattens the head of the curve.

    Examples
    --------
    >>> PowerLaw(alpha=1.0, c2=1.0).counts(items=4, ratings=40, users=30)[0].tolist()
    [16, 10, 8, 6]
    """

    alpha: float
    c1: float = 0.0
    c2: float = 0.0

    def __post_init__(self) -> None:
        check_bounds("alpha", self.alpha, 0, _STEEPEST)
        check_bounds("c1", self.c1, 0, np.inf)
        check_bounds("c2", self.c2, 0, _FARTHEST)

    def counts(self, *, items: int, ratings: int, users: int) -> tuple[CountArray, float]:
        """Return the number of ratings of each item, most popular first, and β.

        The counts are whole numbers from 1 to the number of users, and β is adjusted so that they add up to the
        number of ratings.
        """
        # Divided by the value of the first item, so that no power underflows; the returned β is that of the law above.
        head = self.c2 + 1.0
        shape = np.asarray(((self.c2 + np.arange(1, items + 1)) / head) ** -self.alpha, dtype=np.float64)
        counts, beta = counts_of_shape(shape, ratings, low=1, high=users, offset=self.c1)
        return counts, float(beta * head**self.alpha)

    @classmethod
    def fit(cls, popularity: NDArray[Any]) -> PowerLaw:
        r"""Fit α, :math:`c_1 \ge 0` and :math:`c_2 \ge 0` to the number of ratings of each item by least squares.

        β is not free: it makes the curve add up to the number of ratings.

        Examples
        --------
        >>> made, _ = PowerLaw(alpha=1.2, c1=3.0, c2=20.0).counts(items=2000, ratings=500_000, users=100_000)
        >>> law = PowerLaw.fit(made)
        >>> round(law.alpha, 2), round(law.c1), round(law.c2)
        (1.2, 3, 20)
        """
        from scipy.optimize import least_squares

        observed = np.sort(np.asarray(popularity, dtype=np.float64))[::-1]
        observed = observed[observed > 0]
        if len(observed) < 4:
            raise SettingError(f"a power law cannot be fitted to {len(observed)} items; give at least 4")
        total, least, scale = observed.sum(), observed[-1], observed.mean()
        ranks = np.arange(1, len(observed) + 1)

        def curve(alpha: float, c1: float, c2: float) -> NDArray[np.float64]:
            shape = ((c2 + ranks) / (c2 + 1.0)) ** -alpha
            return np.asarray(c1 + (total - c1 * len(observed)) * shape / shape.sum())

        def error(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
            alpha, c1, shift = parameters
            return np.asarray((curve(alpha, c1, np.expm1(shift)) - observed) / scale)

        shift = np.log1p(0.08 * len(observed))
        fitted = least_squares(
            error,
            x0=[1.0, least / 2.0, shift],
            bounds=([0.0, 0.0, 0.0], [_STEEPEST, max(least, 1e-9), np.log1p(100.0 * len(observed))]),
            x_scale=[1.0, max(least, 1.0), 1.0],
        ).x
        return cls(float(fitted[0]), round(float(fitted[1]), 6), float(np.expm1(fitted[2])))


def pairs_with_margins(
    item_counts: CountArray, profile_sizes: CountArray, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    r"""Draw distinct (user, item) pairs with the given counts; return their users and items.

    Items are processed in order, the most popular first. Each draws its users without replacement, with weights
    :math:`r / (m - r)`, where :math:`r` is the number of ratings a user's profile still lacks and :math:`m` the number
    of remaining items (Chen, Diaconis, Holmes and Liu 2005): a user who lacks as many as remain is always drawn.

    Item counts are always met exactly. Profile sizes are met exactly too, unless the two are incompatible, or only
    just compatible, and the draw reaches a dead end. Then a user's profile may be larger than requested, because no
    other user was left for an item, and another's smaller.
    """
    lacking = profile_sizes.astype(np.float64)
    takers = []
    by_popularity = np.argsort(-item_counts, kind="stable")
    with progress("Drawing ratings", total=len(item_counts), unit="items") as bar:
        for served, item in enumerate(by_popularity.tolist()):
            left = len(item_counts) - served
            with np.errstate(divide="ignore"):
                weights = lacking / (left - lacking)
            weights[lacking >= left] = _MUST
            weights[lacking <= 0] = _FULL
            taken = _weighted_sample(weights, int(item_counts[item]), rng)
            lacking[taken] -= 1
            takers.append(taken.astype(np.int32))
            bar.advance()
    users = np.concatenate(takers) if takers else np.empty(0, dtype=np.int32)
    items = np.repeat(by_popularity.astype(np.int32), item_counts[by_popularity])
    return users, items


def _weighted_sample(weights: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``size`` positions without replacement, ascending: the smallest exponential keys with rates ``weights``."""
    keys = -np.log1p(-rng.random(len(weights))) / weights
    if size >= len(keys):
        return np.arange(len(keys))
    # Sorted, because a partition returns positions in an order that differs between processors.
    return np.sort(np.argpartition(keys, size)[:size])

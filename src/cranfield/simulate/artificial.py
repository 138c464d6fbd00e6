"""Artificial ratings with a chosen popularity curve and no preferences (Bellogín et al. 2017, section 5.2)."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings, check_ratings
from cranfield.facts import ratings as rating_facts
from cranfield.tables import Vocabulary

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
    """
    from scipy.special import ndtri

    shape = np.exp(spread * ndtri((np.arange(users) + 0.5) / users))
    return counts_of_shape(shape, total, low=low, high=high)[0]


def sizes_like(sizes: NDArray[Any], users: int, total: int, *, low: int, high: int) -> CountArray:
    """Return profile sizes distributed like the given ones, smallest first, for other numbers of users and ratings.

    If the numbers are the same, so are the sizes.
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


MOVIELENS: Mapping[float, float] = {1.0: 0.056, 2.0: 0.108, 3.0: 0.261, 4.0: 0.349, 5.0: 0.226}
"""The share of each rating value in MovieLens 1M."""

# From a fit to MovieLens 1M: ranks are shifted by 7.8 % of the items.
_SHIFT = 0.078


def popularity(
    users: int | None = None,
    items: int | None = None,
    ratings: int | None = None,
    *,
    alpha: float | None = None,
    c1: float | None = None,
    c2: float | None = None,
    histogram: Mapping[float, float] | str | None = None,
    activity: float | None = None,
    like: Ratings | None = None,
    seed: int = 0,
) -> Ratings:
    r"""Simulate ratings whose popularity follows a shifted power law, and that follow nothing else.

    The *k*-th most popular item has :math:`|R(i_k)| = c_1 + \beta (c_2 + k)^{-\alpha}` ratings, where β is adjusted to
    give the requested numbers of users, items and ratings. Who rates what is random within the given profile sizes, and
    so are the values. There is no preference pattern to learn, so whatever a recommender gains over random on such data
    comes from popularity alone.

    Parameters
    ----------
    users, items, ratings
        Number of each; 1,000, 500 and 50,000, or those of ``like``.
    alpha, c1, c2
        The power law. Defaults: α = 1.4, c1 = 0 and c2 = 7.8 % of the items, close to MovieLens 1M; or a fit to
        ``like``. An α of 0 makes all items equally popular.
    histogram
        The share of each rating value; that of MovieLens 1M, or of ``like``.
    activity
        The spread σ of the log-normal profile sizes; 1, or the profile sizes of ``like``. With 0 all users have the
        same number of ratings.
    like
        Ratings to resemble.
    seed
        Seed of every random choice.

    Returns
    -------
    Ratings
        With integer ids from 1. The order of the ids says nothing about popularity or activity.

    References
    ----------
    A. Bellogín, P. Castells, I. Cantador. Statistical biases in Information Retrieval metrics for recommender
    systems. Information Retrieval Journal 20, 2017.

    Examples
    --------
    >>> flat, steep = popularity(alpha=0), popularity(alpha=2)
    >>> flat
    Ratings(simulated popularity: 1,000 users, 500 items, 50,000 ratings)
    >>> flat.item_counts.max().item(), steep.item_counts.max().item()
    (100, 1000)
    """
    seed = check.whole("seed", seed, at_least=0)
    usual = (1_000, 500, 50_000)
    if like is not None:
        check_ratings(like)
        usual = int(np.count_nonzero(like.user_counts)), int(np.count_nonzero(like.item_counts)), len(like)
    n_users, n_items, n_ratings = check_sizes(
        *(other if size is None else size for size, other in zip((users, items, ratings), usual))
    )
    law = _law(alpha, c1, c2, like, n_items)
    counts, beta = law.counts(items=n_items, ratings=n_ratings, users=n_users)
    if activity is None and like is not None:
        profiles = sizes_like(like.user_counts[like.user_counts > 0], n_users, n_ratings, low=1, high=n_items)
    else:
        spread = check_bounds("activity", 1.0 if activity is None else activity, 0, WIDEST_SPREAD)
        profiles = log_normal_sizes(n_users, n_ratings, spread=spread, low=1, high=n_items)
    if histogram is None and like is not None:
        values, times = np.unique(like.values, return_counts=True)
        histogram = dict(zip(values.tolist(), times.tolist()))
    values, shares = histogram_arrays(MOVIELENS if histogram is None else histogram)

    counts = counts[shuffled(n_items, seed, "simulate.popularity", "items")]
    profiles = profiles[shuffled(n_users, seed, "simulate.popularity", "users")]
    who, what = pairs_with_margins(counts, profiles, stream(seed, "simulate.popularity", "pairs"))
    draws = stream(seed, "simulate.popularity", "values").random(n_ratings)
    drawn = values[np.searchsorted(np.cumsum(shares)[:-1], draws, side="right")]

    settings = {
        "users": n_users,
        "items": n_items,
        "ratings": n_ratings,
        **vars(law),
        "beta": beta,
        "histogram": dict(zip(values.tolist(), shares.tolist())),
        "activity": activity if activity is not None or like is not None else 1.0,
        "like": None if like is None else like.name or like.fingerprint,
        "seed": seed,
    }
    amiss = int(np.count_nonzero(np.bincount(who, minlength=n_users) != profiles))
    notes = (rating_facts.OtherProfiles(amiss),)
    return Ratings.from_codes(
        Vocabulary(pl.Series(np.arange(1, n_users + 1))),
        Vocabulary(pl.Series(np.arange(1, n_items + 1))),
        who,
        what,
        drawn,
        name="simulated popularity",
        history=(Step("simulate.popularity", settings, {"ratings": n_ratings}, notes if amiss else ()),),
    )


def check_sizes(users: int, items: int, ratings: int, *, one_each: bool = True) -> tuple[int, int, int]:
    """Return the numbers of users, items and ratings, or say why such data cannot exist.

    With ``one_each``, every user and every item has at least one rating.
    """
    users, items, ratings = whole("users", users), whole("items", items), whole("ratings", ratings)
    for name, size in (("users", users), ("items", items)):
        if size < 1:
            raise SettingError(f"{name} is {size}; ask for at least 1")
    if ratings > users * items:
        raise SettingError(
            f"{ratings:,} ratings do not fit into {users:,} users x {items:,} items = {users * items:,} pairs; "
            "ask for fewer ratings"
        )
    if one_each and ratings < max(users, items):
        raise SettingError(
            f"{ratings:,} ratings are too few for {users:,} users and {items:,} items to have one each; "
            f"ask for at least {max(users, items):,}"
        )
    return users, items, ratings


def whole(name: str, value: int) -> int:
    """Return a whole number of any library as a Python integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise SettingError(f"{name} is {value!r}; give a whole number") from None


def _law(alpha: float | None, c1: float | None, c2: float | None, like: Ratings | None, items: int) -> PowerLaw:
    stated = {name: value for name, value in (("alpha", alpha), ("c1", c1), ("c2", c2)) if value is not None}
    if like is None or len(stated) == 3:
        return replace(PowerLaw(1.4, 0.0, _SHIFT * items), **stated)
    return replace(PowerLaw.fit(like.item_counts), **stated)


def histogram_arrays(histogram: Mapping[float, float] | str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of a histogram, ascending, and their shares, which add up to 1; text is ``1:0.2/2:0.8``."""
    shown: Any = dict(histogram) if isinstance(histogram, Mapping) else histogram
    try:
        if isinstance(histogram, str):
            shown = {float(value): float(count) for value, _, count in (p.partition(":") for p in histogram.split("/"))}
        values, shares = np.array(sorted(shown.items()), dtype=np.float64).T
    except (AttributeError, TypeError, ValueError):
        values = shares = np.empty(0)
    if not len(values) or not np.isfinite([values, shares]).all() or (shares < 0).any():
        raise SettingError(f"the histogram {shown!r} is not a share for each value; write {{1: 0.2, 2: 0.8}}")
    if shares.sum() == 0:
        raise SettingError(f"the histogram {shown!r} gives no value a share; write {{1: 0.2, 2: 0.8}}")
    return values, shares / shares.sum()


def shuffled(size: int, seed: int, *names: str) -> NDArray[np.int64]:
    """Return a random order, drawn from a named stream."""
    return np.argsort(stream(seed, *names).random(size), kind="stable")

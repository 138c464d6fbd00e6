"""Artificial ratings with a chosen popularity curve and no preferences (Bellogín et al. 2017, section 5.2)."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings
from cranfield.simulate.counts import (
    WIDEST_SPREAD,
    PowerLaw,
    check_bounds,
    log_normal_sizes,
    pairs_with_margins,
    sizes_like,
)
from cranfield.tables import Vocabulary

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
    histogram: Mapping[float, float] | None = None,
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
    notes = (f"{amiss:,} users have profiles of a different size than requested: the item counts leave no room",)
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


def histogram_arrays(histogram: Mapping[float, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of a histogram, ascending, and their shares, which add up to 1."""
    shown = dict(histogram) if isinstance(histogram, Mapping) else histogram
    try:
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

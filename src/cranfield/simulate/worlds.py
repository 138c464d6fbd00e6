"""Worlds with a known truth: drawn, then observed with chosen biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings
from cranfield.simulate.artificial import (
    WIDEST_SPREAD,
    CountArray,
    check_bounds,
    check_sizes,
    histogram_arrays,
    log_normal_sizes,
    shuffled,
    whole,
)
from cranfield.simulate.tastes import Tastes, blocks, inclusion, normal, rates, systematic_sample, times_of
from cranfield.simulate.truth import World
from cranfield.tables import Vocabulary

TRUE_GRADES: Mapping[float, float] = {1.0: 0.15, 2.0: 0.21, 3.0: 0.32, 4.0: 0.23, 5.0: 0.09}
"""Default share of each true grade over all pairs."""

# The shift of the exposure ranks, as a share of the items, so that the head of the curve is more than one item.
_SHIFT = 0.04
# The largest profile, as a share of the items, unless more than the second share of all pairs is observed.
_LARGEST, _DENSE = 0.6, 0.3

# The strongest bias, and the widest scale of grades: together they keep every rate at or above e^-200.
_STRONGEST, _WIDEST = 20, 10
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "tastes": (1, np.inf),
    "taste": (0, 1),
    "noise": (0, 1_000),
    "popularity_bias": (0, _STRONGEST),
    "relevance_bias": (-_STRONGEST, _STRONGEST),
    "activity": (0, WIDEST_SPREAD),
    "min_profile": (0, np.inf),
    "drift": (0, 1),
}


def world(
    users: int = 1_000,
    items: int = 500,
    ratings: int = 50_000,
    *,
    tastes: int = 8,
    taste: float = 0.8,
    noise: float = 0.4,
    popularity_bias: float = 1.8,
    relevance_bias: float = 1.1,
    activity: float = 1.0,
    min_profile: int = 5,
    max_profile: int | None = None,
    histogram: Mapping[float, float] | str | None = None,
    threshold: float = 4.0,
    times: bool = True,
    drift: float = 0.5,
    seed: int = 0,
) -> World:
    r"""Simulate a world with a known truth, and the biased ratings that are observed in it.

    Every user has a true grade for every item, from latent tastes and the item's general quality. Some of the pairs are
    observed: a user meets an item at the rate :math:`w_{ui} = x_i\, e^{b\, r_{ui}}`, where :math:`r_{ui}` is the true
    grade, :math:`b` the relevance bias, and :math:`x_i = (c_2 + k_i)^{-a}` the exposure of the item with random rank
    :math:`k_i`, with :math:`a` the popularity bias. The rank is independent of the item's quality: popular items are
    not better.

    Parameters
    ----------
    users, items, ratings
        Number of each. There are exactly this many ratings; fewer make a sparser world. An item may have none.
    tastes
        The number of latent tastes.
    taste
        The share of the variance of preferences that is personal taste; the rest is quality that all agree on. With
        0 all users have the same preferences.
    noise
        The standard deviation of the error of a rating, in standard deviations of the preference score; with 0 every
        rating is the true grade.
    popularity_bias
        The exponent of the exposure. With 0 all items are met equally often.
    relevance_bias
        One grade more makes a rating e to this power times as likely (if ratings are rare). With 0, whether an item is
        rated does not depend on whether it is liked.
    activity
        The spread of the log-normal profile sizes. With 0 all users have the same number of ratings.
    min_profile
        The smallest profile.
    max_profile
        The largest profile; by default six tenths of the items (MovieLens 1M has 62 %), or all of them in a world that
        is denser than 30 %.
    histogram
        The share of each true grade over all pairs.
    threshold
        The lowest relevant grade.
    times
        Whether ratings have times.
    drift
        How strongly popularity changes with time, from 0 (not at all) to 1.
    seed
        Seed of every random choice.

    Examples
    --------
    >>> fair = world(users=300, items=100, ratings=6_000, popularity_bias=0, relevance_bias=0)
    >>> biased = world(users=300, items=100, ratings=6_000, relevance_bias=1.5)
    >>> bool(abs(fair.ratings.values.mean() - fair.preference().mean()) < 0.1)
    True
    >>> bool(biased.ratings.values.mean() > biased.preference().mean() + 0.5)
    True
    """
    users, items, ratings = check_sizes(users, items, ratings, one_each=False)
    seed = check.whole("seed", seed, at_least=0)
    tastes, min_profile = whole("tastes", tastes), whole("min_profile", min_profile)
    settings: dict[str, Any] = dict(locals())  # the parameters
    grades, shares = histogram_arrays(TRUE_GRADES if histogram is None else histogram)
    settings["histogram"] = dict(zip(grades.tolist(), shares.tolist()))
    for name, (low, high) in _BOUNDS.items():
        check_bounds(name, settings[name], low, high)
    check.number("threshold", threshold)
    check.flag("times", times)
    if grades[0] < 0 or grades[-1] - grades[0] > _WIDEST:
        raise SettingError(f"the histogram has grades from {grades[0]:g} to {grades[-1]:g}; use 0 to {_WIDEST}")
    settings["max_profile"] = largest = _largest_profile(min_profile, max_profile, users, items, ratings)

    latent = Tastes.draw(users, items, tastes, share=taste, grades=grades, shares=shares, seed=seed)
    # How often each item is met: a shifted power law of its random rank, 1 for the first.
    ranks = shuffled(items, seed, "simulate.world", "exposure") + 1
    exposure = np.asarray(((_SHIFT * items + ranks) / (_SHIFT * items + 1)) ** -float(popularity_bias))
    sizes = log_normal_sizes(users, ratings, spread=activity, low=min_profile, high=largest)
    sizes = sizes[shuffled(users, seed, "simulate.world", "activity")]
    who = np.repeat(np.arange(users, dtype=np.int32), sizes)
    what = _observe(latent, exposure, relevance_bias, sizes, seed)
    errors = stream(seed, "simulate.world", "noise").random(len(what))
    observed = Ratings.from_codes(
        Vocabulary(pl.Series(np.arange(1, users + 1))),
        Vocabulary(pl.Series(np.arange(1, items + 1))),
        who,
        what,
        latent.grade(latent.pair_score(who, what) + noise * normal(errors)),
        times_of(who, what, users, items, drift, seed) if times else None,
        name="simulated world",
        history=(Step("simulate.world", settings, {"ratings": ratings}),),
    )
    return World(observed, latent, exposure, float(relevance_bias), float(noise), float(threshold), seed)


def _largest_profile(smallest: int, limit: int | None, users: int, items: int, ratings: int) -> int:
    if limit is None:
        some = items if ratings > _DENSE * users * items else int(_LARGEST * items)
        largest = min(items, max(some, smallest))
    else:
        largest = whole("max_profile", limit)
    if not smallest <= largest <= items:
        raise SettingError(
            f"profiles of {smallest:,} to {largest:,} ratings are not possible with {items:,} items; "
            "set min_profile and max_profile within them"
        )
    if not users * smallest <= ratings <= users * largest:
        raise SettingError(
            f"{ratings:,} ratings cannot be shared by {users:,} users with {smallest:,} to {largest:,} each; "
            "change ratings, min_profile or max_profile"
        )
    return largest


def _observe(
    latent: Tastes, exposure: NDArray[np.float64], relevance_bias: float, sizes: CountArray, seed: int
) -> NDArray[np.int32]:
    """Return the items that each user rates, one user after the other, ascending."""
    # One stream read row by row, so that the draws of a user do not depend on the block size.
    rng = stream(seed, "simulate.world", "observation")
    parts = []
    with progress("Observing", total=len(sizes), unit="users") as bar:
        for rows in blocks(len(sizes), len(exposure)):
            users = np.arange(rows.start, rows.stop)
            weights = rates(latent.grade(latent.score(users)), exposure, relevance_bias)
            draws = rng.random((len(users), len(exposure) + 1))
            sample = systematic_sample(inclusion(weights, sizes[rows]), sizes[rows], draws)
            parts.append(np.nonzero(sample)[1].astype(np.int32))
            bar.advance(len(users))
    return np.concatenate(parts)

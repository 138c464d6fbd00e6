"""Counts about a given split: overlap, leakage, cold starts, shifts, gaps, profiles."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.splits._pairs import among, pairs_of

Parts = Mapping[str, Ratings]

_QUANTILES = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75, "max": 1.0}
DAY = 86_400


def facts_of(parts: Parts, repeated: Mapping[str, int]) -> dict[str, Any]:
    """Return all counts, ready for JSON.

    Parameters
    ----------
    parts
        ``train`` and ``test``, and possibly ``validation`` and ``profiles``, over one vocabulary.
    repeated
        Number of rows in each part that repeated a pair of the same part.
    """
    train, test = parts["train"], parts["test"]
    inputs = parts.get("profiles", train)
    return {
        "parts": {name: _part(part) for name, part in parts.items()},
        "repeated": {name: int(repeated.get(name, 0)) for name in parts},
        "overlap": {f"{a} and {b}": _common(parts[a], parts[b]) for a, b in combinations(parts, 2)},
        "cold": _cold(train, test, inputs),
        "leakage": _leakage(train, test, inputs),
        "validation_leakage": _validation_leakage(train, parts["validation"], test, inputs)
        if "validation" in parts
        else None,
        "gaps": _gaps(inputs, test),
        "shift": _shifts(train, test, inputs),
    }


def quantiles(values: NDArray[Any]) -> dict[str, float] | None:
    """Return the minimum, the quartiles, the median and the maximum; None if there are no values."""
    if len(values) == 0:
        return None
    return dict(zip(_QUANTILES, map(float, np.quantile(values, list(_QUANTILES.values())))))


def _part(part: Ratings) -> dict[str, Any]:
    sizes = part.user_counts[part.user_counts > 0]
    return {
        "ratings": len(part),
        "users": len(sizes),
        "items": int(np.count_nonzero(part.item_counts)),
        "mean": float(part.values.mean()) if len(part) else None,
        "profiles": quantiles(sizes),
        "oldest": None if part.times is None or not len(part) else int(part.times.min()),
        "newest": None if part.times is None or not len(part) else int(part.times.max()),
    }


def _common(first: Ratings, second: Ratings) -> int:
    few, many = sorted((first, second), key=len)
    return int(np.count_nonzero(among(pairs_of(few), pairs_of(many)))) if len(few) else 0


def _cold(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any]:
    """Count test users about whom nothing is known, test items without training ratings, and the ratings of both."""
    user = (test.user_counts > 0) & (inputs.user_counts == 0)
    item = (test.item_counts > 0) & (train.item_counts == 0)
    affected = np.repeat(user, test.user_counts) | item[test.items]
    return {
        "users": int(np.count_nonzero(user)),
        "items": int(np.count_nonzero(item)),
        "ratings": int(np.count_nonzero(affected)),
    }


def _leakage(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any] | None:
    """Count how many test ratings are older than training ratings; None without times."""
    if train.times is None or test.times is None or inputs.times is None:
        return None
    newest_own = _by_user(inputs, np.maximum)
    own = test.times < np.repeat(newest_own, test.user_counts)
    first_test = int(test.times.min())
    first_seen = np.full(train.n_items, np.iinfo(np.int64).min)
    has = train.item_counts > 0
    oldest = np.full(train.n_items, np.iinfo(np.int64).max)
    np.minimum.at(oldest, train.items, train.times)
    first_seen[has] = oldest[has]
    later = test.times < first_seen[test.items]
    return {
        "own": int(np.count_nonzero(own)),
        "own_users": int(np.count_nonzero(np.bincount(test.users[own], minlength=test.n_users))),
        "before_training_ends": int(np.count_nonzero(test.times < int(train.times.max()))),
        "training_after_test_begins": int(np.count_nonzero(train.times > first_test)),
        "items_seen_later": int(np.count_nonzero(later)),
        "items_seen_later_items": len(np.unique(test.items[later])),
    }


def _validation_leakage(train: Ratings, validation: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any] | None:
    """Count the same for the validation part, and how many test ratings are older than its newest rating."""
    leakage = _leakage(train, validation, inputs)
    if leakage is None or test.times is None or validation.times is None:
        return None
    return {**leakage, "test_before_it_ends": int(np.count_nonzero(test.times < int(validation.times.max())))}


def _by_user(part: Ratings, reduce: Any) -> NDArray[np.int64]:
    """Return the newest or the oldest time of each user; the smallest integer for users without ratings."""
    assert part.times is not None
    some = part.user_counts > 0
    moments = np.full(part.n_users, np.iinfo(np.int64).min)
    if some.any():
        moments[some] = reduce.reduceat(part.times, part.indptr[:-1][some])
    return moments


def gap_days(inputs: Ratings, test: Ratings) -> NDArray[np.float64] | None:
    """Return the days from each user's last known rating to the first test rating; None without times."""
    if inputs.times is None or test.times is None:
        return None
    both = (inputs.user_counts > 0) & (test.user_counts > 0)
    days: NDArray[np.float64] = (_by_user(test, np.minimum)[both] - _by_user(inputs, np.maximum)[both]) / DAY
    return days


def _gaps(inputs: Ratings, test: Ratings) -> dict[str, Any] | None:
    days = gap_days(inputs, test)
    if days is None or not len(days):
        return None
    return {"users": len(days), "negative": int(np.count_nonzero(days < 0)), "days": quantiles(days)}


def _shifts(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any]:
    """Return how far ratings, popularity of items and activity of users differ between training and test.

    Popularity and activity are the numbers of training ratings of a rating's item and user; for a user who is held out
    whole, of the input. Whether a training rating counts itself makes a difference of one, which is not a shift: of the
    two ways to count, the one with the smaller distance is used.
    """
    return {
        "ratings": shift(train.values.astype(np.float64), test.values.astype(np.float64)),
        "popularity": _shift_of_counts(train.item_counts[train.items], train.item_counts[test.items]),
        "activity": _shift_of_counts(
            np.repeat(train.user_counts, train.user_counts), np.repeat(inputs.user_counts, test.user_counts)
        ),
    }


def _shift_of_counts(before: NDArray[np.int64], after: NDArray[np.int64]) -> dict[str, float]:
    ways = [shift((before - itself).astype(np.float64), after.astype(np.float64)) for itself in (0, 1)]
    return min(ways, key=lambda way: way["D"])


def shift(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, float]:
    """Return the means of two samples, the standardised difference, and Kolmogorov's distance with its p-value.

    d is the difference of the means in standard deviations of the first sample. D is the largest difference between the
    two distribution functions, from 0 (the same) to 1 (nothing in common).

    Examples
    --------
    >>> same = shift(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    >>> same["D"], same["d"], same["p"]
    (0.0, 0.0, 1.0)
    """
    from scipy.special import kolmogorov

    before, after = np.sort(before), np.sort(after)
    values = np.union1d(before, after)
    below = [np.searchsorted(sample, values, side="right") / len(sample) for sample in (before, after)]
    distance = float(np.abs(below[0] - below[1]).max())
    spread = float(before.std())
    size = len(before) * len(after) / (len(before) + len(after))
    return {
        "train": float(before.mean()),
        "test": float(after.mean()),
        "d": float((after.mean() - before.mean()) / spread) if spread > 0 else 0.0,
        "D": distance,
        "p": float(kolmogorov(np.sqrt(size) * distance)),
    }

"""Estimates of precision from observed ratings with fitted propensities, as sums of one term per user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield.biases import fit_propensities
from cranfield.data import Ratings
from cranfield.rankings import Run
from cranfield.recommenders import recommender
from cranfield.splits import Split

Floats = NDArray[np.float64]

ESTIMATORS = ("P@10 by IPS", "P@10 by SNIPS", "P@10 by DR (item mean)", "P@10 by DR (svd)")
"""The estimators of `cranfield.biases.estimate`, with propensities that are a power law of popularity."""
_DEPTH = 10
_DAMPING = 5


def estimator_sums(runs: Sequence[Run], split: Split, threshold: float, seed: int) -> tuple[Floats, Floats]:
    """Return numerators and denominators, each estimators × systems × users; lists have the codes of the split."""
    train, observed = split.train, split.test
    chances = fit_propensities(split, seed=seed)
    relevance = np.full((train.n_users, train.n_items), -1, dtype=np.int8)
    relevance[observed.users, observed.items] = observed.values >= threshold
    guesses = _imputed(train, threshold, seed)
    served = (train.user_counts > 0).astype(np.float64)
    sums = np.zeros((2, len(ESTIMATORS), len(runs), train.n_users))
    for place, run in enumerate(runs):
        users, items = _top(run)
        judged = relevance[users, items]
        weights = np.where(judged >= 0, 1.0 / chances.of(users, items), 0.0)
        liked = judged == 1
        sums[0, 0, place] = _by_user(users, weights * liked / _DEPTH, train)
        sums[0, 1, place], sums[1, 1, place] = _by_user(users, weights * liked, train), _by_user(users, weights, train)
        for number, guess in enumerate(guesses, start=2):
            own = guess[users, items]
            sums[0, number, place] = _by_user(users, (own + weights * (liked - own)) / _DEPTH, train)
    sums[1, [0, 2, 3]] = served
    return sums[0], sums[1]


def _top(run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the users and items at the top of all lists."""
    depth = np.minimum(np.diff(run.indptr), _DEPTH)
    lists = np.repeat(np.arange(len(run.users)), depth)
    places = np.arange(len(lists)) - np.repeat(np.cumsum(depth) - depth, depth) + run.indptr[:-1][lists]
    return run.users[lists].astype(np.int64), run.items[places].astype(np.int64)


def _by_user(users: NDArray[np.int64], values: Floats, train: Ratings) -> Floats:
    return np.bincount(users, weights=values, minlength=train.n_users).astype(np.float64)


def _imputed(train: Ratings, threshold: float, seed: int) -> list[Floats]:
    """Return relevance estimated from training alone, by item mean and by `svd`, each users × items."""
    liked = (train.values >= threshold).astype(np.float32)
    everybody = np.arange(train.n_users)
    mean = recommender(f"average(threshold={threshold:g}, damping={_DAMPING})").fit(train)
    factors = recommender(f"svd(seed={seed})").fit(replace(train, values=liked))
    return [
        np.clip(np.nan_to_num(np.asarray(system.score(everybody)), nan=float(liked.mean())), 0.0, 1.0)
        for system in (mean, factors)
    ]

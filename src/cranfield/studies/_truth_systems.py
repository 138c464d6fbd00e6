"""The systems that are compared with a truth, and their lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.rankings import Ranking, Run, Serving, rank_with, rankers_for
from cranfield.recommenders import recommender
from cranfield.splits import Split, Truth

PANEL = (
    "random", "popularity", "popularity(threshold={t})", "average(damping=10)", "average(threshold={t}, damping=5)",
    "svd", "puresvd", "wrmf(factors=20)", "bprmf(factors=20, epochs=100)", "knn", "itemknn",
    "knn(normalised=true, min_neighbours=3, ratings=truncated, threshold={t})", "slim(neighbours=50, sweeps=20)",
    "ease", "plsa(topics=10, iterations=50)", "lda(topics=10, iterations=50)", "rm1", "rm2", "rw", "kld", "chi2",
    "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub", "nncosngbr-ib", "ht", "uir", "ials(factors=20)",
    "mf-pointwise(factors=20)",
)  # fmt: skip
"""All our systems; ``{t}`` is the lowest rating of a relevant item."""

SERVED = Serving(min_ratings=1, sample="all")
"""Every user with training ratings gets a list."""


def panel_of(threshold: float, systems: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the spellings of the systems, with the threshold filled in; a misspelled one is an error."""
    names = tuple(name.replace("{t}", f"{threshold:g}") for name in (PANEL if systems is None else systems))
    if len(set(names)) < 2:
        raise SettingError("the study compares orders of systems; give at least two")
    for name in names:
        recommender(name)
    return names


class ItemScores:
    """A system with given item scores, the same for every user."""

    def __init__(self, scores: NDArray[np.float64]) -> None:
        self._scores = scores

    def fit(self, _: Ratings) -> ItemScores:
        """Return self; there is nothing to learn."""
        return self

    def score(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return the item scores for each user."""
        return np.tile(self._scores, (len(users), 1))


def fit_systems(systems: Sequence[str], train: Ratings) -> dict[str, Any]:
    """Return the fitted systems by spelling."""
    return {spelling: recommender(spelling).fit(train) for spelling in systems}


def ranked(
    fitted: Mapping[str, Any], split: Split | Ratings, rankings: Sequence[Ranking], seed: int
) -> list[dict[str, Run]]:
    """Return the runs by system under each of the rankings; every user with training ratings is served."""
    rankers = rankers_for(split, rankings, serving=SERVED, seed=seed)
    runs = {name: rank_with(system, rankers, name=name) for name, system in fitted.items()}
    return [{name: of_system[place] for name, of_system in runs.items()} for place in range(len(rankings))]


def paper_systems(truth: Truth, threshold: float, seed: int) -> dict[str, Any]:
    """Return the seven systems of Cañamares and Castells (2018), fitted on the training part of a truth.

    Popularity counts relevant ratings; the average is damped by the mean number of ratings of an item; kNN has all
    users as neighbours and uses max(r − threshold + 1, 0) as ratings, also in the similarity; the optimal rankings look
    at the test set.
    """
    train, counts = truth.train, truth.train.item_counts
    truncated = replace(train, values=np.maximum(train.values - np.float32(threshold) + 1, 0))
    assert truth.observed is not None

    def optimal(test: Ratings) -> ItemScores:
        relevant = np.bincount(test.items[test.values >= threshold], minlength=test.n_items)
        outside = np.maximum(train.n_users - counts, 1)
        return ItemScores(np.where(counts > 0, relevant / outside, np.nan))

    damping = len(train) / train.n_items
    everybody = f"k={train.n_users}"
    return {
        "random": recommender(f"random(seed={seed})").fit(train),
        "popularity": recommender(f"popularity(threshold={threshold:g})").fit(train),
        "average": recommender(f"average(threshold={threshold:g}, damping={damping!r})").fit(train),
        "optimal observed ranking": optimal(truth.observed),
        "optimal true ranking": optimal(truth.judged),
        "kNN, not normalised": recommender(f"knn({everybody})").fit(truncated),
        "kNN, normalised": recommender(f"knn({everybody}, normalised=true, min_neighbours=3)").fit(truncated),
    }

"""Scores of single user-item pairs, without scoring all items if the system can do so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.recommenders.adapters import checked_scores
from cranfield.recommenders.protocol import Recommender, ScoresPairs
from cranfield.recommenders.work import blocks


def pair_scores(
    name: str, system: Recommender, users: NDArray[Any], items: NDArray[Any], n_items: int
) -> NDArray[np.float64]:
    """Return the score of each pair of a user code and an item code; NaN where the system has no score.

    Examples
    --------
    >>> from cranfield.data import Ratings
    >>> from cranfield.recommenders import recommender
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> model = recommender("popularity").fit(train)
    >>> pair_scores("popularity", model, np.array([1, 0]), np.array([0, 1]), train.n_items).tolist()
    [2.0, 1.0]
    """
    if isinstance(system, ScoresPairs):
        scores = system.score_pairs(users, items)
        return checked_scores(name, np.asarray(scores)[None, :], (1, len(users)))[0].astype(np.float64)
    known, row_of = np.unique(users, return_inverse=True)
    scores = np.empty(len(users))
    order = np.argsort(row_of, kind="stable")
    for block in blocks(len(known), n_items):
        rows = known[block]
        first, last = np.searchsorted(row_of[order], [block.start, block.start + len(rows)])
        pairs = order[first:last]
        values = checked_scores(name, system.score(rows.astype(np.int32)), (len(rows), n_items))
        scores[pairs] = values[row_of[pairs] - block.start, items[pairs]]
    return scores

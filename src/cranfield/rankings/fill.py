"""Decision B2: the treatment of items that a system cannot score (Cañamares, Castells and Moffat 2020, Figure 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.recommenders import Model, Recommender, as_recommender, checked_scores


def fill_system(fill: Any, seed: int) -> Recommender | None:
    """Return the unfitted system that orders the gaps; None if gaps are left out.

    Parameters
    ----------
    fill
        None or ``"none"``: items without a score are left out. Otherwise any system: ``"random"``, ``"popularity"``,
        ``"average"``, ``"puresvd"``, an object.
    """
    if fill is None or (isinstance(fill, str) and fill == "none"):
        return None
    return as_recommender(fill, seed)


def filled(scores: NDArray[Any], fill: Recommender, users: NDArray[np.int32]) -> NDArray[Any]:
    """Return the scores with every NaN replaced, so that filled items come after all computed ones.

    Filled items are ordered by the scores of ``fill``, shifted below the lowest computed score of the row: s' = low − d
    (1 + (max f − f) / (max f − min f)) with d = max(1, |low|). If ``fill`` has no score either, NaN stays.

    Examples
    --------
    >>> from cranfield.data import Ratings
    >>> from cranfield.recommenders import recommender
    >>> popularity = recommender("popularity").fit(Ratings.of(["a", "b", "b"], ["x", "x", "z"]))
    >>> filled(np.array([[np.nan, 3.0]]), popularity, np.array([0], dtype=np.int32)).tolist()
    [[0.0, 3.0]]
    """
    gaps = np.isnan(scores)
    if not gaps.any():
        return scores
    ordering = fill.fill_scores(users) if isinstance(fill, Model) else fill.score(users)
    second = checked_scores("the fill", ordering, (len(users), scores.shape[1]))
    scores, second = (block.astype(np.float64, copy=False) for block in (scores, second))
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(scores), scores, np.inf).min(axis=1, initial=np.inf)
        low = np.where(np.isinf(low), 0.0, low)[:, None]
        best = np.where(np.isnan(second), -np.inf, second).max(axis=1, initial=-np.inf)[:, None]
        worst = np.where(np.isnan(second), np.inf, second).min(axis=1, initial=np.inf)[:, None]
        span = np.where(best > worst, best - worst, 1.0)
        below = low - np.maximum(1.0, np.abs(low)) * (1.0 + (best - second) / span)
    return np.where(gaps, below, scores)

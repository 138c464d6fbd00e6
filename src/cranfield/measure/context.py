"""What some metrics need beside lists and test ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cranfield.data import Ratings


@dataclass(frozen=True, eq=False)
class Context:
    """What some metrics need beside lists and test ratings.

    Parameters
    ----------
    train
        The training ratings: popularity, novelty and propensities come from them.
    similarity
        For diversity: an items × items array of similarities by item id, or a function of two arrays of item ids.
    """

    train: Ratings | None = None
    similarity: Any = None

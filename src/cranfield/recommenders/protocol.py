"""What a recommender is: `fit`, then `score`."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings


@runtime_checkable
class Recommender(Protocol):
    """A system that learns from ratings and scores items for users.

    Seen items, candidates, gaps and cut-offs are not its business: the ranking stage takes care of them.
    """

    def fit(self, train: Ratings) -> Self:
        """Learn from the training ratings."""
        ...

    def score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        """Return a row of scores over all items for each user code; NaN where the method cannot say."""
        ...

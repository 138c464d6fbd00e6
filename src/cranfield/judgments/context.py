"""What some metrics need besides lists and test ratings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cranfield.data import Ratings
from cranfield.tables import Vocabulary


@dataclass(frozen=True, eq=False)
class Context:
    """What some metrics need besides lists and test ratings.

    Parameters
    ----------
    train
        The training ratings: popularity, novelty and propensities come from them.
    similarity
        For diversity: a square array with a row for each item of the test set's vocabulary, or a function of two
        Polars Series of item ids.
    live
        The items that can be recommended, if a catalogue is given: its items, and those with a test rating. Other items
        keep their places in the lists and earn nothing. None: every item is live.
    """

    train: Ratings | None = None
    similarity: Any = None
    live: Vocabulary | None = None
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Cache of what metrics compute from these, shared by all systems."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given."""
        return self.train is None and self.similarity is None and self.live is None

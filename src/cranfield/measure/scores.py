"""`Scores`: systems × metrics × lists, with labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._record import Step
from cranfield.data import Vocabulary


@dataclass(frozen=True, eq=False)
class Scores:
    """The value of every metric for every list of every system.

    Parameters
    ----------
    systems, metrics
        Names, in the order of the first two axes of ``values``.
    values
        systems × metrics × lists (float64). NaN where the metric is undefined for the list, as a ranking metric is
        for a user without relevant test items; a list that a system does not give scores what an empty one does.
    covered
        systems × lists: whether the system gives a list with at least one item.
    users
        The user code of each list (int32); a user has several lists in the one-relevant design.
    user_ids
        The vocabulary of these codes.
    judged, relevant
        The number of test ratings, and of relevant ones, behind each list: the weights of weighted averages.
    lower_is_better
        For each metric, whether a smaller value is the better one.
    step
        The decisions that the values came from.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    values: NDArray[np.float64]
    covered: NDArray[np.bool_]
    users: NDArray[np.int32]
    user_ids: Vocabulary
    judged: NDArray[np.int64]
    relevant: NDArray[np.int64]
    lower_is_better: tuple[bool, ...]
    step: Step = field(default_factory=lambda: Step("measure"))

    @property
    def n_lists(self) -> int:
        """The number of lists that every system is scored on."""
        return len(self.users)

    def per_user(self) -> pl.DataFrame:
        """Return one row a system, metric and list: columns system, metric, user, value, covered."""
        systems, metrics, lists = self.values.shape
        user = self.user_ids.ids(self.users)
        columns: dict[str, Any] = {
            "system": np.repeat(np.array(self.systems, dtype=object), metrics * lists).tolist(),
            "metric": np.tile(np.repeat(np.array(self.metrics, dtype=object), lists), systems).tolist(),
            "user": pl.concat([user] * (systems * metrics)) if systems * metrics else user.clear(),
            "value": self.values.reshape(-1),
            "covered": np.repeat(self.covered[:, None, :], metrics, axis=1).reshape(-1),
        }
        return pl.DataFrame(columns)

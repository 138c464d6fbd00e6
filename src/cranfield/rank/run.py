"""`Run`: the ranked lists of one system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._record import Step
from cranfield.data import Vocabulary


@dataclass(frozen=True, eq=False)
class Run:
    """The ranked lists of one system, best first, whether it was trained here or read from a file.

    A list belongs to a user. Usually a user has one list; in the one-relevant design (Bellogín et al. 2017) there
    is one for each relevant test item, of which only that item and its rank are kept.

    Parameters
    ----------
    name
        The system's name.
    user_ids, item_ids
        The vocabularies that the codes below speak of.
    users
        The user code of each list (int32), ascending.
    indptr
        List ``l`` holds the entries ``indptr[l]:indptr[l + 1]`` of the arrays below.
    items
        Item codes in ranked order (int32).
    scores
        The system's scores (float64), or None where only the order is known.
    predictions
        Predicted ratings, where the system gives them apart from the scores.
    ranks
        The rank of each entry, from 1; None if the lists are whole, so that the k-th entry has rank k.
    lengths
        The number of items each list ranked; None if the lists are whole.
    one_relevant
        Whether each list was made for the one test item that it holds.
    counts
        What happened on the way in, by name: duplicates dropped, NaN scores dropped, ties, ...
    history
        How the run was made.
    """

    name: str
    user_ids: Vocabulary
    item_ids: Vocabulary
    users: NDArray[np.int32]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    scores: NDArray[np.float64] | None = None
    predictions: NDArray[np.float64] | None = None
    ranks: NDArray[np.int32] | None = None
    lengths: NDArray[np.int32] | None = None
    one_relevant: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    history: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"Run({self.name}: {len(self):,} lists, {len(self.items):,} items)"

    @property
    def list_lengths(self) -> NDArray[np.int32]:
        """The number of items each list ranked."""
        return np.diff(self.indptr).astype(np.int32) if self.lengths is None else self.lengths

    def frame(self) -> pl.DataFrame:
        """Return the lists with their ids: columns user, item, rank and, where known, score and prediction."""
        sizes = np.diff(self.indptr)
        if self.ranks is None:
            ranks = np.arange(len(self.items), dtype=np.int64) - np.repeat(self.indptr[:-1], sizes) + 1
        else:
            ranks = self.ranks.astype(np.int64)
        columns: dict[str, Any] = {
            "user": self.user_ids.ids(np.repeat(self.users, sizes)),
            "item": self.item_ids.ids(self.items),
            "rank": ranks,
        }
        if self.scores is not None:
            columns["score"] = self.scores
        if self.predictions is not None:
            columns["prediction"] = self.predictions
        return pl.DataFrame(columns)

"""`Run`: the ranked lists of one system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._table import Table
from cranfield.data import Vocabulary
from cranfield.rankings.calibration import Calibration
from cranfield.rankings.lists import Ties

# Number of lists shown in a notebook, and of items of each.
_SHOWN = 5


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
        The vocabularies of the codes below.
    users
        The user code of each list (int32), ascending.
    indptr
        List ``l`` holds the entries ``indptr[l]:indptr[l + 1]`` of the arrays below.
    items
        Item codes in ranked order (int32).
    scores
        The system's scores (float64), or None if only the order is known.
    made_scores
        Whether the scores were derived from ranks, to mark equal ranks, because the system gave only ranks.
    predictions
        Predicted ratings, if the system gives them separately from the scores.
    only_ranks
        Whether the scores are known not to be predicted ratings, for example counts of neighbours.
    calibration
        How predicted ratings were computed from the scores, or how the residuals of a system that predicts ratings were
        measured.
    ranks
        The rank of each entry, from 1; None if the lists are whole, so that the k-th entry has rank k.
    lengths
        The number of items each list ranked; None if the lists are whole.
    groups, group_names
        The group of each list as an index of ``group_names``; None if the lists are not grouped. In the one-relevant
        design of a split with popularity groups it is the group of the relevant item.
    one_relevant
        Whether each list was made for the one test item that it holds.
    ties
        How items of equal score were ordered: ``"trec_eval"`` (item ids as text, descending), ``"input"`` (input
        order), or ``"average"``: stored in trec_eval's order, and measured in expectation over the orders of each tied
        group.
    draws
        Whether the system uses random numbers, so that another seed gives other lists; False if that is not known.
    made_for
        A description of the users the lists were made for, if the record of their file says that users were left out.
    counts
        Counts from reading, by name: duplicates dropped, NaN scores dropped, ties, ...
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
    groups: NDArray[np.int16] | None = None
    group_names: tuple[str, ...] = ()
    one_relevant: bool = False
    made_scores: bool = False
    only_ranks: bool = False
    calibration: Calibration | None = None
    ties: Ties = "trec_eval"
    draws: bool = False
    made_for: str = ""
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

    def _repr_html_(self) -> str:
        rows = []
        for place in range(min(_SHOWN, len(self))):
            held = slice(self.indptr[place], min(self.indptr[place + 1], self.indptr[place] + _SHOWN))
            ranks = range(1, _SHOWN + 1) if self.ranks is None else self.ranks[held]
            items = [f"{rank}. {item}" for rank, item in zip(ranks, self.item_ids.ids(self.items[held]))]
            more = int(self.list_lengths[place]) - len(items)
            user = f"{self.user_ids.ids(self.users[place : place + 1])[0]}"
            rows.append([user, ", ".join(items) + (f", and {more:,} more" if more else "")])
        notes = [f"and {len(self) - _SHOWN:,} more lists"] if len(self) > _SHOWN else []
        return Table(["user", "list"], rows, repr(self), notes).html()

    @property
    def list_lengths(self) -> NDArray[np.int32]:
        """The number of items each list ranked."""
        return np.diff(self.indptr).astype(np.int32) if self.lengths is None else self.lengths

    @cached_property
    def n_distinct_items(self) -> int:
        """The number of different items that the lists hold."""
        held = np.zeros(len(self.item_ids), dtype=np.bool_)
        held[self.items] = True
        return int(np.count_nonzero(held))

    def ties_across(self, n: int) -> NDArray[np.bool_]:
        """Whether each list has a tie across the cut-off: its n-th and (n + 1)-th items have the same score.

        The sum is the number of such lists, the mean their share. The value of such a list at cut-off ``n`` depends on
        how ties are broken.
        """
        if n < 1:
            raise SettingError(f"the cut-off {n} is not a positive whole number; use 1 or more")
        tied = np.zeros(len(self), dtype=np.bool_)
        if self.scores is None:
            return tied
        if self.ranks is None:
            longer = np.diff(self.indptr) > n
            last = self.indptr[:-1][longer] + n - 1
            tied[longer] = self.scores[last] == self.scores[last + 1]
            return tied
        last = np.flatnonzero(
            (self.ranks[:-1] == n) & (self.ranks[1:] == n + 1) & (self.scores[:-1] == self.scores[1:])
        )
        owner, next_owner = (np.searchsorted(self.indptr, place, side="right") - 1 for place in (last, last + 1))
        tied[owner[owner == next_owner]] = True
        return tied

    def frame(self) -> pl.DataFrame:
        """Return the lists with their ids: columns user, item, rank and, where known, score, prediction and group."""
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
        if self.groups is not None:
            columns["group"] = pl.Series(self.group_names, dtype=pl.String).gather(np.repeat(self.groups, sizes))
        return pl.DataFrame(columns)

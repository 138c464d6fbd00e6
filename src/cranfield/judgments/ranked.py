"""`Ranked`: facts about a run that do not require reading it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.rankings import Run, Ties
from cranfield.tables import UNKNOWN, Vocabulary


@dataclass(frozen=True)
class Ranked:
    """What a measurement reports about a system besides its values.

    Parameters
    ----------
    name, ties, one_relevant, group_names, draws, only_ranks, made_for
        As in `Run`.
    counts
        Counts from reading the lists.
    n_lists, n_entries, longest, n_distinct_items
        The numbers of lists and entries of the run, the length of its longest list, and its number of distinct items.
    shares_items
        Whether the run uses the item vocabulary of the test set, as when both come from one split.
    unknown_items
        The items of its vocabulary that are not in the test set, as text.
    tied_across
        The number of lists with a tie across rank 1, rank 2, ...: this item and the next have the same score.
    has_scores, has_predictions
        Whether there are scores, and separate predicted ratings.
    """

    name: str
    ties: Ties = "trec_eval"
    one_relevant: bool = False
    group_names: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    n_lists: int = 0
    n_entries: int = 0
    longest: int = 0
    n_distinct_items: int = 0
    shares_items: bool = False
    unknown_items: tuple[str, ...] = ()
    tied_across: tuple[int, ...] = ()
    has_scores: bool = False
    has_predictions: bool = False
    draws: bool = False
    only_ranks: bool = False
    made_for: str = ""

    @classmethod
    def of(cls, run: Run, item_ids: Vocabulary | None = None) -> Ranked:
        """Return the facts about a run; ``item_ids`` are those of the test set, without which items are not counted."""
        codes = None if item_ids is None else item_ids.translation(run.item_ids)
        unknown = () if codes is None else run.item_ids.text.filter(pl.Series(codes == UNKNOWN)).to_list()
        return cls(
            name=run.name,
            ties=run.ties,
            one_relevant=run.one_relevant,
            group_names=run.group_names,
            counts=dict(run.counts),
            n_lists=len(run),
            n_entries=len(run.items),
            longest=int(run.list_lengths.max(initial=0)),
            n_distinct_items=0 if item_ids is None else run.n_distinct_items,
            shares_items=codes is None,
            unknown_items=tuple(unknown),
            tied_across=tuple(_tied_across(run).tolist()) if run.counts.get("tied_items") else (),
            has_scores=run.scores is not None,
            has_predictions=run.predictions is not None,
            draws=run.draws,
            only_ranks=run.only_ranks,
            made_for=run.made_for,
        )

    def share_tied_across(self, n: int) -> float:
        """Return the share of the lists that have a tie across rank ``n``; see `Run.ties_across`."""
        return self.tied_across[n - 1] / self.n_lists if n <= len(self.tied_across) else 0.0


def _tied_across(run: Run) -> NDArray[np.int64]:
    """Return for each rank, from 1, the number of lists in which this item and the next have the same score."""
    if run.scores is None:
        return np.zeros(0, dtype=np.int64)
    same: NDArray[Any] = run.scores[1:] == run.scores[:-1]
    first = run.indptr[1:-1]
    same[first[(first > 0) & (first < len(run.scores))] - 1] = False  # there are no ties between lists
    places = np.flatnonzero(same)
    if run.ranks is None:
        ranks = places - run.indptr[np.searchsorted(run.indptr, places, side="right") - 1] + 1
    else:
        ranks = run.ranks[places][run.ranks[places + 1] == run.ranks[places] + 1]
    return np.bincount(ranks, minlength=1)[1:]

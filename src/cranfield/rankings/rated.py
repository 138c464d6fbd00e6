"""Runs that keep only the test items of each list, with their ranks, which is all that judged metrics need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.rankings.ranker import Ranker, RunColumns
from cranfield.rankings.run import Run
from cranfield.rankings.targets import rated_cells
from cranfield.rankings.top import TieOrder, ranks_among


@dataclass(frozen=True, eq=False)
class RatedRanker(Ranker):
    """A ranker whose whole lists keep only items that the user rated in the test set.

    Ranks and lengths are those of the whole list. Ranks are found by counting, so no list is sorted. Metrics of unrated
    items, such as novelty, need whole lists. Lists are not cut.

    Examples
    --------
    >>> from cranfield.data import Ratings
    >>> from cranfield.rankings import Ranking, Serving
    >>> from cranfield.rankings.several import rank_with
    >>> from cranfield.recommenders import recommender
    >>> from cranfield.splits import predefined
    >>> split = predefined(Ratings.of([1, 2, 2], ["a", "a", "b"]), Ratings.of([1], ["c"]))
    >>> ranker = RatedRanker.of(split, Serving(), Ranking(length="all"), 0)
    >>> (run,) = rank_with(recommender("random").fit(split.train), [ranker])
    >>> run.list_lengths.tolist()[0], len(run.items) <= 1
    (1, True)
    """

    def _lists(self, users: NDArray[Any], scores: NDArray[Any], ties: TieOrder) -> tuple[NDArray[Any], ...]:
        assert self.targets.test is not None
        allowed = self.targets.allowed(users)
        rows, items = rated_cells(self.targets.test, users)
        inside = allowed[rows, items]
        rows, items = rows[inside], items[inside]
        ranks, _ = ranks_among(scores, allowed, rows, items, ties)
        order = np.lexsort((ranks, rows))
        order = order[ranks[order] > 0]
        sizes = np.bincount(rows[order], minlength=len(users))
        lengths = np.count_nonzero(allowed & ~np.isnan(scores), axis=1)
        return sizes, items[order], ranks[order], lengths

    def _whole_run(self, name: str, ranked: RunColumns) -> Run:
        sizes, items, ranks, lengths = ranked.columns or [np.zeros(0, dtype=np.int64)] * 4
        train = self.targets.train
        return Run(
            name=name,
            user_ids=train.user_ids,
            item_ids=train.item_ids,
            users=self.users,
            indptr=np.append(np.int64(0), np.cumsum(sizes)),
            items=items.astype(np.int32),
            ranks=ranks.astype(np.int32),
            lengths=lengths.astype(np.int32),
            draws=ranked.draws,
            counts={"empty_lists": int(np.count_nonzero(lengths == 0))},
            history=self._history(name, ranked.adapted),
        )

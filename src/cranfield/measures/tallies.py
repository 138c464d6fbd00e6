"""Tallies: counts for a part of the users; the tallies of disjoint parts add up to that of all users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.judgments import (
    Judged,
    Judgments,
    Ranked,
    as_judgments,
    count_hits,
    is_copy,
    negative_grades_of,
    shared_ratings,
)
from cranfield.metrics import IdCounts
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN

# Number of unmatched ids to keep as examples for messages.
_UNMET = 2000
# Number of scores to check for being ratings.
_SCORES = 100_000


@dataclass(frozen=True, eq=False)
class RatingsTally:
    """Counts of the test ratings of some users.

    Parameters
    ----------
    lists, ratings, without_relevant
        The numbers of measured users, of ratings, and of users without a relevant rating.
    items
        How often each item is rated.
    negative, unread
        The number of grades below 0, and of users with only such grades.
    shared
        The number of ratings that are also in the training set.
    """

    lists: int
    ratings: int
    without_relevant: int
    items: IdCounts
    negative: int = 0
    unread: int = 0
    shared: int = 0

    @classmethod
    def of(cls, test: Ratings, judgments: Judgments | None, train: Ratings | None) -> RatingsTally:
        """Count test ratings; the judgments are None if none of them is judged."""
        return cls(
            0 if judgments is None else judgments.n_lists,
            len(test),
            0 if judgments is None else int((judgments.n_relevant == 0).sum()),
            IdCounts(test.item_ids, np.bincount(test.items, minlength=test.n_items)[None]),
            *negative_grades_of(test),
            0 if train is None or not len(train) or not len(test) else shared_ratings(test, train),
        )

    def __add__(self, other: RatingsTally) -> RatingsTally:
        names = ("lists", "ratings", "without_relevant", "items", "negative", "unread", "shared")
        return RatingsTally(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True, eq=False)
class SystemTally:
    """Counts of the lists of a system for some users.

    Parameters
    ----------
    ranked
        The facts about its run.
    counts
        Counts from joining its lists with the test ratings.
    users, met
        The number of users with lists, and how many of these have test ratings.
    unmet
        Some users with lists but without test ratings, and some with test ratings but without lists.
    items
        How often each item is in its lists; in those of users with test ratings; and in the latter down to each
        cut-off.
    places
        The number of places of the lists of users with test ratings, and of these down to each cut-off.
    hits
        The number of judged items in its lists.
    seen
        The number of items that the list's own user rated in training.
    is_copy
        Whether the lists are the test ratings themselves.
    digest
        A hash of the lists; 0 if it is not needed.
    sums
        The sums of metrics of the whole system.
    rated_scores
        The scores of some rated items, if they are used as predicted ratings; otherwise None.
    """

    ranked: Ranked
    counts: Mapping[str, int]
    users: int
    met: int
    unmet: tuple[pl.Series, pl.Series]
    items: IdCounts
    places: NDArray[np.int64]
    hits: int = 0
    seen: int = 0
    is_copy: bool = True
    digest: int = 0
    sums: tuple[Any, ...] = ()
    rated_scores: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        run: Run,
        judged: Judged | None,
        test: Ratings,
        train: Ratings | None,
        *,
        cutoffs: Sequence[int] = (),
        digest: bool = False,
        sums: tuple[Any, ...] = (),
    ) -> SystemTally:
        """Count the lists of a run; the judged lists are None if no user of the part is judged."""
        known = test.user_ids.codes(run.user_ids.all) != UNKNOWN
        served = run.user_ids.codes(test.user_ids.all) != UNKNOWN
        return cls(
            Ranked.of(run),
            {"users without test ratings": len(run)} if judged is None else judged.counts,
            len(run.user_ids),
            int(known.sum()),
            (run.user_ids.all.filter(~known).head(_UNMET), test.user_ids.all.filter(~served).head(_UNMET)),
            IdCounts(run.item_ids, _item_counts(run, judged, cutoffs)),
            _places(judged, cutoffs),
            0 if judged is None else len(judged),
            0 if train is None or not len(train) or not len(run) else count_hits(run, as_judgments(train, None)),
            is_copy(judged, run, at_least=0) if judged is not None else not len(run.items),
            _digest(run) if digest else 0,
            sums,
            None if judged is None else _rated_scores(run, judged),
        )

    def __add__(self, other: SystemTally) -> SystemTally:
        return SystemTally(
            _merged(self.ranked, other.ranked),
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in {**self.counts, **other.counts}},
            self.users + other.users,
            self.met + other.met,
            (_some(self.unmet[0], other.unmet[0]), _some(self.unmet[1], other.unmet[1])),
            self.items + other.items,
            self.places + other.places,
            self.hits + other.hits,
            self.seen + other.seen,
            self.is_copy and other.is_copy,
            self.digest + other.digest,
            tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums)) or self.sums or other.sums,
            _some_scores(self.rated_scores, other.rated_scores),
        )


def _item_counts(run: Run, judged: Judged | None, cutoffs: Sequence[int]) -> NDArray[np.int64]:
    n = len(run.item_ids)
    listed = np.bincount(run.items, minlength=n)
    if judged is None:
        return np.stack([listed, *([np.zeros(n, dtype=np.int64)] * (1 + len(cutoffs)))])
    if not cutoffs and not judged.counts.get("users without test ratings"):
        return np.stack([listed, listed])
    entries = judged.entries
    down_to = [np.bincount(entries.items[entries.ranks <= cutoff], minlength=n) for cutoff in cutoffs]
    return np.stack([listed, np.bincount(entries.items, minlength=n), *down_to])


def _places(judged: Judged | None, cutoffs: Sequence[int]) -> NDArray[np.int64]:
    lengths = np.zeros(0, dtype=np.int64) if judged is None else judged.lengths.astype(np.int64)
    return np.array([lengths.sum(), *(np.minimum(lengths, cutoff).sum() for cutoff in cutoffs)])


def _rated_scores(run: Run, judged: Judged) -> NDArray[np.float64] | None:
    if run.predictions is not None or run.scores is None or run.made_scores or judged.places is None:
        return None
    return run.scores[judged.places[:_SCORES]]


def _some_scores(scores: NDArray[np.float64] | None, others: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if scores is None or others is None or len(scores) >= _SCORES:
        return others if scores is None else scores
    return np.concatenate([scores, others])[:_SCORES]


def _some(ids: pl.Series, others: pl.Series) -> pl.Series:
    if len(ids) >= _UNMET or not len(others):
        return ids
    return pl.concat([ids.to_frame("id"), others.to_frame("id")], how="vertical_relaxed")["id"].head(_UNMET)


def _digest(run: Run) -> int:
    """Return a hash of the lists and their users."""
    content = blake2b(digest_size=8)
    ids = [vocabulary.all.hash().to_numpy() for vocabulary in (run.user_ids, run.item_ids)]
    for array in (run.items, run.users, run.indptr, *ids, *([] if run.ranks is None else [run.ranks])):
        content.update(np.ascontiguousarray(array).data)
    return int.from_bytes(content.digest(), "little")


def _merged(ranked: Ranked, other: Ranked) -> Ranked:
    """Return the facts about a run from two parts of it; its items are counted elsewhere."""
    names = {**ranked.counts, **other.counts}
    return replace(
        ranked,
        counts={name: ranked.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
        n_lists=ranked.n_lists + other.n_lists,
        n_entries=ranked.n_entries + other.n_entries,
        longest=max(ranked.longest, other.longest),
        tied_across=tuple(sum(pair) for pair in zip_longest(ranked.tied_across, other.tied_across, fillvalue=0)),
        has_scores=ranked.has_scores or other.has_scores,
        has_predictions=ranked.has_predictions or other.has_predictions,
    )

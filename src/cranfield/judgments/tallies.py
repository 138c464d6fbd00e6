"""Tallies: counts of test ratings and runs for some of the users, which add up to those of all users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.judgments.context import RunFacts, sum_of_counts
from cranfield.judgments.joining import count_hits
from cranfield.judgments.judged import Judged
from cranfield.judgments.judging import as_judgments
from cranfield.judgments.judgments import Judgments, negative_grades_of
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN, Vocabulary

# Number of ids of some users that are kept for messages; of all users at once, all are kept.
_MOST_IDS = 2000
# Number of scores to check for being ratings.
_SCORES = 100_000
# Number of values or items that are looked at first.
_SAMPLE = 10_000


@dataclass(frozen=True, eq=False)
class IdCounts:
    """Some counts of each id, as rows × ids."""

    ids: Vocabulary
    counts: NDArray[np.int64]

    def __add__(self, other: IdCounts) -> IdCounts:
        known = self.ids.translation(other.ids)
        is_new = known is not None and bool((known == UNKNOWN).any())
        ids = Vocabulary.union([self.ids, other.ids]) if is_new else self.ids
        counts = np.zeros((len(self.counts), len(ids)), dtype=np.int64)
        for part in (self, other):
            codes = ids.translation(part.ids)
            counts[:, slice(None) if codes is None else codes] += part.counts
        return IdCounts(ids, counts)


@dataclass(frozen=True, eq=False)
class RatingsTally:
    """Counts of the test ratings of some users."""

    lists: int  # the number of measured users
    ratings: int
    users: int  # with any rating
    without_relevant: int  # users
    user_ids: Vocabulary | None  # these users; None if there are too many of them to keep
    items: IdCounts  # how often each item is judged
    negative: int = 0  # grades below 0
    unread: int = 0  # users with only such grades
    shared: int = 0  # the number of ratings that are also in the training set
    values: NDArray[Any] | None = None  # the distinct values of some ratings
    is_even: bool = False  # whether all users have the same number of ratings, which is above 1
    history: tuple[Step, ...] = ()  # how they were read

    @classmethod
    def of(
        cls, test: Ratings | None, judgments: Judgments | None, train: Ratings | None, *, whole: bool = False
    ) -> RatingsTally:
        """Count test ratings, of which the judgments are None if none is judged.

        The ratings are None if only the judgments are known. ``whole``: these are all users, whose ids are kept.
        """
        known: Any = test if judgments is None else judgments
        items = np.zeros(0, dtype=np.int64) if judgments is None else judgments.items
        tally = cls(
            lists=0 if judgments is None else judgments.n_lists,
            ratings=0,
            users=len(known.user_ids),
            without_relevant=0 if judgments is None else int((judgments.n_relevant == 0).sum()),
            user_ids=known.user_ids if whole else _if_few(known.user_ids),
            items=IdCounts(known.item_ids, np.bincount(items, minlength=len(known.item_ids))[None]),
        )
        if test is None or not len(test):
            return tally
        negative, unread = negative_grades_of(test)
        counts = test.user_counts[test.user_counts > 0]
        return replace(
            tally,
            ratings=len(test),
            negative=negative,
            unread=unread,
            shared=0 if train is None or not len(train) else count_hits(_as_run(test), as_judgments(train, None)),
            values=np.unique(test.values[:_SAMPLE]),
            is_even=len(counts) > 1 and counts[0] > 1 and bool((counts == counts[0]).all()),
            history=test.history,
        )

    def __add__(self, other: RatingsTally) -> RatingsTally:
        names = ("lists", "ratings", "users", "without_relevant", "items", "negative", "unread", "shared")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        first = other if self.values is None else self
        return replace(first, user_ids=_if_few(self.user_ids, other.user_ids), **sums)


@dataclass(frozen=True, eq=False)
class SystemTally:
    """Counts of the lists of a system for some users."""

    ranked: RunFacts  # the facts about its run
    history: tuple[Step, ...]
    counts: Mapping[str, int]  # counts from joining its lists with the test ratings
    users: int  # with lists
    met: int  # how many of these have test ratings
    user_ids: Vocabulary | None  # the users with lists; None if there are too many of them to keep
    # Some users with lists but without test ratings, and some with test ratings but without lists.
    unmet: tuple[pl.Series, pl.Series]
    # How often each item is in its lists; in those of users with test ratings; in the latter down to each cut-off.
    items: IdCounts
    # The number of places of the lists of users with test ratings, and of these down to each cut-off.
    places: NDArray[np.int64]
    lengths: Counter[int]  # the number of lists of each length, from 0
    hits: int  # the number of judged items in its lists
    seen: int  # the number of items that the list's own user rated in training; not of lists that were made here
    is_copy: bool  # whether the lists are the test ratings themselves
    digest: int  # a hash that is the same for two systems if their lists are
    values: NDArray[Any] | None  # the distinct values of some scores; None if it has none of its own
    # The scores of some rated items, if they are used as predicted ratings; otherwise None.
    rated_scores: NDArray[np.float64] | None
    sums: tuple[Any, ...] = ()  # the sums of metrics of the whole system

    @classmethod
    def of(
        cls,
        run: Run,
        judged: Judged | None,
        test: Vocabulary,
        train: Ratings | None,
        *,
        digest: int,
        whole: bool = False,
        cutoffs: Sequence[int] = (),
        sums: tuple[Any, ...] = (),
    ) -> SystemTally:
        """Count the lists of a run, given the users of the test set.

        The judged lists are None if no user is judged. ``whole``: these are all users, whose ids are kept.
        """
        known, served = in_both(run.user_ids, test)
        unmet = run.user_ids.all.filter(pl.Series(~known)), test.all.filter(pl.Series(~served))
        ranked = RunFacts.of(run) if judged is None or judged.ranked is None else judged.ranked
        return cls(
            ranked=replace(ranked, unknown_items=()),
            history=run.history,
            counts={"users without test ratings": len(run)} if judged is None else judged.counts,
            users=len(run.user_ids),
            met=int(known.sum()),
            user_ids=run.user_ids if whole else _if_few(run.user_ids),
            unmet=unmet if whole else (unmet[0].head(_MOST_IDS), unmet[1].head(_MOST_IDS)),
            items=IdCounts(run.item_ids, _item_counts(run, judged, cutoffs)),
            places=_places(judged, cutoffs),
            lengths=_lengths(run),
            hits=0 if judged is None else len(judged),
            seen=_seen(run, train),
            is_copy=_is_copy(run, judged),
            digest=digest,
            values=None if run.scores is None or run.made_scores else np.unique(run.scores[:_SAMPLE]),
            rated_scores=None if judged is None else _rated_scores(run, judged),
            sums=sums,
        )

    def __add__(self, other: SystemTally) -> SystemTally:
        names = ("ranked", "users", "met", "items", "places", "lengths", "hits", "seen", "digest")
        return replace(
            self,
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            counts=sum_of_counts([self.counts, other.counts]),
            user_ids=_if_few(self.user_ids, other.user_ids),
            unmet=(_some(self.unmet[0], other.unmet[0]), _some(self.unmet[1], other.unmet[1])),
            is_copy=self.is_copy and other.is_copy,
            values=other.values if self.values is None or not len(self.values) else self.values,
            rated_scores=_some_scores(self.rated_scores, other.rated_scores),
            sums=tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums)) or self.sums or other.sums,
        )


def digests(runs: Sequence[Run]) -> list[int]:
    """Return a hash of the lists of each run: of their start, and of all of them if others start the same way."""
    starts = [len(run.items).to_bytes(8, "little") + run.items[:_SAMPLE].tobytes() for run in runs]
    alike = Counter(starts)
    return [_digest(run, start) if alike[start] > 1 else _hash([start]) for run, start in zip(runs, starts)]


def _digest(run: Run, start: bytes) -> int:
    ids = [vocabulary.all.hash().to_numpy() for vocabulary in (run.user_ids, run.item_ids)]
    arrays = [run.items, run.users, run.indptr, *ids, *([] if run.ranks is None else [run.ranks])]
    return _hash([start, *(np.ascontiguousarray(array).data for array in arrays)])


def _hash(contents: Iterable[Any]) -> int:
    digest = blake2b(digest_size=8)
    for content in contents:
        digest.update(content)
    return int.from_bytes(digest.digest(), "little")


def in_both(ids: Vocabulary, others: Vocabulary) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which ids of each vocabulary are also in the other."""
    codes = others.translation(ids)
    known, met = np.ones(len(ids), dtype=np.bool_), np.ones(len(others), dtype=np.bool_)
    if codes is not None:
        known = codes != UNKNOWN
        met = np.zeros(len(others), dtype=np.bool_)
        met[codes[known]] = True
    return known, met


def _if_few(*ids: Vocabulary | None) -> Vocabulary | None:
    """Return the ids of all vocabularies; None if one is not known, or if they are too many to keep."""
    known = [vocabulary for vocabulary in ids if vocabulary is not None]
    if len(known) < len(ids) or sum(map(len, known)) > _MOST_IDS:
        return None
    return Vocabulary.union(known)


def _some(ids: pl.Series, others: pl.Series) -> pl.Series:
    if len(ids) >= _MOST_IDS or not len(others):
        return ids
    return pl.concat([ids.to_frame("id"), others.to_frame("id")], how="vertical_relaxed")["id"].head(_MOST_IDS)


def counted_items(judged: Judged, cutoffs: Sequence[int] = ()) -> tuple[IdCounts, NDArray[np.int64]]:
    """Return the counts of the items of judged lists, and their number of places; see `SystemTally`."""
    assert judged.entries is not None  # otherwise an error says that whole lists are needed
    assert judged.run is not None
    run = judged.run
    return IdCounts(run.item_ids, _item_counts(run, judged, cutoffs)), _places(judged, cutoffs)


def _item_counts(run: Run, judged: Judged | None, cutoffs: Sequence[int]) -> NDArray[np.int64]:
    n = len(run.item_ids)
    listed = np.bincount(run.items, minlength=n)
    if judged is None:
        return np.stack([listed, *([np.zeros(n, dtype=np.int64)] * (1 + len(cutoffs)))])
    if not cutoffs and not judged.counts.get("users without test ratings"):
        return np.stack([listed, listed])
    if not cutoffs:
        users = judged.judgments.user_ids.translation(run.user_ids)
        measured = np.isin(run.users if users is None else users[run.users], judged.judgments.users)
        return np.stack([listed, np.bincount(run.items[np.repeat(measured, np.diff(run.indptr))], minlength=n)])
    entries = judged.entries
    down_to = [np.bincount(entries.items[entries.ranks <= cutoff], minlength=n) for cutoff in cutoffs]
    return np.stack([listed, np.bincount(entries.items, minlength=n), *down_to])


def _places(judged: Judged | None, cutoffs: Sequence[int]) -> NDArray[np.int64]:
    lengths = np.zeros(0, dtype=np.int64) if judged is None else judged.lengths.astype(np.int64)
    return np.array([lengths.sum(), *(np.minimum(lengths, cutoff).sum() for cutoff in cutoffs)])


def _lengths(run: Run) -> Counter[int]:
    counts = np.bincount(np.diff(run.indptr))
    return Counter({length: int(counts[length]) for length in np.flatnonzero(counts).tolist()})


def _seen(run: Run, train: Ratings | None) -> int:
    made_here = bool(run.history) and run.history[-1].action != "read_run"
    if train is None or not len(train) or not len(run) or run.one_relevant or made_here:
        return 0
    return count_hits(run, as_judgments(train, None))


def _is_copy(run: Run, judged: Judged | None) -> bool:
    """Whether a run contains all ratings of the test set, each as a score, and nothing else."""
    if judged is None:
        return not len(run.items)
    if run.scores is None or run.one_relevant or not len(judged) == len(run.items) == len(judged.judgments):
        return False
    assert judged.places is not None  # every join has them
    return np.array_equal(run.scores[judged.places], judged.grades)


def _rated_scores(run: Run, judged: Judged) -> NDArray[np.float64] | None:
    if run.predictions is not None or run.scores is None or run.made_scores or judged.places is None:
        return None
    return run.scores[judged.places[:_SCORES]]


def _some_scores(scores: NDArray[np.float64] | None, others: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if scores is None or others is None or len(scores) >= _SCORES:
        return others if scores is None else scores
    return np.concatenate([scores, others])[:_SCORES]


def _as_run(ratings: Ratings) -> Run:
    """Return the profiles of users as lists, to be joined with other ratings."""
    users = np.flatnonzero(ratings.user_counts).astype(np.int32)
    indptr = np.append(ratings.indptr[users], len(ratings))
    return Run("test", ratings.user_ids, ratings.item_ids, users, indptr, ratings.items)

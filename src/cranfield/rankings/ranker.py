"""From a fitted system to its run: its scores, or its own lists, ranked under the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rankings.calibration import Calibration, HeldOut, calibrate_system
from cranfield.rankings.decisions import EVERYONE, Ranking, Serving, served_users
from cranfield.rankings.run import Run
from cranfield.rankings.targets import Targets, rated_cells
from cranfield.rankings.top import TieOrder, fill_system, filled, own_top, ranks_among, top
from cranfield.recommenders import (
    GivesLists,
    Model,
    Recommender,
    ScoresPairs,
    blas_threads,
    blocks,
    checked_scores,
    each,
    from_profiles,
    pair_scores,
    predicts_ratings,
    system_name,
)
from cranfield.splits import Split


def rank(
    system: Recommender,
    split: Split | Ratings,
    *,
    serving: Serving = EVERYONE,
    ranking: Ranking | None = None,
    seed: int = 0,
    name: str | None = None,
) -> Run:
    """Rank items by a system that is already fitted on the training ratings of a split.

    Only training ratings are enough if nothing needs test ratings. ``serving`` says who is served (B1), ``ranking`` how
    scores become lists (B2, C1); ``seed`` is that of the choice of users and targets, and of the fill.

    Examples
    --------
    >>> from cranfield.recommenders import recommender
    >>> train = Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "x", "z"])
    >>> model = recommender("popularity").fit(train)
    >>> rank(model, train, ranking=Ranking(length=1)).frame().rows()[0]
    ('ann', 'z', 1, 1.0)
    """
    ranker = Ranker.of(split, serving, ranking or Ranking(), seed)
    name = system_name(system) if name is None else name
    return ranker.run(name, ranker.ranked(name, system))


BlockColumns = tuple[NDArray[Any], ...]
"""The columns of the lists of some users: lengths, items and scores, or what `Ranker.run` makes of them."""


class RunColumns(NamedTuple):
    """The columns of a run, and facts about its system."""

    columns: list[NDArray[Any]] | None  # None for no lists
    predicts: bool | None  # whether the scores are predicted ratings, if it is known
    draws: bool  # whether the system uses random numbers
    calibration: Calibration | None = None
    adapted: Mapping[str, Any] = MappingProxyType({})  # the settings that the system chose from the data


@dataclass(frozen=True, eq=False)
class Ranker:
    """Makes the lists of every system for the same users and targets."""

    targets: Targets
    users: NDArray[np.int32]
    served: Step
    train: Ratings  # what systems learn from at first
    profiles: Ratings | None = None  # what lists are made from, if users are held out whole
    held_out: HeldOut | None = None
    validation: Ratings | None = None  # for systems that use it in training
    whole: Ratings | None = None  # what systems learn from in the end: training and validation; None if only ``train``

    @classmethod
    def of(
        cls,
        data: Split | Ratings,
        serving: Serving,
        ranking: Ranking,
        seed: int,
        held_out: HeldOut | None = None,
        *,
        refit: bool = True,
    ) -> Ranker:
        """Determine the users and targets, and refuse decisions that leave no list at all.

        ``held_out`` are the ratings that a calibration is fitted on, if they are not the validation part. Lists hold no
        items of the training and validation parts. With ``refit``, systems learn from both in the end.
        """
        if not isinstance(data, Split | Ratings):
            raise SettingError(
                f"{type(data).__name__} is neither a split nor ratings; make ratings from files and frames with "
                "cf.read, and a split of them with cf.splits"
            )
        train, test, groups, profiles = (
            (data, None, None, None)
            if isinstance(data, Ratings)
            else (data.train, data.test, data.item_groups, data.profiles)
        )
        if len(train) == 0:
            raise InputError("the training set holds no ratings", remedy="give some, or fix the split")
        seed = check.whole("seed", seed, at_least=0)
        validates = isinstance(data, Split) and data.validation is not None and not data.is_for_search
        seen = data.joined.train if isinstance(data, Split) and validates else train
        whole = seen if validates and refit else None
        if ranking.calibration != "none":
            if held_out is None and (isinstance(data, Ratings) or data.validation is None):
                raise SettingError(
                    "a calibration is fitted on ratings that the system did not learn from, and the split has no "
                    "validation part; make it with validation=0.1 and fit the system on its training part, or use "
                    "recommend"
                )
            held_out = held_out or HeldOut.of(data, seed)
            train, seen = held_out.train, seen if validates else held_out.seen
        if isinstance(data, Split) and ranking.keep_seen and ranking.repeats == "exclude" and data.repeated is not None:
            raise SettingError(
                "repeats='exclude' recommends new items only, and keep_seen=True others too; set repeats='allow'"
            )
        inputs = seen if profiles is None else profiles
        targets = Targets(inputs, test, ranking, seed, groups)
        users, served = served_users(inputs, serving, seed)
        if ranking.one_relevant and len(targets.relevant_cells(users)[0]) == 0:
            raise SettingError(
                f"no user who is served has a test rating of {targets.ranking.threshold:g} or more, so there is no "
                "list to rank; lower the threshold"
            )
        validation = data.validation if isinstance(data, Split) else None
        return cls(targets.drawn_for(users), users, served, train, profiles, held_out, validation, whole)

    @property
    def learned_from(self) -> Ratings:
        """What systems learn from in the end."""
        return self.train if self.whole is None else self.whole

    @property
    def ranking(self) -> Ranking:
        """How scores become lists."""
        return self.targets.ranking

    @property
    def width(self) -> int:
        """The number of items that a system scores."""
        return self.targets.train.n_items

    @property
    def _most(self) -> int:
        return self.ranking.most(self.width)

    @cached_property
    def _ties(self) -> TieOrder:
        return TieOrder(self.targets.train.item_ids)

    def calibrated(self, name: str, system: Recommender) -> Calibration | None:
        """Fit the calibration of a system's scores; None without one."""
        if self.held_out is None:
            return None
        return calibrate_system(name, system, self.held_out, self.ranking.calibration)

    def ranked(self, name: str, system: Recommender, calibration: Calibration | None = None) -> RunColumns:
        """Rank by a fitted system, in blocks of users; the calibration is fitted here unless given."""
        calibration = calibration or self.calibrated(name, system)
        plain = self.fitted_fill is None and self.profiles is None and not self.ranking.one_relevant
        # For deep lists, ``top`` of our models takes as long as scoring every item.
        is_deep = isinstance(system, Model) and 8 * self._most > self.width
        gives_lists = plain and isinstance(system, GivesLists) and not is_deep and self.ranking.offered != "seen"
        of_test = plain and self.ranking.lists == "condensed" and self.targets.drawn is None
        by_pairs = of_test and isinstance(system, ScoresPairs)

        def make(users: NDArray[np.int32]) -> BlockColumns:
            if by_pairs:
                return self._rated_lists(name, system, users)
            if gives_lists:
                return own_top(name, system, users, self._most, self.targets, self._ties)
            return self.columns(users, self.with_fill(users, self.scores(name, system, users)))

        width = 1 if by_pairs else min(self._most, self.width) if gives_lists else self.width
        return self.joined(system, of_blocks(name, system, [self], make, width), calibration)

    def _rated_lists(self, name: str, system: Recommender, users: NDArray[np.int32]) -> BlockColumns:
        """Rank the test items of users by the scores of these pairs."""
        assert self.targets.test is not None
        rows, items = rated_cells(self.targets.test, users)
        if self.ranking.offered != "all":
            seen = self.targets.train.places(users[rows], items) >= 0
            offered = seen == (self.ranking.offered == "seen")
            rows, items = rows[offered], items[offered]
        scores = pair_scores(name, system, users[rows], items, self.width)
        order = np.lexsort((self._ties.place[items], -scores, rows))
        order = order[~np.isnan(scores[order])]
        counts = np.bincount(rows[order], minlength=len(users))
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = order[place < self._most]
        return np.minimum(counts, self._most), items[order], scores[order]

    def scores(self, name: str, system: Recommender, users: NDArray[np.int32]) -> NDArray[Any]:
        """Return the scores of a fitted system for users, or for their profiles if they are held out whole."""
        if self.profiles is None:
            scores = system.score(users)
        else:
            in_time = getattr(system, "profiles_in_time", False)
            profiles = self.profiles.of_users(users) if in_time else self._profile_rows[users]
            scores = from_profiles(name, system).score_profiles(profiles)
        return checked_scores(name, scores, (len(users), self.width))

    @cached_property
    def _profile_rows(self) -> Any:
        assert self.profiles is not None
        return self.profiles.matrix()

    def with_fill(self, users: NDArray[np.int32], scores: NDArray[Any]) -> NDArray[Any]:
        """Return the scores, with gaps filled if there is a fill."""
        return scores if self.fitted_fill is None else filled(scores, self.fitted_fill, users)

    def columns(self, users: NDArray[Any], scores: NDArray[Any]) -> BlockColumns:
        """Rank a block of users by their scores after `with_fill`; the scores are overwritten."""
        return (self._relevant_ranks if self.ranking.one_relevant else self._lists)(users, scores)

    def joined(self, system: Recommender, parts: Sequence[BlockColumns], calibration: Calibration | None) -> RunColumns:
        """Concatenate the columns of all blocks."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else None
        # Filled items have scores of another system, which are not predicted ratings.
        predicts = predicts_ratings(system) if self.fitted_fill is None else False
        if not isinstance(system, Model):
            return RunColumns(columns, predicts, draws=False, calibration=calibration)
        return RunColumns(columns, predicts, hasattr(system, "seed"), calibration, system.adapted)

    @cached_property
    def fitted_fill(self) -> Recommender | None:
        """The system that orders the items that another cannot score; None if they are left out."""
        fill = fill_system(self.ranking.fill, self.targets.seed)
        if fill is not None:
            with blas_threads(1 if isinstance(fill, Model) else settings.workers):
                fill.fit(self.learned_from)
        return fill

    def _lists(self, users: NDArray[Any], scores: NDArray[Any]) -> BlockColumns:
        scores[~self.targets.allowed(users)] = np.nan
        return top(scores, self._most, self._ties)

    def _relevant_ranks(self, users: NDArray[Any], scores: NDArray[Any]) -> BlockColumns:
        rows, items = self.targets.relevant_cells(users)
        groups = self.targets.item_groups if self.ranking.candidates == "group" else None
        drawn = self.targets.drawn
        pool = self.targets.pool(users) if drawn is None else drawn.padded(users)
        ranks, lengths = ranks_among(scores, pool, rows, items, self._ties, groups)
        return users[rows], items, np.where(ranks > self._most, 0, ranks), np.minimum(lengths, self._most)

    def run(self, name: str, ranked: RunColumns) -> Run:
        """Return the run with these columns."""
        fields = self._one_relevant_fields(ranked) if self.ranking.one_relevant else self._list_fields(ranked)
        train = self.targets.train
        fill = self.ranking.fill if isinstance(self.ranking.fill, str) else type(self.ranking.fill).__name__
        settings = {"system": name, "length": self.ranking.length, "fill": fill, "seed": self.targets.seed}
        history = [*train.history, self.served, self.targets.step, Step("recommend", settings, ranked.adapted)]
        if ranked.calibration is not None:
            history.append(ranked.calibration.step)
        return Run(name, train.user_ids, train.item_ids, draws=ranked.draws, history=tuple(history), **fields)

    def _list_fields(self, ranked: RunColumns) -> dict[str, Any]:
        """Return the fields of a run of one list per user."""
        empty: list[NDArray[Any]] = [np.zeros(0, dtype=kind) for kind in (np.int64, np.int32, np.float64)]
        sizes, items, scores = ranked.columns or empty
        predictions = scores if ranked.predicts else None
        if ranked.calibration is not None and not ranked.predicts:
            predictions = ranked.calibration(scores)
        return {
            "users": self.users,
            "indptr": np.append(np.int64(0), np.cumsum(sizes)),
            "items": items,
            "scores": scores,
            "predictions": predictions,
            "only_ranks": ranked.predicts is False,
            "calibration": ranked.calibration,
            "counts": {"empty_lists": int(np.count_nonzero(sizes == 0))},
        }

    def _one_relevant_fields(self, ranked: RunColumns) -> dict[str, Any]:
        """Return the fields of a run of one list per relevant item."""
        users, items, ranks, lengths = ranked.columns or [np.zeros(0, dtype=np.int32)] * 4
        groups = self.targets.item_groups
        return {
            "users": users,
            "indptr": np.arange(len(users) + 1, dtype=np.int64),
            "items": items,
            "ranks": ranks.astype(np.int32),
            "lengths": lengths.astype(np.int32),
            "groups": None if groups is None else groups[items],
            "group_names": () if groups is None else tuple(str(group) for group in range(int(groups.max()) + 1)),
            "one_relevant": True,
            "counts": {"unranked": int(np.count_nonzero(ranks == 0))},
        }


def of_blocks(
    name: str, system: Recommender, rankers: Sequence[Ranker], make: Callable[[NDArray[np.int32]], Any], width: int
) -> list[Any]:
    """Return what is made of each block of the users, who are those of all rankers; ``width`` is their scores' width.

    External systems may not be thread-safe, so they are called once at a time and may use all threads.
    """
    users = rankers[0].users
    ours = isinstance(system, Model) and all(isinstance(ranker.fitted_fill, Model | None) for ranker in rankers)
    with blas_threads(1 if ours else settings.workers):
        return each(
            lambda block: make(users[block]),
            blocks(len(users), width),
            f"Ranking by {name}",
            threads=settings.workers if ours else 1,
        )


@dataclass(frozen=True, eq=False)
class RatedRanker(Ranker):
    """A ranker whose whole lists keep only items that the user rated in the test set.

    Ranks and lengths are those of the whole list. Ranks are found by counting, so no list is sorted. Metrics of unrated
    items, such as novelty, need whole lists. Lists are not cut.
    """

    def _lists(self, users: NDArray[Any], scores: NDArray[Any]) -> BlockColumns:
        assert self.targets.test is not None
        allowed = self.targets.allowed(users)
        rows, items = rated_cells(self.targets.test, users)
        inside = allowed[rows, items]
        rows, items = rows[inside], items[inside]
        ranks, _ = ranks_among(scores, allowed, rows, items, self._ties)
        order = np.lexsort((ranks, rows))
        order = order[ranks[order] > 0]
        sizes = np.bincount(rows[order], minlength=len(users))
        lengths = np.count_nonzero(allowed & ~np.isnan(scores), axis=1)
        return sizes, items[order], ranks[order], lengths

    def _list_fields(self, ranked: RunColumns) -> dict[str, Any]:
        sizes, items, ranks, lengths = ranked.columns or [np.zeros(0, dtype=np.int64)] * 4
        return {
            "users": self.users,
            "indptr": np.append(np.int64(0), np.cumsum(sizes)),
            "items": items.astype(np.int32),
            "ranks": ranks.astype(np.int32),
            "lengths": lengths.astype(np.int32),
            "counts": {"empty_lists": int(np.count_nonzero(lengths == 0))},
        }

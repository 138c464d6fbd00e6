"""The verb: train systems and rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError
from cranfield._record import Step
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rank.fill import filled, fitted_fill
from cranfield.rank.run import Run
from cranfield.rank.serve import served_users
from cranfield.rank.targets import Candidates, Drawn, Relevant, Targets
from cranfield.rank.top import TieOrder, ranks_among, top
from cranfield.recommend._model import Model
from cranfield.recommend._work import blas_threads, blocks, each
from cranfield.recommend.adapters import checked_scores, named_systems
from cranfield.recommend.recommender import Recommender
from cranfield.split.split import Split


def recommend(
    split: Split | Ratings,
    systems: Any,
    n: int | None = 100,
    *,
    min_ratings: int = 0,
    sample: float | None = None,
    fill: Any = None,
    candidates: Candidates = "all",
    relevant: Relevant = "all",
    nonrelevant: int | None = None,
    condensed: bool = False,
    keep_seen: bool = False,
    threshold: float | None = None,
    seed: int = 0,
) -> list[Run]:
    """Train systems and rank items for users: one run a system.

    Parameters
    ----------
    split
        A split, or training ratings alone where nothing below needs test ratings.
    systems
        One system or several: names with parameters (``"knn(k=100)"``, see `cranfield.recommend.SYSTEMS`), objects
        with ``fit`` and ``score``, models of implicit or scikit-learn, functions; or a mapping from names to these.
    n
        The length of the lists; None for every target item.
    min_ratings, sample
        Decision B1, who is served: users with at least so many training ratings, and of these a number or a share
        drawn at random.
    fill
        Decision B2, what becomes of items that a system cannot score: left out (None), or put after all scored
        ones in the order of another system: ``"random"``, ``"popularity"``, ``"average"``, ...
    candidates, relevant, nonrelevant, condensed, keep_seen, threshold
        Decision C1, which items a list may hold: see `Targets`.
    seed
        Fixes every random choice: that of users, of targets, of the fill, and of systems that are spelled without
        a seed.

    Returns
    -------
    list of Run
        In the order of the systems, over the vocabularies of the split. Items of equal score are ordered by their
        ids as text, descending, as trec_eval orders them. In the one-relevant design a list holds only its
        relevant item, with its rank: 0 where the system gives it none, or one beyond ``n``.

    Examples
    --------
    >>> train = Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "x", "z"])
    >>> run, = recommend(train, "popularity", n=2)
    >>> run.frame().rows()[:2]
    [('ann', 'z', 1, 1.0), ('bob', 'z', 1, 1.0)]
    """
    return list(
        recommend_each(
            split,
            systems,
            n,
            min_ratings=min_ratings,
            sample=sample,
            fill=fill,
            candidates=candidates,
            relevant=relevant,
            nonrelevant=nonrelevant,
            condensed=condensed,
            keep_seen=keep_seen,
            threshold=threshold,
            seed=seed,
        )
    )


def recommend_each(
    split: Split | Ratings,
    systems: Any,
    n: int | None = 100,
    *,
    min_ratings: int = 0,
    sample: float | None = None,
    fill: Any = None,
    candidates: Candidates = "all",
    relevant: Relevant = "all",
    nonrelevant: int | None = None,
    condensed: bool = False,
    keep_seen: bool = False,
    threshold: float | None = None,
    seed: int = 0,
) -> Iterator[Run]:
    """Do as `recommend` does, and give each run as soon as it is made; mistakes in the arguments are raised at once."""
    train, test = (split, None) if isinstance(split, Ratings) else (split.train, split.test)
    if len(train) == 0:
        raise InputError("the training set holds no ratings", remedy="give some, or mend the split")
    length = train.n_items if n is None else check.whole("n", n)
    named = named_systems(systems, seed)
    targets = Targets(train, test, candidates, relevant, nonrelevant, condensed, keep_seen, threshold, seed)
    users, served = served_users(train, min_ratings, sample, seed)
    asked = _Asked(targets, users, targets.draw(users), length, fill, seed, served)
    return (asked.run(name, system) for name, system in named.items())


@dataclass(frozen=True, eq=False)
class _Asked:
    """What every system is asked for: lists of ``n`` of the targets, for these users."""

    targets: Targets
    users: NDArray[np.int32]
    drawn: Drawn | None
    n: int
    fill: Any
    seed: int
    served: Step

    def run(self, name: str, system: Recommender) -> Run:
        """Train one system and rank."""
        train = self.targets.train
        with blas_threads(settings.workers):
            system.fit(train)
            fill = fitted_fill(self.fill, train, self.seed)
        ties = TieOrder(train.item_ids)

        def scores(block: slice) -> NDArray[np.float64]:
            users = self.users[block]
            found = checked_scores(name, system.score(users), (len(users), train.n_items))
            return found if fill is None else filled(found, fill, users)

        one = self.targets.relevant == "one"
        make = self._relevant_ranks if one else self._lists
        # What others wrote may not bear two calls at once.
        threads = settings.workers if isinstance(system, Model) and isinstance(fill, Model | None) else 1
        pieces = blocks(len(self.users), train.n_items)
        parts = each(lambda block: make(block, scores(block), ties), pieces, f"Ranking by {name}", threads=threads)
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else None
        predicts = isinstance(system, Model) and system.predicts_ratings and fill is None
        return self._one_relevant_run(name, joined) if one else self._run(name, joined, predicts)

    def _lists(self, block: slice, scores: NDArray[np.float64], ties: TieOrder) -> tuple[NDArray[Any], ...]:
        allowed = self.targets.allowed(self.users[block], self.drawn, block.start)
        scores[~allowed] = np.nan
        return top(scores, self.n, ties)

    def _relevant_ranks(self, block: slice, scores: NDArray[np.float64], ties: TieOrder) -> tuple[NDArray[Any], ...]:
        users = self.users[block]
        rows, items = self.targets.relevant_cells(users)
        pool = self.targets.pool(users) if self.drawn is None else self.drawn.mask(block, scores.shape[1])
        ranks, lengths = ranks_among(scores, pool, rows, items, ties)
        return users[rows], items, np.where(ranks > self.n, 0, ranks), np.minimum(lengths, self.n)

    def _run(self, name: str, joined: list[NDArray[Any]] | None, predicts: bool) -> Run:
        sizes, items, scores = joined or [np.zeros(0, dtype=kind) for kind in (np.int64, np.int32, np.float64)]
        train = self.targets.train
        return Run(
            name=name,
            user_ids=train.user_ids,
            item_ids=train.item_ids,
            users=self.users,
            indptr=np.append(np.int64(0), np.cumsum(sizes)),
            items=items,
            scores=scores,
            predictions=scores if predicts else None,
            counts={"empty_lists": int(np.count_nonzero(sizes == 0))},
            history=self._history(name),
        )

    def _one_relevant_run(self, name: str, joined: list[NDArray[Any]] | None) -> Run:
        users, items, ranks, lengths = joined or [np.zeros(0, dtype=np.int32)] * 4
        train = self.targets.train
        return Run(
            name=name,
            user_ids=train.user_ids,
            item_ids=train.item_ids,
            users=users,
            indptr=np.arange(len(users) + 1, dtype=np.int64),
            items=items,
            ranks=ranks.astype(np.int32),
            lengths=lengths.astype(np.int32),
            one_relevant=True,
            counts={"unranked": int(np.count_nonzero(ranks == 0))},
            history=self._history(name),
        )

    def _history(self, name: str) -> tuple[Step, ...]:
        fill = self.fill if isinstance(self.fill, str) or self.fill is None else type(self.fill).__name__
        short = {} if self.drawn is None else {"users with fewer non-relevant items than asked": self.drawn.short}
        targets = Step("targets", self.targets.step.settings, short)
        ranked = Step("recommend", {"system": name, "n": self.n, "fill": fill, "seed": self.seed})
        return (*self.targets.train.history, self.served, targets, ranked)

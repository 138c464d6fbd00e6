"""The verb: train systems and rank."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._progress import progress
from cranfield._record import Step
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rankings.fill import fill_system, filled
from cranfield.rankings.run import Run
from cranfield.rankings.serve import served_users
from cranfield.rankings.targets import Candidates, Drawn, Relevant, Targets
from cranfield.rankings.top import TieOrder, ranks_among, top
from cranfield.rankings.workers import Done, run_in_workers
from cranfield.recommenders.adapters import checked_scores, named_systems
from cranfield.recommenders.model import Model
from cranfield.recommenders.protocol import Recommender
from cranfield.recommenders.work import available_memory, blas_threads, blocks, each
from cranfield.splits.split import Split

# Below so many training ratings most systems are done before a process has started.
_WORTH_A_PROCESS = 200_000


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
    jobs: int | None = None,
) -> list[Run]:
    """Train systems and rank items for users: one run a system.

    Parameters
    ----------
    split
        A split, or training ratings alone where nothing below needs test ratings.
    systems
        One system or several: names with parameters (``"knn(k=100)"``, see `cranfield.recommenders.SYSTEMS`), objects
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
    jobs
        How many systems are trained at a time, each in a process with its share of the threads. None: one for every
        thread, if memory allows, and one alone where the ratings are few. Systems that are not given by name are
        trained in this process, one after another. The lists are the same for any number.

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
    made = timed_each(
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
        jobs=jobs,
    )
    return [done.result for done in sorted(made, key=lambda done: done.place)]


def recommend_each(split: Split | Ratings, systems: Any, n: int | None = 100, **asking: Any) -> Iterator[Run]:
    """Do as `recommend` does, and give each run as soon as it is made; mistakes in the arguments are raised at once.

    Where several systems are trained at a time, the first to be done comes first.
    """
    made = timed_each(split, systems, n, **asking)
    return (done.result for done in made)


def timed_each(
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
    jobs: int | None = None,
) -> Iterator[Done]:
    """Do as `recommend_each` does, and tell the place of each system and the seconds that it took."""
    if not isinstance(split, Split | Ratings):
        raise SettingError(
            f"{type(split).__name__} is neither a split nor ratings; make ratings of files and frames with cf.read, "
            "and a split of them with cf.splits"
        )
    train, test = (split, None) if isinstance(split, Ratings) else (split.train, split.test)
    if len(train) == 0:
        raise InputError("the training set holds no ratings", remedy="give some, or mend the split")
    length = train.n_items if n is None else check.whole("n", n)
    seed = check.whole("seed", seed, at_least=0)
    named = named_systems(systems, seed)
    fill_system(fill, seed)
    targets = Targets(train, test, candidates, relevant, nonrelevant, condensed, keep_seen, threshold, seed)
    users, served = served_users(train, min_ratings, sample, seed)
    _check_lists(targets, users, min_ratings)
    jobs = jobs_for(train.n_items, len(train), len(named)) if jobs is None else check.whole("jobs", jobs)
    asked = _Asked(targets, users, targets.draw(users), length, fill, seed, served)
    return asked.each(named, _spelled(systems), jobs)


def _check_lists(targets: Targets, users: NDArray[np.int32], min_ratings: int) -> None:
    """Refuse what leaves no list at all."""
    if len(users) == 0:
        raise SettingError(
            f"nobody has {min_ratings} training ratings, so nobody is served; "
            f"give min_ratings={targets.train.user_counts.max()} or less"
        )
    if targets.relevant == "one" and len(targets.relevant_cells(users)[0]) == 0:
        raise SettingError(
            f"no user who is served has a test rating of {targets.threshold:g} or more, so there is no list to rank; "
            "lower the threshold"
        )


def jobs_for(items: int, ratings: int, systems: int) -> int:
    """Return how many systems are trained at a time where that is not said: one a thread, if memory allows and it pays.

    Examples
    --------
    >>> jobs_for(items=3_700, ratings=800_000, systems=1), jobs_for(items=500, ratings=20_000, systems=20)
    (1, 1)
    """
    wanted = min(settings.workers, systems)
    if ratings < _WORTH_A_PROCESS or wanted < 2:
        return 1
    # The libraries, the ratings in some forms, and three items × items matrices, which the densest system takes.
    needed = 2**28 + 100 * ratings + 3 * 8 * items**2
    return max(1, int(min(wanted, available_memory() // needed)))


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

    def each(self, named: Mapping[str, Recommender], spelled: Sequence[bool], jobs: int) -> Iterator[Done]:
        """Train and rank each system, ``jobs`` of those that are ``spelled`` at a time."""
        numbered = list(enumerate(named.items()))
        movable = jobs > 1 and isinstance(self.fill, str | None) and sys.executable
        beside = [one for one, ours in zip(numbered, spelled, strict=True) if movable and ours]
        if len(beside) > 1:
            # What learns on one thread takes longest: started last, it would be waited for alone.
            beside.sort(key=lambda one: not getattr(one[1][1], "one_thread", False))
            with progress("Training and ranking", total=len(beside), unit="systems") as bar:
                for done in run_in_workers(self.ranked, [pair for _, pair in beside], jobs):
                    place, (name, _) = beside[done.place]
                    yield Done(place, self.run(name, *done.result), done.seconds)
                    bar.advance()
            taken = {place for place, _ in beside}
            numbered = [one for one in numbered if one[0] not in taken]
        for place, (name, system) in numbered:
            start = time.perf_counter()
            run = self.run(name, *self.ranked(name, system))
            yield Done(place, run, time.perf_counter() - start)

    def ranked(self, name: str, system: Recommender) -> tuple[list[NDArray[Any]] | None, bool]:
        """Train one system and rank; return the columns of its run, and whether its scores are predicted ratings."""
        train = self.targets.train
        # More threads of BLAS change the last digits, and so the bytes; our systems have other loops that use them.
        with blas_threads(1 if isinstance(system, Model) else settings.workers):
            system.fit(train)
            fill = fill_system(self.fill, self.seed)
            if fill is not None:
                fill.fit(train)
        ties = TieOrder(train.item_ids)

        def scores(block: slice) -> NDArray[np.float64]:
            users = self.users[block]
            found = checked_scores(name, system.score(users), (len(users), train.n_items))
            return found if fill is None else filled(found, fill, users)

        make = self._relevant_ranks if self._one else self._lists
        # What others wrote may not bear two calls at once; it has the threads to itself.
        ours = isinstance(system, Model) and isinstance(fill, Model | None)
        pieces = blocks(len(self.users), train.n_items)
        with blas_threads(1 if ours else settings.workers):
            parts = each(
                lambda block: make(block, scores(block), ties),
                pieces,
                f"Ranking by {name}",
                threads=settings.workers if ours else 1,
            )
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else None
        return joined, isinstance(system, Model) and system.predicts_ratings and fill is None

    @property
    def _one(self) -> bool:
        return self.targets.relevant == "one"

    def run(self, name: str, joined: list[NDArray[Any]] | None, predicts: bool) -> Run:
        """Return the run that `ranked` has the columns of."""
        return self._one_relevant_run(name, joined) if self._one else self._run(name, joined, predicts)

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


def _spelled(systems: Any) -> list[bool]:
    """Return which systems are given by name: any process can make those, and nobody else holds them."""
    if isinstance(systems, Mapping):
        return [isinstance(one, str) for one in systems.values()]
    several = isinstance(systems, Sequence) and not isinstance(systems, str)
    return [isinstance(one, str) for one in (systems if several else (systems,))]

"""`recommend`: train systems and rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from cranfield import _checks as check
from cranfield._decisions import of_groups, takes_decisions
from cranfield.data import AUTO, Ratings
from cranfield.rankings.calibrating import hold_out
from cranfield.rankings.fill import fill_system
from cranfield.rankings.fitting import (
    NOWHERE,
    each_system,
    fit_each,
    fitted,
    jobs_for,
    jobs_wanted,
    movable,
    of_this_package,
)
from cranfield.rankings.ranker import Ranker, RunColumns, rank
from cranfield.rankings.ranking import Ranking, RankingOptions
from cranfield.rankings.run import Run
from cranfield.rankings.serving import EVERYONE, Serving, ServingOptions
from cranfield.rankings.spark_lists import recommend_on_spark
from cranfield.rankings.workers import Done
from cranfield.recommenders import Recommender, from_profiles, named_systems
from cranfield.splits import Split
from cranfield.tables import is_spark

__all__ = ["fit_each", "jobs_for", "rank", "recommend", "recommend_each", "timed_each"]


class RecommendOptions(ServingOptions, RankingOptions, total=False):
    """The decisions that `recommend` takes as keyword arguments."""


@takes_decisions(Serving, Ranking)
def recommend(
    split: Split | Ratings,
    systems: Any,
    length: int | str | None = 100,
    *,
    threshold: float | str | None = AUTO,
    seed: int = 0,
    jobs: int | None = None,
    **decisions: Unpack[RecommendOptions],
) -> list[Run]:
    """Train systems and rank items for users: one run per system.

    Parameters
    ----------
    split
        A split, or only training ratings if nothing below needs test ratings. Or a Spark dataframe of training ratings,
        for ``spark-als``: the lists are then one Spark dataframe (system, user, item, rank, score), and ``length`` and
        ``keep_seen`` are the only decisions that can be given.
    systems
        One system or several: names with parameters (``"knn(k=100)"``, see `cranfield.recommenders.SYSTEMS`), objects
        with ``fit`` and ``score``, models of implicit or scikit-learn, functions; or a mapping from names to these.
    length
        The length of the lists; ``"all"`` or None for every target item.
    {decisions}
    threshold
        The lowest test rating of a relevant item, if lists depend on which items are relevant; ``auto`` as for
        `cranfield.measure`.
    seed
        Seed of every random choice: of users, of targets, of the fill, and of systems that are spelled without a seed.
    jobs
        How many systems are trained and ranked at a time, each in a process with its share of the threads. None for one
        per thread if memory allows, and only one if there are few ratings. Systems that are not given by name are
        trained in this process, one after another. The lists do not depend on this number.

    Returns
    -------
    list of Run
        In the order of the systems, over the vocabularies of the split. Items of equal score are ordered by their
        ids as text, descending, as trec_eval orders them. In the one-relevant design a list holds only its relevant
        item, with its rank: 0 if the system does not rank it, or ranks it beyond ``length``.

    Examples
    --------
    >>> train = Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "x", "z"])
    >>> run, = recommend(train, "popularity", length=2)
    >>> run.frame().rows()[:2]
    [('ann', 'z', 1, 1.0), ('bob', 'z', 1, 1.0)]
    """
    serving, ranking = decided({"length": length, "threshold": threshold, **decisions})
    if is_spark(split):
        on_spark: Any = recommend_on_spark(split, systems, serving, ranking, seed=seed)
        return on_spark
    results = timed_each(split, systems, serving=serving, ranking=ranking, seed=seed, jobs=jobs)
    return [done.result for done in sorted(results, key=lambda done: done.place)]


@takes_decisions(Serving, Ranking)
def recommend_each(
    split: Split | Ratings,
    systems: Any,
    length: int | str | None = 100,
    *,
    threshold: float | str | None = AUTO,
    seed: int = 0,
    jobs: int | None = None,
    checkpoints: Mapping[str, Path] = NOWHERE,
    **decisions: Unpack[RecommendOptions],
) -> Iterator[Run]:
    """Do what `recommend` does, but yield each run as soon as it is made; errors in the arguments are raised at once.

    If several systems are trained at a time, the first to finish comes first. ``checkpoints`` as for `fit_each`.
    """
    serving, ranking = decided({"length": length, "threshold": threshold, **decisions})
    results = timed_each(
        split, systems, serving=serving, ranking=ranking, seed=seed, jobs=jobs, checkpoints=checkpoints
    )
    return (done.result for done in results)


def decided(decisions: dict[str, Any]) -> tuple[Serving, Ranking]:
    """Return the groups of decisions that these options of `recommend` define."""
    return of_groups((Serving, Ranking), decisions, "recommend")


def timed_each(
    split: Split | Ratings,
    systems: Any,
    *,
    serving: Serving = EVERYONE,
    ranking: Ranking | None = None,
    seed: int = 0,
    jobs: int | None = None,
    checkpoints: Mapping[str, Path] = NOWHERE,
) -> Iterator[Done]:
    """Do what `recommend_each` does, with the position of each system and the seconds that it took."""
    named, ranking = named_systems(systems, check.whole("seed", seed, at_least=0)), ranking or Ranking()
    held_out = None if ranking.calibration == "none" else hold_out(split, seed)
    ranker = Ranker.of(split, serving, ranking, seed, held_out)
    if ranker.profiles is not None:
        for name, system in named.items():
            from_profiles(name, system)  # refused before anything is trained
    moves = [moved and _can_move(ranker.ranking.fill) for moved in movable(systems, named)]
    there = _FitAndRank(ranker, checkpoints)
    return each_system(
        "Training and ranking",
        named,
        moves,
        jobs_wanted(jobs, ranker.train, len(named)),
        here=lambda name, system: ranker.run(name, there(name, system)),
        there=there,
        back=lambda name, _, ranked: ranker.run(name, ranked),
    )


@dataclass(frozen=True, eq=False)
class _FitAndRank:
    """Fits and ranks in the same process, since lists are smaller to send than models."""

    ranker: Ranker
    checkpoints: Mapping[str, Path]

    def __call__(self, name: str, system: Recommender) -> RunColumns:
        ranker = self.ranker
        return ranker.ranked(name, fitted(system, ranker.train, ranker.validation, self.checkpoints.get(name)))


def _can_move(fill: Any) -> bool:
    """Whether another process can create the fill."""
    system = fill_system(fill, 0) if isinstance(fill, str) else fill
    return system is None or (isinstance(fill, str) and of_this_package(system))

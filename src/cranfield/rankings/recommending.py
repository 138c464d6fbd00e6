"""`recommend`: train systems and rank; one fitted system may be ranked under several decisions; lists to files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import of_groups, takes_decisions
from cranfield._own_code import names_code, source_hash
from cranfield._record import is_as_written, made_of, record
from cranfield._registry import parse
from cranfield._version import __version__
from cranfield.data import AUTO, Ratings
from cranfield.rankings.calibration import HeldOut
from cranfield.rankings.decisions import EVERYONE, Ranking, RankingOptions, Serving, ServingOptions
from cranfield.rankings.fitting import NOWHERE, Done, each_system, fitted, jobs_for, movable, of_this_package
from cranfield.rankings.ranker import BlockColumns, Ranker, RunColumns, of_blocks
from cranfield.rankings.run import Run, write_run
from cranfield.rankings.spark_lists import recommend_on_spark
from cranfield.rankings.top import fill_system
from cranfield.recommenders import (
    GivesLists,
    Model,
    Recommender,
    from_profiles,
    named_systems,
    recommender,
    system_name,
)
from cranfield.splits import Split
from cranfield.tables import is_spark


def rank_under(
    system: Recommender,
    split: Split | Ratings,
    rankings: Sequence[Ranking],
    *,
    serving: Serving = EVERYONE,
    seed: int = 0,
    name: str | None = None,
) -> list[Run]:
    """Rank items by a fitted system under several decisions, scoring each user only once.

    The runs are those of `rank` under each of the ``rankings``, in the same order.
    """
    return rank_with(system, rankers_for(split, rankings, serving=serving, seed=seed), name=name)


def rankers_for(
    split: Split | Ratings, rankings: Sequence[Ranking], *, serving: Serving = EVERYONE, seed: int = 0
) -> list[Ranker]:
    """Return a ranker for each of the decisions; draws that differ only in size are made once."""
    widest: dict[tuple[Any, ...] | None, Ranker] = {}
    rankers: dict[int, Ranker] = {}
    # The largest draw comes first, since the others are parts of it.
    for place in sorted(range(len(rankings)), key=lambda place: -(rankings[place].drawn or 0)):
        ranking = rankings[place]
        shared = _draw_key(ranking)
        if shared is None or shared not in widest:
            rankers[place] = widest[shared] = Ranker.of(split, serving, ranking, seed)
        else:
            targets = widest[shared].targets
            assert targets.drawn is not None
            smaller = replace(targets, ranking=ranking, drawn=targets.drawn.first(ranking.drawn or 0))
            rankers[place] = replace(widest[shared], targets=smaller)
    return [rankers[place] for place in range(len(rankings))]


def _draw_key(ranking: Ranking) -> tuple[Any, ...] | None:
    """Return what a draw depends on besides its size; None if nothing is drawn, or a part of each group."""
    if ranking.drawn is None or ranking.candidates == "group":
        return None
    kind = "nonrelevant" if ranking.unrated == "all" else "unrated"
    relevance = (ranking.relevant, ranking.threshold) if ranking.needs_relevance else ()
    return kind, ranking.candidates, ranking.lists, ranking.offered, *relevance


def rank_with(system: Recommender, rankers: Sequence[Ranker], *, name: str | None = None) -> list[Run]:
    """Rank items by a fitted system for rankers of the same users, as `rankers_for` gives them.

    Gaps are filled once for consecutive rankers with the same fill.
    """
    name = system_name(system) if name is None else name
    # Lists made by external systems have no scores to share. Those of our systems are the best of the scores.
    if not rankers or (isinstance(system, GivesLists) and (len(rankers) == 1 or not isinstance(system, Model))):
        return [ranker.run(name, ranker.ranked(name, system)) for ranker in rankers]
    first = rankers[0]

    def make(users: NDArray[Any]) -> list[BlockColumns]:
        scores = first.scores(name, system, users)
        columns = []
        for _, alike in groupby(rankers, key=lambda ranker: ranker.ranking.fill):
            same_fill = list(alike)
            full = same_fill[0].with_fill(users, scores)
            columns += [ranker.columns(users, full.copy()) for ranker in same_fill]
        return columns

    parts = of_blocks(name, system, rankers, make, first.width)
    return [
        ranker.run(name, ranker.joined(system, [part[place] for part in parts], ranker.calibrated(name, system)))
        for place, ranker in enumerate(rankers)
    ]


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
    refit: bool = True,
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
    refit
        Whether systems are trained on the training and validation parts together, if the split has a validation part.
        A system that stops early is then trained again, for as many epochs as were best; a calibration is fitted
        before. Lists never hold items of either part.

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
    results = timed_each(split, systems, serving=serving, ranking=ranking, seed=seed, jobs=jobs, refit=refit)
    return [done.result for done in sorted(results, key=lambda done: done.place)]


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
    refit: bool = True,
) -> Iterator[Done]:
    """Do what `recommend` does, but yield each run as soon as it is made; errors in the arguments are raised at once.

    If several systems are trained at a time, the first to finish comes first. ``checkpoints`` as for `fit_each`.
    """
    named, ranking = named_systems(systems, check.whole("seed", seed, at_least=0)), ranking or Ranking()
    held_out = None if ranking.calibration == "none" else HeldOut.of(split, seed)
    ranker = Ranker.of(split, serving, ranking, seed, held_out, refit=check.flag("refit", refit))
    if ranker.profiles is not None:
        for name, system in named.items():
            from_profiles(name, system)  # refused before anything is trained
    moves = [moved and _can_move(ranker.ranking.fill) for moved in movable(systems, named)]
    there = partial(_fitted_and_ranked, ranker, checkpoints)
    return each_system(
        "Training and ranking",
        named,
        moves,
        jobs_for(ranker.train.n_items, len(ranker.train), len(named), jobs),
        here=lambda name, system: ranker.run(name, there(name, system)),
        there=there,
        back=lambda name, _, ranked: ranker.run(name, ranked),
    )


def _fitted_and_ranked(ranker: Ranker, checkpoints: Mapping[str, Path], name: str, system: Recommender) -> RunColumns:
    """Fit and rank in the same process, since lists are smaller to send than models."""
    checkpoint, calibration = checkpoints.get(name), None
    if ranker.whole is not None and ranker.held_out is not None:
        # A calibration needs ratings that the system did not learn from.
        calibration = ranker.calibrated(name, fitted(copy(system), ranker.train, ranker.validation))
    learned = fitted(system, ranker.train, ranker.validation, checkpoint, ranker.whole)
    return ranker.ranked(name, learned, calibration)


def _can_move(fill: Any) -> bool:
    """Whether another process can create the fill."""
    system = fill_system(fill, 0) if isinstance(fill, str) else fill
    return system is None or (isinstance(fill, str) and of_this_package(system))


_CHECKPOINTS = ".cranfield-checkpoints"


def recommend_to_files(
    split: Split | Ratings, files: Mapping[str, Path], *, resume: bool = False, **decisions: Any
) -> Iterator[tuple[Path, Run, str]]:
    """Do what `timed_each` does, and write each run to the file of its system, with a record of what made it.

    Yields each file with its run and a remark in brackets on the file that it replaces. With ``resume``, a file that
    was made from the same inputs is kept and not yielded, and training continues at a checkpoint.
    """
    made_from = {system: _inputs(split, system, decisions) for system in files}
    remarks = {system: _remark(path, made_from[system], resume) for system, path in files.items()}
    wanted = [system for system, remark in remarks.items() if remark is not None]
    # Files are named after the spelling of a system, whatever name is displayed.
    checkpoints = {system: files[system].parent / _CHECKPOINTS / f"{files[system].stem}.npz" for system in wanted}
    if not resume:
        _remove(checkpoints.values())
    how: dict[str, Any] = {name: decisions.pop(name) for name in ("seed", "jobs", "refit") if name in decisions}
    how["serving"], how["ranking"] = decided(decisions)
    named = {system: system for system in wanted}
    results = timed_each(split, named, checkpoints=checkpoints, **how) if wanted else ()

    def written(run: Run) -> tuple[Path, Run, str]:
        path = write_run(run, files[run.name])
        calibrated = {} if run.calibration is None else {"calibrated": run.calibration.as_dict()}
        record(path, made_from[run.name] | calibrated)
        _remove([checkpoints[run.name]])
        return path, run, remarks[run.name] or ""

    return (written(done.result) for done in results)


def _inputs(split: Split | Ratings, system: str, decisions: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the lists of a system depend on, ready for JSON."""
    train, test = (split.train, split.test) if isinstance(split, Split) else (split, None)
    seed, fill = decisions["seed"], fill_system(decisions["fill"], decisions["seed"])
    inputs = {
        "version": __version__,
        "training ratings": _identity(train),
        "test ratings": None if test is None else _identity(test),
        **_validated(split, decisions.get("refit", True)),
        **({"profiles": _identity(split.profiles)} if isinstance(split, Split) and split.profiles is not None else {}),
        "system": system,
        "parameters": _parameters(system, seed),
        **{name: value for name, value in decisions.items() if name != "jobs"},
        "fill": None if fill is None else [decisions["fill"], dict(vars(fill))],
    }
    if described := [side.fingerprint for side in (train.user_features, train.item_features) if side is not None]:
        inputs["features"] = described
    if isinstance(split, Split) and split.item_groups is not None:
        inputs["item groups"] = split.item_groups.tolist()
    kept: dict[str, Any] = json.loads(json.dumps(inputs))
    return kept


def _validated(split: Split | Ratings, refit: bool) -> dict[str, Any]:
    if isinstance(split, Ratings) or split.validation is None:
        return {}
    return {"validation ratings": _identity(split.validation), "refit": refit}


def _parameters(system: str, seed: int) -> dict[str, Any]:
    """Return the parameters of a system; for the user's own code the spelled ones, with a hash of its source."""
    if names_code(system):
        return {**dict(parse(system).parameters), "source": source_hash(system, Path.cwd())}
    return dict(vars(recommender(system, seed)))


def _identity(ratings: Ratings) -> list[str]:
    # Ids that read the same as numbers and as text are written differently.
    return [ratings.fingerprint, str(ratings.user_ids.dtype), str(ratings.item_ids.dtype)]


def _remark(path: Path, inputs: Mapping[str, Any], resume: bool) -> str | None:
    """Return the remark on a run that has to be made, or None if it exists and was made from the same inputs."""
    if not path.exists():
        return ""
    if not resume:
        return " (replaced)"
    there = made_of(path)
    if there is None:
        return " (made again: no record says how the existing file was made)"
    there = {name: value for name, value in there.items() if name != "calibrated"}  # implied by the others
    other = [name.replace("_", " ") for name in {**there, **inputs} if there.get(name) != inputs.get(name)]
    if other:
        return f" (made again: the existing file differs in {', '.join(other)})"
    return None if is_as_written(path) else " (made again: the existing file has changed since it was written)"


def _remove(checkpoints: Iterable[Path]) -> None:
    """Remove checkpoints, and their folder if it is then empty."""
    for path in checkpoints:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()

"""One fitted system ranked under several decisions: each user is scored once, and targets are drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rankings.ranker import Ranker
from cranfield.rankings.ranking import Ranking
from cranfield.rankings.run import Run
from cranfield.rankings.serving import EVERYONE, Serving
from cranfield.rankings.top import TieOrder
from cranfield.recommenders import GivesLists, Model, Recommender, blas_threads, blocks, each, system_name
from cranfield.splits import Split


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

    Examples
    --------
    >>> from cranfield.recommenders import recommender
    >>> train = Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "x", "z"])
    >>> model = recommender("popularity").fit(train)
    >>> runs = rank_under(model, train, [Ranking(length=1), Ranking(length=1, keep_seen=True)])
    >>> [run.frame().rows()[0] for run in runs]
    [('ann', 'z', 1, 1.0), ('ann', 'x', 1, 2.0)]
    """
    return rank_with(system, rankers_for(split, rankings, serving=serving, seed=seed), name=name)


def rankers_for(
    split: Split | Ratings, rankings: Sequence[Ranking], *, serving: Serving = EVERYONE, seed: int = 0
) -> list[Ranker]:
    """Return a ranker for each of the decisions; draws that differ only in size are made once."""
    widest: dict[tuple[Any, ...], Ranker] = {}
    # The largest draw comes first, since the others are parts of it.
    order = sorted(range(len(rankings)), key=lambda place: -(rankings[place].drawn or 0))
    rankers: dict[int, Ranker] = {}
    for place in order:
        ranking = rankings[place]
        shared = _draw_key(ranking)
        base = widest.get(shared) if shared is not None else None
        if base is None:
            rankers[place] = Ranker.of(split, serving, ranking, seed)
            if shared is not None:
                widest[shared] = rankers[place]
        else:
            rankers[place] = _narrowed(base, ranking)
    return [rankers[place] for place in range(len(rankings))]


def _draw_key(ranking: Ranking) -> tuple[Any, ...] | None:
    """Return what a draw depends on besides its size; None if nothing is drawn, or a part of each group."""
    if ranking.drawn is None or ranking.candidates == "group":
        return None
    kind = "nonrelevant" if ranking.unrated == "all" else "unrated"
    relevance = (ranking.relevant, ranking.threshold) if ranking.needs_relevance else ()
    return kind, ranking.candidates, ranking.lists, ranking.keep_seen, *relevance


def _narrowed(base: Ranker, ranking: Ranking) -> Ranker:
    """Return the ranker of a smaller draw."""
    drawn, wanted = base.targets.drawn, ranking.drawn
    assert drawn is not None
    assert wanted is not None
    return replace(base, targets=replace(base.targets, ranking=ranking, drawn=drawn.first(wanted)))


def rank_with(system: Recommender, rankers: Sequence[Ranker], *, name: str | None = None) -> list[Run]:
    """Rank items by a fitted system for rankers of the same users, as `rankers_for` gives them.

    Gaps are filled once for consecutive rankers with the same fill.
    """
    name = system_name(system) if name is None else name
    # Lists made by external systems have no scores to share. Those of our systems are the best of the scores.
    if not rankers or (isinstance(system, GivesLists) and (len(rankers) == 1 or not isinstance(system, Model))):
        return [ranker.run(name, ranker.ranked(name, system)) for ranker in rankers]
    ours = isinstance(system, Model) and all(isinstance(ranker.fitted_fill, Model | None) for ranker in rankers)
    first, ties = rankers[0], TieOrder(rankers[0].targets.train.item_ids)

    def make(block: slice) -> list[tuple[NDArray[Any], ...]]:
        users = first.users[block]
        scores = first.scores(name, system, users)
        columns = []
        for _, alike in groupby(rankers, key=lambda ranker: ranker.ranking.fill):
            same_fill = list(alike)
            full = same_fill[0].with_fill(users, scores)
            columns += [ranker.columns(users, full.copy(), ties) for ranker in same_fill]
        return columns

    pieces = blocks(len(first.users), first.width)
    with blas_threads(1 if ours else settings.workers):
        parts = each(make, pieces, f"Ranking by {name}", threads=settings.workers if ours else 1)
    return [
        ranker.run(name, ranker.joined(system, [part[place] for part in parts], ranker.calibrated(name, system)))
        for place, ranker in enumerate(rankers)
    ]

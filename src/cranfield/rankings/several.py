"""One fitted system ranked under several decisions: each user is scored once, and targets are drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rankings.ranker import Ranker
from cranfield.rankings.ranking import Ranking
from cranfield.rankings.run import Run
from cranfield.rankings.serving import EVERYONE, Serving
from cranfield.rankings.targets import Drawn
from cranfield.rankings.top import TieOrder
from cranfield.recommenders.adapters import system_name
from cranfield.recommenders.model import Model
from cranfield.recommenders.protocol import GivesLists, Recommender
from cranfield.recommenders.work import blas_threads, blocks, each
from cranfield.splits.split import Split


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

    The runs are those that `rank` makes under each of the ``rankings``, in their order.

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
    """Decide who is served with what, under each of the decisions; unrated items are drawn once for all of them."""
    draws: dict[str, Drawn] = {}
    # The widest draw first: the others are parts of it.
    order = sorted(range(len(rankings)), key=lambda place: -_unrated(rankings[place]))
    rankers: dict[int, Ranker] = {}
    for place in order:
        ranking = rankings[place]
        draw = draws.get(ranking.candidates) if _unrated(ranking) >= 0 else None
        if draw is None:
            rankers[place] = Ranker.of(split, serving, ranking, seed)
            drawn = rankers[place].targets.drawn
            if drawn is not None and _unrated(ranking) >= 0:
                draws[ranking.candidates] = drawn
        else:
            base = next(ranker for ranker in rankers.values() if ranker.targets.drawn is draw)
            targets = replace(base.targets, ranking=ranking, drawn=draw.first(_unrated(ranking)))
            rankers[place] = replace(base, targets=targets)
    return [rankers[place] for place in range(len(rankings))]


def _unrated(ranking: Ranking) -> int:
    """Return how many unrated items are drawn, -1 if none are."""
    return -1 if isinstance(ranking.unrated, str) else ranking.unrated


def rank_with(system: Recommender, rankers: Sequence[Ranker], *, name: str | None = None) -> list[Run]:
    """Rank items by a fitted system for rankers of the same users, as `rankers_for` gives them."""
    name = system_name(system) if name is None else name
    if isinstance(system, GivesLists) or not rankers:  # its lists are its own: there are no scores to share
        return [ranker.run(name, ranker.ranked(name, system)) for ranker in rankers]
    ours = isinstance(system, Model) and all(isinstance(ranker.fitted_fill, Model | None) for ranker in rankers)
    first, ties = rankers[0], TieOrder(rankers[0].targets.train.item_ids)

    def make(block: slice) -> list[tuple[NDArray[Any], ...]]:
        users = first.users[block]
        scores = first.scores(name, system, users)
        return [ranker.columns(users, scores.copy(), ties) for ranker in rankers]

    pieces = blocks(len(first.users), first.width)
    with blas_threads(1 if ours else settings.workers):
        parts = each(make, pieces, f"Ranking by {name}", threads=settings.workers if ours else 1)
    return [
        ranker.run(name, ranker.joined(system, [part[place] for part in parts])) for place, ranker in enumerate(rankers)
    ]

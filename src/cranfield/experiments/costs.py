"""Estimates of how long a system takes, from small simulated worlds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import log2

from cranfield import simulate
from cranfield._errors import CranfieldError
from cranfield._registry import parse
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.stage import LEAST, Size
from cranfield.rankings import Ranking, Serving, timed_each
from cranfield.recommenders import EpochModel, recommender
from cranfield.splits import random

# Number of user-item pairs in the simulated world on which a system is timed if no earlier run gives its time.
_SMALL = 350_000


def training_time(decisions: Decisions, spelling: str, size: Size) -> float:
    """Estimate how long a system takes on ratings of some size, from two smaller worlds of the same shape.

    Time grows with the square of the scale if a system looks at every pair of user and item, or at every rating, and
    with its cube if it compares users or items with each other. The ratio of the two measured times tells which.
    """
    own = parse(spelling)
    seedless = replace(own, parameters=tuple(pair for pair in own.parameters if pair[0] != "seed"))
    return _training_time(decisions.serving, decisions.ranking, str(seedless), size)


@cache
def _training_time(serving: Serving, ranking: Ranking, spelling: str, size: Size) -> float:
    scale = min(1.0, (_SMALL / (size.users * size.items)) ** 0.5)
    system = recommender(spelling)
    if isinstance(system, EpochModel):
        return max(_timed_by_epochs(system, size, scale), LEAST)
    if scale == 1:
        return max(_timed(serving, ranking, spelling, size, 1.0), LEAST)
    half, whole = (_timed(serving, ranking, spelling, size, scale * share) for share in (0.5, 1))
    power = min(max(log2(max(whole, 1e-6) / max(half, 1e-6)), 2.0), 3.0)
    return max(whole * scale**-power, LEAST)


def _world(size: Size, scale: float) -> Ratings:
    """Return a simulated world with the numbers of users and items multiplied by ``scale``."""
    users, items = (max(10, round(count * scale)) for count in (size.users, size.items))
    ratings = min(max(round(size.ratings * scale**2), 5 * users), users * items // 2)
    return simulate.world(users, items, ratings).ratings


def _timed_by_epochs(system: EpochModel, size: Size, scale: float) -> float:
    """Estimate how long all epochs take, without early stopping; an epoch is linear in the number of ratings."""
    small = _world(size, scale)
    try:
        epochs = system.most_epochs(size.ratings / max(size.users, 1))
        return system.seconds_per_epoch(small) * epochs * size.ratings / len(small)
    except CranfieldError:
        return LEAST


def _timed(serving: Serving, ranking: Ranking, spelling: str, size: Size, scale: float) -> float:
    """Return how long a system takes on a simulated world of the given scale."""
    small = random(_world(size, scale), train=0.8)
    threads = settings.threads

    def recommend() -> object:
        return list(timed_each(small, spelling, serving=serving, ranking=ranking))

    try:
        by_clock = _shortest(recommend, time.perf_counter)
        # Processor time on one thread is also measured, because on a busy machine threads mostly wait for each other.
        settings.threads = 1
        return min(by_clock, _shortest(recommend, time.process_time))
    except CranfieldError:
        return LEAST
    finally:
        settings.threads = threads


def _shortest(function: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shorter time of two calls, because the first may load libraries; one call if it takes a second."""
    times: list[float] = []
    while len(times) < 2 and sum(times) < 1:
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)

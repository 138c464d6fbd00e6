"""Training of systems, several in parallel."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield import _checks as check
from cranfield._errors import InputError
from cranfield._settings import available_memory, settings
from cranfield._terminal import progress
from cranfield.data import Ratings, check_ratings
from cranfield.rankings.workers import Done, run_in_workers
from cranfield.recommenders import CheckpointError, Model, Recommender, blas_threads, fit_takes, named_systems

NOWHERE: Mapping[str, Path] = MappingProxyType({})
"""No checkpoint of any system."""
# Below this many training ratings most systems finish before a process has started.
_WORTH_A_PROCESS = 200_000


def fit_each(
    train: Ratings,
    systems: Any,
    *,
    validation: Ratings | None = None,
    checkpoints: Mapping[str, Path] = NOWHERE,
    seed: int = 0,
    jobs: int | None = None,
) -> Iterator[Done]:
    """Train systems in parallel, and yield each as soon as it is fitted.

    Parameters
    ----------
    train
        The training ratings.
    systems
        One system or several, as for `recommend`.
    validation
        The validation part, for systems whose ``fit`` takes one.
    checkpoints
        Checkpoint files of systems that learn in epochs, by the names of the systems.
    seed
        The seed of spelled systems that have none.
    jobs
        How many systems are trained at a time, each in a process; see `recommend`. Processes return what they learned
        as arrays (`Model.state`). Only a few systems are in memory at a time, even if the caller is slow.

    Returns
    -------
    iterator of Done
        The position of each system, the fitted system as its ``result``, and its share of the seconds. Errors in the
        arguments are raised at once.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> [(done.place, done.result.name) for done in fit_each(train, ["popularity", "knn"], jobs=1)]
    [(0, 'popularity'), (1, 'knn')]
    """
    check_ratings(train)
    if len(train) == 0:
        raise InputError("the training set holds no ratings", remedy="give some, or fix the split")
    named = named_systems(systems, check.whole("seed", seed, at_least=0))
    return each_system(
        "Training",
        named,
        movable(systems, named),
        jobs_wanted(jobs, train, len(named)),
        here=lambda name, system: fitted(system, train, validation, checkpoints.get(name)),
        there=_Learning(train),
        back=lambda _, system, state: system.restore(state, train),
    )


def fitted(
    system: Recommender, train: Ratings, validation: Ratings | None = None, checkpoint: Path | None = None
) -> Recommender:
    """Train one system in this process; a ``checkpoint`` of another training is replaced."""
    further: dict[str, Any] = {"validation": validation, "checkpoint": checkpoint}
    taken = {name: value for name, value in further.items() if value is not None and fit_takes(system, name)}
    # More BLAS threads change the last digits, and so the bytes. Our systems use the threads in their own loops.
    with blas_threads(1 if isinstance(system, Model) else settings.workers):
        try:
            system.fit(train, **taken)
        except CheckpointError:
            taken["checkpoint"].unlink(missing_ok=True)
            system.fit(train, **taken)
    return system


@dataclass(frozen=True, eq=False)
class _Learning:
    """The task of another process: train a system, and return what it learned."""

    train: Ratings

    def __call__(self, _: str, system: Model) -> Any:
        return system.fit(self.train).state()


def each_system(
    what: str,
    named: Mapping[str, Recommender],
    moves: Sequence[bool],
    jobs: int,
    *,
    here: Callable[[str, Any], Any],
    there: Callable[[str, Any], Any],
    back: Callable[[str, Any, Any], Any],
) -> Iterator[Done]:
    """Process each system; those that can run in another process, ``jobs`` at a time.

    Parameters
    ----------
    what
        The text of the progress bar.
    here
        Computes the result in this process, from a name and a system.
    there, back
        What another process computes from a name and a system, and a function that turns what it returns into the
        result.
    """
    numbered = list(enumerate(named.items()))
    beside = [entry for entry, moved in zip(numbered, moves, strict=True) if moved and jobs > 1]
    if len(beside) > 1:
        # Systems that learn on one thread take longest, so they are started first.
        beside.sort(key=lambda entry: not getattr(entry[1][1], "one_thread", False))
        with progress(what, total=len(beside), unit="systems") as bar:
            for done in run_in_workers(there, [pair for _, pair in beside], jobs):
                place, (name, system) = beside[done.place]
                yield Done(place, back(name, system, done.result), done.seconds)
                bar.advance()
        taken = {place for place, _ in beside}
        numbered = [entry for entry in numbered if entry[0] not in taken]
    for place, (name, system) in numbered:
        start = time.perf_counter()
        result = here(name, system)
        yield Done(place, result, time.perf_counter() - start)


def movable(systems: Any, named: Mapping[str, Recommender]) -> list[bool]:
    """Return which systems another process can train: those of this package that are given by name.

    A system that learns in epochs is trained in this process, where it shows its progress and writes checkpoints.
    """
    if isinstance(systems, Mapping):
        given = list(systems.values())
    else:
        given = list(systems) if isinstance(systems, Sequence) and not isinstance(systems, str) else [systems]
    return [
        isinstance(spelling, str)
        and of_this_package(system)
        and bool(sys.executable)
        and not fit_takes(system, "checkpoint")
        for spelling, system in zip(given, named.values(), strict=True)
    ]


def of_this_package(system: Recommender) -> bool:
    """Whether a system is part of cranfield, so that any process can create it."""
    return isinstance(system, Model) and type(system).__module__.partition(".")[0] == __name__.partition(".")[0]


def jobs_wanted(jobs: int | None, train: Ratings, systems: int) -> int:
    """Return how many systems are trained at a time: the given number, or one that suits the ratings."""
    return jobs_for(train.n_items, len(train), systems) if jobs is None else check.whole("jobs", jobs)


def jobs_for(items: int, ratings: int, systems: int) -> int:
    """Return the default number of systems trained at a time: one per thread, if memory allows and it is worthwhile.

    Examples
    --------
    >>> jobs_for(items=3_700, ratings=800_000, systems=1), jobs_for(items=500, ratings=20_000, systems=20)
    (1, 1)
    """
    wanted = min(settings.workers, systems)
    if ratings < _WORTH_A_PROCESS or wanted < 2:
        return 1
    # The libraries, several copies of the ratings, and the three items × items matrices of the densest system.
    needed = 2**28 + 100 * ratings + 3 * 8 * items**2
    return max(1, int(min(wanted, available_memory() // needed)))

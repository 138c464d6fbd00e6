"""What a run would do, and roughly how long it would take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

from cranfield._errors import CranfieldError
from cranfield._settings import settings
from cranfield._spelling import parse
from cranfield.data import simulate
from cranfield.experiments.assessing import asked as assessing
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.folder import Artifact, Folder, State, check_folder
from cranfield.experiments.inputs import (
    about_ratings,
    check_inputs,
    divided,
    filtered,
    load,
    named,
    origin,
    together,
)
from cranfield.experiments.rehearse import rehearse
from cranfield.experiments.running import go, reported, stated
from cranfield.experiments.source import Source
from cranfield.experiments.stages import Pipeline
from cranfield.rankings import recommend
from cranfield.rankings.serving import served_test
from cranfield.splits import Split, given, random

STAGES = ("experiment", "data", "splits", "searches", "runs", "scores", "results", "assess", "card", "report")
"""The stages of a run, in order; an artifact's name begins with its stage."""

_WHY = {"new": "not made yet", "changed": "what it is made of has changed", "damaged": "missing or damaged"}
# What a system is timed on where no earlier run tells: a world of the same shape with so many pairs of user and item.
_SMALL = 350_000
# Data with fewer ratings are read, and worlds with fewer pairs of user and item made, to know what they admit.
_READ_AT_ONCE, _SIMULATED_AT_ONCE = 5_000_000, 20_000_000
# The least that anything takes, in seconds; and what the report takes, to load what draws and for a user and system.
_LEAST, _DRAWING, _DRAWN = 0.05, 3.0, 1e-4
# An assessment in all scenarios on one thread, for a sample, system, metric and rating.
_ASSESSED = 5e-8


@dataclass(frozen=True)
class Task:
    """An artifact: whether it is kept or made, why, and about how many seconds that takes (None if nobody knows)."""

    name: str
    state: State
    seconds: float | None

    @property
    def stage(self) -> str:
        """The stage that it belongs to."""
        return self.name.split("/", 1)[0]


@dataclass(frozen=True)
class Plan:
    """What a run would do, in order."""

    tasks: tuple[Task, ...]

    @property
    def seconds(self) -> float:
        """About how long it would take: what earlier runs took, or a guess from a small world."""
        return sum(task.seconds or 0.0 for task in self.tasks if task.state != "kept")

    def __str__(self) -> str:
        lines = []
        for stage in STAGES:
            tasks = [task for task in self.tasks if task.stage == stage]
            counts = Counter[str](task.state for task in tasks)
            if not tasks:
                continue
            kept = [f"{counts['kept']} kept"] if counts["kept"] else []
            make = [f"{counts[why]} to make, {said}" for why, said in _WHY.items() if counts[why]]
            lines.append(f"{stage:<11} {'; '.join(make + kept)}")
            if stage == "runs":
                lines += [
                    f"  {task.name.removeprefix('runs/')}: {about(task.seconds)}"
                    for task in tasks
                    if task.state != "kept"
                ]
        if all(task.state == "kept" for task in self.tasks):
            return "\n".join([*lines, "nothing to do"])
        return "\n".join([*lines, f"roughly {about(self.seconds)}"])


class _Rehearsal(Folder):
    """A folder that looks at artifacts and makes none."""

    makes = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: dict[str, State] = {}

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact:
        """Note what would become of an artifact, and let it be."""
        self.seen[name], found = self.state(name, made_of)
        return found


def plan(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    report: bool = False,
) -> Plan:
    """Say what `run` would do, with a ``report`` or without; nothing is written.

    What depends on something that is to be made counts as to be made itself. Times are those of earlier runs in the
    folder; where there are none, each new system is timed on two small simulated worlds of the shape of the data, and
    the time extrapolated, which is right to a factor of two or three.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),))
    >>> found = plan(tiny, tempfile.mkdtemp())
    >>> {task.state for task in found.tasks}, [task.name for task in found.tasks if task.stage == "runs"][0]
    ({'new'}, 'runs/tiny/popularity')
    """
    experiment, out = stated(experiment, out, seed)
    check_inputs(experiment)
    check_folder(out)
    folder = _Rehearsal(out)
    line = Pipeline(experiment, folder)
    rehearse(line)
    go(line)
    if report:
        reported(line)
    took = {one["artifact"]: one["seconds"] for one in folder.logged() if one.get("did") == "made"}
    guess = _guesses(line, folder, set(took))
    return Plan(tuple(Task(name, state, took.get(name, guess.get(name))) for name, state in folder.seen.items()))


def _guesses(line: Pipeline, folder: _Rehearsal, took: set[str]) -> dict[str, float]:
    """Return a guess of the seconds for artifacts that are to be made, and never ``took`` any."""
    wanted = {name for name, state in folder.seen.items() if state != "kept"}
    anew = {part.source.name for part in line.all_parts if f"splits/{part.split_place}" in wanted}
    sizes = {source.name: _size(line, source, kept=source.name not in anew) for source in line.experiment.data}
    names, guess = wanted - took, {}
    systems, metrics = len(line.experiment.systems), len(line.decisions.metrics)
    for part in line.all_parts:
        users, _, ratings = sizes[part.source.name]
        for system in line.experiment.systems:
            name = line.run_name(part, system)
            if name in names and system.spelling is not None:
                guess[name] = _extrapolated(line.decisions, system.spelling, sizes[part.source.name])
            if system.tuning is not None and system.spelling is not None:
                once = _extrapolated(line.decisions, system.spelling, sizes[part.source.name])
                guess[line.search_name(part, system)] = once * system.tuning.size
        guess[f"scores/{part.place}"] = max(systems * metrics * users * 5e-6, _LEAST)
        guess[f"splits/{part.split_place}"] = guess[f"data/{part.source.name}"] = max(ratings * 1e-6, _LEAST)
    if line.experiment.assess is not None:
        options = assessing(line.experiment)
        each = options.get("samples", 50) * systems * len(options["metrics"]) * _ASSESSED / settings.workers
        guess |= {f"assess/{name}": _DRAWING + each * ratings for name, (_, _, ratings) in sizes.items()}
    guess["report"] = sum(_DRAWING + _DRAWN * users * systems for users, _, _ in sizes.values())
    return {name: seconds for name, seconds in guess.items() if name in names}


@cache
def _extrapolated(decisions: Decisions, spelling: str, size: tuple[int, int, int]) -> float:
    """Return about how long a system takes on ratings of some size, from two smaller worlds of the same shape.

    Time grows with the square of the scale where a system looks at every pair of user and item, or at every rating,
    and with its cube where it compares users or items with each other; the two worlds tell which.
    """
    scale = min(1.0, (_SMALL / (size[0] * size[1])) ** 0.5)
    if scale == 1:
        return max(_timed(decisions, spelling, size, 1.0), _LEAST)
    half, whole = (_timed(decisions, spelling, size, scale * one) for one in (0.5, 1))
    power = min(max(log2(max(whole, 1e-6) / max(half, 1e-6)), 2.0), 3.0)
    return max(whole * scale**-power, _LEAST)


def _timed(decisions: Decisions, spelling: str, size: tuple[int, int, int], scale: float) -> float:
    """Return how long a system takes on a simulated world, so many times as wide and high."""
    users, items = (max(10, round(one * scale)) for one in size[:2])
    ratings = min(max(round(size[2] * scale**2), 5 * users), users * items // 2)
    small = random(simulate.world(users, items, ratings).ratings, train=0.8)
    asked, threads = decisions.recommending(), settings.threads
    try:
        by_clock = _shortest(lambda: recommend(small, spelling, **asked), time.perf_counter)
        # On a busy machine threads wait for each other much longer than they work.
        settings.threads = 1
        return min(by_clock, _shortest(lambda: recommend(small, spelling, **asked), time.process_time))
    except CranfieldError:
        return _LEAST
    finally:
        settings.threads = threads


def _shortest(function: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shorter time of two, the first of which may load libraries; of one, if that was long."""
    times: list[float] = []
    while len(times) < 2 and sum(times) < 1:
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def _size(line: Pipeline, source: Source, *, kept: bool) -> tuple[int, int, int]:
    """Return the users, items and ratings of a source, as far as can be known soon.

    Unless they are ``kept`` as they were divided, what the ratings do not admit is told now, if they are few.
    """
    record = line.folder.records().get(f"data/{source.name}")
    if kept and record is not None:
        told = record["facts"]["description"]
        return told["users"], told["items"], told["ratings"]
    users, items, ratings = _guessed_size(line, source)
    if ratings > _READ_AT_ONCE or (source.simulate is not None and users * items > _SIMULATED_AT_ONCE):
        return users, items, ratings
    if source.dataset is not None and not origin(line.experiment, source, fetching=False)["parts"]:
        return users, items, ratings
    there = load(line.experiment, source, line.decisions.overlap)
    whole = together(list(there.values()))
    if line.decisions.overlap is None:
        whole = filtered(line.experiment, whole)
    for seed in line.experiment.seeds:
        if line.decisions.overlap is None:
            made = divided(line.experiment, whole, seed)
        else:
            made = given(there["train"], there["test"])
        for split in [made] if isinstance(made, Split) else made:
            with named("min_ratings, sample"):
                served_test(split, line.decisions.serving, seed)
    return whole.n_users, whole.n_items, len(whole)


def _guessed_size(line: Pipeline, source: Source) -> tuple[int, int, int]:
    """Return about how many users, items and ratings there are, without reading them."""
    if source.simulate is not None:
        asked = {"users": 1_000, "items": 500, "ratings": 50_000, **dict(parse(source.simulate).parameters)}
        # Whatever else was written for them is said to be wrong when they are simulated.
        users, items, ratings = (
            asked[one] if isinstance(asked[one], int) else 0 for one in ("users", "items", "ratings")
        )
        return users, items, ratings
    if source.dataset is not None:
        from cranfield.data.datasets import find

        counts = find(source.dataset).counts
        ratings = counts.ratings or counts.rows or 1_000_000
        return counts.users or ratings // 100, counts.items or ratings // 200, ratings
    ratings = sum(about_ratings(line.experiment.path(file)) for file in source.files.values())
    return max(ratings // 100, 1), max(ratings // 200, 1), ratings


def about(seconds: float | None) -> str:
    """Return a time as a person would say it.

    Examples
    --------
    >>> about(0.2), about(42), about(4000), about(None)
    ('under a second', '40 s', '1.1 h', 'nobody knows')
    """
    if seconds is None:
        return "nobody knows"
    if seconds < 1:
        return "under a second"
    if seconds < 100:
        return f"{float(f'{seconds:.1g}'):g} s" if seconds >= 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"

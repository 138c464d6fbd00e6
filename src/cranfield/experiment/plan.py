"""What a run would do, and roughly how long it would take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield._errors import CranfieldError
from cranfield._spelling import parse
from cranfield.data import simulate
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.folder import Artifact, Folder, Made, State, check_folder
from cranfield.experiment.inputs import about_ratings, check_inputs
from cranfield.experiment.rehearse import rehearse
from cranfield.experiment.run import go, stated
from cranfield.experiment.source import Source
from cranfield.experiment.stages import Line
from cranfield.rank import recommend
from cranfield.split import random

_STAGES = ("experiment", "data", "splits", "runs", "scores", "results", "assess", "card")
_WHY = {"new": "not made yet", "changed": "what it is made of has changed", "damaged": "missing or damaged"}
# What a system is timed on where no earlier run tells: users, items, ratings.
_SMALL = (200, 150, 4_000)
# The least that anything takes, in seconds.
_LEAST = 0.05


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
        for stage in _STAGES:
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

    def artifact(self, name: str, made_of: Mapping[str, Any], make: Callable[[], Made]) -> Artifact:  # noqa: ARG002
        """Note what would become of an artifact."""
        self.seen[name], found = self.state(name, made_of)
        return found


def plan(experiment: Experiment | str | Path, out: str | Path | None = None, *, seed: int | None = None) -> Plan:
    """Say what `run` would do; nothing is written.

    What depends on something that is to be made counts as to be made itself. Times are those of earlier runs in the
    folder; where there are none, each new system is timed on a small simulated world and the time scaled to the size
    of the data, which is right to an order of magnitude at best.

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
    line = Line(experiment, folder)
    rehearse(line)
    go(line)
    took = {one["artifact"]: one["seconds"] for one in folder.logged() if one.get("did") == "made"}
    guess = _guesses(line, {name for name, state in folder.seen.items() if state != "kept"} - set(took))
    return Plan(tuple(Task(name, state, took.get(name, guess.get(name))) for name, state in folder.seen.items()))


def _guesses(line: Line, names: set[str]) -> dict[str, float]:
    """Return a guess of the seconds for artifacts that were never made."""
    sizes = {source.name: _size(line, source) for source in line.experiment.data}
    timed: dict[str, float] = {}
    guess = {}
    for part in line.all_parts:
        users, items, ratings = sizes[part.source.name]
        for system in line.experiment.systems:
            name = line.run_name(part, system)
            if name not in names or system.spelling is None:
                continue
            if system.spelling not in timed:
                timed[system.spelling] = _timed(line, system.spelling)
            scale = max(ratings / _SMALL[2], users * items / (_SMALL[0] * _SMALL[1]))
            guess[name] = max(timed[system.spelling] * scale, _LEAST)
        measured = len(line.experiment.systems) * len(line.decisions.metrics)
        guess[f"scores/{part.place}"] = max(measured * users * 5e-6, _LEAST)
        guess[f"splits/{part.split_place}"] = guess[f"data/{part.source.name}"] = max(ratings * 1e-6, _LEAST)
    return {name: seconds for name, seconds in guess.items() if name in names}


def _timed(line: Line, spelling: str) -> float:
    """Return how long a system takes on a small world; the second time, when loops are compiled."""
    small = random(simulate.world(*_SMALL).ratings, train=0.5)
    asked = line.decisions.recommending()
    seconds = 0.0
    for _ in range(2):
        start = time.perf_counter()
        try:
            recommend(small, spelling, **asked)
        except CranfieldError:
            return _LEAST
        seconds = time.perf_counter() - start
    return seconds


def _size(line: Line, source: Source) -> tuple[int, int, int]:
    """Return the users, items and ratings of a source, as far as can be known without reading it."""
    record = line.folder.records().get(f"data/{source.name}")
    if record is not None:
        told = record["facts"]["description"]
        return told["users"], told["items"], told["ratings"]
    if source.simulate is not None:
        given = {"users": 1_000, "items": 500, "ratings": 50_000, **dict(parse(source.simulate).parameters)}
        return given["users"], given["items"], given["ratings"]
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

"""What a run would do, and roughly how long it would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield._numbers import time_text
from cranfield._registry import parse
from cranfield.data import Ratings
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.inputs import (
    about_ratings,
    check_files,
    check_given_runs,
    divided,
    filtered,
    load,
    origin,
    served_ratings,
    together,
)
from cranfield.experiments.pipeline import Pipeline, Size, Stage, Unit
from cranfield.experiments.running import experiment_and_folder, rehearse
from cranfield.experiments.source import Source
from cranfield.experiments.stages import DATA, ORDER, SPLITS, STAGES, Report
from cranfield.measures import check_relevance
from cranfield.store import Artifact, State, Store, check_folder

_WHY = {"new": "not made yet", "changed": "inputs or code have changed", "damaged": "missing or damaged"}
# A plan checks decisions on the actual ratings up to these sizes: ratings to read, and user-item pairs to simulate.
_READ_AT_ONCE, _SIMULATED_AT_ONCE = 5_000_000, 20_000_000


@dataclass(frozen=True)
class Task:
    """An artifact: whether it is kept or made, why, and the estimated seconds it takes (None if unknown)."""

    name: str
    state: State
    seconds: float | None

    @property
    def stage(self) -> str:
        """The stage that it belongs to."""
        return self.name.split("/", 1)[0]

    @property
    def is_inner(self) -> bool:
        """Whether it belongs to an inner experiment, such as one of an audit."""
        return self.name.split("/")[1:2] == ["audit"]


@dataclass(frozen=True)
class Plan:
    """What a run would do, in order, and notes on results known in advance, such as metrics without any value."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Estimated time: what earlier runs took, or an estimate from a small world."""
        return sum(task.seconds or 0.0 for task in self.tasks if task.state != "kept")

    def __str__(self) -> str:
        lines = []
        timed = [stage.name for stage in STAGES if stage.timed]
        for stage in ORDER:
            tasks = [task for task in self.tasks if task.stage == stage]
            counts = Counter[str](task.state for task in tasks)
            if not tasks:
                continue
            kept = [f"{counts['kept']} kept"] if counts["kept"] else []
            make = [f"{counts[why]} to make, {said}" for why, said in _WHY.items() if counts[why]]
            lines.append(f"{stage:<11} {'; '.join(make + kept)}")
            if stage in timed:
                lines += [
                    f"  {task.name.removeprefix(f'{stage}/')}: {time_text(task.seconds)}"
                    for task in tasks
                    if task.state != "kept" and not task.is_inner
                ]
        if all(task.state == "kept" for task in self.tasks):
            return "\n".join([*lines, "nothing to do"])
        return "\n".join([*lines, f"roughly {time_text(self.seconds)}", *self.notes])


class _Rehearsal(Store):
    """A store that looks up artifacts but makes none."""

    makes = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: dict[str, State] = {}
        self.notes: list[str] = []

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact:
        """Record what a run would do with an artifact, without doing it."""
        self.seen[name], artifact = self.state(name, made_of)
        return artifact


def plan(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    extra_stages: Sequence[Stage[Any]] = (),
    report: bool = False,
    strict: bool = False,
) -> Plan:
    """Return what `run` would do, optionally with ``extra_stages`` and a ``report``; nothing is written.

    Files of ranked lists are checked as in `run`, including ``strict``.

    Everything that depends on something to be made is to be made as well. Times are those of earlier runs in the
    folder. If there are none, each new system is timed on two small simulated worlds of the same shape as the data, and
    its time is extrapolated. The estimate is right to a factor of two or three.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),))
    >>> found = plan(tiny, tempfile.mkdtemp())
    >>> {task.state for task in found.tasks}, [task.name for task in found.tasks if task.stage == "runs"][0]
    ({'new'}, 'runs/tiny/popularity')
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    check_files(experiment)
    for stage in extra_stages:
        stage.check_experiment(experiment)
    check_folder(out)
    store = _Rehearsal(out)
    line = Pipeline(experiment, store, (*STAGES, *extra_stages, *((Report(),) if report else ())), strict=strict)
    rehearse(line)
    line.go()
    for stage in line.stages:
        for unit in stage.units(line):
            name = stage.name_for(unit)
            if stage.exported and store.seen[name] == "kept" and line.exports.damaged(line.artifacts[name]):
                store.seen[name] = "damaged"
    return Plan(tuple(_tasks(line, store)), tuple(store.notes))


def _tasks(line: Pipeline, store: _Rehearsal) -> list[Task]:
    """Return every artifact with the time it took, or an estimate if it is to be made for the first time."""
    took, sizes = store.took(), {unit.place: _size(line, unit, store) for unit in line.units("source")}
    whole = Size(*(sum(column) for column in zip(*sizes.values())))
    tasks = []
    for inner, stage, unit in _artifacts(line):
        name = stage.name_for(unit)
        state, seconds = store.seen[name], took.get(name)
        if state != "kept" and seconds is None:
            # An artifact of the whole experiment depends on all sets of ratings.
            size = whole if unit.level == "experiment" else sizes[unit.source.name]
            seconds = stage.seconds(inner, unit, size)
        tasks.append(Task(name, state, seconds))
    return tasks


def _artifacts(line: Pipeline) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:
    """Yield every artifact as its experiment (which may be an inner one), its stage and its unit."""
    for stage in line.stages:
        units = stage.units(line)
        if units:
            yield from stage.inner(line)
        yield from ((line, stage, unit) for unit in units)


def _size(line: Pipeline, unit: Unit, store: _Rehearsal) -> Size:
    """Return the number of users, items and ratings of a source, as far as it can be known quickly.

    Unless the splits are kept, decisions that do not fit the ratings are found now if the data are small: as an error,
    or as a note.
    """
    source, data = unit.source, line.artifact(DATA, unit)
    kept = all(store.seen[SPLITS.name_for(division)] == "kept" for division in line.units("division", unit))
    if kept and data.home is not None:
        return Size(*(data.facts["description"][name] for name in ("users", "items", "ratings")))
    users, items, ratings = guess = _guessed_size(line, source)
    if ratings > _READ_AT_ONCE or (source.simulate is not None and users * items > _SIMULATED_AT_ONCE):
        return guess
    if source.dataset is not None and not origin(line.experiment, source, fetching=False)["parts"]:
        return guess
    there = load(line.experiment, source, line.decisions.overlap)
    whole = together(list(there.values()))
    if line.decisions.overlap is None:
        whole = filtered(line.experiment, whole)
        there = {"ratings": whole}
    scale = float(whole.values.min()), float(whole.values.max())
    tests = (test for test, _ in _measured(line, there))
    if without := check_relevance(tests, line.decisions.on(*scale).measuring):
        store.notes.append(f"{source.name}: {without}")
    if any(system.run is not None for system in line.experiment.systems):
        for test, train in _measured(line, there):
            check_given_runs(line, unit, test, train)
    return Size(whole.n_users, whole.n_items, len(whole))


def _measured(line: Pipeline, parts: Mapping[str, Ratings]) -> Iterator[tuple[Ratings, Ratings]]:
    """Yield the test ratings of the users who are served, and the training ratings, for each repetition and fold."""
    for seed in line.experiment.seeds:
        for split in divided(line.experiment, parts, seed):
            yield served_ratings(line.experiment, split, seed), split.train


def _guessed_size(line: Pipeline, source: Source) -> Size:
    """Estimate the number of users, items and ratings without reading them."""
    if source.simulate is not None:
        size = {"users": 1_000, "items": 500, "ratings": 50_000, **dict(parse(source.simulate).parameters)}
        # Values of another type are reported when the ratings are simulated.
        users, items, ratings = (
            size[key] if isinstance(size[key], int) else 0 for key in ("users", "items", "ratings")
        )
        return Size(users, items, ratings)
    if source.dataset is not None:
        from cranfield.datasets import find

        counts = find(source.dataset).counts
        ratings = counts.ratings or counts.rows or 1_000_000
        return Size(counts.users or ratings // 100, counts.items or ratings // 200, ratings)
    ratings = sum(about_ratings(line.experiment.path(file)) for file in source.files.values())
    return Size(max(ratings // 100, 1), max(ratings // 200, 1), ratings)

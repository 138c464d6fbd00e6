"""`Stage`: a step of an experiment that makes artifacts; `Pipeline`: takes an experiment through its stages."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from cranfield._files import whole_file
from cranfield._terminal import Stages, silent
from cranfield.experiments.experiment import Experiment, System
from cranfield.experiments.source import Source, at_key
from cranfield.splits import Splitting
from cranfield.store import Artifact, Exports, Made, Store

OUT = "out"
"""Folder within an artifact; its files are exported unchanged."""

LEAST = 0.05
"""Minimum of an estimated time, in seconds."""

T = TypeVar("T")
Level = Literal["experiment", "source", "division", "part", "cell"]
"""What a stage makes an artifact for: the whole experiment, a set of ratings, a division of it into folds, one of these
folds, or one system on a fold."""


class Size(NamedTuple):
    """Approximate number of users, items and ratings in a set of ratings."""

    users: int
    items: int
    ratings: int


class Stage(ABC, Generic[T]):
    """A step of an experiment: what it makes, from which inputs, and how the result is read.

    A stage has no state; the pipeline keeps track of the experiment's progress. To add a stage, write a subclass and
    add it to `cranfield.experiments.stages.STAGES`.
    """

    name: ClassVar[str]  # the first part of the names of its artifacts
    title: ClassVar[str]  # what it does, as shown while it runs
    level: ClassVar[Level]  # what it makes an artifact for
    # Part of the key of its artifacts. Raise it when the same inputs give another artifact; a test compares them.
    version: ClassVar[int] = 1
    exported: ClassVar[bool] = False  # whether its artifacts are readable files in the folder of the experiment
    timed: ClassVar[bool] = False  # whether a plan says how long each of its artifacts takes
    seconds_per_rating: ClassVar[float] = 0.0  # about how long an artifact takes for each rating; see `seconds`

    def check_experiment(self, experiment: Experiment) -> None:
        """Check the experiment's settings for a stage from outside this package, before anything is made."""

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether it makes something for a unit."""
        return True

    def units(self, line: Pipeline) -> list[Unit]:
        """Return the units that it makes an artifact for."""
        return [unit for unit in line.units(self.level) if self.wants(line, unit)]

    def prepare(self, line: Pipeline, stages: Stages) -> None:
        """Make inputs of its artifacts that do not come from other stages; ``stages`` shows progress."""

    def inner(self, line: Pipeline) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:  # noqa: ARG002
        """Yield what `prepare` makes, for a plan: the experiment, stage and unit of each artifact, once."""
        yield from ()

    def name_for(self, unit: Unit) -> str:
        """Return the name of the artifact for a unit."""
        return f"{self.name}/{unit.place}" if unit.place else self.name

    @abstractmethod
    def made_of(self, line: Pipeline, unit: Unit) -> Mapping[str, Any]:
        """Return everything that the bytes of an artifact depend on, ready for JSON."""

    def inputs_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        """Return what an artifact is stored under: what it is made of, and the version of the stage."""
        return {"version": self.version, **self.made_of(line, unit)}

    @abstractmethod
    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Write the files of an artifact into a folder; return the files and the facts about them."""

    def make_each(
        self,
        line: Pipeline,
        missing: Mapping[str, Unit],
        made_of: Mapping[str, Mapping[str, Any]],  # noqa: ARG002
    ) -> Iterator[tuple[str, Callable[[Path], Made], float]]:
        """Yield, for each missing artifact, a function that writes it and the seconds already spent on it."""
        for name, unit in missing.items():
            yield name, partial(self.make, line, unit), 0.0

    def read(self, line: Pipeline, unit: Unit) -> T:
        """Return the contents of an artifact."""
        raise NotImplementedError(f"{self.name} holds files for people only")

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write an artifact as readable files with the layout of the experiment's folder; return the files."""
        artifact = line.artifact(self, unit)
        files = [file.removeprefix(f"{OUT}/") for file in artifact.files if file.startswith(f"{OUT}/")]
        for file in files:
            with whole_file(folder / file) as temporary:
                shutil.copyfile(artifact.path(f"{OUT}/{file}"), temporary)
        return [folder / file for file in files]

    def check(self, line: Pipeline) -> None:
        """Raise an error if the experiment cannot continue; called once all artifacts of the stage are made."""

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float | None:  # noqa: ARG002
        """Estimate how long an artifact takes, for a plan without an earlier run."""
        return max(self.seconds_per_rating * size.ratings, LEAST)


@dataclass(frozen=True, eq=False)
class Unit:
    """What an artifact is made for."""

    level: Level  # its level in the experiment, such as a source, a part or a cell
    place: str = ""  # its name within a stage
    parent: Unit | None = None  # the unit that it is a part of
    repetition: int = 0  # counted from 0
    fold: int = 0
    source: Source = None  # type: ignore[assignment]  # the set of ratings, and the system; None if it has several
    system: System = None  # type: ignore[assignment]

    def at(self, level: Level) -> Unit:
        """Return the unit at a level that contains this one, or this one itself."""
        if self.level == level:
            return self
        assert self.parent is not None, f"{self.level} {self.place} is not part of any {level}"
        return self.parent.at(level)


class Pipeline:
    """An experiment on its way through the stages, with the artifacts made so far.

    ``jobs`` systems are trained in parallel (see `recommend`). ``within`` is a prefix of the names of its artifacts,
    for an experiment inside another one, which exports nothing. If ``strict``, files of ranked lists that are probably
    wrong are an error instead of a warning.
    """

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        stages: tuple[Stage[Any], ...] = (),
        jobs: int | None = None,
        *,
        within: str = "",
        strict: bool = False,
    ) -> None:
        self.experiment, self.store, self.stages, self.jobs = experiment, store, stages, jobs
        self.strict = strict
        self.within = within
        self.decisions = experiment.decisions
        self.exports = Exports(store)
        self.artifacts: dict[str, Artifact] = {}
        self._read: dict[str, tuple[str, Any]] = {}

    # units

    @cached_property
    def folds(self) -> int:
        """Number of folds of the split."""
        with at_key(f"decisions: split='{self.decisions.split}'"):
            return self.decisions.group(Splitting).folds

    @cached_property
    def _units(self) -> tuple[Unit, ...]:
        return tuple(self._each_unit())

    def _each_unit(self) -> Iterator[Unit]:
        whole = Unit("experiment")
        yield whole
        for source in self.experiment.data:
            home = f"{self.within}/{source.name}" if self.within else source.name
            top = Unit("source", home, whole, source=source)
            yield top
            for repetition in range(self.experiment.repetitions):
                several = self.experiment.repetitions > 1
                place = f"{home}/repetition-{repetition + 1}" if several else home
                division = Unit("division", place, top, repetition, source=source)
                yield division
                for fold in range(self.folds):
                    part_place = f"{place}/fold-{fold + 1}" if self.folds > 1 else place
                    part = Unit("part", part_place, division, repetition, fold, source)
                    yield part
                    # `check_name` only allows names that are valid file names.
                    for system in self.experiment.systems:
                        stem = system.name.replace(" ", "")
                        yield Unit("cell", f"{part_place}/{stem}", part, repetition, fold, source, system)

    def units(self, level: Level, within: Unit | None = None) -> list[Unit]:
        """Return the units at a level, optionally only those inside another unit."""
        return [
            unit for unit in self._units if unit.level == level and (within is None or unit.at(within.level) is within)
        ]

    def source(self, name: str) -> Unit:
        """Return a set of ratings by its name."""
        return next(unit for unit in self.units("source") if unit.source.name == name)

    def seed(self, unit: Unit) -> int:
        """Return the seed of a unit's repetition."""
        return self.experiment.seeds[unit.repetition]

    # artifacts

    def take(self, stage: Stage[Any], advance: Callable[[], None] = lambda: None) -> None:
        """Make the missing artifacts of a stage, and export all of them."""
        units = {stage.name_for(unit): unit for unit in stage.units(self)}
        made_of = {name: stage.inputs_of(self, unit) for name, unit in units.items()}
        there = {name: self.store.kept(name, made_of[name]) for name in units}
        missing = {name: units[name] for name, artifact in there.items() if artifact is None}
        for _ in range(len(units) - len(missing)):
            advance()
        # Repetitions may share an artifact, such as a system that does not draw on the same split.
        first = {repr(made_of[name]): name for name in reversed(missing)}
        alike = [name for name in missing if first[repr(made_of[name])] != name]
        missing = {name: unit for name, unit in missing.items() if name not in alike}
        for name, make, seconds in stage.make_each(self, missing, made_of):
            there[name] = self.store.make(name, made_of[name], make, seconds=seconds)
            advance()
        for name in alike:
            there[name] = self.store.kept(name, made_of[name])
            advance()
        # In the order of the file, regardless of which finished first.
        self.artifacts |= {name: artifact for name in units if (artifact := there[name]) is not None}
        if self.store.makes and stage.exported and not self.within:
            self.exports.publish(
                {name: (self.artifacts[name], partial(stage.export, self, unit)) for name, unit in units.items()}
            )
        stage.check(self)

    def go(self, stages: Stages = silent) -> None:
        """Go through all stages in order; all data are read and split before anything is trained."""
        for stage in self.stages:
            if units := stage.units(self):
                stage.prepare(self, stages)
                with stages(stage.title, len(units)) as advance:
                    self.take(stage, advance)

    def artifact(self, stage: Stage[Any], unit: Unit) -> Artifact:
        """Return the artifact of a stage that belongs to a unit."""
        return self.artifacts[stage.name_for(unit.at(stage.level))]

    def made(self, stage: Stage[Any], unit: Unit) -> Artifact | None:
        """Return the artifact of a stage that belongs to a unit, or None if the stage makes none for it."""
        return self.artifacts.get(stage.name_for(unit.at(stage.level)))

    def read(self, stage: Stage[T], unit: Unit) -> T:
        """Return the contents of an artifact; the contents that a stage read last stay in memory."""
        unit = unit.at(stage.level)
        return self.remember(stage.name, stage.name_for(unit), lambda: stage.read(self, unit))

    def remember(self, kind: str, name: str, make: Callable[[], T]) -> T:
        """Return the last object of a kind if it has this name, else make it."""
        if self._read.get(kind, ("", None))[0] != name:
            self._read[kind] = (name, make())
        return self._read[kind][1]

    def forget(self) -> None:
        """Drop everything kept in memory; the artifacts stay."""
        self._read.clear()

    def digests(self) -> dict[str, str]:
        """Return the digest of each artifact by name."""
        return {name: artifact.digest for name, artifact in self.artifacts.items()}

"""`Pipeline`: takes an experiment through its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol, TypeVar

from cranfield.experiments.experiment import Experiment
from cranfield.experiments.inputs import named
from cranfield.experiments.source import Source
from cranfield.experiments.stage import Stage
from cranfield.experiments.system import System
from cranfield.splits import Splitting
from cranfield.store import Artifact, Exports, Store

T = TypeVar("T")
Level = Literal["experiment", "source", "division", "part", "cell"]
"""What a stage makes an artifact for: the whole experiment, a set of ratings, a division of it into folds, one of these
folds, or one system on a fold."""


@dataclass(frozen=True, eq=False)
class Unit:
    """What an artifact is made for.

    Parameters
    ----------
    level
        Its level in the experiment, such as a source, a part or a cell.
    place
        Its name within a stage.
    parent
        The unit that it is a part of.
    repetition, fold
        Counted from 0.
    """

    level: Level
    place: str = ""
    parent: Unit | None = None
    repetition: int = 0
    fold: int = 0
    _source: Source | None = None
    _system: System | None = None

    @property
    def source(self) -> Source:
        """The set of ratings."""
        assert self._source is not None
        return self._source

    @property
    def system(self) -> System:
        """The system."""
        assert self._system is not None
        return self._system

    def at(self, level: Level) -> Unit:
        """Return the unit at a level that contains this one, or this one itself."""
        if self.level == level:
            return self
        assert self.parent is not None, f"{self.level} {self.place} is not part of any {level}"
        return self.parent.at(level)


class Stages(Protocol):
    """Shows the progress of a run: a context for each stage, with a function to report steps."""

    def __call__(self, what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:
        """Start a stage that has the given number of steps."""


def silent(what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG001
    """Show no progress."""
    return nullcontext(lambda: None)


class Pipeline:
    """An experiment on its way through the stages, with the artifacts made so far.

    Parameters
    ----------
    experiment
        What is run.
    store
        Where artifacts are kept.
    stages
        The stages to take, in order.
    jobs
        Number of systems trained in parallel; see `recommend`.
    within
        Prefix of the names of its artifacts, for an experiment inside another one. Such an experiment exports nothing.
    strict
        Whether files of ranked lists that are probably wrong are an error instead of a warning.
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
        with named(f"split='{self.decisions.split}'"):
            return self.decisions.group(Splitting).folds

    @cached_property
    def _units(self) -> list[Unit]:
        return list(self._all_units())

    def _all_units(self) -> Iterator[Unit]:
        whole = Unit("experiment")
        yield whole
        for source in self.experiment.data:
            home = f"{self.within}/{source.name}" if self.within else source.name
            top = Unit("source", home, whole, _source=source)
            yield top
            for repetition in range(self.experiment.repetitions):
                several = self.experiment.repetitions > 1
                place = f"{home}/repetition-{repetition + 1}" if several else home
                division = Unit("division", place, top, repetition, _source=source)
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
        for name, make, seconds in stage.make_each(self, missing, made_of):
            there[name] = self.store.make(name, made_of[name], make, seconds=seconds)
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
        held: T = self._read[kind][1]
        return held

    def forget(self) -> None:
        """Drop everything kept in memory; the artifacts stay."""
        self._read.clear()

    def digests(self) -> dict[str, str]:
        """Return the digest of each artifact by name."""
        return {name: artifact.digest for name, artifact in self.artifacts.items()}

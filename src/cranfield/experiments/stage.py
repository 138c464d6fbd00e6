"""`Stage`: a step of an experiment that makes artifacts."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from cranfield._files import whole_file
from cranfield.store import Made

if TYPE_CHECKING:
    from cranfield.experiments.experiment import Experiment
    from cranfield.experiments.pipeline import Level, Pipeline, Stages, Unit

OUT = "out"
"""Folder within an artifact; its files are exported unchanged."""

LEAST = 0.05
"""Minimum of an estimated time, in seconds."""


T = TypeVar("T")


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

    name: ClassVar[str]
    """The first part of the names of its artifacts."""

    title: ClassVar[str]
    """What it does, as shown while it runs."""

    level: ClassVar[Level]
    """What it makes an artifact for."""

    inputs: ClassVar[tuple[str, ...]]
    """The stages whose artifacts it reads."""

    version: ClassVar[int] = 1
    """Part of the key of its artifacts. Raise it when the same inputs give another artifact; a test compares them."""

    exported: ClassVar[bool] = False
    """Whether its artifacts are readable files in the folder of the experiment."""

    timed: ClassVar[bool] = False
    """Whether a plan says how long each of its artifacts takes."""

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
        return LEAST

"""The stage `runs`: ranked lists (decisions B1, B2, C1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.experiments.codes import read_run, save_run
from cranfield.experiments.costs import training_time
from cranfield.experiments.inputs import input_checksum
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import Size, Stage
from cranfield.experiments.stages.data import vocabularies
from cranfield.experiments.stages.searches import parameters_of, spelling_of
from cranfield.experiments.stages.splits import SPLITS, split_of
from cranfield.experiments.store import Made
from cranfield.rankings import Run, write_run
from cranfield.rankings import read_run as read_run_file
from cranfield.rankings.recommending import timed_each


class _Runs(Stage[Run]):
    name, title, level, inputs = "runs", "Training and ranking", "cell", ("splits", "searches")
    exported = timed = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the system is trained here; a file of ranked lists is taken as it is."""
        return unit.system.run is None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return {
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "system": spelling_of(line, unit),
            "parameters": parameters_of(line, unit),
            "asked": line.decisions.recommending(),
            "seed": line.seed(unit),
        }

    def make_each(
        self, line: Pipeline, missing: Mapping[str, Unit], made_of: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Callable[[Path], Made], float]]:
        """Train and rank the systems of a part, several at a time."""
        for part in line.units("part"):
            wanted = [name for name, unit in missing.items() if unit.at("part") is part]
            if not wanted:
                continue
            spelled = {missing[name].system.name: made_of[name]["system"] for name in wanted}
            asked = {**line.decisions.recommending(), "seed": line.seed(part), "jobs": line.jobs}
            for done in timed_each(split_of(line, part), spelled, **asked):
                yield wanted[done.place], partial(_save, done.result), done.seconds

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        raise NotImplementedError("systems are trained several at a time")

    def read(self, line: Pipeline, unit: Unit) -> Run:
        """Return the ranked lists of a system."""
        system = unit.system
        if system.run is not None:
            return read_run_file(line.experiment.path(str(system.run_file(unit.source.name))), name=system.name)
        artifact = line.artifact(self, unit)
        return read_run(artifact.path(), system.name, vocabularies(line, unit), artifact.facts["counts"])

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the lists with their ids."""
        return [write_run(line.read(self, unit), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:
        return training_time(line.decisions, str(unit.system.spelling), size)


def _save(run: Run, place: Path) -> Made:
    # Who was served and what was ranked; the name of the system is not a fact of its lists.
    done = [step.as_dict() for step in run.history if step.action in ("serve", "targets")]
    return [save_run(run, place / "run.parquet")], {"lists": len(run), "counts": dict(run.counts), "history": done}


def run_digest(line: Pipeline, unit: Unit) -> str:
    """Return a hash of the ranked lists of a system, those that come from a file too."""
    if unit.system.run is None:
        return line.artifact(RUNS, unit).digest
    return input_checksum(line.experiment.path(str(unit.system.run_file(unit.source.name))))


RUNS = _Runs()

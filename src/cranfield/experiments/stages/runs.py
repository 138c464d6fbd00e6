"""The stage `runs`: ranked lists (decisions B1, B2, C1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield.experiments.codes import read_run, run_facts, save_run
from cranfield.experiments.given_runs import given_checksum, given_run
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.calibrations import CALIBRATED, ranker_of
from cranfield.experiments.stages.data import decided, vocabularies
from cranfield.experiments.stages.models import MODELS
from cranfield.experiments.stages.splits import SPLITS, serving_of
from cranfield.experiments.user_code import system_code
from cranfield.rankings import Run, fill_system, write_run
from cranfield.store import Made

# Seconds to rank one item for one user.
_RANKED = 2e-8


class _Runs(Stage[Run]):
    name, title, level, inputs = "runs", "Ranking", "cell", ("splits", "models", "calibrations")
    exported = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the system is trained here; a file of ranked lists is used as it is."""
        return unit.system.run is None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        ranking, fill = decided(line, unit).ranking, fill_system(line.decisions.fill, line.seed(unit))
        # The test part is only an input if the lists depend on it.
        test = None if ranking.needs_test is None else [line.artifact(SPLITS, unit).digest, unit.fold]
        calibrated = CALIBRATED.wants(line, unit)
        return {
            "model": line.artifact(MODELS, unit).digest,
            **({"calibration": line.artifact(CALIBRATED, unit).digest} if calibrated else {}),
            "serving": serving_of(line, unit),
            "ranking": ranking.as_dict(),
            "fill": None if fill is None else [dict(vars(fill)), system_code(type(fill))],
            "test": test,
            **_profiles(line, unit),
            "seed": line.seed(unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Rank items by the scores of a fitted system."""
        ranker, name = ranker_of(line, unit), unit.system.name
        calibration = line.read(CALIBRATED, unit) if CALIBRATED.wants(line, unit) else None
        run = ranker.run(name, ranker.ranked(name, line.read(MODELS, unit), calibration))
        # Keep the steps that say who was served and what was ranked, but not the name of the system.
        done = [step.as_dict() for step in run.history if step.action in ("serve", "targets")]
        facts = {"lists": len(run), **run_facts(run), "groups": list(run.group_names), "history": done}
        return [save_run(run, place / "run.parquet")], facts

    def read(self, line: Pipeline, unit: Unit) -> Run:
        """Return the ranked lists of a system."""
        system = unit.system
        if system.run is not None:
            return given_run(line, unit.source.name, system.name)
        artifact = line.artifact(self, unit)
        return read_run(
            artifact.path(), system.name, vocabularies(line, unit), artifact.facts, artifact.facts["groups"]
        )

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the lists with their ids."""
        return [write_run(line.read(self, unit), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.users * size.items * _RANKED, LEAST)


def _profiles(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return a hash of the profiles that lists are made from, if whole users are held out."""
    splits = line.artifact(SPLITS, unit).facts.get("splits")
    fingerprint = None if splits is None else splits[unit.fold]["fingerprints"].get("profiles")
    return {} if fingerprint is None else {"profiles": fingerprint}


def run_digest(line: Pipeline, unit: Unit) -> str:
    """Return a hash of the ranked lists of a system, whether they are made here or come from a file."""
    if unit.system.run is None:
        return line.artifact(RUNS, unit).digest
    return given_checksum(line, unit)


RUNS = _Runs()

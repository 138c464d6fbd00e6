"""The stage `models`: fitted systems. They do not depend on the candidates of lists or on the users served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from cranfield._own_code import names_code
from cranfield.experiments.costs import training_time
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import Size, Stage
from cranfield.experiments.stages.data import DATA, VOCABULARIES, features_of
from cranfield.experiments.stages.searches import parameters_of, spelling_of
from cranfield.experiments.stages.splits import SPLITS, split_of, training_of
from cranfield.experiments.user_code import own_system
from cranfield.rankings import fit_each, fitted
from cranfield.recommenders import (
    CannotKeepError,
    EpochModel,
    Model,
    Recommender,
    can_be_kept,
    fit_takes,
    read_model,
    recommender,
    save_model,
)
from cranfield.store import Made

_FILE = "model.npz"


class _Models(Stage[Recommender]):
    name, title, level, inputs = "models", "Training", "cell", ("data", "splits", "searches")
    timed = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the system is trained here; a file of ranked lists is used as it is."""
        return unit.system.run is None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        spelling, data = spelling_of(line, unit), line.artifact(DATA, unit)
        splits = line.artifact(SPLITS, unit).facts.get("splits")
        parts = {} if splits is None else splits[unit.fold]["fingerprints"]
        # If the split has no validation part, calibrations hold one out of the training part.
        held_out = line.decisions.calibration != "none" and "validation" not in parts
        return {
            "train": parts.get("train"),
            **({"validation": parts["validation"]} if "validation" in parts and _looks_at_validation(spelling) else {}),
            **features_of(line, unit, spelling),
            "vocabularies": [data.files.get(file) for file in VOCABULARIES],
            "system": spelling,
            "parameters": parameters_of(line, unit),
            "own": own_system(spelling, line.experiment),
            "seed": line.seed(unit),
            **({"held out": True} if held_out else {}),
        }

    def make_each(
        self, line: Pipeline, missing: Mapping[str, Unit], made_of: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Callable[[Path], Made], float]]:
        """Train the systems of a part, several in parallel."""
        for part in line.units("part"):
            wanted = [name for name, unit in missing.items() if unit.at("part") is part]
            if not wanted:
                continue
            spelled = {missing[name].system.name: made_of[name]["system"] for name in wanted}
            checkpoints = {missing[name].system.name: line.store.checkpoint(name, made_of[name]) for name in wanted}
            for done in fit_each(
                training_of(line, part),
                spelled,
                validation=split_of(line, part).validation,
                checkpoints=checkpoints,
                seed=line.seed(part),
                jobs=line.jobs,
            ):
                name = wanted[done.place]
                yield name, partial(_save, line, missing[name], done.result), done.seconds

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Train one system."""
        return _save(line, unit, self._fitted(line, unit), place)

    def read(self, line: Pipeline, unit: Unit) -> Recommender:
        """Return a fitted system; one that cannot be saved is trained again in a later run."""
        artifact = line.artifact(self, unit)
        if not artifact.files:
            return line.remember(_unkept(unit), artifact.key, lambda: self._fitted(line, unit))
        train = training_of(line, unit)
        return read_model(artifact.path(_FILE), spelling_of(line, unit), train, seed=line.seed(unit))

    def _fitted(self, line: Pipeline, unit: Unit) -> Recommender:
        system = recommender(spelling_of(line, unit), line.seed(unit))
        return fitted(system, training_of(line, unit), split_of(line, unit).validation)

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float | None:
        if names_code(unit.system.spelling):
            return None  # a plan does not run user code
        return training_time(line.decisions, str(unit.system.spelling), size)


def _save(line: Pipeline, unit: Unit, system: Recommender, place: Path) -> Made:
    with suppress(CannotKeepError):
        if can_be_kept(system):
            return [save_model(system, place / _FILE)], _training_of(system)
    # The model cannot be saved: keep it in memory for its lists, which are made in this run.
    line.remember(_unkept(unit), place.name, lambda: system)
    # Without files, the digest of this artifact must come from its inputs: the folder is named after their hash.
    return [], {"instead": place.name}


def _training_of(system: Recommender) -> dict[str, Any]:
    """Return how a system was trained, if by epochs, and the parameters that it chose from the data."""
    training = {"training": system.training} if isinstance(system, EpochModel) else {}
    return {**training, "adapted": system.adapted} if isinstance(system, Model) and system.adapted else training


def _looks_at_validation(spelling: str) -> bool:
    """Whether a system may look at the validation part; user code might."""
    return names_code(spelling) or fit_takes(recommender(spelling), "validation")


def _unkept(unit: Unit) -> str:
    return f"model of {unit.place}"


MODELS = _Models()

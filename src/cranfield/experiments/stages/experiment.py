"""The stage `experiment`: what is run, with every default stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield._files import write_text
from cranfield.experiments.file import moved, toml_of
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import OUT, Stage
from cranfield.store import Made

FILE = "experiment.toml"


class _Experiment(Stage[None]):
    name, title, level, inputs = "experiment", "Reading the experiment", "experiment", ()
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"text": stated(line)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        write_text(place / OUT / FILE, stated(line))
        return [place / OUT / FILE], {}


def stated(line: Pipeline) -> str:
    """Return the text of the experiment file, with file names relative to its folder."""
    return toml_of(moved(line.experiment, line.store.path))


EXPERIMENT = _Experiment()

"""The stage `calibrations`: turns a system's scores into predicted ratings, if an experiment asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield._files import write_text
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import decided
from cranfield.experiments.stages.models import MODELS
from cranfield.experiments.stages.splits import SPLITS, held_out, split_of
from cranfield.rankings import Calibration, Ranker
from cranfield.store import Made

_FILE = "calibration.json"


class _Calibrations(Stage[Calibration]):
    name, title, level, inputs = "calibrations", "Calibrating", "cell", ("splits", "models")

    def wants(self, line: Pipeline, unit: Unit) -> bool:
        """Whether the scores of a system that is trained here should become predicted ratings."""
        return unit.system.run is None and line.decisions.calibration != "none"

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        splits = line.artifact(SPLITS, unit).facts.get("splits")
        fingerprints = None if splits is None else splits[unit.fold]["fingerprints"]
        return {
            "model": line.artifact(MODELS, unit).digest,
            "held out": None if fingerprints is None else [fingerprints["train"], fingerprints.get("validation")],
            "method": line.decisions.calibration,
            "seed": line.seed(unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Fit the calibration of one system."""
        calibration = ranker_of(line, unit).calibrated(unit.system.name, line.read(MODELS, unit))
        assert calibration is not None  # guaranteed by `wants`
        write_text(place / _FILE, json.dumps(calibration.as_dict(), indent=1) + "\n")
        facts = {"pairs": calibration.pairs, "spread": calibration.spread, "held_out": calibration.held_out}
        return [place / _FILE], facts

    def read(self, line: Pipeline, unit: Unit) -> Calibration:
        """Return the calibration of a system."""
        return Calibration.of(json.loads(line.artifact(self, unit).path().read_text(encoding="utf-8")))

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.ratings * 1e-6, LEAST)


def ranker_of(line: Pipeline, unit: Unit) -> Ranker:
    """Return the users to serve and their candidates on a part; decided, and drawn, once for all systems."""
    decisions = decided(line, unit)
    return line.remember(
        "ranker",
        unit.at("part").place,
        lambda: Ranker.of(
            split_of(line, unit), decisions.serving, decisions.ranking, line.seed(unit), held_out(line, unit)
        ),
    )


CALIBRATED = _Calibrations()

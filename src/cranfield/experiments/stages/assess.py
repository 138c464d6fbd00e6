"""The optional stage `assess`: which metric can be trusted on these systems and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._settings import settings
from cranfield.assessments import Assessment
from cranfield.comparisons import SIGNIFICANCE_TESTS
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Unit
from cranfield.experiments.stages.data import decided, split_of
from cranfield.experiments.stages.lists import JUDGED, SCORES, lists_of
from cranfield.experiments.user_code import own_metrics, own_of
from cranfield.store import Made, encoding
from cranfield.tables import write_table

STUDIES = ("robustness", "power", "correlation", "groups", "advice", "samples", "curves")
"""The frames of an assessment that are stored."""

_NAMES = ("systems", "metrics", "averages", "lower_is_better")
# Seconds to load libraries; and per sample, system, metric and rating, for all scenarios on one thread.
_LOADING, _ASSESSED = 3.0, 5e-8


class _Assess(Stage[Assessment]):
    name, title, level = "assess", "Assessing", "source"
    exported, version = True, 2

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return line.experiment.assess is not None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        options = options_of(line.experiment)
        test = own_of(SIGNIFICANCE_TESTS, [options["significance"]])
        return {
            "data": unit.source.name,
            "scores": [line.artifact(SCORES, part).digest for part in line.units("part", unit)],
            "judged": [line.artifact(JUDGED, cell).digest for cell in line.units("cell", unit)],
            "asked": options,
            "own": [*own_metrics(options["metrics"], line.experiment), *test],
            "studies": list(STUDIES),
            "seed": line.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        from cranfield.assessments import assess_folds

        measuring, parts = decided(line, unit).measuring, line.units("part", unit)
        assessment = assess_folds(
            [(lists_of(line, part), None) for part in parts],
            threshold=measuring.threshold,
            lists=measuring.lists,
            trains=[split_of(line, part).train for part in parts],
            seed=line.experiment.seed,
            **options_of(line.experiment),
        )
        home = place / OUT / "results" / unit.source.name
        files = [write_table(assessment.frame(study), home / f"assess-{study}.parquet") for study in STUDIES]
        return files, {
            **{name: list(getattr(assessment, name)) for name in _NAMES},
            "whole": encoding.plain(assessment.whole),
            "step": assessment.step.as_dict(),
        }

    def read(self, line: Pipeline, unit: Unit) -> Assessment:
        artifact = line.artifact(self, unit)
        files = {Path(file).stem.removeprefix("assess-"): artifact.path(file) for file in artifact.files}
        named: dict[str, Any] = {name: tuple(artifact.facts[name]) for name in _NAMES}
        frames: dict[str, Any] = {name: read_parquet(files[name]) for name in ("samples", "power", "curves")}
        whole = np.array(artifact.facts["whole"], dtype=np.float64)
        return Assessment(**named, **frames, whole=whole, step=Step.of(artifact.facts["step"]))

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        options, systems = options_of(line.experiment), len(line.experiment.systems)
        each = options.get("samples", 50) * systems * len(options["metrics"]) * _ASSESSED / settings.workers
        return _LOADING + float(each) * size.ratings


def options_of(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of `cranfield.assess`: those of the experiment, otherwise taken from the decisions."""
    decisions, stated = experiment.decisions, dict(experiment.assess or {})
    if isinstance(stated.get("metrics"), str):
        stated["metrics"] = [stated["metrics"]]
    return {
        "metrics": list(decisions.metrics),
        "averages": [decisions.average],
        "undefined": decisions.undefined,
        "significance": decisions.significance,
        "alpha": decisions.alpha,
        **stated,
    }


ASSESS = _Assess()

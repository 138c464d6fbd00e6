"""The optional stage `assess`: which metric can be trusted on these systems and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cranfield._polars import read_parquet
from cranfield.assessments import Assessment
from cranfield.comparisons.verdict import tests
from cranfield.data.writing import write_table
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.folder import Artifact, Made
from cranfield.experiments.source import Source
from cranfield.experiments.stages import Pipeline
from cranfield.experiments.stored import plain, step_of
from cranfield.experiments.user_code import own_metrics, own_of

STUDIES = ("robustness", "power", "correlation", "groups", "advice", "samples", "curves")
"""The frames of an assessment that are kept."""

_NAMES = ("systems", "metrics", "averages", "lower_is_better")


def asked(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of `cranfield.assess`: those of the experiment, and where it has none the decisions."""
    decisions, stated = experiment.decisions, dict(experiment.assess or {})
    if isinstance(stated.get("metrics"), str):
        stated["metrics"] = [stated["metrics"]]
    return {
        "metrics": list(decisions.metrics),
        "averages": [decisions.average],
        "undefined": decisions.undefined,
        "significance": decisions.test,
        "alpha": decisions.alpha,
        **stated,
    }


def assessed(line: Pipeline, source: Source) -> Artifact:
    """Assess the metrics on a set of ratings, over all its folds."""
    decisions, parts = line.decisions, line.parts(source)
    options = asked(line.experiment)
    made_of = {
        "scores": [line.made[f"scores/{part.place}"].digest for part in parts],
        "runs": [line.made[line.run_name(part, one)].digest for part in parts for one in line.experiment.systems],
        "asked": options,
        "own": [*own_metrics(options["metrics"]), *own_of(tests, [options["significance"]])],
        "studies": list(STUDIES),
        "seed": line.experiment.seed,
    }

    def make() -> Made:
        from cranfield.assessments import assess_folds

        measuring = decisions.measuring()
        found = assess_folds(
            [
                ([line.run_of(part, system) for system in line.experiment.systems], line.measured_test(part))
                for part in parts
            ],
            threshold=measuring["threshold"],
            lists=measuring["lists"],
            trains=[line.split_of(part).train for part in parts],
            seed=line.experiment.seed,
            **options,
        )
        home = line.folder.path / "results" / source.name
        files = [write_table(found.frame(study), home / f"assess-{study}.parquet") for study in STUDIES]
        return files, {
            "sentences": found.sentences(),
            **{name: list(getattr(found, name)) for name in _NAMES},
            "whole": plain(found.whole),
            "step": found.step.as_dict(),
        }

    name = f"assess/{source.name}"
    line.made[name] = line.folder.artifact(name, made_of, make)
    return line.made[name]


def read_assessment(folder: Path, artifact: Artifact) -> Assessment:
    """Return the assessment that `assessed` kept."""
    files = {Path(file).stem.removeprefix("assess-"): folder / file for file in artifact.files}
    named: dict[str, Any] = {name: tuple(artifact.facts[name]) for name in _NAMES}
    frames: dict[str, Any] = {name: read_parquet(files[name]) for name in ("samples", "power", "curves")}
    whole = np.array(artifact.facts["whole"], dtype=np.float64)
    return Assessment(**named, **frames, whole=whole, step=step_of(artifact.facts["step"]))

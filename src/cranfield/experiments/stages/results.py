"""The stage `results`: averages and comparisons (decisions C3, C4, D)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from cranfield._polars import read_parquet
from cranfield.comparisons import CORRECTIONS, SIGNIFICANCE_TESTS
from cranfield.experiments.codes import read_comparison, save_comparison
from cranfield.experiments.findings import Findings, findings
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import OUT, Stage
from cranfield.experiments.stages.scores import SCORES
from cranfield.experiments.stages.searches import parameters_of
from cranfield.experiments.user_code import own_of
from cranfield.experiments.weights import keep_weights, weights_checksum, with_weights
from cranfield.measures import join_folds
from cranfield.store import Made

_COMPARISON = "comparison.parquet"


class _Results(Stage[Findings]):
    name, title, level, inputs = "results", "Comparing", "source", ("scores",)
    exported, version = True, 2

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions = line.decisions
        return {
            "data": unit.source.name,
            "phrase": str(line.decisions),
            "scores": [line.artifact(SCORES, part).digest for part in line.units("part", unit)],
            "averaging": decisions.averaging.as_dict(),
            "weights": weights_checksum(line.experiment),
            "comparing": decisions.comparing.as_dict(),
            "own": [
                *own_of(SIGNIFICANCE_TESTS, [decisions.significance]),
                *own_of(CORRECTIONS, [decisions.correction]),
            ],
            "once": list(_trained_once(line, unit)),
            "seed": line.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        parts = line.units("part", unit)
        folds = [(part.repetition, part.fold, with_weights(line.experiment, line.read(SCORES, part))) for part in parts]
        once = _trained_once(line, unit)
        result = findings(unit.source.name, folds, line.decisions, seed=line.experiment.seed, trained_once=once)
        paths = [*result.write(place / OUT, line.decisions), *keep_weights(line.experiment, place)]
        facts: dict[str, Any] = {"sentences": result.sentences, "comparison": None}
        if result.comparison is not None:
            files, facts["comparison"] = save_comparison(result.comparison, place / _COMPARISON)
            paths += files
        return paths, facts

    def read(self, line: Pipeline, unit: Unit) -> Findings:
        """Return averages and comparisons as objects, with the underlying scores."""
        artifact = line.artifact(self, unit)
        home = artifact.path(f"{OUT}/results/{unit.source.name}/averages.parquet").parent
        compared = artifact.facts["comparison"]
        parts = line.units("part", unit)
        return Findings(
            unit.source.name,
            with_weights(
                line.experiment,
                join_folds([line.read(SCORES, part) for part in parts], [part.repetition for part in parts]),
                artifact.home,
            ),
            None if compared is None else read_comparison(artifact.path(_COMPARISON), compared),
            read_parquet(home / "averages.parquet"),
            pl.DataFrame() if compared is None else read_parquet(home / "comparisons.parquet"),
            line.decisions.averaging,
        )


def _trained_once(line: Pipeline, unit: Unit) -> tuple[str, ...]:
    """Return the randomised systems, unless they are trained with several seeds."""
    if line.experiment.repetitions > 1:
        return ()
    cells = line.units("cell", line.units("part", unit)[0])
    return tuple(cell.system.name for cell in cells if cell.system.run is None and "seed" in parameters_of(line, cell))


RESULTS = _Results()

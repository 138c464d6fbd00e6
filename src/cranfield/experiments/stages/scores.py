"""The stage `scores`: measures the lists of all systems (decision C2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cranfield.data.writing import write_table
from cranfield.experiments.codes import read_scores, save_scores, scores_table
from cranfield.experiments.inputs import catalogue_of, input_checksum
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import decided, vocabularies
from cranfield.experiments.stages.judged import JUDGED, judged_of
from cranfield.experiments.stages.splits import SPLITS, measured_test, serving_of, split_of
from cranfield.experiments.store import Made
from cranfield.experiments.user_code import own_metrics
from cranfield.measures import Scores, measure
from cranfield.measures.windows import in_window


class _Scores(Stage[Scores]):
    name, title, level, inputs = "scores", "Measuring", "part", ("splits", "judged")
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return {
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "judged": [line.artifact(JUDGED, cell).digest for cell in line.units("cell", unit)],
            "measuring": decided(line, unit).measuring.as_dict(),
            "own": own_metrics(line.decisions.metrics, line.experiment),
            "served": serving_of(line, unit),
            "catalogue": _catalogue_digest(line),
            **({"windows": True} if line.decisions.has_windows else {}),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        split, test = split_of(line, unit), measured_test(line, unit)
        judged = [
            # Lists from a file are checked before they are measured, which needs the lists themselves.
            lists if cell.system.run is None else lists.fresh(source=lists.run)
            for cell, lists in zip(line.units("cell", unit), judged_of(line, unit))
        ]
        scores = measure(
            judged,
            **decided(line, unit).measuring.as_dict(),
            train=split.train,
            catalogue=catalogue_of(line.experiment),
        )
        if line.decisions.has_windows:
            scores = in_window(scores, split.step.effect["cut"])
        path, facts = save_scores(scores, place / "scores.npz")
        removed = np.count_nonzero(split.test.user_counts) - np.count_nonzero(test.user_counts)
        return [path], {**facts, "removed_test_users": int(removed)}

    def read(self, line: Pipeline, unit: Unit) -> Scores:
        """Return the scores of a part."""
        artifact = line.artifact(self, unit)
        return read_scores(artifact.path(), artifact.facts, vocabularies(line, unit).users)

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the scores with the ids of the users."""
        return [write_table(scores_table(line.read(self, unit)), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(len(line.experiment.systems) * len(line.decisions.metrics) * size.users * 5e-6, LEAST)


def _catalogue_digest(line: Pipeline) -> str:
    """Return a hash of the catalogue file, or the keyword given instead of a file."""
    catalogue = catalogue_of(line.experiment)
    return input_checksum(catalogue) if isinstance(catalogue, Path) else catalogue


SCORES = _Scores()

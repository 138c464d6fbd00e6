"""The stage `scores`: measures the lists of all systems (decision C2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield.experiments.codes import read_scores, save_scores, scores_table
from cranfield.experiments.inputs import catalogue_digest, catalogue_of
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import decided, vocabularies
from cranfield.experiments.stages.judged import JUDGED, judged_of
from cranfield.experiments.stages.splits import SPLITS, measured_test, serving_of, split_of
from cranfield.experiments.user_code import own_metrics
from cranfield.judgments import Judged, catalogue_ids, with_live
from cranfield.measures import Scores, in_window, measure
from cranfield.store import Made
from cranfield.tables import write_table

_SCORES, _CATALOGUE = "scores.npz", "catalogue.parquet"


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
            "catalogue": catalogue_digest(line.experiment),
            **({"windows": True} if line.decisions.has_windows else {}),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        split, test = split_of(line, unit), measured_test(line, unit)
        judged = [
            # Lists from a file are checked before they are measured, which needs the lists themselves.
            lists if cell.system.run is None else lists.fresh(source=lists.run)
            for cell, lists in zip(line.units("cell", unit), lists_of(line, unit))
        ]
        scores = measure(
            judged,
            **decided(line, unit).measuring.as_dict(),
            train=split.train,
            catalogue=catalogue_of(line.experiment),
        )
        if line.decisions.has_windows:
            scores = in_window(scores, split.step.effect["cut"])
        path, facts = save_scores(scores, place / _SCORES)
        removed = np.count_nonzero(split.test.user_counts) - np.count_nonzero(test.user_counts)
        return [path, *_kept(catalogue_of(line.experiment), place)], {**facts, "removed_test_users": int(removed)}

    def read(self, line: Pipeline, unit: Unit) -> Scores:
        """Return the scores of a part."""
        artifact = line.artifact(self, unit)
        return read_scores(artifact.path(_SCORES), artifact.facts, vocabularies(line, unit).users)

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the scores with the ids of the users."""
        return [write_table(scores_table(line.read(self, unit)), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(len(line.experiment.systems) * len(line.decisions.metrics) * size.users * 5e-6, LEAST)


def _kept(catalogue: str | Path, place: Path) -> list[Path]:
    """Write the items of a catalogue file into a folder; return the file, if there is one."""
    items = [catalogue_ids(catalogue).all] if isinstance(catalogue, Path) else []
    return [write_table(pl.DataFrame({"item": ids}), place / _CATALOGUE) for ids in items]


SCORES = _Scores()


def lists_of(line: Pipeline, part: Unit) -> list[Judged]:
    """Return the judged lists of every system on a part; items outside a catalogue earn nothing.

    The catalogue is the one that the scores were measured with, or that of the experiment before there are any.
    """
    judged, catalogue, scores = judged_of(line, part), catalogue_of(line.experiment), line.made(SCORES, part)
    if scores is not None and _CATALOGUE in scores.files:
        catalogue = scores.path(_CATALOGUE)
    return with_live(judged, catalogue, split_of(line, part).train)

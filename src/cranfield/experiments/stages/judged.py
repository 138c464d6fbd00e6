"""The stage `judged`: ranked lists met with the test part, once; thresholds and cut-offs are views of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import decided
from cranfield.experiments.stages.runs import RUNS, run_digest
from cranfield.experiments.stages.splits import SPLITS, measured_judgments, serving_of, split_of
from cranfield.experiments.store import Made
from cranfield.measures import Judged, judge, read_judged, save_judged

# To meet an item of a list with the test part, in seconds, and about how long a list is.
_MET, _LONG = 2e-8, 100


class _Judged(Stage[Judged]):
    name, title, level, inputs = "judged", "Judging", "cell", ("splits", "runs")

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return {
            "run": run_digest(line, unit),
            # It says whose lists it holds.
            "name": unit.system.name,
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "served": serving_of(line, unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Meet the lists of a system with the test ratings of the users who are served."""
        judged = judge(line.read(RUNS, unit), measured_judgments(line, unit))
        return [save_judged(judged, place / "judged.npz")], {}

    def read(self, line: Pipeline, unit: Unit) -> Judged:
        """Return the judged lists of a system; the lists themselves are read only where a metric needs them."""
        return read_judged(
            line.artifact(self, unit).path(),
            measured_judgments(line, unit),
            partial(RUNS.read, line, unit),
            threshold=decided(line, unit).measuring.threshold,
            train=split_of(line, unit).train,
        )

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.users * _LONG * _MET, LEAST)


def judged_of(line: Pipeline, part: Unit) -> list[Judged]:
    """Return the judged lists of every system on a part."""
    return [line.read(JUDGED, cell) for cell in line.units("cell", part)]


JUDGED = _Judged()

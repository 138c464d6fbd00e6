"""The stage `judged`: ranked lists joined with the test part once; thresholds and cut-offs are views of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import decided
from cranfield.experiments.stages.runs import RUNS, run_digest
from cranfield.experiments.stages.splits import SPLITS, measured_judgments, serving_of, split_of
from cranfield.judgments import Draw, Judged, judge, read_judged, save_judged
from cranfield.rankings import Ranking, Targets
from cranfield.store import Made

# Seconds to look up one item of a list in the test part, and the approximate length of a list.
_MET, _LONG = 2e-8, 100


class _Judged(Stage[Judged]):
    name, title, level, inputs = "judged", "Judging", "cell", ("splits", "runs")

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return {
            "run": run_digest(line, unit),
            # The artifact contains the name of the system.
            "name": unit.system.name,
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "served": serving_of(line, unit),
            **_drawn(line, unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Join the lists of a system with the test ratings of the users who are served."""
        judged = judge(line.read(RUNS, unit), measured_judgments(line, unit))
        if line.decisions.averages_draws:
            judged = judged.fresh(draw=_draw(line, unit, judged))
        return [save_judged(judged, place / "judged.npz")], {}

    def read(self, line: Pipeline, unit: Unit) -> Judged:
        """Return the judged lists of a system; the lists themselves are only read if a metric needs them."""
        return read_judged(
            line.artifact(self, unit).path(),
            measured_judgments(line, unit),
            partial(RUNS.read, line, unit),
            threshold=decided(line, unit).measuring.threshold,
            train=split_of(line, unit).train,
        )

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.users * _LONG * _MET, LEAST)


def _drawn(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return what the expectation over draws depends on, if metrics are such an expectation."""
    decisions = decided(line, unit)
    return {"draws": decisions.group(Ranking).as_dict()} if decisions.averages_draws else {}


def _draw(line: Pipeline, unit: Unit, judged: Judged) -> Draw:
    """Return how many items a sampled list would draw from how many candidates; the same for every system."""
    decisions = decided(line, unit)
    stated, split = decisions.group(Ranking), split_of(line, unit)
    assert stated.drawn is not None

    def sizes() -> NDArray[np.int64]:
        targets = Targets(split.inputs, split.test, stated, item_groups=split.item_groups)
        judgments = judged.judgments
        return targets.sizes(judgments.users, judgments.items if stated.one_relevant else None)

    of_lists = line.remember("candidates", f"{unit.at('part').place} {serving_of(line, unit)}", sizes)
    longest = None if isinstance(stated.length, str) else stated.length
    return Draw(stated.drawn, of_lists, stated.unrated != "all", longest)


def judged_of(line: Pipeline, part: Unit) -> list[Judged]:
    """Return the judged lists of every system on a part."""
    return [line.read(JUDGED, cell) for cell in line.units("cell", part)]


JUDGED = _Judged()

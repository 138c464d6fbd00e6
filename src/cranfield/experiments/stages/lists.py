"""The stages `runs`, `judged` and `scores`: lists are ranked, joined with the test part and measured (B1 to C2)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.experiments import inputs
from cranfield.experiments.inputs import own_metrics, system_code
from cranfield.experiments.pipeline import LEAST, Pipeline, Size, Stage, Unit
from cranfield.experiments.stages.data import (
    SPLITS,
    decided,
    draws_system,
    fingerprints_of,
    list_vocabularies,
    measured_judgments,
    measured_test,
    serving_of,
    split_of,
)
from cranfield.experiments.stages.models import CALIBRATED, MODELS, ranker_of
from cranfield.judgments import Draw, Judged, catalogue_ids, judge, read_judged, with_live, write_judged
from cranfield.measures import Scores, measure, with_repeats
from cranfield.rankings import Ranking, Run, Targets, fill_system, write_run
from cranfield.store import Made, encoding
from cranfield.tables import write_table

# Seconds to rank one item for one user.
_RANKED = 2e-8


class _Runs(Stage[Run]):
    name, title, level = "runs", "Ranking", "cell"
    version = 3
    exported = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return unit.system.run is None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        ranking, fill = decided(line, unit).ranking, fill_system(line.decisions.fill, line.seed(unit))
        # The test part is only an input if the lists depend on it.
        test = None if ranking.needs_test is None else [line.artifact(SPLITS, unit).digest, unit.fold]
        calibrated, parts = CALIBRATED.wants(line, unit), fingerprints_of(line, unit)
        return {
            "model": line.artifact(MODELS, unit).digest,
            **({"calibration": line.artifact(CALIBRATED, unit).digest} if calibrated else {}),
            "serving": serving_of(line, unit),
            "ranking": ranking.as_dict(),
            "fill": None if fill is None else [dict(vars(fill)), system_code(type(fill))],
            "test": test,
            # Whole users are held out, and lists are made from their profiles.
            **({"profiles": parts["profiles"]} if "profiles" in parts else {}),
            # Lists hold no items of the validation part.
            **({"validation": parts["validation"]} if "validation" in parts else {}),
            "seed": line.seed(unit) if self._draws(line, unit) else line.experiment.seed,
        }

    @staticmethod
    def _draws(line: Pipeline, unit: Unit) -> bool:
        """Whether users, items or a fill are drawn, so that another seed makes other lists of the same model."""
        decisions = decided(line, unit)
        fill = decisions.fill != "none" and draws_system(str(decisions.fill), line.experiment.base)
        return fill or decisions.sample != "all" or decisions.ranking.drawn is not None

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        ranker, name = ranker_of(line, unit), unit.system.name
        calibration = line.read(CALIBRATED, unit) if CALIBRATED.wants(line, unit) else None
        run = ranker.run(name, ranker.ranked(name, line.read(MODELS, unit), calibration))
        # Keep the steps that say who was served and what was ranked, but not the name of the system.
        done = [step.as_dict() for step in run.history if step.action in ("serve", "targets")]
        facts = {"lists": len(run), **encoding.run_facts(run), "groups": list(run.group_names), "history": done}
        return [encoding.save_run(run, place / "run.parquet")], facts

    def read(self, line: Pipeline, unit: Unit) -> Run:
        system = unit.system
        if system.run is not None:
            return inputs.given_run(line.experiment, unit.source, system)
        artifact = line.artifact(self, unit)
        ids, facts = list_vocabularies(line, unit), artifact.facts
        return encoding.read_run(artifact.path(), system.name, ids, facts, facts["groups"])

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        return [write_run(line.read(self, unit), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.users * size.items * _RANKED, LEAST)


RUNS = _Runs()


# Seconds to look up one item of a list in the test part, and the approximate length of a list.
_MET, _LONG = 2e-8, 100


class _Judged(Stage[Judged]):
    name, title, level, version = "judged", "Judging", "cell", 2

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions = decided(line, unit)
        return {
            "run": line.artifact(RUNS, unit).digest if unit.system.run is None else inputs.given_checksum(line, unit),
            # The artifact contains the name of the system.
            "name": unit.system.name,
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "served": serving_of(line, unit),
            # What the expectation over draws depends on, if metrics are such an expectation.
            **({"draws": decisions.group(Ranking).as_dict()} if decisions.averages_draws else {}),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        judged = judge(line.read(RUNS, unit), measured_judgments(line, unit))
        if line.decisions.averages_draws:
            judged = judged.fresh(draw=_draw(line, unit, judged))
        return [write_judged(judged, place / "judged.npz")], {}

    def read(self, line: Pipeline, unit: Unit) -> Judged:
        return read_judged(
            line.artifact(self, unit).path(),
            measured_judgments(line, unit),
            partial(RUNS.read, line, unit),  # only if a metric needs the lists themselves
            threshold=decided(line, unit).measuring.threshold,
            train=split_of(line, unit).train,
        )

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.users * _LONG * _MET, LEAST)


def _draw(line: Pipeline, unit: Unit, judged: Judged) -> Draw:
    """Return how many items a sampled list would draw from how many candidates; the same for every system."""
    stated, split = decided(line, unit).group(Ranking), split_of(line, unit)
    assert stated.drawn is not None

    def sizes() -> NDArray[np.int64]:
        targets = Targets(split.inputs, split.test, stated, item_groups=split.item_groups)
        judgments = judged.judgments
        return targets.sizes(judgments.users, judgments.items if stated.one_relevant else None)

    of_lists = line.remember("candidates", f"{unit.at('part').place} {serving_of(line, unit)}", sizes)
    longest = None if isinstance(stated.length, str) else stated.length
    return Draw(stated.drawn, of_lists, stated.unrated != "all", longest)


JUDGED = _Judged()


_SCORES, _CATALOGUE = "scores.npz", "catalogue.parquet"


class _Scores(Stage[Scores]):
    name, title, level = "scores", "Measuring", "part"
    version = 4
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return {
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "judged": [line.artifact(JUDGED, cell).digest for cell in line.units("cell", unit)],
            "measuring": decided(line, unit).measuring.as_dict(),
            "own": own_metrics(line.decisions.metrics, line.experiment),
            "served": serving_of(line, unit),
            "catalogue": inputs.catalogue_digest(line.experiment),
            # Metrics of training ratings count those of the validation part, too.
            **({"training": "joined"} if "validation" in fingerprints_of(line, unit) else {}),
            **({"windows": True} if line.decisions.has_windows else {}),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        split, test = split_of(line, unit), measured_test(line, unit)
        judged = [
            # Lists from a file are checked before they are measured, which needs the lists themselves.
            lists if cell.system.run is None else lists.fresh(source=lists.run)
            for cell, lists in zip(line.units("cell", unit), lists_of(line, unit))
        ]
        measuring, catalogue = decided(line, unit).measuring.as_dict(), inputs.catalogue_of(line.experiment)
        scores = measure(judged, **measuring, train=split.train, catalogue=catalogue)
        scores = with_repeats(scores, judged, test, split.train)
        if line.decisions.has_windows:
            scores = scores.in_window(split.step.effect["cut"])
        path, facts = encoding.save_scores(scores, place / _SCORES)
        paths = [path]
        if isinstance(catalogue, Path):
            paths.append(write_table(pl.DataFrame({"item": catalogue_ids(catalogue).all}), place / _CATALOGUE))
        removed = np.count_nonzero(split.test.user_counts) - np.count_nonzero(test.user_counts)
        return paths, {**facts, "removed_test_users": int(removed)}

    def read(self, line: Pipeline, unit: Unit) -> Scores:
        artifact = line.artifact(self, unit)
        return encoding.read_scores(artifact.path(_SCORES), artifact.facts, list_vocabularies(line, unit).users)

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        return [write_table(encoding.scores_table(line.read(self, unit)), folder / f"{self.name_for(unit)}.parquet")]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(len(line.experiment.systems) * len(line.decisions.metrics) * size.users * 5e-6, LEAST)


SCORES = _Scores()


def lists_of(line: Pipeline, part: Unit) -> list[Judged]:
    """Return the judged lists of every system on a part; items outside a catalogue earn nothing.

    The catalogue is the one that the scores were measured with, or that of the experiment before there are any.
    """
    judged = [line.read(JUDGED, cell) for cell in line.units("cell", part)]
    catalogue, scores = inputs.catalogue_of(line.experiment), line.made(SCORES, part)
    if scores is not None and _CATALOGUE in scores.files:
        catalogue = scores.path(_CATALOGUE)
    return with_live(judged, catalogue, split_of(line, part).train)

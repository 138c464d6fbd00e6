"""The stage `splits`: divides ratings into training and test parts (decision A2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.experiments.codes import read_split, save_splits, step_of
from cranfield.experiments.given_runs import check_given_runs, given_checksum
from cranfield.experiments.inputs import divided, named
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.stages.data import DATA, decided, draws
from cranfield.experiments.user_code import own_of
from cranfield.judgments import Judgments
from cranfield.measures import check_relevance
from cranfield.rankings import HeldOut, hold_out, measured_ratings
from cranfield.splits import Split, Splits, predefined, registry
from cranfield.splits import write as write_split
from cranfield.store import Artifact, Made


class _Splits(Stage[Sequence[Split]]):
    name, title, level, inputs = "splits", "Splitting", "division", ("data",)
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        method, divides = line.decisions.split, line.decisions.overlap is None
        return {
            "data": line.artifact(DATA, unit).digest,
            "split": method,
            "own": own_of(registry, [method]) if divides else [],
            "seed": line.seed(unit) if divides and draws(registry, method) else None,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        ratings = line.read(DATA, unit)
        if line.decisions.overlap is not None:
            splits: Sequence[Split] = [predefined(ratings["train"], ratings["test"])]
            paths: list[Path] = []
        else:
            parts = divided(line.experiment, ratings["ratings"], line.seed(unit))
            splits = [parts] if isinstance(parts, Split) else parts
            paths = save_splits(splits, ratings["ratings"], place)
        records = [split.record() for split in splits]
        return paths, {
            "splits": [{key: record[key] for key in record if key not in ("cranfield", "data")} for record in records]
        }

    def read(self, line: Pipeline, unit: Unit) -> Sequence[Split]:
        """Return the folds of a division; each is read on demand."""
        return _Folds(line.artifact(self, unit), line.read(DATA, unit))

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the parts with their ids, and the record of the split."""
        ratings, home = line.read(DATA, unit), folder / "splits" / unit.place
        fingerprint = ratings["ratings"].fingerprint if "ratings" in ratings else None
        write_split(line.read(self, unit), home, fingerprint=fingerprint, force=True)
        return [path for path in sorted(home.rglob("*")) if path.is_file()]

    def check(self, line: Pipeline) -> None:
        """Reject, before training, parts without users or relevant items, and lists from files that do not fit."""
        for source in line.units("source"):
            unmeasured = [part for part in line.units("part", source) if self._is_unmeasured(line, part)]
            check_relevance((measured_test(line, part) for part in unmeasured), decided(line, source).measuring)
            for part in line.units("part", source):
                if self._has_new_runs(line, part):
                    check_given_runs(line, part, measured_test(line, part), split_of(line, part).train)

    def _is_unmeasured(self, line: Pipeline, part: Unit) -> bool:
        """Whether a split exists but was not measured yet; one that does not exist cannot be read."""
        split = line.artifact(self, part)
        inputs = {"split": split.digest, "fold": part.fold, "served": serving_of(line, part)}
        return split.home is not None and not line.store.was_made(f"scores/{part.place}", inputs)

    def _has_new_runs(self, line: Pipeline, part: Unit) -> bool:
        """Whether a split exists and lists from files must be checked: they are new, or the run is strict."""
        split = line.artifact(self, part)
        inputs = {"split": split.digest, "fold": part.fold, "served": serving_of(line, part)}
        given = [cell for cell in line.units("cell", part) if cell.system.run is not None]
        return split.home is not None and any(
            line.strict
            or not line.store.was_made(f"judged/{cell.place}", {**inputs, "run": given_checksum(line, cell)})
            for cell in given
        )

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.ratings * 1e-6, LEAST)


class _Folds(Splits):
    """The folds of a division; only the one that was last asked for is in memory."""

    def __init__(self, artifact: Artifact, ratings: dict[str, Ratings]) -> None:
        self._artifact, self._ratings = artifact, ratings
        self._last: Split | None = None

    def __len__(self) -> int:
        return len(self._artifact.facts["splits"])

    def at(self, fold: int) -> Split:
        """Return a fold."""
        if self._last is None or self._last.fold != fold:
            self._last = self._read(fold)
        return self._last

    def _read(self, fold: int) -> Split:
        records = self._artifact.facts["splits"]
        if "ratings" in self._ratings:
            assert self._artifact.home is not None
            return read_split(self._artifact.home, self._ratings["ratings"], records, fold)
        step = step_of(records[fold]["split"])
        train, test = (_after(self._ratings[name], step) for name in ("train", "test"))
        return Split(train, test, step)


def _after(ratings: Ratings, step: Step) -> Ratings:
    return replace(ratings, history=(*ratings.history, step))


def split_of(line: Pipeline, unit: Unit) -> Split:
    """Return the split of a part."""
    split: Split = line.read(SPLITS, unit)[unit.fold]
    return split


def held_out(line: Pipeline, unit: Unit) -> HeldOut | None:
    """Return the split of a part with ratings held out for calibration; None if scores are not calibrated."""
    if line.decisions.calibration == "none":
        return None
    place = unit.at("part").place
    return line.remember("held out", place, lambda: hold_out(split_of(line, unit), line.seed(unit)))


def training_of(line: Pipeline, unit: Unit) -> Ratings:
    """Return the ratings that the systems of a part are trained on."""
    held = held_out(line, unit)
    return split_of(line, unit).train if held is None else held.train


def serving_of(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return everything that determines who is served in a part."""
    serving = line.decisions.serving
    return {**serving.as_dict(), "seed": None if serving.sample == "all" else line.seed(unit)}


def measured_test(line: Pipeline, unit: Unit) -> Ratings:
    """Return the test ratings of the users who are served: B1 removes the others from the experiment."""
    with named("min_ratings, sample"):
        return measured_ratings(split_of(line, unit), line.decisions.serving, line.seed(unit))


def _judgments(line: Pipeline, unit: Unit) -> Judgments:
    threshold, test = decided(line, unit).measuring.threshold, split_of(line, unit).test
    served = measured_test(line, unit)
    return Judgments.of(served, threshold, whole=None if len(served) == len(test) else Judgments.of(test, threshold))


def measured_judgments(line: Pipeline, unit: Unit) -> Judgments:
    """Return the judgments of a part, as one object shared by all systems."""
    key = f"{unit.at('part').place} {serving_of(line, unit)}"
    return line.remember("judgments", key, lambda: _judgments(line, unit))


SPLITS = _Splits()

"""The stages `data` (ratings, read and filtered; decision A1) and `splits` (training and test parts; decision A2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cranfield._own_code import names_code, takes_parameter
from cranfield._record import Step
from cranfield._registry import parse
from cranfield.data import Ratings, describe, filters, together, write
from cranfield.experiments import inputs
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.inputs import own_of
from cranfield.experiments.pipeline import Pipeline, Stage, Unit
from cranfield.judgments import Judgments
from cranfield.rankings import HeldOut
from cranfield.recommenders import recommender
from cranfield.splits import Split, Splits, for_validation, registry
from cranfield.splits import write as write_split
from cranfield.store import Artifact, Made, encoding


class _Data(Stage[dict[str, Ratings]]):
    name, title, level = "data", "Reading", "source"
    exported, seconds_per_rating = True, 1e-6

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions = line.decisions
        drawn = any(draws(filters.registry, spelling) for spelling in decisions.filters)
        return {
            "source": inputs.origin(line.experiment, unit.source, fetching=line.store.makes),
            "overlap": decisions.overlap,
            "filters": list(decisions.filters),
            "own": own_of(filters.registry, decisions.filters),
            "seed": line.experiment.seed if drawn else None,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        loaded = inputs.load(line.experiment, unit.source, line.decisions.overlap)
        parts = {name: inputs.filtered(line.experiment, ratings) for name, ratings in loaded.items()}
        if len(parts) == 1:
            parts = {name: ratings.compact() for name, ratings in parts.items()}
        whole = together(list(parts.values()))
        paths = encoding.save_vocabularies(whole, place)
        paths += [encoding.save_ratings(ratings, place / f"{name}.parquet") for name, ratings in parts.items()]
        described = describe(whole).as_dict()
        facts = {
            "description": {key: value for key, value in described.items() if key not in ("name", "history")},
            **({} if whole.events is None or whole.events.least is None else {"least_event": whole.events.least}),
            "parts": {
                name: {
                    "fingerprint": ratings.fingerprint,
                    "ratings": len(ratings),
                    "history": [step.as_dict() for step in ratings.history],
                }
                for name, ratings in parts.items()
            },
        }
        return paths, facts

    def read(self, line: Pipeline, unit: Unit) -> dict[str, Ratings]:
        artifact, ids = line.artifact(self, unit), vocabularies(line, unit)
        parts = artifact.facts["parts"]
        history = [Step.of(record) for record in next(iter(parts.values()))["history"]]
        return {
            name: encoding.read_ratings(artifact.path(f"{name}.parquet"), ids, unit.source.name, history)
            for name in parts
        }

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        home = folder / "data" / unit.source.name
        return [write(ratings, home / f"{name}.parquet") for name, ratings in line.read(self, unit).items()]


def decided(line: Pipeline, unit: Unit) -> Decisions:
    """Return the decisions resolved for a set of ratings, as far as the ratings have been read."""
    artifact, decisions = line.artifact(DATA, unit), line.decisions
    histogram = artifact.facts.get("description", {}).get("histogram")
    if not histogram:
        return decisions
    lowest, highest = min(row["low"] for row in histogram), max(row["high"] for row in histogram)
    least = artifact.facts.get("least_event")
    return line.remember("decisions", artifact.key, lambda: decisions.on(lowest, highest, least))


def vocabularies(line: Pipeline, unit: Unit) -> encoding.Vocabularies:
    """Return the users and items of a set of ratings."""
    artifact = line.artifact(DATA, unit)
    folder = artifact.path("users.parquet").parent
    return line.remember("vocabularies", artifact.key, lambda: encoding.read_vocabularies(folder))


def list_vocabularies(line: Pipeline, unit: Unit) -> encoding.Vocabularies:
    """Return the users and items of lists: those of the ratings, unless the users of the split are sessions."""
    part = unit.at("part") if unit.level in ("part", "cell") else next(iter(line.units("part", unit)))
    artifact, file = line.artifact(SPLITS, part), f"fold-{part.fold + 1}/{encoding.ID_FILES[0]}"
    if file not in artifact.files:
        return vocabularies(line, unit)
    folder = artifact.path(file).parent
    return line.remember("vocabularies", f"{artifact.key} {file}", lambda: encoding.read_vocabularies(folder))


def features_of(line: Pipeline, unit: Unit, spelling: str) -> dict[str, Any]:
    """Return the checksums of user and item features, if a system may use them; otherwise nothing."""
    files = line.artifact(DATA, unit).files
    features = [files[file] for file in encoding.FEATURE_FILES if file in files]
    uses = features and (names_code(spelling) or recommender(spelling).uses_features)
    return {"features": features} if uses else {}


def fingerprints_of(line: Pipeline, unit: Unit) -> dict[str, str]:
    """Return the fingerprints of the parts of a split; none before it is made."""
    splits = line.artifact(SPLITS, unit).facts.get("splits")
    return {} if splits is None else splits[unit.fold]["fingerprints"]


def draws(registry: Any, spelling: str) -> bool:
    """Whether a spelled function draws at random, that is, whether it has a seed."""
    return "seed" in registry.find(parse(spelling).name).parameters


DATA = _Data()


class _Splits(Stage[Sequence[Split]]):
    name, title, level = "splits", "Splitting", "division"
    exported, seconds_per_rating = True, 1e-6

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
        splits = inputs.divided(line.experiment, ratings, line.seed(unit))
        # Parts that the data came in are in the artifact of the data already.
        paths = encoding.save_splits(splits, ratings["ratings"], place) if line.decisions.overlap is None else []
        records = [split.record() for split in splits]
        return paths, {
            "splits": [{key: record[key] for key in record if key not in ("cranfield", "data")} for record in records]
        }

    def read(self, line: Pipeline, unit: Unit) -> Sequence[Split]:
        return _Folds(line.artifact(self, unit), line.read(DATA, unit))

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        ratings, home = line.read(DATA, unit), folder / "splits" / unit.place
        fingerprint = ratings["ratings"].fingerprint if "ratings" in ratings else None
        write_split(line.read(self, unit), home, fingerprint=fingerprint, force=True)
        return [path for path in sorted(home.rglob("*")) if path.is_file()]

    def check(self, line: Pipeline) -> None:
        """Reject, before training, parts without users or relevant items, and lists from files that do not fit."""
        for source in line.units("source"):
            # A split that does not exist, because this is a plan, cannot be read.
            parts = [part for part in line.units("part", source) if line.artifact(self, part).home is not None]
            unmeasured = [
                part for part in parts if not line.store.was_made(f"scores/{part.place}", _tested(line, part))
            ]
            decided(line, source).measuring.check_relevance(measured_test(line, part) for part in unmeasured)
            for part in parts:
                if _has_new_runs(line, part):
                    inputs.check_given_runs(line, part, measured_test(line, part), split_of(line, part).train)


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
            return encoding.read_split(self._artifact.home, self._ratings["ratings"], records, fold)
        step, parts = Step.of(records[fold]["split"]), [self._ratings[name] for name in ("train", "test")]
        train, test = (replace(part, history=(*part.history, step)) for part in parts)
        return Split(train, test, step)


def _has_new_runs(line: Pipeline, part: Unit) -> bool:
    """Whether lists from files must be checked: they are new, or the run is strict."""
    return any(
        line.strict
        or not line.store.was_made(
            f"judged/{cell.place}", {**_tested(line, part), "run": inputs.given_checksum(line, cell)}
        )
        for cell in line.units("cell", part)
        if cell.system.run is not None
    )


def _tested(line: Pipeline, part: Unit) -> dict[str, Any]:
    return {"split": line.artifact(SPLITS, part).digest, "fold": part.fold, "served": serving_of(line, part)}


def parts_of(line: Pipeline, unit: Unit) -> Split:
    """Return the split of a part, as systems are trained on it."""
    return line.read(SPLITS, unit)[unit.fold]


def split_of(line: Pipeline, unit: Unit) -> Split:
    """Return the split of a part, as lists are made and measured: training has all that users had before the test."""
    return parts_of(line, unit).joined


def held_out(line: Pipeline, unit: Unit) -> HeldOut | None:
    """Return the split of a part with ratings held out for calibration; None if scores are not calibrated."""
    if line.decisions.calibration == "none":
        return None
    place = unit.at("part").place
    return line.remember("held out", place, lambda: HeldOut.of(parts_of(line, unit), line.seed(unit)))


def training_of(line: Pipeline, unit: Unit) -> Ratings:
    """Return the training ratings of a part, without those that are held out for calibration."""
    held = held_out(line, unit)
    return parts_of(line, unit).train if held is None else held.train


def has_same_splits(line: Pipeline, unit: Unit) -> bool:
    """Whether every repetition on a set of ratings has the same split, so that only training seeds differ."""
    records = [line.artifact(SPLITS, part).facts.get("splits") for part in line.units("part", unit)]
    if line.experiment.repetitions == 1 or any(splits is None for splits in records):
        return False
    hashes = {
        (part.fold, json.dumps(splits[part.fold]["fingerprints"]))
        for part, splits in zip(line.units("part", unit), records)
        if splits is not None
    }
    return len(hashes) == line.folds


def draws_system(spelling: str, base: Path) -> bool:
    """Whether a spelled system draws at random, that is, whether it has a seed."""
    if names_code(spelling):
        return takes_parameter(spelling, "seed", base)
    return "seed" in vars(recommender(spelling))


class Learning(NamedTuple):
    """The ratings that a system of a part learns from."""

    train: Ratings
    validation: Ratings | None = None  # for systems that stop early
    whole: Ratings | None = None  # what it is trained on again in the end: training and validation together

    @property
    def final(self) -> Ratings:
        """The ratings of the last training."""
        return self.train if self.whole is None else self.whole


LearningKind = Literal["plain", "apart", "stopped", "refitted", "chosen"]


def learning_kind(line: Pipeline, unit: Unit) -> LearningKind:
    """Return which ratings the system of a cell learns from.

    ``plain``: the training part, which has no validation part, or of which a search has chosen the settings and the
    epochs. ``apart``: the training part of a search, without a refit; of all systems, so that they learn from the same
    ratings, if one of them is searched. Of a split with a validation part: ``stopped``
    by it, and not refitted; ``refitted`` after that; ``chosen`` by a search, and so trained on both parts at once.
    """
    searched, refit = unit.system.tuning is not None, line.decisions.refit
    if "validation" in fingerprints_of(line, unit):
        return ("chosen" if searched else "refitted") if refit else "stopped"
    any_searched = any(system.tuning is not None for system in line.experiment.systems)
    return "apart" if any_searched and not refit else "plain"


def learning_of(line: Pipeline, unit: Unit) -> Learning:
    """Return the ratings that the system of a cell learns from; see `learning_kind`."""
    split, train = parts_of(line, unit), training_of(line, unit)
    match learning_kind(line, unit):
        case "apart":
            method = line.decisions.validation
            (inner,) = for_validation(replace(split, train=train), method, seed=line.seed(unit))
            return Learning(inner.train, inner.test)
        case "stopped":
            return Learning(train, split.validation)
        case "refitted":
            return Learning(train, split.validation, split.joined.train)
        case "chosen":
            return Learning(train, None, split.joined.train)
        case _:
            return Learning(train)


def serving_of(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return everything that determines who is served in a part."""
    serving, repeats = line.decisions.serving, line.decisions.repeats
    counted = {} if repeats == "exclude" else {"repeats": repeats}
    return {**serving.as_dict(), **counted, "seed": None if serving.sample == "all" else line.seed(unit)}


def measured_test(line: Pipeline, unit: Unit) -> Ratings:
    """Return the test ratings of the users who are served: B1 removes the others from the experiment."""
    return inputs.served_ratings(line.experiment, split_of(line, unit), line.seed(unit))


def measured_judgments(line: Pipeline, unit: Unit) -> Judgments:
    """Return the judgments of a part, as one object shared by all systems."""

    def judgments() -> Judgments:
        threshold, test = decided(line, unit).measuring.threshold, split_of(line, unit).test
        served = measured_test(line, unit)
        whole = None if len(served) == len(test) else Judgments.of(test, threshold)
        return Judgments.of(served, threshold, whole=whole)

    return line.remember("judgments", f"{unit.at('part').place} {serving_of(line, unit)}", judgments)


SPLITS = _Splits()

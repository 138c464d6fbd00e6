"""The stages `searches`, `models` and `calibrations`: systems are tuned, trained and, if asked for, calibrated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from math import log2
from pathlib import Path
from typing import Any

import polars as pl

from cranfield import simulate
from cranfield._errors import CranfieldError
from cranfield._files import write_text
from cranfield._own_code import names_code, takes_parameter
from cranfield._registry import parse
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.inputs import own_metrics, own_system
from cranfield.experiments.pipeline import LEAST, OUT, Pipeline, Size, Stage, Unit
from cranfield.experiments.searching import Tuning, search
from cranfield.experiments.source import at_key
from cranfield.experiments.stages.data import (
    DATA,
    SPLITS,
    Learning,
    decided,
    draws_system,
    features_of,
    fingerprints_of,
    held_out,
    learning_kind,
    learning_of,
    parts_of,
)
from cranfield.rankings import (
    Calibration,
    Ranker,
    Ranking,
    Serving,
    fit_each,
    fitted,
    timed_each,
)
from cranfield.recommenders import (
    CannotKeepError,
    EpochModel,
    Model,
    Recommender,
    can_be_kept,
    fit_takes,
    read_model,
    recommender,
    save_model,
)
from cranfield.splits import LIKE_TEST, follows_training, random, validation_words
from cranfield.store import Made, encoding
from cranfield.tables import write_table


class _Searches(Stage[None]):
    name, title, level, version = "searches", "Searching settings", "cell", 2
    exported = timed = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return unit.system.tuning is not None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        tuning, decisions = _tuning(unit), decided(line, unit)
        # A search measures sampled lists, even if the experiment takes the expectation over draws.
        ranking = decisions.with_(draws="sampled").ranking
        metric = tuning.metric or decisions.metrics[0]
        return {
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "system": unit.system.spelling,
            **features_of(line, unit, str(unit.system.spelling)),
            **tuning.as_dict(),
            "metric": metric,
            "own": [*own_metrics([metric], line.experiment), *own_system(str(unit.system.spelling), line.experiment)],
            "validation": [decisions.validation, decisions.validation_windows],
            "asked": {**decisions.serving.as_dict(), **ranking.as_dict(), "threshold": decisions.measuring.threshold},
            "seed": line.seed(unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Search on the validation part; the test part is not used."""
        split, made_of, decisions = parts_of(line, unit), self.inputs_of(line, unit), line.decisions
        words = validation_words(split, decisions.validation)
        with at_key(f"systems.{unit.system.name}: searched on {words}"):
            tried = search(
                split,
                str(unit.system.spelling),
                _tuning(unit).space,
                made_of["metric"],
                trials=_tuning(unit).trials,
                validation=decisions.validation,
                validation_windows=decisions.validation_windows,
                record=line.store.unfinished(self.name_for(unit), made_of),
                seed=line.seed(unit),
                **made_of["asked"],
            )
        errors = pl.Series("standard_error", [tried.standard_error(trial) for trial in tried.trials], pl.Float64)
        table = tried.frame().drop("seconds").with_columns(errors)
        newest = decisions.validation == LIKE_TEST and split.step.action == "split.predefined"
        facts = {**tried.as_dict(), "follows": newest and split.validation is None and follows_training(split)}
        return [write_table(table, place / OUT / f"{self.name_for(unit)}.parquet")], facts

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float | None:
        seconds = training_time(line.decisions, str(unit.system.spelling), size)
        return None if seconds is None else seconds * _tuning(unit).size * line.decisions.validation_windows


def _tuning(unit: Unit) -> Tuning:
    assert unit.system.tuning is not None
    return unit.system.tuning


def spelling_of(line: Pipeline, unit: Unit) -> str:
    """Return the spelling of a recommender on a part, with the best parameters of its search, if it has one."""
    artifact = line.made(SEARCHES, unit)
    spelling = str(unit.system.spelling if artifact is None else artifact.facts.get("best", unit.system.spelling))
    epochs = None if artifact is None or not line.decisions.refit else artifact.facts.get("epochs")
    return spelling if epochs is None else _with_epochs(spelling, epochs)


def _with_epochs(spelling: str, epochs: int) -> str:
    own = parse(spelling)
    return str(replace(own, parameters=tuple({**dict(own.parameters), "epochs": epochs}.items())))


def parameters_of(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return all parameters of a recommender on a part, including defaults.

    For user code named by its module, these are the spelled parameters, and the seed if it takes one.
    """
    spelling, seed = spelling_of(line, unit), line.seed(unit)
    if names_code(spelling):
        seeded = {"seed": seed} if takes_parameter(spelling, "seed", line.experiment.base) else {}
        return {**seeded, **dict(parse(spelling).parameters)}
    return dict(vars(recommender(spelling, seed)))


SEARCHES = _Searches()


_MODEL = "model.npz"


class _Models(Stage[Recommender]):
    name, title, level = "models", "Training", "cell"
    timed = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return unit.system.run is None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        spelling, data = spelling_of(line, unit), line.artifact(DATA, unit)
        parts, kind = fingerprints_of(line, unit), learning_kind(line, unit)
        # User code might look at the validation part.
        validates = names_code(spelling) or fit_takes(recommender(spelling), "validation")
        validation: dict[str, Any] = {}
        if "validation" in parts and validates:
            validation = {"validation": parts["validation"]}
        if kind in ("refitted", "chosen"):
            validation = {"validation": parts["validation"], "refit": kind}
        elif kind == "apart":
            validation = {"validation": line.decisions.validation, "refit": False}
        # If the split has no validation part, calibrations hold one out of the training part.
        held_out = line.decisions.calibration != "none" and "validation" not in parts
        # Repetitions of the same split share a system that does not draw.
        draws = names_code(spelling) or draws_system(spelling, line.experiment.base)
        return {
            "train": parts.get("train"),
            **validation,
            **features_of(line, unit, spelling),
            "vocabularies": [data.files.get(file) for file in encoding.ID_FILES],
            "system": spelling,
            "parameters": parameters_of(line, unit),
            "own": own_system(spelling, line.experiment),
            "seed": line.seed(unit) if draws or held_out or kind == "apart" else line.experiment.seed,
            **({"held out": True} if held_out else {}),
        }

    def make_each(
        self, line: Pipeline, missing: Mapping[str, Unit], made_of: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Callable[[Path], Made], float]]:
        """Train the systems of a part, several in parallel."""
        together: dict[tuple[str, str], list[str]] = {}
        for name, unit in missing.items():
            together.setdefault((unit.at("part").place, learning_kind(line, unit)), []).append(name)
        for wanted in together.values():
            cells = [missing[name] for name in wanted]
            learning = learning_of(line, cells[0])
            for done in fit_each(
                learning.train,
                {cell.system.name: made_of[name]["system"] for name, cell in zip(wanted, cells)},
                validation=learning.validation,
                whole=learning.whole,
                checkpoints={
                    cell.system.name: line.store.checkpoint(name, made_of[name]) for name, cell in zip(wanted, cells)
                },
                seed=line.seed(cells[0]),
                jobs=line.jobs,
            ):
                name = wanted[done.place]
                yield name, partial(_save, line, missing[name], done.result), done.seconds

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        return _save(line, unit, self._fitted(line, unit), place)

    def read(self, line: Pipeline, unit: Unit) -> Recommender:
        """Return a fitted system; one that cannot be saved is trained again in a later run."""
        artifact = line.artifact(self, unit)
        if not artifact.files:
            return line.remember(_unkept(unit), artifact.key, lambda: self._fitted(line, unit))
        spelling, learning = spelling_of(line, unit), learning_of(line, unit)
        if learning_kind(line, unit) == "refitted":
            system = recommender(spelling, line.seed(unit))
            if isinstance(system, EpochModel):
                spelling = _with_epochs(spelling, artifact.facts["training"]["epochs"])
            elif fit_takes(system, "validation"):
                learning = Learning(learning.train)
        return read_model(artifact.path(_MODEL), spelling, learning.final, seed=line.seed(unit))

    def _fitted(self, line: Pipeline, unit: Unit) -> Recommender:
        return _learned(recommender(spelling_of(line, unit), line.seed(unit)), learning_of(line, unit))

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float | None:
        return training_time(line.decisions, str(unit.system.spelling), size)


def _learned(system: Recommender, learning: Learning) -> Recommender:
    return fitted(system, learning.train, learning.validation, whole=learning.whole)


def _save(line: Pipeline, unit: Unit, system: Recommender, place: Path) -> Made:
    stops = fit_takes(system, "validation") and not isinstance(system, EpochModel)
    once = {"refitted": False} if stops and learning_kind(line, unit) == "refitted" else {}
    with suppress(CannotKeepError):
        if can_be_kept(system):
            return [save_model(system, place / _MODEL)], {**_training_of(system), **once}
    # The model cannot be saved: keep it in memory for its lists, which are made in this run.
    line.remember(_unkept(unit), place.name, lambda: system)
    # Without files, the digest of this artifact must come from its inputs: the folder is named after their hash.
    return [], {"instead": place.name, **once}


def _training_of(system: Recommender) -> dict[str, Any]:
    """Return how a system was trained, if by epochs, and the parameters that it chose from the data."""
    training = {"training": system.training} if isinstance(system, EpochModel) else {}
    return {**training, "adapted": system.adapted} if isinstance(system, Model) and system.adapted else training


def _unkept(unit: Unit) -> str:
    return f"model of {unit.place}"


MODELS = _Models()


_CALIBRATION = "calibration.json"


class _Calibrations(Stage[Calibration]):
    name, title, level = "calibrations", "Calibrating", "cell"
    seconds_per_rating = 1e-6

    def wants(self, line: Pipeline, unit: Unit) -> bool:
        return unit.system.run is None and line.decisions.calibration != "none"

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        parts = fingerprints_of(line, unit)
        return {
            "model": line.artifact(MODELS, unit).digest,
            "held out": [parts["train"], parts.get("validation")] if parts else None,
            **({"refit": True} if _is_before(line, unit) else {}),
            "method": line.decisions.calibration,
            "seed": line.seed(unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        if _is_before(line, unit):
            learning, unfitted = learning_of(line, unit), recommender(spelling_of(line, unit), line.seed(unit))
            system = fitted(unfitted, learning.train, learning.validation)
        else:
            system = line.read(MODELS, unit)
        calibration = ranker_of(line, unit).calibrated(unit.system.name, system)
        assert calibration is not None  # guaranteed by `wants`
        write_text(place / _CALIBRATION, json.dumps(calibration.as_dict(), indent=1) + "\n")
        facts = {"pairs": calibration.pairs, "spread": calibration.spread, "held_out": calibration.held_out}
        return [place / _CALIBRATION], facts

    def read(self, line: Pipeline, unit: Unit) -> Calibration:
        return Calibration.of(json.loads(line.artifact(self, unit).path().read_text(encoding="utf-8")))


def _is_before(line: Pipeline, unit: Unit) -> bool:
    """Whether a calibration is fitted before the refit, with a system that did not learn from the validation part."""
    return learning_kind(line, unit) in ("refitted", "chosen")


def ranker_of(line: Pipeline, unit: Unit) -> Ranker:
    """Return the users to serve and their candidates on a part; decided, and drawn, once for all systems."""
    decisions = decided(line, unit)
    return line.remember(
        "ranker",
        unit.at("part").place,
        lambda: Ranker.of(
            parts_of(line, unit),
            decisions.serving,
            decisions.ranking,
            line.seed(unit),
            held_out(line, unit),
            refit=line.decisions.refit,
        ),
    )


CALIBRATED = _Calibrations()


# Number of user-item pairs in the simulated world on which a system is timed if no earlier run gives its time.
_SMALL = 350_000


def training_time(decisions: Decisions, spelling: str, size: Size) -> float | None:
    """Estimate how long a system takes on ratings of some size; None for user code, which a plan does not run."""
    if names_code(spelling):
        return None
    own = parse(spelling)
    seedless = replace(own, parameters=tuple(pair for pair in own.parameters if pair[0] != "seed"))
    return _extrapolated(decisions.serving, decisions.ranking, str(seedless), size)


@cache
def _extrapolated(serving: Serving, ranking: Ranking, spelling: str, size: Size) -> float:
    """Estimate the time of a system from two smaller worlds of the same shape.

    Time grows with the square of the scale if a system looks at every pair of user and item, or at every rating, and
    with its cube if it compares users or items with each other. The ratio of the two measured times tells which.
    """
    scale = min(1.0, (_SMALL / (size.users * size.items)) ** 0.5)
    system = recommender(spelling)
    if isinstance(system, EpochModel):
        return max(_timed_by_epochs(system, size, scale), LEAST)
    if scale == 1:
        return max(_timed(serving, ranking, spelling, size, 1.0), LEAST)
    half, whole = (_timed(serving, ranking, spelling, size, scale * share) for share in (0.5, 1))
    power = min(max(log2(max(whole, 1e-6) / max(half, 1e-6)), 2.0), 3.0)
    return max(whole * scale**-power, LEAST)


def _world(size: Size, scale: float) -> Ratings:
    """Return a simulated world with the numbers of users and items multiplied by ``scale``."""
    users, items = (max(10, round(count * scale)) for count in (size.users, size.items))
    ratings = min(max(round(size.ratings * scale**2), 5 * users), users * items // 2)
    return simulate.world(users, items, ratings).ratings


def _timed_by_epochs(system: EpochModel, size: Size, scale: float) -> float:
    """Estimate how long all epochs take, without early stopping; an epoch is linear in the number of ratings."""
    small = _world(size, scale)
    try:
        epochs = system.most_epochs(size.ratings / max(size.users, 1))
        return system.seconds_per_epoch(small) * epochs * size.ratings / len(small)
    except CranfieldError:
        return LEAST


def _timed(serving: Serving, ranking: Ranking, spelling: str, size: Size, scale: float) -> float:
    """Return how long a system takes on a simulated world of the given scale."""
    small = random(_world(size, scale), train=0.8)
    threads = settings.threads

    def recommend() -> object:
        return list(timed_each(small, spelling, serving=serving, ranking=ranking))

    try:
        by_clock = _shortest(recommend, time.perf_counter)
        # Processor time on one thread is also measured, because on a busy machine threads mostly wait for each other.
        settings.threads = 1
        return min(by_clock, _shortest(recommend, time.process_time))
    except CranfieldError:
        return LEAST
    finally:
        settings.threads = threads


def _shortest(function: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shorter time of two calls, because the first may load libraries; one call if it takes a second."""
    times: list[float] = []
    while len(times) < 2 and sum(times) < 1:
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)

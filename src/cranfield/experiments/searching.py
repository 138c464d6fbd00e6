"""Choose hyper-parameters on a validation part, for any metric."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, MissingExtraError, SettingError
from cranfield._files import write_text
from cranfield._own_code import may_be_called
from cranfield._registry import Spelling, parse
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import AUTO, Ratings
from cranfield.experiments.source import at_key, check_text
from cranfield.experiments.trials import Range, Search, Trial
from cranfield.measures import Averaging, measure
from cranfield.metrics import as_metrics, spelled_metric
from cranfield.rankings import decided, measured_ratings, recommend
from cranfield.recommenders import EpochModel, recommender
from cranfield.splits import LIKE_TEST, Split, Splitting, for_validation, validation_words


def search(
    data: Split | Ratings,
    system: str,
    space: Mapping[str, Sequence[Any] | Range],
    metric: str = "nDCG@100",
    *,
    trials: int | None = None,
    record: str | Path | None = None,
    threshold: float | str | None = AUTO,
    validation: str = LIKE_TEST,
    validation_windows: int = 1,
    seed: int = 0,
    **decisions: Any,
) -> Search:
    """Try settings of a system and measure each on a validation part of the training ratings.

    Parameters
    ----------
    data
        A split, or training ratings. If the split has a validation part, systems are measured on it; otherwise one is
        taken from the training part. The test part is never used.
    system
        The system, with the settings that stay fixed: ``"wrmf"``, ``"wrmf(iterations=10)"``.
    space
        For each parameter a list of values, or a `Range`.
    metric, threshold
        The metric to optimise, and the lowest rating that makes an item relevant.
    trials
        None tries every combination of the lists. A number tries that many settings; Optuna chooses each from the
        results of the previous ones.
    validation, validation_windows
        How the validation part is made: ``"like the test"``, by the method of the split (a random fifth of bare
        ratings), or by a spelled one such as ``"temporal(train=0.8)"``; and over how many successive ones the metric is
        averaged. See `cranfield.splits.for_validation`.
    record
        A file (JSON) that keeps every finished trial, so that an interrupted search continues where it stopped.
    seed
        Fixes the validation part, the choice of settings, and the systems.
    decisions
        Further options of `recommend`: who is served, and how scores become lists (``length``, ``fill``, ...).

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 1, 2, 2, 2, 3, 3, 3], ["x", "y", "z", "x", "y", "w", "x", "z", "w"])
    >>> found = search(ratings, "knn", {"k": [1, 2]}, "P@5")
    >>> [trial.system for trial in found.trials]
    ['knn(k=1)', 'knn(k=2)']
    """
    # Report errors before anything is trained.
    _check_space(space, trials)
    as_metrics(metric)
    splits = _validated(data, validation, seed, check.whole("validation_windows", validation_windows))
    serving, ranking = decided({**decisions, "threshold": threshold})
    measured = [measured_ratings(split, serving, seed, ranking.repeats) for split in splits]
    fixed = parse(system)
    data_hash = " ".join(f"{split.train.fingerprint}-{split.test.fingerprint}" for split in splits)
    conditions = {"data": data_hash, "metric": metric, "threshold": threshold, "seed": seed}
    stated = {name: str(value) for name, value in {**serving.as_dict(), **ranking.as_dict()}.items()}
    known = _Record(record, {**stated, **conditions})
    tried: list[Trial] = []

    def spelled(parameters: Mapping[str, Any]) -> str:
        spelling = str(Spelling(fixed.name, tuple({**dict(fixed.parameters), **parameters}.items())))
        recommender(spelling)  # raises an error if a setting is out of range
        return spelling

    def value(parameters: Mapping[str, Any]) -> float:
        spelling = spelled(parameters)
        start = time.perf_counter()
        trial = known.trials.get(spelling)
        if trial is None:
            tries = [
                _tried(spelling, split, test, metric, threshold, seed, decisions)
                for split, test in zip(splits, measured)
            ]
            trial = _over_windows(spelling, tries, time.perf_counter() - start)
            known.put(
                trial, tries[0].lower_is_better, min(part.served for part in tries), [part.lists for part in tries]
            )
        tried.append(trial)
        return trial.value

    if trials is None:
        every: list[dict[str, Any]] = [dict(zip(space, values)) for values in itertools.product(*space.values())]  # type: ignore[arg-type]
        for parameters in every:
            spelled(parameters)
        with progress("Searching", total=len(every), unit="trials") as bar:
            for parameters in every:
                value(parameters)
                bar.advance()
    else:
        _try_some(fixed.name, space, check.whole("trials", trials), value, seed, lambda: known.lower_is_better)
    windows = np.repeat(np.arange(len(known.lists)), known.lists).astype(np.int16)
    words = validation_words(data, validation)
    if validation_windows > 1:
        words = f"{words}, and {validation_windows - 1} more before it"
    counts = (known.served, len(splits[0].test), _unused(data, splits[0]))
    return Search(metric, known.lower_is_better, tuple(tried), dict(space), words, *counts, windows)


def _unused(data: Split | Ratings, inner: Split) -> int:
    """Count the training ratings (or events) that are in neither part of a search."""
    if isinstance(data, Split) and data.validation is not None:
        return 0  # those are notes of the split
    whole = data if isinstance(data, Ratings) else data.train
    return len(whole.rows()) - sum(len(part.rows()) for name, part in inner.parts.items() if name != "validation")


class _Tried(NamedTuple):
    """A system measured on one validation part."""

    value: float
    epochs: int | None
    users: NDArray[np.float32] | None
    lower_is_better: bool
    served: int  # users of the validation part with a list and a value, that is with something relevant
    lists: int  # the length of ``users``


def _tried(
    spelling: str, split: Split, test: Ratings, metric: str, threshold: Any, seed: int, decisions: Mapping[str, Any]
) -> _Tried:
    """Train a system on a training part, stopped by the validation part if it can be, and measure it on that part."""
    trained = recommender(spelling, seed)
    runs = recommend(split, {spelling: trained}, seed=seed, threshold=threshold, refit=False, **decisions)
    scores = measure(runs, test, [metric], threshold=threshold)
    epochs = trained.best_epoch if isinstance(trained, EpochModel) else None
    users = None
    if scores.overall is None or np.isnan(scores.overall[0, 0]):
        values = scores.counted_values(0, Averaging())[0]
        counts, place = ~np.isnan(values), np.unique(scores.users, return_inverse=True)[1]
        sums = np.bincount(place[counts], values[counts], minlength=scores.n_users)
        with np.errstate(invalid="ignore"):
            users = (sums / np.bincount(place[counts], minlength=scores.n_users)).astype(np.float32)
    is_defined = np.ones(scores.n_lists, dtype=np.bool_) if users is None else ~np.isnan(scores.values[0, 0])
    served = len(np.unique(scores.users[scores.covered[0] & is_defined]))
    value, lower = float(scores.average()[0, 0]), scores.lower_is_better[0]
    return _Tried(value, epochs, users, lower, served, 0 if users is None else len(users))


def _over_windows(spelling: str, tries: Sequence[_Tried], seconds: float) -> Trial:
    epochs = [part.epochs for part in tries if part.epochs is not None]
    known = [part.users for part in tries if part.users is not None]
    return Trial(
        spelling,
        float(np.mean([part.value for part in tries])),
        seconds,
        round(float(np.median(epochs))) if epochs else None,
        np.concatenate(known) if len(known) == len(tries) else None,
    )


def _check_space(space: Mapping[str, Any], trials: int | None) -> None:
    if not space:
        raise SettingError("the space to search is empty; give a parameter and its values, such as {'k': [50, 100]}")
    for name, values in space.items():
        several = isinstance(values, Collection) and not isinstance(values, str) and len(values) > 0
        if not several and (trials is None or not isinstance(values, Range)):
            raise SettingError(
                f"{name}={values!r} has no list of values to try; give one, or a Range and a number of trials"
            )


def _validated(data: Split | Ratings, method: str, seed: int, windows: int) -> list[Split]:
    """Return the splits to measure on, with the validation part in place of the test part.

    It is also the validation part, so a system stops early by the same ratings that it is selected by.
    """
    if not isinstance(data, Split | Ratings):
        raise SettingError(f"{type(data).__name__} is neither a split nor ratings; convert it to ratings with cf.read")
    Splitting(validation=method)
    parts = for_validation(data, method, seed=seed, windows=windows)
    return [replace(split, validation=split.test) for split in parts]


def _try_some(
    system: str,
    space: Mapping[str, Sequence[Any] | Range],
    trials: int,
    value: Callable[[Mapping[str, Any]], float],
    seed: int,
    lower_is_better: Callable[[], bool],
) -> None:
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError(f"a search of {system} by trials", library="optuna", extra="recommend") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=int(stream(seed, "search").integers(2**31)))
    study = optuna.create_study(sampler=sampler)
    with progress("Searching", total=trials, unit="trials") as bar:
        for _ in range(trials):
            trial = study.ask()
            result = value({name: _suggested(trial, name, values) for name, values in space.items()})
            study.tell(trial, result if lower_is_better() else -result)
            bar.advance()


def _suggested(trial: Any, name: str, values: Sequence[Any] | Range) -> Any:
    if not isinstance(values, Range):
        return trial.suggest_categorical(name, list(values))
    if isinstance(values.low, int) and isinstance(values.high, int):
        return trial.suggest_int(name, values.low, values.high, log=values.log)
    # Round to as many digits as a spelling keeps, so that the name of a system gives the exact value.
    return float(f"{trial.suggest_float(name, values.low, values.high, log=values.log):.4g}")


class _Record:
    """The finished trials of a search by spelling, kept in a file."""

    def __init__(self, path: str | Path | None, conditions: Mapping[str, Any]) -> None:
        self._path, self._conditions = None if path is None else Path(path), dict(conditions)
        self.lower_is_better, self.trials = False, dict[str, Trial]()
        self.served, self.lists = 0, list[int]()  # users with a list, and values of users in each window
        if self._path is None or not self._path.exists():
            return
        try:
            record = json.loads(self._path.read_text(encoding="utf-8"))
            self.trials = {trial["system"]: Trial.of(trial) for trial in record["trials"]}
            self.served, self.lists = int(record["served"]), list(record["lists"])
            self.lower_is_better, same = bool(record["lower_is_better"]), record["conditions"] == self._conditions
        except (ValueError, KeyError, TypeError) as error:
            what = "is not the record of a search"
            raise InputError(what, source=self._path, remedy="name another file") from error
        if not same:
            what = "is the record of a search on other data, or for another metric"
            raise InputError(what, source=self._path, remedy="name another file")

    def put(self, trial: Trial, lower_is_better: bool, served: int, lists: list[int]) -> None:
        """Save a finished trial."""
        self.trials[trial.system], self.lower_is_better = trial, lower_is_better
        self.served, self.lists = max(self.served, served), lists
        if self._path is not None:
            content = {
                "conditions": self._conditions,
                "lower_is_better": lower_is_better,
                "served": self.served,
                "lists": lists,
                "trials": [finished.as_dict() for finished in self.trials.values()],
            }
            write_text(self._path, json.dumps(content, indent=1))


@dataclass(frozen=True)
class Tuning:
    """The settings of a `search`: the values to try, and the metric to optimise."""

    space: Mapping[str, tuple[Any, ...] | Range]  # for each parameter a list of values, or a `Range`
    metric: str | None = None  # the metric to optimise; None for the first metric of the experiment
    # None tries every combination of the lists; a number tries that many settings, chosen by Optuna.
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.metric is not None:
            check_text("metric", self.metric)
            object.__setattr__(self, "metric", spelled_metric(self.metric))
        if self.trials is not None:
            check.whole("trials", self.trials)

    def check(self, spelling: str) -> None:
        """Reject parameters and values that cannot be searched for a system, before anything is trained."""
        fixed = parse(spelling)
        if not self.space:
            raise SettingError("search is empty; give a parameter and its values, as in search = { k = [50, 100] }")
        for name, values in self.space.items():
            if name in dict(fixed.parameters):
                raise SettingError(f"search: {name} is already fixed in {spelling!r}; leave it out there or here")
            if isinstance(values, Range) and self.trials is None:
                raise SettingError(f"search: {name} is a range, so not every value can be tried; set trials")
            if not may_be_called(spelling):
                continue  # its parameters are only known once it is imported
            for value in (values.low, values.high) if isinstance(values, Range) else values:
                with at_key("search"):
                    recommender(str(Spelling(fixed.name, (*fixed.parameters, (name, value)))))

    @property
    def size(self) -> int:
        """Number of settings to try."""
        lists = [len(values) for values in self.space.values() if not isinstance(values, Range)]
        return prod(lists) if self.trials is None else self.trials

    def __str__(self) -> str:
        by = "" if self.metric is None else f" by {self.metric}"
        tried = "" if self.trials is None else f" in {self.trials} trials"
        return f"search of {', '.join(self.space)}{by}{tried}"

    def as_dict(self) -> dict[str, Any]:
        """Return the search as it is written in an experiment file."""
        stated = {"search": {name: _stated(values) for name, values in self.space.items()}}
        more = {"metric": self.metric, "trials": self.trials}
        return {**stated, **{name: value for name, value in more.items() if value is not None}}


def space_of(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...] | Range]:
    """Return the values to search from their form in a file: lists, or ``{ low = 1, high = 100, log = true }``."""
    return {name: _values(name, stated) for name, stated in table.items()}


def _values(name: str, stated: Any) -> tuple[Any, ...] | Range:
    if isinstance(stated, list) and stated:
        return tuple(stated)
    if isinstance(stated, dict) and {"low", "high"} <= set(stated) <= {"low", "high", "log"}:
        ends = (stated["low"], stated["high"])
        if all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            return Range(*ends, log=check.flag("log", stated.get("log", False)))
    raise SettingError(
        f"search: {name}={stated!r} is neither a list of values nor a range; write {name} = [1, 10, 100], or "
        f"{name} = {{ low = 1, high = 100, log = true }}"
    )


def _stated(values: tuple[Any, ...] | Range) -> Any:
    if not isinstance(values, Range):
        return list(values)
    return {"low": values.low, "high": values.high, **({"log": True} if values.log else {})}

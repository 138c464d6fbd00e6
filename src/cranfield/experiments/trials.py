"""The trials of a search of hyper-parameters: the best one, how sure that is, and what to keep in mind."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._own_code import names_code
from cranfield._registry import Spelling, parse
from cranfield.facts import experiment as experiment_facts
from cranfield.recommenders import recommender


@dataclass(frozen=True)
class Range:
    """A range to search: values between ``low`` and ``high`` (integers if both are), on a linear or a log scale."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise SettingError(f"{self} is not a range; give a low end below the high one, and above 0 with log=True")


@dataclass(frozen=True)
class Trial:
    """One spelling that was tried, and the mean of the metric on the validation part.

    ``epochs`` is the best epoch, if the system learns by epochs, and ``users`` has the metric of each user, NaN where
    it does not count; None if the metric has no value for each user. With several validation windows, ``value`` is the
    mean over windows, ``epochs`` their median, and ``users`` holds the users of one window after the other.
    """

    system: str
    value: float
    seconds: float
    epochs: int | None = None
    users: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)

    @property
    def error(self) -> float | None:
        """The standard error of the value over users; None if unknown. With windows, as if all users were others."""
        known = np.zeros(0) if self.users is None else self.users[~np.isnan(self.users)].astype(np.float64)
        return float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the trial for JSON."""
        users = None if self.users is None else base64.b64encode(self.users.tobytes()).decode("ascii")
        return {**vars(self), "users": users}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Trial:
        """Return the trial that `as_dict` wrote."""
        users = record["users"]
        return cls(**{**record, "users": None if users is None else np.frombuffer(base64.b64decode(users), np.float32)})


@dataclass(frozen=True)
class Search:
    """All trials of a search, in order, and the best one.

    ``validation`` says which ratings it was measured on, and ``served`` how many of their users get a list and have a
    value (in the window with the fewest). ``ratings`` is the number of validation ratings, and ``unused`` that of
    training ratings that are in neither part of the search, because of its target. ``windows`` is the window of each
    value of `Trial.users`.
    """

    metric: str
    lower_is_better: bool
    trials: tuple[Trial, ...]
    space: Mapping[str, Sequence[Any] | Range] = field(default_factory=dict)
    validation: str = "the validation part"
    served: int = 0
    ratings: int = 0
    unused: int = 0
    windows: NDArray[np.int16] | None = field(default=None, repr=False, compare=False)

    @property
    def best(self) -> Trial:
        """The best trial; the first one if several are equal."""
        return min(self.trials, key=lambda trial: trial.value if self.lower_is_better else -trial.value)

    @property
    def final(self) -> str:
        """The best system for training on training and validation together: with its best number of epochs."""
        spelling = parse(self.best.system)
        epochs = {} if self.best.epochs is None else {"epochs": self.best.epochs}
        return str(Spelling(spelling.name, tuple({**dict(spelling.parameters), **epochs}.items())))

    def standard_error(self, trial: Trial) -> float | None:
        """Return the standard error of a trial's difference to the best one, paired by user; None if unknown.

        It is s/√n for the standard deviation s of the differences of n users. Over W windows with errors e_w it is
        √(Σ e_w²) / W.
        """
        best = self.best
        if trial.users is None or best.users is None or self.windows is None:
            return None
        differences = best.users.astype(np.float64) - trial.users
        errors = []
        for window in range(int(self.windows.max(initial=-1)) + 1):
            here = differences[(self.windows == window) & ~np.isnan(differences)]
            if len(here) < 2:
                return None
            errors.append(float(np.std(here, ddof=1)) / math.sqrt(len(here)))
        return math.sqrt(sum(error**2 for error in errors)) / len(errors) if errors else None

    @property
    def level(self) -> tuple[Trial, ...]:
        """The other trials that are within one standard error of the best one, so that the data do not decide."""
        best, near = self.best, list[Trial]()
        for trial in self.trials:
            error = None if trial.system == best.system else self.standard_error(trial)
            if error is not None and abs(best.value - trial.value) <= error:
                near.append(trial)
        return tuple({trial.system: trial for trial in near}.values())

    @property
    def ends(self) -> dict[str, tuple[float, bool]]:
        """The parameters whose best value ends its range: the value, and whether it is the upper end.

        A range has three numbers or more. An end beyond which the system takes no value is a natural bound, and does
        not count.
        """
        chosen, bounds = dict(parse(self.best.system).parameters), _bounds(parse(self.best.system).name)
        at_end: dict[str, tuple[float, bool]] = {}
        for name, values in self.space.items():
            numbers = (values.low, values.high) if isinstance(values, Range) else _numbers(values)
            few = not isinstance(values, Range) and len(set(numbers)) < 3
            value, (low, high) = chosen.get(name), bounds.get(name, (None, None))
            if few or not numbers or value not in (min(numbers), max(numbers)) or value in (low, high):
                continue
            at_end[name] = (value, value == max(numbers))
        return at_end

    def frame(self) -> pl.DataFrame:
        """Return one row per trial, in order: columns system, value, seconds."""
        columns = {name: [getattr(trial, name) for trial in self.trials] for name in ("system", "value", "seconds")}
        return pl.DataFrame(columns)

    def as_dict(self) -> dict[str, Any]:
        """Return what the record of an experiment keeps of the search; the same for every run."""
        best = self.best
        return {
            "best": best.system,
            "metric": self.metric,
            "value": best.value,
            "error": best.error,
            "trials": len(self.trials),
            "epochs": best.epochs,
            "validation": self.validation,
            "users": self.served,
            "ratings": self.ratings,
            "unused": self.unused,
            "ends": {name: list(end) for name, end in self.ends.items()},
            "level": [trial.system for trial in self.level],
        }

    def __str__(self) -> str:
        best = experiment_facts.BestSetting(self.best.system, len(self.trials), self.metric, self.best.value)
        on = experiment_facts.of_search(parse(self.best.system).name, self.as_dict())
        return "\n".join(map(str, [best, *on]))


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    """Return the values of a list if all are numbers; else nothing, since they have no order."""
    are = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return tuple(values) if are else ()


def _bounds(system: str) -> dict[str, tuple[float | None, float | None]]:
    """Return the lowest and the highest value that each parameter of one of our systems can have."""
    if names_code(system):
        return {}
    limits = {declared.name: declared.metadata.get("limits") for declared in fields(type(recommender(system)))}
    return {name: (known.low, known.high) for name, known in limits.items() if known is not None}

"""`Tuning`: the hyper-parameters that an experiment searches on a validation part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._own_code import may_be_called
from cranfield._registry import Spelling, parse
from cranfield.experiments.searching import Range
from cranfield.metrics import spelled_metric
from cranfield.recommenders import recommender

_ENDS = ("low", "high", "log")


@dataclass(frozen=True)
class Tuning:
    """The settings of a `search`: the values to try, and the metric to optimise.

    Parameters
    ----------
    space
        For each parameter a list of values, or a `Range`.
    metric
        The metric to optimise; None for the first metric of the experiment.
    trials
        None tries every combination of the lists; a number tries that many settings, chosen by Optuna.
    """

    space: Mapping[str, tuple[Any, ...] | Range]
    metric: str | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.metric is not None:
            if not isinstance(self.metric, str):
                raise SettingError(f"metric={self.metric!r} is not text; write it in quotes")
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
                try:
                    recommender(str(Spelling(fixed.name, (*fixed.parameters, (name, value)))))
                except SettingError as error:
                    raise SettingError(f"search: {error}") from None

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
    return dict(_values(name, stated) for name, stated in table.items())


def _values(name: str, stated: Any) -> tuple[str, tuple[Any, ...] | Range]:
    if isinstance(stated, list) and stated:
        return name, tuple(stated)
    if isinstance(stated, dict) and {"low", "high"} <= set(stated) <= set(_ENDS):
        ends = (stated["low"], stated["high"])
        if all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            return name, Range(*ends, log=check.flag("log", stated.get("log", False)))
    raise SettingError(
        f"search: {name}={stated!r} is neither a list of values nor a range; write {name} = [1, 10, 100], or "
        f"{name} = {{ low = 1, high = 100, log = true }}"
    )


def _stated(values: tuple[Any, ...] | Range) -> Any:
    return dict(_ends(values)) if isinstance(values, Range) else list(values)


def _ends(values: Range) -> Iterator[tuple[str, Any]]:
    yield from (("low", values.low), ("high", values.high))
    if values.log:
        yield "log", True

"""The decisions that an audit may vary, their kinds and options, and presets of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from cranfield import _checks as check
from cranfield import splits
from cranfield._errors import ImpossibleSplitError, NothingLeftError, SettingError, nearest
from cranfield._own_code import may_be_called
from cranfield._registry import Registry, parse
from cranfield.audits.grid import OptionKind
from cranfield.audits.significance import OF_TESTS, checked_significance
from cranfield.data import Ratings, RatingScale, filters
from cranfield.experiments import DECISIONS, Experiment, checked_value
from cranfield.measures import Average
from cranfield.metrics import GAINS, METRICS, Definition, known_metrics, spelled_metric
from cranfield.recommenders import recommender, system_among

Vary = Mapping[str, tuple[Any, ...]]  # the options of each opened decision

GEOMETRIC = "geometric(form=adjusted, epsilon=0.01)"

_MEASURING: Vary = {
    "metrics": ("P", "nDCG(gain=binary)", "nDCG(gain=exp)", "AP", "RR"),
    "cutoff": (5, 10, 20, 50, 100),
    "threshold": (3, 4, 5),
    "average": ("mean", "weighted(by=judged)", GEOMETRIC),
    "coverage": ("full", "reduced"),
}

PRESETS: Mapping[str, Vary] = {
    # Decisions in which two careful papers may well differ.
    "usual": {
        "split": tuple(
            f"{method}(train={share})" for method in ("random", "per_user") for share in (0.5, 0.6, 0.7, 0.8, 0.9)
        ),
        **_MEASURING,
    },
    # The options of Cañamares, Castells and Moffat (2020), sections 3 and 4.
    "canamares2020": {
        "split": tuple(f"random(train={tenths / 10:g})" for tenths in range(1, 10)),
        "lists": ("full", "condensed"),
        "metrics": ("P", "nDCG(gain=binary)", "nDCG(gain=exp1full)", "RBP(p=0.8)", "RBP(p=0.8, gain=exp1full)"),
        "cutoff": (5, 10, 20, 50, 100),
        "average": ("mean", "weighted(by=judged)", "weighted(by=relevant)", GEOMETRIC),
        "coverage": ("full", "reduced"),
    },
    # Decisions that need no further training or ranking.
    "measuring": {**_MEASURING, "undefined": ("zero", "leave out")},
}
"""The presets by name: the options of every decision that each opens."""


def preset_options(name: Any, scale: tuple[float, float] = (1.0, 5.0)) -> dict[str, Any]:
    """Return the options of a preset on a scale of ratings; for an unknown name, the error suggests a similar one.

    Thresholds 3, 4 and 5 of 5 are those of the middle, three quarters and the end of the scale, rounded up. They are
    not opened if that leaves one (clicks), or on counts.
    """
    options, (low, high) = dict(PRESETS[check.one_of("preset", name, PRESETS)]), scale
    if "threshold" in options:
        levels = sorted({float(np.ceil(low + share * (high - low))) for share in (0.5, 0.75, 1.0)})
        options["threshold"] = tuple(levels)
        if len(levels) < 2 or RatingScale(low, high).are_counts:
            del options["threshold"]
    return options


FEWEST_SEEDS = 5  # minimum number of options of a decision of chance; fewer say little about the noise
SYSTEMS = "systems."  # prefix of the name of a system's parameter, as in ``systems.kNN.k``
GIVEN = "given"  # placeholder for the file of lists that are given directly, without the names of their systems

_SIGNIFICANCE = "it changes only what is significant, which an audit tests in its own way; set it in [decisions]"
_CLOSED: Mapping[str, str] = {
    "length": "length follows from the deepest cut-off; open cutoff instead",
    "levels": "it adds metrics, and an audit opens metrics by name; open metrics instead, as in 'P(rel=3)@10'",
    "catalogue": "it says which items exist, and changes no metric of relevance; set it in [decisions]",
    "segment": "it shows results for groups as well, and changes none; filter the ratings instead",
    **dict.fromkeys(("alpha", "baseline", "unjudged"), _SIGNIFICANCE),
}
"""Decisions that an audit does not open, with the reason."""

# Other ways to ask the same question; all other decisions of an experiment ask a different one.
_EQUIVALENT = (
    "validation",
    "validation_windows",
    "refit",
    "draws",
    "threshold",
    "calibration",
    "undefined",
    "average",
    "groups",
    *OF_TESTS,
)

OptionCheck = Callable[[Experiment, Any], Any]


@dataclass(frozen=True)
class VariableDecision:
    """A decision that an audit may vary."""

    name: str
    kind: OptionKind  # what changing it means, unless the file says otherwise
    says: str  # what it decides
    check: OptionCheck  # returns an option of an experiment in canonical form, or raises an error


def _decision(name: str, _: Experiment, value: Any) -> Any:
    return checked_value(name, value)


def checked_average(experiment: Experiment, value: Any) -> str:
    """Return an average in canonical form; raise an error if audits cannot compute it or its baseline is unknown."""
    kind = Average.of(checked_value("average", value))
    if kind.is_weighted_by_file:
        raise SettingError(
            f"average='{kind}' is not computed in an audit; weight by judged, relevant or train, or use mean, "
            "geometric, median, trimmed, standardised, urisk, trisk or georisk"
        )
    if any(system.run != GIVEN for system in experiment.systems):
        check_baseline(str(kind), [system.name for system in experiment.systems])
    return str(kind)


def check_baseline(average: str, systems: Sequence[str]) -> None:
    """Raise an error if the baseline of an average is not one of the systems."""
    baseline = dict(parse(average).parameters).get("baseline")
    if baseline is not None and system_among(str(baseline), systems) is None:
        raise SettingError(f"average='{average}': there is no system {baseline!r}{nearest(str(baseline), systems)}")


def _apart_from_data(name: str, registry: Registry[Any], _: Experiment, value: Any) -> Any:
    """Return a split or filters in canonical form; check their parameters before any ratings are read."""
    checked = checked_value(name, value)
    for spelling in (checked,) if isinstance(checked, str) else checked:
        known = parse(spelling).name
        if known not in registry or not registry[known].__module__.startswith("cranfield."):
            continue  # data that are already split, or custom code, which only the experiment runs
        try:
            registry.call(spelling, _ratings(), seed=0, validation=None)
        except (ImpossibleSplitError, NothingLeftError):
            continue  # not possible with these ratings, but maybe with those of the experiment
        except SettingError as error:
            raise SettingError(f"{name}='{spelling}': {error}") from error
    return checked


@cache
def _ratings() -> Ratings:
    """Return artificial ratings of 20 users for 20 items, one day apart."""
    pairs = np.arange(400)
    return Ratings.of(pairs // 20, pairs % 20, 1 + pairs % 5, times=86_400 * pairs)


def _data(experiment: Experiment, value: Any) -> str:
    names = [source.name for source in experiment.data]
    if value not in names:
        raise SettingError(f"data={value!r} is not in the file{nearest(str(value), names)}")
    return str(value)


def _metric(_: Experiment, value: Any) -> str:
    parsed = parse(value)
    if metric_definition(value).whole_system:
        raise SettingError(f"metrics: {value} has one value for a whole system; an audit needs one for each user")
    # Whether a cut-off is missing depends on what else is opened.
    checked = spelled_metric(str(replace(parsed, cutoff=parsed.cutoff or 10)))
    return str(replace(parse(checked), cutoff=parsed.cutoff))


def _missing_judgments(_: Experiment, value: Any) -> str:
    return check.one_of("missing_judgments", value, ("not relevant", "relevant"))


def _seed(name: str, _: Experiment, value: Any) -> int:
    return check.whole(name, value, at_least=0)


_CHECKS: Mapping[str, OptionCheck] = {
    "filters": partial(_apart_from_data, "filters", filters.registry),
    "split": partial(_apart_from_data, "split", splits.registry),
    "average": checked_average,
    "significance": lambda _, value: checked_significance(value),
}
_OF_AUDITS: Sequence[tuple[str, OptionKind, str, OptionCheck]] = (
    ("metrics", "equivalent", "the metric", _metric),
    ("cutoff", "equivalent", "the cut-off of the metric", lambda _, value: check.whole("cutoff", value)),
    ("gain", "equivalent", "the gain of graded metrics", lambda _, value: str(GAINS.find(value).name)),
    ("missing_judgments", "equivalent", "what items without a test rating count as", _missing_judgments),
    ("split_seed", "chance", "the seed of the split", partial(_seed, "split_seed")),
    ("training_seed", "chance", "the seed of systems that draw at random", partial(_seed, "training_seed")),
)

VARIABLE_DECISIONS: Mapping[str, VariableDecision] = {
    "data": VariableDecision("data", "question", "the set of ratings, by its name in the file", _data),
    **{
        name: VariableDecision(
            name,
            "equivalent" if name in _EQUIVALENT else "question",
            declared.metadata["says"],
            _CHECKS.get(name, partial(_decision, name)),
        )
        for name, declared in DECISIONS.items()
        if name not in _CLOSED and name != "metrics"
    },
    **{entry[0]: VariableDecision(*entry) for entry in _OF_AUDITS},
}
"""The decisions that an audit may open, by name; `variable_decision` adds the parameters of systems."""


def variable_decision(name: str, experiment: Experiment) -> VariableDecision:
    """Return the definition of a decision; the error says why it cannot be opened, or which name is similar."""
    if name.startswith(SYSTEMS):
        return _parameter(name, experiment)
    if name in _CLOSED:
        raise SettingError(f"audit.vary: {name} cannot be opened: {_CLOSED[name]}")
    if name not in VARIABLE_DECISIONS:
        raise SettingError(f"audit.vary: no decision {name!r}{nearest(name, VARIABLE_DECISIONS)}")
    return VARIABLE_DECISIONS[name]


def split_parameter(name: str) -> tuple[str, str]:
    """Return the system and the parameter in a name such as ``systems.kNN.k``."""
    system, _, parameter = name.removeprefix(SYSTEMS).rpartition(".")
    return system, parameter


def _parameter(name: str, experiment: Experiment) -> VariableDecision:
    system, parameter = split_parameter(name)
    spellings = {stated.name: stated.spelling for stated in experiment.systems}
    if system not in spellings:
        raise SettingError(f"audit.systems: no system {system!r}{nearest(system, spellings)}")
    if spellings[system] is None:
        raise SettingError(f"audit.systems.{system}: it is a file of ranked lists, which has no parameters")

    def checked(_: Experiment, value: Any) -> Any:
        spelling = with_parameter(str(spellings[system]), parameter, value)
        try:
            if may_be_called(spelling):
                recommender(spelling)
        except SettingError as error:
            raise SettingError(f"audit.systems.{system}: {error}") from None
        return value

    return VariableDecision(name, "question", f"{parameter} of {system}", checked)


def with_parameter(spelling: str, name: str, value: Any) -> str:
    """Return a spelling with a parameter changed or added: ``knn(k=50)`` for ``knn(k=100)``, k and 50."""
    parsed = parse(spelling)
    return str(replace(parsed, parameters=tuple({**dict(parsed.parameters), name: value}.items())))


def metric_at(base: str, cutoff: int | None, gain: str | None) -> str:
    """Return a metric with a cut-off and a gain, as far as they apply: ``nDCG(gain=exp)@5``, but ``P@5``."""
    parsed, definition = parse(base), metric_definition(base)
    if gain is not None and "gain" in definition.parameters:
        parsed = parse(with_parameter(str(parsed), "gain", gain))
    if cutoff is not None and definition.cutoff != "none":
        parsed = replace(parsed, cutoff=cutoff)
    return spelled_metric(str(parsed))


def metric_definition(spelling: str) -> Definition:
    """Return the definition of a metric; a plan does not import the user's code, and takes the usual properties."""
    known_metrics()
    name = parse(spelling).name
    return METRICS.find(name) if may_be_called(spelling) else Definition(name, lambda _: None)

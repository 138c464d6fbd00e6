"""Reads the table ``[audit]`` of an experiment: the opened decisions, each with its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from cranfield import _checks as check
from cranfield._errors import SettingError, nearest
from cranfield._own_code import may_be_called
from cranfield._registry import parse
from cranfield.audits.grid import KINDS, OptionKind, VariedDecision
from cranfield.audits.options import (
    FEWEST_SEEDS,
    SYSTEMS,
    VariableDecision,
    checked_average,
    metric_definition,
    preset_options,
    split_parameter,
    variable_decision,
)
from cranfield.audits.significance import OF_TESTS
from cranfield.comparisons import CORRECTION
from cranfield.data import AUTO, usual_threshold
from cranfield.experiments import DECISIONS, Experiment
from cranfield.facts import audit as audit_facts
from cranfield.recommenders import recommender

BUDGET = 5_000  # default for the maximum number of universes to compute
FEWEST = 0.1  # default for the smallest share of users, of those of the largest universe, that a universe may have

_SEEDS = ("split_seed", "training_seed")


@dataclass(frozen=True)
class AuditSettings:
    """The table ``[audit]`` of an experiment: everything that an audit varies."""

    experiment: Experiment  # the starting point
    varied: tuple[VariedDecision, ...]
    budget: int = BUDGET  # the maximum number of universes that are computed
    fewest: float = FEWEST  # the users that a universe must have to count: a share of the most, or a number from 1 on
    testings: tuple[audit_facts.PairedTest, ...] = ()  # shown side by side, if a test or a correction is opened
    truth: Any = None  # the source of the true values of the systems (`true_values`), if they are known

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the decisions."""
        return tuple(decision.name for decision in self.varied)

    @property
    def start(self) -> list[int]:
        """The option of each decision at the starting point."""
        return [decision.start for decision in self.varied]


def audit_settings(experiment: Experiment, *, scale: tuple[float, float] = (1.0, 5.0)) -> AuditSettings:
    """Return the decisions that ``[audit]`` varies, by default the preset ``usual``; ``scale`` is that of ratings."""
    table = experiment.audit or {}
    if len(experiment.systems) < 2:
        raise SettingError("audit asks which of several systems is better; name at least two systems")
    checked_average(experiment, experiment.decisions.average)  # even if it is not opened
    options = _options(experiment, table, scale)
    if "threshold" in options:
        experiment = replace(experiment, decisions=experiment.decisions.on(*scale))
        if isinstance(options["threshold"], list | tuple):
            usual = usual_threshold(*scale)
            options["threshold"] = [usual if option == AUTO else option for option in options["threshold"]]
    kinds, weights, invalid = (_of_decisions(key, table, options) for key in ("kinds", "weights", "invalid"))
    varied = [
        _varied(experiment, name, options, kinds.get(name), weights.get(name), invalid.get(name, {}))
        for name in sorted(options, key=_place)
        if name not in OF_TESTS
    ]
    testings = _testings(experiment, options)
    if not varied:
        raise SettingError(
            "audit.vary: significance and correction change only what is significant; open another decision too"
        )
    budget = check.whole("audit.budget", table.get("budget", BUDGET))
    largest = max(varied, key=lambda decision: len(decision.options))
    if budget < len(largest.options):
        raise SettingError(
            f"audit.budget={budget} is less than one universe for each of the {len(largest.options)} options of "
            f"{largest.name}; raise the budget, or list fewer options"
        )
    fewest = check.number("audit.fewest", table.get("fewest", FEWEST))
    if not 0 <= fewest < float("inf"):
        raise SettingError(f"audit.fewest={fewest:g} is neither a share of the users nor a number of them; give one")
    return AuditSettings(experiment, tuple(varied), budget, fewest, testings, table.get("truth"))


def _testings(experiment: Experiment, options: Mapping[str, Any]) -> tuple[audit_facts.PairedTest, ...]:
    """Return every test with every correction, starting with those of the experiment; none if neither is opened."""
    if not any(name in options for name in OF_TESTS):
        return ()
    if "correction" in options and len(experiment.systems) == 2:
        raise SettingError("audit.vary: correction changes nothing with two systems, which are one pair; leave it out")
    values = {}
    for name in OF_TESTS:
        start = getattr(experiment.decisions, name)
        stated = _values(experiment, variable_decision(name, experiment), options) if name in options else ()
        if CORRECTION in stated:
            raise SettingError(
                f"audit.vary: correction={CORRECTION} looks at all pairs of systems at once, and an audit at one pair "
                "at a time; open holm, bonferroni or none"
            )
        # It is replaced by the most similar correction of p-values.
        start = "holm" if start == CORRECTION else start
        values[name] = tuple(dict.fromkeys((start, *stated)))
        if name in options and len(values[name]) < 2:
            raise SettingError(f"audit.vary: {name} has one option, {start}; list at least two, or leave it out")
    if len(experiment.systems) == 2:
        values["correction"] = ("none",)
    return tuple(audit_facts.PairedTest(*both) for both in product(*(values[name] for name in OF_TESTS)))


def _options(experiment: Experiment, table: Mapping[str, Any], scale: tuple[float, float]) -> dict[str, Any]:
    """Return the options of each opened decision from the file, or from the preset if the file gives none."""
    stated = dict(table.get("vary", {}))
    for system, parameters in table.get("systems", {}).items():
        if not isinstance(parameters, Mapping):
            raise SettingError(f"audit.systems.{system}={parameters!r} is not a table; write {{ parameter = [...] }}")
        stated |= {f"{SYSTEMS}{system}.{name}": values for name, values in parameters.items()}
    preset = table.get("preset", None if stated else "usual")
    options: dict[str, Any] = {} if preset is None else preset_options(preset, scale)
    if experiment.decisions.overlap is not None:  # data that are already split have no other split
        options.pop("split", None)
    if len(experiment.data) > 1:
        options["data"] = [source.name for source in experiment.data]
    return options | stated


def _of_decisions(key: str, table: Mapping[str, Any], options: Iterable[str]) -> Mapping[str, Any]:
    """Return a table by opened decision; raise an error for a decision that is not opened."""
    stated: Mapping[str, Any] = table.get(key, {})
    for name in stated:
        if name not in options:
            raise SettingError(f"audit.{key}: {name!r} is not opened{nearest(name, options)}")
        if name in OF_TESTS:
            raise SettingError(f"audit.{key}: {name} changes only what is significant and has no {key}; leave it out")
    return stated


def _place(name: str) -> tuple[int, str]:
    """Return the position of a decision in the pipeline, for a fixed order of decisions."""
    line = ["data", *DECISIONS, "cutoff", "gain", "missing_judgments", *_SEEDS]
    return (line.index(name if name in line else "min_ratings"), name)


def _varied(
    experiment: Experiment, name: str, options: Mapping[str, Any], kind: Any, weights: Any, invalid: Any
) -> VariedDecision:
    decision = variable_decision(name, experiment)
    values = _values(experiment, decision, options)
    start = _start(experiment, name, options, values)
    values, weights = _without_invalid(name, values, weights, start, invalid)
    if start not in values:
        values = (start, *values)
        weights = None if weights is None else [1.0, *weights]
    if len(values) < 2:
        raise SettingError(f"audit.vary: {name} has one option, {text_of(start)}; list at least two, or leave it out")
    chosen = _kind(name, decision.kind, kind)
    if chosen == "chance" and len(values) < FEWEST_SEEDS:
        raise SettingError(f"audit.vary: {name} is chance and has {len(values)} options; give at least {FEWEST_SEEDS}")
    checked = None if weights is None else _numbers(name, weights)
    texts = tuple(map(text_of, values))
    return VariedDecision(name, chosen, texts, checked, values, values.index(start), dict(invalid))


def _kind(name: str, usual: OptionKind, kind: Any) -> OptionKind:
    if kind == "invalid":
        raise SettingError(f"audit.kinds.{name}: name the options that are invalid in [audit.invalid], with the reason")
    if usual == "chance" and kind not in (None, usual):
        raise SettingError(f"audit.kinds.{name}: a seed is chance, never a decision; leave its kind out")
    return usual if kind is None else check.one_of(f"audit.kinds.{name}", kind, KINDS)  # type: ignore[return-value]


def _without_invalid(
    name: str, values: tuple[Any, ...], weights: Any, start: Any, invalid: Any
) -> tuple[tuple[Any, ...], Any]:
    """Return the options and their weights without those declared invalid."""
    if not isinstance(invalid, Mapping) or not all(isinstance(reason, str) and reason for reason in invalid.values()):
        raise SettingError(f'audit.invalid.{name}={invalid!r} has no reasons; write {{ "option" = "reason" }}')
    texts = [text_of(value) for value in values]
    for option in invalid:
        if option == text_of(start):
            raise SettingError(f"audit.invalid.{name}: {option} is the starting point; change the experiment instead")
        if option not in texts:
            raise SettingError(f"audit.invalid.{name}: {option!r} is not an option{nearest(option, texts)}")
    kept = [text not in invalid for text in texts]
    if isinstance(weights, list | tuple) and len(weights) == len(values):
        weights = [weight for weight, keep in zip(weights, kept) if keep]
    return tuple(value for value, keep in zip(values, kept) if keep), weights


def _numbers(name: str, weights: Any) -> tuple[float, ...]:
    if not isinstance(weights, Sequence) or isinstance(weights, str):
        raise SettingError(f"audit.weights.{name}={weights!r} is not a list of numbers; give one for each option")
    return tuple(check.number(f"audit.weights.{name}", weight) for weight in weights)


def _values(experiment: Experiment, decision: VariableDecision, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the distinct options of a decision, in canonical form."""
    name, stated = decision.name, options[decision.name]
    if name in _SEEDS and isinstance(stated, int) and not isinstance(stated, bool):
        stated = [experiment.seed + k for k in range(check.whole(f"audit.vary.{name}", stated))]
    if not isinstance(stated, list | tuple) or not stated:
        raise SettingError(f"audit.vary: {name}={stated!r} is not a list of options; write {name} = [..., ...]")
    try:
        values = tuple(dict.fromkeys(decision.check(experiment, value) for value in stated))
    except SettingError as error:
        raise error if str(error).startswith("audit.") else SettingError(f"audit.vary: {error}") from None
    if name == "metrics":
        _check_metrics(values, options)
    return values


def _check_metrics(values: Iterable[str], options: Mapping[str, Any]) -> None:
    """Raise an error for metrics that state something opened separately, or that lack a required cut-off."""
    for value in values:
        parsed, needed = parse(value), metric_definition(value).cutoff == "required"
        if "cutoff" in options and parsed.cutoff is not None:
            raise SettingError(
                f"audit.vary: metrics states the cut-off of {value}, and cutoff is opened; leave out one"
            )
        if "cutoff" not in options and parsed.cutoff is None and needed:
            raise SettingError(f"audit.vary: metrics: {value} needs a cut-off; write {value}@10, or open cutoff")
        if "gain" in options and "gain" in dict(parsed.parameters):
            raise SettingError(f"audit.vary: metrics states the gain of {value}, and gain is opened; leave out one")


def _start(experiment: Experiment, name: str, options: Mapping[str, Any], values: Sequence[Any]) -> Any:
    """Return the experiment's own value of a decision."""
    decisions, metric = experiment.decisions, parse(str(experiment.decisions.metrics[0]))
    if name == "metrics":
        return str(without_varied(metric, options))
    if name == "cutoff":
        if metric.cutoff is None:
            raise SettingError(f"audit.vary: cutoff is opened, and the first metric, {metric}, has none; give it one")
        return metric.cutoff
    if name == "gain":
        default = metric_definition(metric.name).parameters.get("gain", values[0])
        return dict(metric.parameters).get("gain", default)
    if name == "missing_judgments":
        return "not relevant"
    if name == "data":
        return experiment.data[0].name
    if name in _SEEDS:
        return experiment.seed
    if name.startswith(SYSTEMS):
        system, parameter = split_parameter(name)
        spelling = str(next(entry.spelling for entry in experiment.systems if entry.name == system))
        if not may_be_called(spelling):  # a plan does not import code, and does not know its defaults
            return dict(parse(spelling).parameters).get(parameter, values[0])
        return getattr(recommender(spelling, experiment.seed), parameter)
    return getattr(decisions, name)


def without_varied(metric: Any, options: Iterable[str]) -> Any:
    """Return a metric's spelling without the cut-off and the gain if these are opened separately."""
    if "cutoff" in options:
        metric = replace(metric, cutoff=None)
    if "gain" in options:
        metric = replace(metric, parameters=tuple(pair for pair in metric.parameters if pair[0] != "gain"))
    return metric


def text_of(value: Any) -> str:
    """Return an option as text: ``"4"``, ``"true"``, ``"none"``, or several joined by commas."""
    if isinstance(value, tuple):
        return ", ".join(map(text_of, value)) or "none"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)

"""Metrics by their spellings: in the canonical form, at levels of relevance, and in words; and averages in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from cranfield._errors import CranfieldError, SettingError
from cranfield._numbers import listed
from cranfield._own_code import check_form, names_code
from cranfield._registry import Spelling, parse
from cranfield.data import AUTO, RatingScale
from cranfield.facts import scores as scores_facts
from cranfield.metrics.definition import METRICS, Definition, Metric, load_metrics


def known_metrics() -> Mapping[str, Definition]:
    """Return every registered metric by name.

    Examples
    --------
    >>> "nDCG" in known_metrics()
    True
    """
    load_metrics()
    return METRICS.entries()


def spelled_metric(metric: str | Metric) -> str:
    """Return the canonical spelling of a metric, or raise an error; user code is not imported."""
    if names_code(metric):
        check_form(str(metric))
        return str(parse(str(metric)))
    return str(Metric.of(metric))


def as_metrics(metrics: Sequence[str | Metric] | str | Metric) -> list[Metric]:
    """Return the metrics that the caller names, at least one."""
    return [Metric.of(metric) for metric in some_metrics(metrics)]


def some_metrics(metrics: Any) -> list[Any]:
    """Return the metrics that the caller names, unparsed, at least one."""
    given = as_several(metrics)
    if not given:
        raise SettingError("no metric was given; name at least one, as in metrics=['nDCG@10']")
    return given


def as_several(given: Any) -> list[Any]:
    """Return one or several names or metrics as a list."""
    if isinstance(given, str | Metric):
        return [given]
    return list(given) if isinstance(given, Iterable) else []


def properties_of(metric: str) -> Definition:
    """Return the properties of a metric, given its spelling; the usual ones if it cannot be imported here."""
    with suppress(CranfieldError):
        return Metric.of(metric).definition
    return Definition(metric, lambda _: None)


def metric_label(metric: str) -> str:
    """Return the name of a metric for people: of a user's own the registered name, or that of the function."""
    if ":" not in metric:
        return metric
    spelled = parse(metric)
    if registered := properties_of(metric).registered:
        _REGISTERED[spelled.name] = registered
    return str(replace(spelled, name=_REGISTERED.get(spelled.name, spelled.name.rpartition(":")[2])))


# The registered names of metrics from a user's modules: they are shown also where the modules may not be called.
_REGISTERED: dict[str, str] = {}


def deepest(metrics: Sequence[str]) -> tuple[str, str]:
    """Return the metric with the deepest cut-off, and this depth as the end of a name.

    Shares that depend on the depth, such as that of unjudged items, are shown at this depth everywhere.
    """
    cutoffs = {metric: parse(metric).cutoff for metric in metrics}
    metric = max(cutoffs, key=lambda name: cutoffs[name] or np.inf)
    return metric, " in the whole list" if cutoffs[metric] is None else f"@{cutoffs[metric]}"


def at_levels(metrics: Iterable[str | Metric], scale: RatingScale) -> tuple[str | Metric, ...]:
    """Return metrics, each followed by the same metric at the three levels of relevance of a scale.

    A metric at a level has the parameter ``rel``: an item is relevant from there on, an error counts only items of the
    level, and the gain of other items is 0. Metrics that do not use ratings, such as diversity, or that already have a
    ``rel``, stay as they are. Equal levels, as for clicks, are included once.
    """
    spelled: dict[str, str | Metric] = {}
    for metric in metrics:
        name = spelled_metric(metric)
        spelled[name] = metric if isinstance(metric, Metric) else name
        if _has_levels(metric):
            parsed = parse(name)
            for level in dict.fromkeys(scale.levels.values()):
                with_level = str(replace(parsed, parameters=(*parsed.parameters, ("rel", level))))
                spelled.setdefault(with_level, with_level)
    return tuple(spelled.values())


def _has_levels(metric: str | Metric) -> bool:
    """Whether a metric uses ratings and has no level yet; a user's own metric may use ratings."""
    if "rel" in dict(parse(str(metric)).parameters):
        return False
    if names_code(metric):
        return True
    definition, parameters = Metric.of(metric).definition, dict(Metric.of(metric).parameters)
    if definition.family == "beyond-accuracy":
        return bool({**definition.parameters, **parameters}.get("relevant", False))
    return definition.name != "RBPresidual"


def levels_of(scale: RatingScale) -> scores_facts.RelevanceLevels:
    """Return the levels of relevance of a scale."""
    return scores_facts.RelevanceLevels(tuple(scale.levels.items()))


_GAIN_FORMULAS = {
    "exp": "2^rating − 1",
    "exp1": "(2^(rating − 1) − 1) / 2^(highest − 1)",
    "exp1full": "(2^(rating − 1) − 1) / (2^(highest − 1) − 1)",
}
_GAINS = {"exp": "exponential", "binary": "binary"}
_AVERAGES = {
    "mean": "plain mean",
    "median": "median",
    "weighted(by=judged)": "mean weighted by rated items",
    "weighted(by=relevant)": "mean weighted by relevant items",
}


def metric_phrase(metric: str) -> str:
    """Return a metric in words."""
    spelling = parse(metric)
    if len(spelling.parameters) == 1 and spelling.parameters[0][0] == "gain":
        gain = spelling.parameters[0][1]
        if gain in _GAINS:
            return f"{Spelling(spelling.name, (), spelling.cutoff)} with {_GAINS[gain]} gain"
    return metric_label(metric)


def metrics_phrase(metrics: Sequence[str]) -> str:
    """Return several metrics in words."""
    return listed([metric_phrase(str(metric)) for metric in metrics])


def average_phrase(average: str) -> str:
    """Return an average in words, if there are words for it."""
    return _AVERAGES.get(average, average)


_COVERAGE = {"full": "users without a list count as 0", "reduced": "users without a list are left out"}


def averaging_phrases(
    settings: Mapping[str, Any], metrics: Sequence[str] = (), left_out: Sequence[str] = ()
) -> list[str]:
    """Return how lists are averaged, with a clause for each given decision; see `undefined_phrase`."""
    said = [f"average: {settings['average']}"] if "average" in settings else []
    said += [_COVERAGE[settings["coverage"]]] if "coverage" in settings else []
    if "undefined" in settings:
        said.append(
            f"users for whom a metric is undefined {undefined_phrase(settings['undefined'], metrics, left_out)}"
        )
    return said


def undefined_phrase(undefined: str, metrics: Sequence[str], left_out: Sequence[str] | None = None) -> str:
    """Return how users without a value count in averages, as the end of a sentence.

    ``left_out`` are the metrics that leave them out in any case, since 0 is a result there; by default those whose
    definition says so.
    """
    if left_out is None:
        left_out = [name for name in metrics if (known := _known(name)) is not None and _leaves_out(known)]
    if undefined == "leave out" or len(left_out) == len(metrics) > 0:
        return "are left out"
    return f"count as 0, but are left out by {', '.join(left_out)}" if left_out else "count as 0"


def _leaves_out(metric: Metric) -> bool:
    definition = metric.definition
    return not (metric.zero_if_undefined or definition.whole_system or definition.requires == "nothing")


_COLUMNS = {
    "users": "share of the users who get a list",
    "places": "share of the places in the lists that hold an item",
    "items": "share of these items that is recommended to anyone",
    "unjudged": "share of the recommended items that have no test rating",
    "nonexistent": "share of the recommended items that are not in the catalogue",
}
"""Meaning of the columns other than averages, by the first word of their headers."""


def legend(header: Sequence[str]) -> str:
    """Return a line that explains the columns next to the averages; empty if there are none."""
    known = {name: _COLUMNS.get(re.split(r"\W", name)[0]) for name in header}
    return "; ".join(f"{name}: {meaning}" for name, meaning in known.items() if meaning)


def threshold_phrase(threshold: float | str | None) -> str | None:
    """Return the lowest relevant rating in words; empty if it is still to be chosen from the ratings."""
    stated = _stated(threshold)
    return None if stated is None else f"relevant {scores_facts.threshold_text(stated)}"


def _stated(threshold: Any) -> float | None:
    return None if threshold in (None, AUTO) else threshold


def relevant_items(metrics: Sequence[str | Metric], threshold: float | str | None) -> scores_facts.RelevantItems | None:
    """Return what gives an item its value, and in which metrics: a threshold, or a gain instead of it.

    Metrics that use neither, such as errors and diversity, are not named, nor are metrics with their own threshold
    (``P(rel=5)@10``), whose names show it. None if no metric is left.
    """
    by_gain: dict[str | None, dict[str, None]] = {}
    for metric in filter(None, map(_known, metrics)):
        if _looks_at_ratings(metric):
            name = metric_label(str(Spelling(metric.definition.name, metric.parameters)))
            by_gain.setdefault(_gain_in_place(metric), {})[name] = None
    if not by_gain:
        return None
    under_threshold = tuple(by_gain.pop(None, {}))
    gains = tuple((str(gain), tuple(names)) for gain, names in by_gain.items())
    return scores_facts.RelevantItems(_stated(threshold), under_threshold, gains)


def _known(metric: str | Metric) -> Metric | None:
    """Return a metric; None for a user's own metric that is not registered in this process."""
    try:
        return Metric.of(metric)
    except SettingError:
        return None


def _looks_at_ratings(metric: Metric) -> bool:
    """Whether a metric depends on the value of test ratings, under the threshold of the measurement if any."""
    parameters = {**metric.definition.parameters, **dict(metric.parameters)}
    if "rel" in parameters:
        return False
    if metric.definition.family == "beyond-accuracy":
        return bool(parameters.get("relevant", False))
    return metric.definition.family not in ("agreement", "error") and metric.definition.name != "RBPresidual"


def _gain_in_place(metric: Metric) -> str | None:
    """Return the gain of a metric that does not use the threshold."""
    if metric.dialect not in (None, "trec_eval"):  # other tools only see relevant items
        return None
    if metric.definition.name == "ERR":
        return _GAIN_FORMULAS["exp"]
    gain = {**metric.definition.parameters, **dict(metric.parameters)}.get("gain", "binary")
    return None if gain == "binary" else _GAIN_FORMULAS.get(gain, str(gain))

"""Spellings of metrics: one or several, in the canonical form, and at levels of relevance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from cranfield._errors import CranfieldError, SettingError
from cranfield._own_code import check_form, names_code
from cranfield._registry import parse
from cranfield.data import RatingScale
from cranfield.metrics.definition import METRICS, Definition, Metric, load_metrics


def known_metrics() -> Mapping[str, Definition]:
    """Return every registered metric by name."""
    load_metrics()
    return METRICS.entries()


def spelled_metric(metric: str | Metric) -> str:
    """Return the canonical spelling of a metric, or raise an error; user code is not imported.

    Examples
    --------
    >>> spelled_metric("ndcg@ 10"), spelled_metric("mine:hits@ 10")
    ('nDCG@10', 'mine:hits@10')
    """
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


def possible_values(metric: str) -> tuple[float, float]:
    """Return the lowest and the highest value that a metric can have, given its spelling; infinite if not known.

    Examples
    --------
    >>> possible_values("nDCG@10"), possible_values("RMSE")
    ((0.0, 1.0), (0.0, inf))
    """
    with suppress(CranfieldError):  # a metric that cannot be imported here
        return Metric.of(metric).definition.between
    return -np.inf, np.inf


def at_levels(metrics: Iterable[str | Metric], scale: RatingScale) -> tuple[str | Metric, ...]:
    """Return metrics, each followed by the same metric at the three levels of relevance of a scale.

    A metric at a level has the parameter ``rel``: an item is relevant from there on, an error counts only items of the
    level, and the gain of other items is 0. Metrics that do not use ratings, such as diversity, or that already have a
    ``rel``, stay as they are. Equal levels, as for clicks, are included once.

    Examples
    --------
    >>> at_levels(["nDCG@10", "ILD@10"], RatingScale(1, 5))
    ('nDCG@10', 'nDCG(rel=1)@10', 'nDCG(rel=3)@10', 'nDCG(rel=4)@10', 'ILD@10')
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


def levels_note(scale: RatingScale) -> str:
    """Return a note that names the levels.

    Examples
    --------
    >>> levels_note(RatingScale(1, 10))
    'levels of relevance: Low-High from 1, Medium-High from 5.5, High from 7.75'
    """
    return "levels of relevance: " + ", ".join(f"{name} from {level:g}" for name, level in scale.levels.items())

"""Levels of relevance: every metric on the whole rating scale, its upper half and its upper quarter, in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cranfield._own_code import names_code
from cranfield._registry import parse
from cranfield.data import RatingScale
from cranfield.metrics.definition import Metric, spelled_metric


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

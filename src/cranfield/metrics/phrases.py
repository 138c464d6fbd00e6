"""Metrics and averages in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cranfield._errors import SettingError
from cranfield._numbers import listed
from cranfield._registry import Spelling, parse
from cranfield.data import AUTO
from cranfield.metrics.definition import Metric

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
    """Return a metric in words.

    Examples
    --------
    >>> metric_phrase("nDCG(gain=exp)@10"), metric_phrase("RBP(p=0.8)")
    ('nDCG@10 with exponential gain', 'RBP(p=0.8)')
    """
    spelling = parse(metric)
    if len(spelling.parameters) == 1 and spelling.parameters[0][0] == "gain":
        gain = spelling.parameters[0][1]
        if gain in _GAINS:
            return f"{Spelling(spelling.name, (), spelling.cutoff)} with {_GAINS[gain]} gain"
    return metric


def metrics_phrase(metrics: Sequence[str]) -> str:
    """Return several metrics in words."""
    return listed([metric_phrase(str(metric)) for metric in metrics])


def average_phrase(average: str) -> str:
    """Return an average in words, if there are words for it.

    Examples
    --------
    >>> average_phrase("mean"), average_phrase("trimmed(share=0.1)")
    ('plain mean', 'trimmed(share=0.1)')
    """
    return _AVERAGES.get(average, average)


_COVERAGE = {"full": "users without a list count as 0", "reduced": "users without a list are left out"}


def averaging_phrases(
    settings: Mapping[str, Any], metrics: Sequence[str] = (), left_out: Sequence[str] = ()
) -> list[str]:
    """Return how lists are averaged, with a clause for each given decision; see `undefined_phrase`.

    Examples
    --------
    >>> averaging_phrases({"average": "mean", "coverage": "full"})
    ['average: mean', 'users without a list count as 0']
    """
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

    Examples
    --------
    >>> undefined_phrase("zero", ["P@10", "AntiRR@10"]), undefined_phrase("zero", ["AntiRR@10"])
    ('count as 0, but are left out by AntiRR@10', 'are left out')
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
    """Return a line that explains the columns next to the averages; empty if there are none.

    Examples
    --------
    >>> legend(["system", "P@10", "users"])
    'users: share of the users who get a list'
    """
    known = {name: _COLUMNS.get(re.split(r"\W", name)[0]) for name in header}
    return "; ".join(f"{name}: {meaning}" for name, meaning in known.items() if meaning)


def threshold_phrase(threshold: float | str | None) -> str | None:
    """Return the lowest relevant rating in words; empty if it is still to be chosen from the ratings."""
    return None if threshold in (None, AUTO) else f"relevant from {threshold!r}".removesuffix(".0")


def relevance_phrase(metrics: Sequence[str | Metric], threshold: float | str | None) -> str:
    """Return what gives an item its value, and in which metrics: a threshold, or a gain instead of it.

    Metrics that use neither, such as errors and diversity, are not named, nor are metrics with their own threshold
    (``P(rel=5)@10``), whose names show it.

    Examples
    --------
    >>> relevance_phrase(["P@10", "nDCG@10", "nDCG@100", "AP@100"], 4.0)
    'relevant from 4 (P, AP); nDCG: gain = rating'
    >>> relevance_phrase(["P@10", "nDCG(gain=binary)@10"], 4.0), relevance_phrase(["nDCG(gain=exp)@10"], 4.0)
    ('relevant from 4', 'nDCG(gain=exp): gain = 2^rating − 1')
    """
    by_gain: dict[str | None, dict[str, None]] = {}
    for metric in filter(None, map(_known, metrics)):
        if _looks_at_ratings(metric):
            name = str(Spelling(metric.definition.name, metric.parameters))
            by_gain.setdefault(_gain_in_place(metric), {})[name] = None
    under_threshold = by_gain.pop(None, {})
    phrases = []
    if under_threshold:
        which = f" ({', '.join(under_threshold)})" if by_gain else ""
        phrases.append(f"{threshold_phrase(threshold) or 'relevant as the ratings suggest'}{which}")
    phrases += [f"{', '.join(names)}: gain = {gain}" for gain, names in by_gain.items()]
    return "; ".join(phrases)


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

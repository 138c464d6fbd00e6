"""Metrics and averages in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cranfield._phrases import listed
from cranfield._spelling import Spelling, parse

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
    return listed([metric_phrase(str(one)) for one in metrics])


def average_phrase(average: str) -> str:
    """Return an average in words, where it has some.

    Examples
    --------
    >>> average_phrase("mean"), average_phrase("trimmed(share=0.1)")
    ('plain mean', 'trimmed(share=0.1)')
    """
    return _AVERAGES.get(average, average)


_COVERAGE = {"full": "users without a list count 0", "reduced": "users without a list are left out"}
_UNDEFINED = {
    "zero": "users for whom a metric is undefined count 0",
    "leave out": "users for whom a metric is undefined are left out",
}


def averaging_phrases(settings: Mapping[str, Any]) -> list[str]:
    """Return how lists are averaged, a clause for each decision that is there.

    Examples
    --------
    >>> averaging_phrases({"average": "mean", "coverage": "full"})
    ['average: mean', 'users without a list count 0']
    """
    average = [f"average: {settings['average']}"] if "average" in settings else []
    words = {"coverage": _COVERAGE, "undefined": _UNDEFINED}
    return [*average, *(phrases[settings[name]] for name, phrases in words.items() if name in settings)]


_COLUMNS = {
    "users": "share of the users who get a list",
    "places": "share of the places in the lists that hold an item, down to the deepest cut-off",
    "items": "share of the catalogue that is recommended to anyone",
    "unjudged": "share of the recommended items that have no test rating, at the deepest cut-off",
}
"""What stands below the columns beside the averages, by the word that their heads begin with."""


def legend(header: Sequence[str]) -> str:
    """Return what the columns beside the averages hold, in a line; empty where there are none.

    Examples
    --------
    >>> legend(["system", "P@10", "users"])
    'users: share of the users who get a list'
    """
    known = {name: _COLUMNS.get(re.split(r"\W", name)[0]) for name in header}
    return "; ".join(f"{name}: {meaning}" for name, meaning in known.items() if meaning)


def threshold_phrase(threshold: float | str | None) -> str | None:
    """Return the lowest relevant rating in words, unless it is the usual one."""
    return None if threshold in (4, "auto") else f"relevant from {threshold!r}".removesuffix(".0")

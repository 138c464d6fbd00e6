"""Metrics and averages in words."""

from __future__ import annotations

from collections.abc import Sequence

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


def threshold_phrase(threshold: float | str | None) -> str | None:
    """Return the lowest relevant rating in words, unless it is the usual one."""
    return None if threshold in (4, "auto") else f"relevant from {threshold!r}".removesuffix(".0")

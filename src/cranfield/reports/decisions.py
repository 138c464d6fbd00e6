"""Measure the same runs under other decisions, so that the reader of a report can choose among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cranfield._registry import Spelling, parse
from cranfield.data import Ratings
from cranfield.judgments import Context, NegativeGrades
from cranfield.measures import Kind, Measuring, Scores, as_judged, measure_judged

_CUTOFFS = (5, 10, 20, 50, 100)
_GAINS = ("exp", "binary")
_MOST_VALUES, _CUTS = 6, (0.2, 0.4, 0.6, 0.8)


def other_decisions(
    runs: Any,
    test: Ratings,
    metrics: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
    lists: Sequence[Kind] = ("full", "condensed"),
    train: Ratings | None = None,
    negative_grades: NegativeGrades = "judged",
) -> Iterator[Scores]:
    """Measure runs under other thresholds, with full and condensed lists, at further cut-offs and with other gains.

    Parameters
    ----------
    runs, test, train, negative_grades
        As for `measure`; runs are judged only once.
    metrics
        What was measured: each is measured at the cut-offs 5, 10, 20, 50 and 100 that the lists reach, and nDCG also
        with the gains ``exp`` and ``binary``.
    thresholds
        The lowest relevant ratings to try; by default every value of the scale except the lowest, if there are at most
        six, otherwise the values that divide the ratings into five equal parts.
    lists
        The kinds of lists to try: ``full`` and ``condensed``.

    Notes
    -----
    Lists with one relevant item were made for one threshold and one set of candidates, so nothing is varied for them.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = cf.read_runs({"mine": {"ann": list("abcdxy"), "bob": list("yabcde")}})
    >>> others = other_decisions(runs, test, ["P@5"], lists=["full"])
    >>> [(one.step.settings["threshold"], one.metrics) for one in others]
    [(4.0, ('P@5',)), (5.0, ('P@5',))]
    """
    judged = as_judged(runs, test, None, Context(train), negative_grades=negative_grades)
    systems = [judged_run.ranked for judged_run in judged if judged_run.ranked is not None]
    if any(system.one_relevant for system in systems):
        return
    varied = further_metrics(metrics, max(system.longest for system in systems))
    for threshold in _scale(test, negative_grades) if thresholds is None else thresholds:
        for kind in lists:
            measuring = Measuring(metrics=varied, threshold=threshold, lists=kind)
            judgments = judged[0].judgments.at(measuring.threshold)
            yield measure_judged([judged_run.fresh(judgments=judgments) for judged_run in judged], measuring)


def further_metrics(metrics: Sequence[str], depth: int) -> list[str]:
    """Return the metrics at all cut-offs within the lists' depth, and nDCG with other gains.

    Examples
    --------
    >>> further_metrics(["P@3", "RR"], 10)
    ['P@3', 'P@5', 'P@10', 'RR']
    """
    spellings: list[str] = []
    for metric in map(parse, metrics):
        cutoffs = [None] if metric.cutoff is None else sorted({metric.cutoff, *(n for n in _CUTOFFS if n <= depth)})
        gains = _GAINS if metric.name == "nDCG" and not metric.parameters else ()
        for parameters in (metric.parameters, *((("gain", gain),) for gain in gains)):
            spellings += [str(Spelling(metric.name, parameters, cutoff)) for cutoff in cutoffs]
    return list(dict.fromkeys(spellings))


def _scale(test: Ratings, negative_grades: NegativeGrades) -> list[float]:
    """Return the values of a rating scale except the lowest; for a long scale, those that cut it into five parts."""
    ratings = test.values if negative_grades == "judged" else test.values[test.values >= 0]
    values = np.unique(ratings)
    if len(values) > _MOST_VALUES:
        values = np.union1d(values[:1], np.quantile(ratings, _CUTS, method="higher"))
    return values[1:].tolist() if len(values) > 1 else [1.0]

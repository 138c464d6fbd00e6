"""The same runs measured under other decisions, for the reader of a report to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cranfield._spelling import Spelling, parse
from cranfield.data import Ratings
from cranfield.measures import Scores, measure
from cranfield.measures.judgments import NegativeGrades
from cranfield.rankings.run import Run

_CUTOFFS = (5, 10, 20, 50, 100)
_GAINS = ("exp", "binary")
_MOST_VALUES, _CUTS = 6, (0.2, 0.4, 0.6, 0.8)


def other_decisions(
    runs: Sequence[Run],
    test: Ratings,
    metrics: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
    condensed: Sequence[bool] = (False, True),
    train: Ratings | None = None,
    negative_grades: NegativeGrades = "judged",
) -> Iterator[Scores]:
    """Measure runs under other thresholds, with full and condensed lists, at further cut-offs and with other gains.

    Parameters
    ----------
    runs, test, train, negative_grades
        As for `measure`.
    metrics
        What was measured: each is measured at the cut-offs 5, 10, 20, 50 and 100 that the lists reach, and nDCG also
        with the gains ``exp`` and ``binary``.
    thresholds
        The lowest relevant ratings to try; by default every value of the scale but the lowest, if there are at most
        six, else those that cut the ratings into five equal parts.
    condensed
        Whether to take items without a test rating out of the lists.

    Notes
    -----
    Lists with one relevant item were made for one threshold, and hold what they hold: nothing is varied for them.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = cf.read_runs({"mine": {"ann": list("abcdxy"), "bob": list("yabcde")}})
    >>> others = other_decisions(runs, test, ["P@5"], condensed=[False])
    >>> [(one.step.settings["threshold"], one.metrics) for one in others]
    [(4.0, ('P@5',)), (5.0, ('P@5',))]
    """
    if any(run.one_relevant for run in runs):
        return
    depth = max((int(run.list_lengths.max(initial=0)) for run in runs), default=0)
    varied = further_metrics(metrics, depth)
    for threshold in _scale(test, negative_grades) if thresholds is None else thresholds:
        for condense in condensed:
            yield measure(
                runs, test, varied, threshold=threshold, condensed=condense, train=train,
                negative_grades=negative_grades,
            )  # fmt: skip


def further_metrics(metrics: Sequence[str], depth: int) -> list[str]:
    """Return the metrics at all cut-offs within the lists' depth, and nDCG with other gains.

    Examples
    --------
    >>> further_metrics(["P@3", "RR"], 10)
    ['P@3', 'P@5', 'P@10', 'RR']
    """
    found: list[str] = []
    for asked in map(parse, metrics):
        cutoffs = [None] if asked.cutoff is None else sorted({asked.cutoff, *(n for n in _CUTOFFS if n <= depth)})
        gains = _GAINS if asked.name == "nDCG" and not asked.parameters else ()
        for parameters in (asked.parameters, *((("gain", gain),) for gain in gains)):
            found += [str(Spelling(asked.name, parameters, cutoff)) for cutoff in cutoffs]
    return list(dict.fromkeys(found))


def _scale(test: Ratings, negative_grades: NegativeGrades) -> list[float]:
    """Return the values of a rating scale but the lowest; of a long one those that cut the ratings into five parts."""
    ratings = test.values if negative_grades == "judged" else test.values[test.values >= 0]
    values = np.unique(ratings)
    if len(values) > _MOST_VALUES:
        values = np.union1d(values[:1], np.quantile(ratings, _CUTS, method="higher"))
    return values[1:].tolist() if len(values) > 1 else [1.0]

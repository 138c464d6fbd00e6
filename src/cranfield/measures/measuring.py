"""The verb `measure`: runs and a test set in, `Scores` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import flag
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.measures.context import Context
from cranfield.measures.definition import Metric
from cranfield.measures.inputs import as_judgments, as_metrics, as_runs, as_test
from cranfield.measures.judged import Judged
from cranfield.measures.judging import judge
from cranfield.measures.judgments import Judgments, NegativeGrades
from cranfield.measures.notes import notes_on, notes_on_grades
from cranfield.measures.scores import Scores
from cranfield.measures.unjudged_bounds import bounds as bounds_of
from cranfield.measures.unjudged_bounds import has_bounds
from cranfield.rankings.lists import Ties
from cranfield.rankings.run import Run

DEFAULT_METRICS = ("P@10", "Recall@10", "nDCG@10", "nDCG@100", "AP@100", "RR@100")
"""What is measured unless other metrics are asked for."""


def measure(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric = DEFAULT_METRICS,
    *,
    threshold: float | None = None,
    condensed: bool = False,
    ties: Ties = "trec_eval",
    train: Ratings | None = None,
    similarity: Any = None,
    bounds: bool = False,
    negative_grades: NegativeGrades = "judged",
) -> Scores:
    """Measure the lists of one or more systems against a test set.

    Parameters
    ----------
    runs
        One or more `Run`s, or anything that `read_runs` takes: files, frames, dictionaries, by system name.
    test
        The held-out `Ratings`, or anything that `read_test` takes.
    metrics
        As they are spelled: ``P@10``, ``nDCG(gain=exp)@100``, ``RBP(p=0.8)``; one that is asked for twice is measured
        once.
    threshold
        The lowest rating that makes an item relevant. Without one every rating of at least 1 does, as in trec_eval.
    condensed
        Take items without a test rating out of all lists first (decision C1).
    ties
        How runs that are read here order items of equal score; see `read_run`.
    train, similarity
        What some metrics need: the training ratings, and the similarity of items.
    bounds
        Also measure what each ranking metric would be if every unjudged item of the lists were not relevant, and if
        every one were (`Scores.bounds`).
    negative_grades
        What a test rating below 0 means: ``judged`` and not relevant, as every low rating; ``unjudged``, as if it were
        not there; or ``pooled``: not judged either, but ``infAP(pool=judged)`` counts the item in the pool, as
        trec_eval does. TREC collections mean by them spam that was judged, or what was pooled and not judged.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> scores = cf.measure({"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}}, test, ["P@2", "RR"], threshold=4)
    >>> scores.frame().select("system", "metric", "mean").rows()
    [('mine', 'P@2', 0.5), ('mine', 'RR', 0.75)]
    """
    runs, test = as_runs(runs, ties), as_test(test)
    wanted = list({str(one): one for one in as_metrics(metrics)}.values())
    condensed, bounds = flag("condensed", condensed), flag("bounds", bounds)
    judgments = as_judgments(runs, test, threshold, negative_grades)
    context = Context(train, similarity)
    depth = max((int(run.list_lengths.max(initial=0)) for run in runs), default=0)
    measured = [_measure_run(run, judgments, wanted, context, condensed, bounds, depth) for run in runs]
    settings = {
        "threshold": threshold,
        "condensed": condensed,
        "metrics": [str(one) for one in wanted],
        "ties": ", ".join(dict.fromkeys(run.ties for run in runs)),
        "negative_grades": negative_grades,
        "test": test.fingerprint,
    }
    return Scores(
        systems=tuple(run.name for run in runs),
        metrics=tuple(str(one) for one in wanted),
        values=np.stack([one.values for one in measured]),
        covered=np.stack([one.covered for one in measured]),
        users=judgments.users,
        user_ids=judgments.user_ids,
        judged=judgments.n_judged,
        relevant=judgments.n_relevant,
        lower_is_better=tuple(one.lower_is_better for one in wanted),
        zero_if_undefined=tuple(one.zero_if_undefined for one in wanted),
        step=Step("measure", settings),
        overall=np.array([one.overall for one in measured]),
        filled=np.array([one.filled for one in measured]),
        unjudged=np.array([one.unjudged for one in measured]),
        item_coverage=_item_coverage(runs, test),
        counts={run.name: one.counts for run, one in zip(runs, measured)},
        bounds=np.stack([one.bounds for one in measured], axis=1) if bounds else None,
        notes=(
            *notes_on_grades(test, wanted, negative_grades),
            *notes_on(runs, [one.counts for one in measured], judgments, wanted, threshold),
        ),
    )


@dataclass(frozen=True)
class _Measured:
    """One system's part of the scores."""

    values: NDArray[np.float64]
    covered: NDArray[np.bool_]
    overall: list[float]
    filled: list[float]
    unjudged: list[float]
    counts: Mapping[str, int]
    bounds: NDArray[np.float64]


def _measure_run(
    run: Run,
    judgments: Judgments,
    metrics: Sequence[Metric],
    context: Context,
    condensed: bool,
    bounds: bool,
    depth: int,
) -> _Measured:
    judged, strangers = judge(run, judgments, context)
    if condensed:
        judged = judged.condensed()
    values = np.full((len(metrics), judgments.n_lists), np.nan)
    overall = [float("nan")] * len(metrics)
    for m, metric in enumerate(metrics):
        if metric.definition.whole_system:
            overall[m] = metric(judged)
        else:
            values[m] = metric(judged)
    cutoffs = [metric.cutoff or depth for metric in metrics]
    service = {n: _service(judged, n) for n in set(cutoffs)}
    return _Measured(
        values=values,
        covered=judged.lengths > 0,
        overall=overall,
        filled=[service[n][0] for n in cutoffs],
        unjudged=[service[n][1] for n in cutoffs],
        counts={**run.counts, **strangers},
        bounds=_bounds(judged, metrics) if bounds else np.empty(0),
    )


def _bounds(judged: Judged, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Return 2 × metrics × lists: each metric if all unjudged items were irrelevant, or relevant; NaN for others."""
    ends = np.full((2, len(metrics), judged.n_lists), np.nan)
    for m, metric in enumerate(metrics):
        if has_bounds(metric):
            ends[:, m] = bounds_of(metric, judged)
    return ends


def _service(judged: Judged, n: int) -> tuple[float, float]:
    """Return Coverage@n, and the share of the items down to rank n that are not judged."""
    recommended = int(np.minimum(judged.lengths, n).sum())
    places = n * judged.n_lists
    return (
        recommended / places if places else float("nan"),
        1.0 - int((judged.ranks <= n).sum()) / recommended if recommended else float("nan"),
    )


def _item_coverage(runs: Sequence[Run], test: Ratings) -> NDArray[np.float64]:
    """Return for each run the share of the catalogue in its lists; the catalogue is all that test or any run holds."""
    strangers: set[Any] = set()
    for run in runs:
        if run.item_ids != test.item_ids:
            unknown = run.item_ids.all.filter(pl.Series(test.item_ids.codes(run.item_ids.all) < 0))
            strangers.update(unknown.cast(pl.String).to_list())
    catalogue = max(test.n_items + len(strangers), 1)
    return np.array([run.n_distinct_items / catalogue for run in runs])

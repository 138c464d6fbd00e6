"""What a measurement is given, made ready: runs, a test set, and the judgments that join them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args
from weakref import WeakKeyDictionary

import polars as pl

from cranfield._checks import one_of
from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.data.relevance import threshold_on
from cranfield.measures.definition import Metric
from cranfield.measures.judged import Judged
from cranfield.measures.judgments import Judgments, NegativeGrades
from cranfield.measures.notes import notes_on_negative_grades
from cranfield.rankings.lists import Ties
from cranfield.rankings.qrels import read_test
from cranfield.rankings.read import read_runs
from cranfield.rankings.run import Run


def as_runs(runs: Any, ties: Ties) -> list[Run]:
    """Return runs as they are, also those of judged lists, and read what is not one yet; each has its own name."""
    if isinstance(runs, Run | Judged):
        runs = [runs]
    if isinstance(runs, Iterable) and not isinstance(runs, str | Mapping | pl.DataFrame):
        runs = [_run_of(run) if isinstance(run, Judged) else run for run in runs]
    if not (isinstance(runs, list) and all(isinstance(run, Run) for run in runs)):
        runs = read_runs(runs, ties=ties)
    if not runs:
        raise SettingError("there is no run to measure; give at least one")
    name, often = Counter(run.name for run in runs).most_common(1)[0]
    if often > 1:
        raise SettingError(f"{often} runs are called {name!r}; give each its own name")
    return list(runs)


def _run_of(judged: Judged) -> Run:
    run = judged.run
    if run is None:
        raise SettingError("these judged lists were read without their run, which is needed; give it to read_judged")
    return run


def as_metrics(metrics: Sequence[str | Metric] | str | Metric) -> list[Metric]:
    """Return the metrics that the caller names, one or more."""
    return [Metric.of(metric) for metric in some_metrics(metrics)]


def some_metrics(metrics: Any) -> list[Any]:
    """Return the metrics that the caller names as they are given, one or more."""
    given = as_several(metrics)
    if not given:
        raise SettingError("no metric was asked for; name at least one, as in metrics=['nDCG@10']")
    return given


def as_several(given: Any) -> list[Any]:
    """Return one name or metric, or several of them, as a list."""
    if isinstance(given, str | Metric):
        return [given]
    return list(given) if isinstance(given, Iterable) else []


def as_test(test: Any) -> Ratings:
    """Return a test set as it is, or read it."""
    if isinstance(test, Ratings):
        return test
    return read_test(test)


def as_judgments(
    test: Any,
    threshold: float | str | None,
    negative_grades: NegativeGrades = "judged",
    train: Ratings | None = None,
) -> Judgments:
    """Return the judgments of a test set: the same for the same ratings, and a view of them under each threshold.

    The training ratings, where they are known, say with the test set what a threshold of ``auto`` is.
    """
    test = as_test(test)
    if len(test) == 0:
        raise SettingError("the test set holds no rating; there is nothing to measure against")
    one_of("negative_grades", negative_grades, get_args(NegativeGrades))
    return _judgments_of(test, negative_grades).at(threshold_on(test, threshold, train))


# A test set is usually measured against more than once, and its judgments (their totals, what an ideal list would hold)
# are the same each time. They go with the ratings they were made of.
_KEPT: WeakKeyDictionary[Ratings, dict[str, Judgments]] = WeakKeyDictionary()


def _judgments_of(test: Ratings, negative_grades: NegativeGrades) -> Judgments:
    kept = _KEPT.setdefault(test, {})
    if negative_grades not in kept:
        notes = tuple(notes_on_negative_grades(test, negative_grades))
        judgments = Judgments.of(test, 1.0, negative_grades)
        kept[negative_grades] = replace(
            judgments, fingerprint=test.fingerprint, negative_grades=negative_grades, notes=notes
        )
    return kept[negative_grades]

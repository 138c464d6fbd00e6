"""Preparation of the inputs of a measurement: runs, a test set and its judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args
from weakref import WeakKeyDictionary

from cranfield._checks import one_of
from cranfield._errors import SettingError
from cranfield.data import Ratings, Relevance
from cranfield.judgments.judged import Judged
from cranfield.judgments.judgments import Judgments, NegativeGrades
from cranfield.judgments.negative_grades import notes_on_negative_grades
from cranfield.rankings import Gaps, Run, RunReading, Ties, is_one_source, read_runs, read_test


def as_runs(runs: Any, ties: Ties | None = None, gaps: Gaps = "keep") -> list[Run]:
    """Return runs, including those of judged lists; read other sources. Names must be unique.

    Runs keep their order of tied items unless ``ties`` is given; others are read in trec_eval's order by default.
    """
    if isinstance(runs, Run | Judged):
        runs = [runs]
    if isinstance(runs, Iterable) and not isinstance(runs, Mapping) and not is_one_source(runs):
        runs = [_run_of(run) if isinstance(run, Judged) else run for run in runs]
    return read_runs(runs, ties=ties, gaps=gaps)


def refuse_closing(judged: Sequence[Judged], gaps: Gaps) -> None:
    """Refuse to close gaps of lists that were judged with them."""
    closing = RunReading(gaps=gaps).gaps == "close"
    if closing and any(lists.ranked is not None and lists.ranked.counts.get("missing_ranks") for lists in judged):
        raise SettingError("gaps was decided when these lists were judged; leave it out here, or give it to judge")


def _run_of(judged: Judged) -> Run:
    run = judged.run
    if run is None:
        raise SettingError("these judged lists were read without their run, which is needed; give it to read_judged")
    return run


def as_test(test: Any) -> Ratings:
    """Return a test set, which is read if necessary."""
    if isinstance(test, Ratings):
        return test
    return read_test(test)


def as_judgments(
    test: Any,
    threshold: float | str | None,
    negative_grades: NegativeGrades = "judged",
    train: Ratings | None = None,
) -> Judgments:
    """Return the judgments of a test set, which are cached by its ratings, as a view under the threshold.

    A threshold of ``auto`` is chosen from the test set and the training ratings, if they are known.
    """
    test = as_test(test)
    if len(test) == 0:
        raise SettingError("the test set holds no rating; there is nothing to measure against")
    one_of("negative_grades", negative_grades, get_args(NegativeGrades))
    return _judgments_of(test, negative_grades).at(Relevance.of(test, threshold, train).threshold)


# A test set is usually used more than once, and its judgments (totals, ideal lists) are the same each time. They are
# kept as long as the ratings exist.
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

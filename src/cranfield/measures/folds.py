"""Joining of folds: the lists of all folds, over one vocabulary of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield.measures.joined_scores import check_alike, lists_of
from cranfield.measures.off_catalogue import catalogue_notes, outside_in_folds
from cranfield.measures.scores import Scores

Floats = NDArray[np.float64]


def join_folds(folds: Sequence[Scores], repetitions: Sequence[int] | None = None) -> Scores:
    """Return the scores of all folds as one, in which a user has the lists of all folds.

    Properties of a whole system, such as catalogue coverage, are averaged over the folds. The folds must have the same
    systems and metrics in the same order. Their users may differ, and are matched by id. ``repetitions`` is the
    repetition of each fold, counted from 0; with several repetitions, it is kept for each list.
    """
    check_alike(folds, "fold")
    first = folds[0]
    if len(folds) == 1:
        return first
    outside = outside_in_folds([fold.outside_catalogue for fold in folds])
    joined = replace(first, outside_catalogue=outside)
    return replace(
        joined,
        **{**lists_of(folds), "repetitions": repetition_of_lists(folds, repetitions)},
        step=replace(first.step, settings={**first.step.settings, "folds": len(folds)}),
        counts={},
        notes=_joined_notes(joined, folds, "notes", repetitions),
        warnings=_joined_notes(joined, folds, "warnings", repetitions),
        overall=_averaged([fold.overall for fold in folds]),
        filled=_averaged([fold.filled for fold in folds]),
        unjudged=_averaged([fold.unjudged for fold in folds]),
        nonexistent=_averaged([fold.nonexistent for fold in folds]),
        item_coverage=_averaged([fold.item_coverage for fold in folds]),
        recommended=None,
    )


def repetition_of_lists(folds: Sequence[Scores], repetitions: Sequence[int] | None) -> NDArray[np.int16] | None:
    """Return the repetition of each list; None if there is only one."""
    if repetitions is None or len(set(repetitions)) < 2:
        return None
    return np.repeat(np.array(repetitions, dtype=np.int16), [fold.n_lists for fold in folds])


def _joined_notes(
    joined: Scores, folds: Sequence[Scores], name: str, repetitions: Sequence[int] | None
) -> tuple[str, ...]:
    """Return the notes of all folds: those common to all folds once, the others with the name of the fold.

    Notes on the catalogue are about all folds together.
    """
    of_folds = [
        [note for note in getattr(fold, name) if note not in catalogue_notes(fold.systems, fold.outside_catalogue)]
        for fold in folds
    ]
    times = list(repetitions or [0] * len(folds))
    notes = dict.fromkeys(note for note in of_folds[0] if all(note in others for others in of_folds))
    for place, of_fold in enumerate(of_folds):
        within = f"fold {times[:place].count(times[place]) + 1}" if times.count(times[place]) > 1 else ""
        which = ", ".join(filter(None, [f"repetition {times[place] + 1}" if len(set(times)) > 1 else "", within]))
        notes |= dict.fromkeys(f"{which}: {note}" for note in of_fold if note not in notes)
    return (*notes, *catalogue_notes(joined.systems, joined.outside_catalogue))


def _averaged(tables: Sequence[Floats | None]) -> Floats | None:
    """Return the mean of the folds that have a value; None if a fold has no table."""
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    counted = ~np.isnan(known)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(counted, known, 0.0).sum(axis=0) / counted.sum(axis=0)
    return mean

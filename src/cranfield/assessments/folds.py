"""Several folds as one: the lists of all of them, over one vocabulary of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield.assessments.correlation import mean_and_spread
from cranfield.measures.joined_scores import check_alike, lists_of
from cranfield.measures.scores import Scores

Floats = NDArray[np.float64]


def join_folds(folds: Sequence[Scores]) -> Scores:
    """Return the scores of all folds as one, with the lists of a user side by side.

    What belongs to a whole system, as catalogue coverage does, is averaged over the folds. The folds must have the same
    systems and metrics in the same order. Their users need not be the same; they meet by id.
    """
    check_alike(folds, "fold")
    first = folds[0]
    if len(folds) == 1:
        return first
    return replace(
        first,
        **lists_of(folds),
        step=replace(first.step, settings={**first.step.settings, "folds": len(folds)}),
        counts={},
        notes=tuple(dict.fromkeys(note for fold in folds for note in fold.notes)),
        warnings=tuple(dict.fromkeys(note for fold in folds for note in fold.warnings)),
        overall=_averaged([fold.overall for fold in folds]),
        filled=_averaged([fold.filled for fold in folds]),
        unjudged=_averaged([fold.unjudged for fold in folds]),
        item_coverage=_averaged([fold.item_coverage for fold in folds]),
        recommended=None,
    )


def _averaged(tables: Sequence[Floats | None]) -> Floats | None:
    known = [one for one in tables if one is not None]
    return mean_and_spread(np.stack(known))[0] if len(known) == len(tables) else None

"""Several folds as one: the lists of all of them, over one vocabulary of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.assessments.correlation import mean_and_spread
from cranfield.data import Vocabulary
from cranfield.measures.scores import Scores

Floats = NDArray[np.float64]


def join_folds(folds: Sequence[Scores]) -> Scores:
    """Return the scores of all folds as one, with the lists of a user side by side.

    What belongs to a whole system, as catalogue coverage does, is averaged over the folds. The folds must have the same
    systems and metrics in the same order. Their users need not be the same; they meet by id.
    """
    if not folds:
        raise InputError("there are no folds", remedy="give the scores of one or more")
    first = folds[0]
    for place, fold in enumerate(folds[1:], start=2):
        for kind in ("systems", "metrics"):
            if getattr(fold, kind) != getattr(first, kind):
                raise InputError(
                    f"fold {place} has other {kind} ({', '.join(getattr(fold, kind))}) than fold 1 "
                    f"({', '.join(getattr(first, kind))})",
                    remedy="measure every fold with the same systems and metrics",
                )
    if len(folds) == 1:
        return first
    ids = Vocabulary.union([fold.user_ids for fold in folds])
    return replace(
        first,
        values=np.concatenate([fold.values for fold in folds], axis=2),
        covered=np.concatenate([fold.covered for fold in folds], axis=1),
        users=np.concatenate([ids.codes(fold.user_ids.all)[fold.users] for fold in folds]),
        user_ids=ids,
        judged=np.concatenate([fold.judged for fold in folds]),
        relevant=np.concatenate([fold.relevant for fold in folds]),
        step=replace(first.step, settings={**first.step.settings, "folds": len(folds)}),
        counts={},
        notes=tuple(dict.fromkeys(note for fold in folds for note in fold.notes)),
        bounds=_joined([fold.bounds for fold in folds]),
        overall=_averaged([fold.overall for fold in folds]),
        filled=_averaged([fold.filled for fold in folds]),
        unjudged=_averaged([fold.unjudged for fold in folds]),
        item_coverage=_averaged([fold.item_coverage for fold in folds]),
    )


def _joined(bounds: Sequence[Floats | None]) -> Floats | None:
    known = [one for one in bounds if one is not None]
    return np.concatenate(known, axis=3) if len(known) == len(bounds) else None


def _averaged(tables: Sequence[Floats | None]) -> Floats | None:
    known = [one for one in tables if one is not None]
    return mean_and_spread(np.stack(known))[0] if len(known) == len(tables) else None

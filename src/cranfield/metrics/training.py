"""Popularity and the catalogue, from the training ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.judgments import Judged, once
from cranfield.tables import UNKNOWN, Vocabulary


def train_of(judged: Judged, metric_name: str) -> Ratings:
    """Return the training ratings, or raise an error that the metric needs them."""
    train = judged.context.train
    if train is None:
        raise SettingError(f"{metric_name} needs the training ratings; give them as train=...")
    if not isinstance(train, Ratings):
        raise SettingError(f"train={type(train).__name__} of {metric_name} is not Ratings; read them with cf.read")
    return train


def item_counts(judged: Judged, metric_name: str, threshold: float | None = None) -> NDArray[np.float64]:
    """Return |R(i)|, the number of training ratings of each item, optionally only of those that reach the threshold."""
    train = train_of(judged, metric_name)

    def count() -> NDArray[np.float64]:
        if threshold is None:
            return train.item_counts.astype(np.float64)
        return np.bincount(train.items[train.values >= threshold], minlength=train.n_items).astype(np.float64)

    return once(judged.context.kept, ("item counts", threshold), count)


def codes_of(own: Vocabulary, theirs: Vocabulary) -> NDArray[np.int32]:
    """Return the code in ``own`` of each item of ``theirs``."""
    codes = own.translation(theirs)
    return np.arange(len(theirs), dtype=np.int32) if codes is None else codes


def translated(values: NDArray[np.float64], own: Vocabulary, theirs: Vocabulary, missing: float) -> NDArray[np.float64]:
    """Return values of the items of one vocabulary for the items of another."""
    codes = own.translation(theirs)
    if codes is None:
        return values
    return np.where(codes == UNKNOWN, missing, np.append(values, missing)[codes])


def dead_items(judged: Judged) -> NDArray[np.bool_] | None:
    """Return which items of the run are outside the catalogue, and so earn nothing; None if there are none."""
    live = judged.context.live
    assert judged.run is not None
    codes = None if live is None else live.translation(judged.run.item_ids)
    return None if codes is None or (codes != UNKNOWN).all() else codes == UNKNOWN


def catalogue(judged: Judged) -> Vocabulary:
    """Return the items that can be recommended: those of the catalogue, or those with a test or training rating.

    Vocabularies are no catalogue: that of a split also has the items of other parts, which no file of the two tells.
    """
    live, train = judged.context.live, judged.context.train
    if live is not None or train is None:
        return judged.judgments.judged_items if live is None else live
    rated = once(
        judged.context.kept, "rated items", lambda: Vocabulary(train.item_ids.ids(np.flatnonzero(train.item_counts)))
    )
    return Vocabulary.union([rated, judged.judgments.judged_items])

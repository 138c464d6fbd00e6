"""k-fold cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits._parts import TEST, TRAIN, coins, divide, some, validation_share
from cranfield.splits._places import places
from cranfield.splits.methods import registry
from cranfield.splits.split import Split, Splits


class Folds(Splits):
    """The splits of a cross-validation.

    Parameters
    ----------
    ratings
        The ratings to split.
    fold_of
        The fold in which each rating is a test rating.
    settings
        The settings of `k_fold`.
    """

    def __init__(self, ratings: Ratings, fold_of: NDArray[Any], settings: dict[str, Any]) -> None:
        self.ratings, self.fold_of, self.settings = ratings, fold_of, settings
        fold_of.flags.writeable = False

    def __len__(self) -> int:
        return int(self.settings["k"])

    def __repr__(self) -> str:
        return f"Folds({len(self)} of {self.ratings!r})"

    def at(self, fold: int) -> Split:
        """Return the split of a fold."""
        parts = np.where(self.fold_of == fold, TEST, TRAIN)
        if self.settings["validation"] is not None:
            generator = stream(self.settings["seed"], "split", "k_fold", "validation", fold)
            parts = coins(len(parts), 1.0, self.settings["validation"], generator, parts)
        return divide(self.ratings, parts, "k_fold", self.settings, fold=fold, folds=len(self))


@registry.register
def k_fold(
    ratings: Ratings, *, k: int = 5, per_user: bool = False, seed: int = 0, validation: float | None = None
) -> Folds:
    """Divide the ratings at random into ``k`` folds; each fold is the test part once, and the others are training.

    Parameters
    ----------
    ratings
        The ratings to split.
    k
        Number of folds. Their sizes differ by at most one rating.
    per_user
        Whether each user's ratings are also spread evenly: their numbers per fold differ by at most one.
    seed
        Seed of the draw.
    validation
        The probability of each training rating of a fold to be set aside; it does not change the test parts.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10, range(10))
    >>> for split in k_fold(ratings, k=3, seed=7):
    ...     print(split)
    Split(k_fold: train 6, test 4, fold 1 of 3)
    Split(k_fold: train 7, test 3, fold 2 of 3)
    Split(k_fold: train 7, test 3, fold 3 of 3)
    """
    some(ratings)
    k, seed = check.whole("k", k, at_least=2), check.whole("seed", seed, at_least=0)
    validation_share(validation)
    if k > len(ratings):
        raise ImpossibleSplitError(
            f"{len(ratings):,} ratings of {np.count_nonzero(ratings.user_counts):,} users do not fill {k:,} folds; "
            f"choose at most k={len(ratings)}"
        )
    spread = check.flag("per_user", per_user)
    segments = ratings.indptr if spread else np.array([0, len(ratings)], dtype=np.int64)
    generator = stream(seed, "split", "k_fold", "per_user" if spread else "all")
    place = places(segments, generator)
    # Each profile continues in the fold after the one where the previous profile ended, which keeps the folds even.
    place += np.repeat((segments[:-1] % k).astype(np.int32), np.diff(segments))
    place %= k
    return Folds(
        ratings,
        place.astype(np.min_scalar_type(k - 1)),
        {"k": k, "per_user": spread, "seed": seed, "validation": validation},
    )

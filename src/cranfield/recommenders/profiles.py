"""Models that score from a profile alone, so that users outside the training set can be folded in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders._sparse import rating_matrix
from cranfield.recommenders.model import Model
from cranfield.recommenders.protocol import Recommender, ScoresProfiles
from cranfield.recommenders.registry import SYSTEMS


class ProfileModel(Model):
    """A `Model` that computes scores from a user's ratings and from what it learned about items or other users.

    A subclass implements ``_score_profiles``, for profiles over the items with training ratings.
    """

    def score_profiles(self, profiles: Any) -> NDArray[Any]:
        """Return a row of scores over all items for each profile; NaN where the method has no score.

        Parameters
        ----------
        profiles
            Ratings over the items of the training vocabulary, or a sparse matrix of them: one row per profile, one
            column per item code. Items without training ratings are ignored.

        Examples
        --------
        >>> from cranfield.recommenders import recommender
        >>> train = Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"])
        >>> recommender("ease(l2=1)").fit(train).score_profiles(np.array([[0.0, 1.0]])).round(2).tolist()
        [[0.5, 0.0]]
        """
        from scipy import sparse

        if isinstance(profiles, Ratings):
            if profiles.item_ids != self.train.item_ids:
                raise SettingError(
                    "the profiles and the training ratings have different vocabularies of items; use "
                    "cf.splits.predefined to join them"
                )
            rows = rating_matrix(profiles)
        else:
            rows = sparse.csr_array(profiles, dtype=np.float64)
        if rows.shape[1] != self.train.n_items:
            raise SettingError(
                f"profiles of {rows.shape[1]:,} items do not fit the {self.train.n_items:,} items that {self.name} was "
                "fitted on; give one column per item code of the training vocabulary"
            )
        known = self.train.item_counts > 0
        if known.all():
            return self._score_profiles(rows)
        scored = self._score_profiles(sparse.csr_array(rows[:, np.flatnonzero(known)]))
        scores = np.full(rows.shape, np.nan, dtype=scored.dtype)
        scores[:, known] = scored
        return scores

    def _score_profiles(self, profiles: Any) -> NDArray[Any]:
        raise NotImplementedError


def from_profiles(name: str, system: Recommender) -> ScoresProfiles:
    """Return the system if it can score from profiles, or raise an error that names those that can.

    Examples
    --------
    >>> from cranfield.recommenders import recommender
    >>> from_profiles("bprmf", recommender("bprmf"))
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: bprmf cannot score from a profile alone, so it has no lists for users who are held \
out whole; choose another split, or systems that can: average, ease, ials, itemknn, knn, plsa, popularity, \
puresvd, slim, wrmf
    """
    if isinstance(system, ScoresProfiles):
        return system
    able = sorted(known for known, kind in SYSTEMS.items() if isinstance(kind, type) and issubclass(kind, ProfileModel))
    raise SettingError(
        f"{name} cannot score from a profile alone, so it has no lists for users who are held out whole; choose "
        f"another split, or systems that can: {', '.join(able)}"
    )

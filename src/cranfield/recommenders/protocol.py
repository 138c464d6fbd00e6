"""The protocol of recommenders: `fit`, then `score`."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings


@runtime_checkable
class Recommender(Protocol):
    """A system that learns from ratings and scores items for users.

    It does not have to handle seen items, candidates, gaps or cut-offs: the ranking stage does.

    It may also offer `GivesLists.top`, `ScoresPairs.score_pairs`, and ``save(path)`` and ``load(path)`` to be saved as
    a file. The attribute ``predicts_ratings`` says whether its scores are predicted ratings. If its ``fit`` has a
    parameter ``validation``, it receives the validation part of the split, if there is one; with a parameter
    ``checkpoint``, the path of a file for the state of an unfinished training.
    """

    def fit(self, train: Ratings) -> Self:
        """Learn from the training ratings."""
        ...

    def score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        """Return a row of scores over all items for each user code; NaN where the method has no score."""
        ...


def fit_takes(system: Any, parameter: str) -> bool:
    """Whether the ``fit`` of a system, or of a class of systems, has a certain parameter besides the training ratings.

    Examples
    --------
    >>> class Stopping:
    ...     def fit(self, train, validation=None): ...
    >>> fit_takes(Stopping, "validation"), fit_takes(Stopping(), "checkpoint")
    (True, False)
    """
    try:
        return parameter in inspect.signature(system.fit).parameters
    except (TypeError, ValueError):  # a compiled method has no signature
        return False


@runtime_checkable
class GivesLists(Recommender, Protocol):
    """A recommender that can find the best items without scoring all of them.

    ``top`` is called instead of ``score`` for lists of a fixed length. If every score is needed, to fill gaps or to
    rank a given item, ``score`` is called.
    """

    def top(self, users: NDArray[np.int32], n: int, targets: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the codes and the scores of the ``n`` best items of each user, of those that the targets allow.

        Parameters
        ----------
        users
            User codes.
        n
            The length of the lists.
        targets
            A `cranfield.rankings.Targets`: ``targets.allowed(users)`` is a mask of users × items, and
            ``targets.contain(users, items)`` returns whether single items may be listed.

        Returns
        -------
        items, scores
            Two arrays of one row per user and at most ``n`` columns, in any order within a row. The code −1 or the
            score NaN means no item. An item that the targets do not allow, or that occurs twice in a row, is an error.
        """
        ...


@runtime_checkable
class ScoresProfiles(Recommender, Protocol):
    """A recommender that can score from the profile of a user outside the training set (folding in)."""

    def score_profiles(self, profiles: Any) -> NDArray[Any]:
        """Return a row of scores over all items for each profile; NaN where the method has no score.

        Parameters
        ----------
        profiles
            A sparse matrix in rows (CSR): one row per profile, one column per item code of the training vocabulary,
            ratings as entries.
        """
        ...


@runtime_checkable
class ScoresPairs(Recommender, Protocol):
    """A recommender that can score single pairs of a user and an item without scoring all items."""

    def score_pairs(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
        """Return the score of each pair of a user code and an item code; NaN where the method has no score."""
        ...

"""The events of each user in the order of time, and the base of systems that use this order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings
from cranfield.recommenders.model import ProfileModel, check_item_ids


@dataclass(frozen=True, eq=False)
class History:
    """Events by user, for each user in the order of baskets, and within a basket in that of time, then of item codes.

    Without baskets in the data, the events of a user at the same time are one basket, since their order is not known.
    """

    indptr: NDArray[np.int64]  # the events of user u are the slice indptr[u]:indptr[u + 1] of the arrays below
    items: NDArray[np.int32]
    times: NDArray[np.int64]
    baskets: NDArray[np.int64]  # of each event, numbered through all users; each has events
    sessions: bool  # whether the data have baskets or sessions

    @classmethod
    def of(cls, ratings: Ratings, system: str) -> History:
        """Return the history behind ratings, or say that the system needs times.

        Examples
        --------
        >>> history = History.of(Ratings.of([1, 1, 1, 2], [7, 8, 9, 7], times=[5, 3, 5, 4]), "tifu-knn")
        >>> history.items.tolist(), history.baskets.tolist()
        ([1, 0, 2, 0], [0, 1, 1, 2])
        """
        rows = ratings.rows()
        if rows.times is None:
            raise InputError(
                f"{system} needs the order of events, and the ratings have no times",
                remedy="name the column of times, or that of baskets, when reading them (time=, basket=), or leave "
                "this system out",
            )
        given = None if ratings.events is None else ratings.events.baskets
        users, baskets = rows.users, rows.times if given is None else given
        order = np.lexsort((rows.items, rows.times, baskets, users))
        users, baskets = users[order], baskets[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (users[1:] != users[:-1]) | (baskets[1:] != baskets[:-1])
        return cls(rows.indptr, rows.items[order], rows.times[order], np.cumsum(first) - 1, given is not None)

    @property
    def users(self) -> NDArray[np.int64]:
        """The user of each event."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def in_baskets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many baskets each user has, and the place of each event's basket among them, from 0."""
        some = np.diff(self.indptr) > 0
        first, last = np.zeros((2, len(some)), dtype=np.int64)
        first[some] = self.baskets[self.indptr[:-1][some]]
        last[some] = self.baskets[self.indptr[1:][some] - 1] + 1
        return last - first, self.baskets - first[self.users]

    def matrix(self, weights: NDArray[np.float64], n_items: int) -> Any:
        """Return the users × items matrix of summed weights of events; an item counts once in each basket."""
        from scipy import sparse

        # The latest event of an item in a basket is the last one here.
        _, last = np.unique((self.baskets * n_items + self.items)[::-1], return_index=True)
        kept = np.sort(len(self.items) - 1 - last)
        cells = (weights[kept], (self.users[kept], self.items[kept]))
        return sparse.csr_array(sparse.coo_array(cells, shape=(len(self.indptr) - 1, n_items)))


def twelve_digits(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores rounded to 12 digits after the first of the largest in their row, so that equal sums tie."""
    largest = np.abs(np.where(np.isnan(scores), 0, scores)).max(axis=1, initial=0, keepdims=True)
    with np.errstate(divide="ignore"):
        scale = 10.0 ** np.clip(np.floor(np.log10(largest)), -300, 300)
    return np.asarray(np.round(scores / scale, 12) * scale)


class TimedModel(ProfileModel):
    """A `ProfileModel` that needs the order of events: profiles are `Ratings`, with times, baskets and repeats.

    A subclass implements ``_inputs``, which turns ratings into what it scores from, and ``_score_profiles``.
    """

    profiles_in_time: ClassVar[bool] = True
    """Whether profiles are passed as `Ratings`, not as a matrix."""

    def score_profiles(self, profiles: Any) -> NDArray[Any]:
        """Return a row of scores over all items for each profile; NaN where the method has no score.

        ``profiles`` are ratings over the items of the training vocabulary. Items without training ratings keep their
        places in the order, but have no score.
        """
        if not isinstance(profiles, Ratings):
            raise SettingError(
                f"{self.name} needs the order of events, which a matrix of profiles does not have; give the profiles "
                "as Ratings with times"
            )
        check_item_ids(profiles, self.train)
        known = self.train.item_counts > 0
        scored = self._score_profiles(self._inputs(profiles, np.flatnonzero(known)))
        scores = np.full((profiles.n_users, profiles.n_items), np.nan)
        scores[:, known] = scored
        return scores

    def _inputs(self, ratings: Ratings, items: NDArray[np.int64]) -> Any:
        """Return what users are scored from, such as a matrix of weights, with only these items as columns."""
        raise NotImplementedError

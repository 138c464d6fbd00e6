"""Neighbours in time: items whose weight decays, and sessions like the current one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders.histories import History, TimedModel, twelve_digits
from cranfield.recommenders.matrices import (
    nearest_rows,
    ones_like,
    product_or_nan,
    rating_matrix,
    row_of_entries,
    row_products,
    with_data,
)
from cranfield.recommenders.model import setting
from cranfield.recommenders.registry import register

_DAY = 86_400
_USUAL_HALF_LIFE = 30.0
# So many half-lives ago the weights of a user's newest event stop falling; else they would become 0.
_MOST_HALF_LIVES = 500.0


@register("itemknn-decay")
class DecayingItemNeighbours(TimedModel):
    r"""Item neighbours, where older events count less.

    .. math:: s(u, i) = \sum_{e} 2^{-(now - t_e)/h}\, sim(i, i_e)

    over the user's events e with an item i_e ≠ i among the k items most similar to i (of equally similar ones, the
    smaller id). sim is the cosine over users, each item of a user counting once. An item counts once in each basket.
    NaN if no event has a neighbour of i.

    *now* is the newest training event, or the newest event of a profile that is newer. The scores of a user are all
    multiplied by the same number if another moment is chosen, so lists do not depend on it. For the same reason, more
    than 500 half-lives since the user's newest event count as 500, where the weights would vanish.

    Parameters
    ----------
    k
        The number of neighbours of an item.
    half_life
        h, in days; 30 if ``step`` is not given either.
    step
        δ, in place of the half-life: an event counts δ^b if the user had b baskets since (without baskets, moments with
        events). 1 for no decay.
    """

    k: int = setting(100, low=1)
    half_life: float | None = setting(None, above=0, or_none=float)
    step: float | None = setting(None, above=0, high=1, or_none=float)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.half_life is not None and self.step is not None:
            raise SettingError("itemknn-decay takes half_life or step, not both; leave one of them out")

    def _fit(self, train: Ratings) -> None:
        if self.step is None:
            self._half_life = _USUAL_HALF_LIFE if self.half_life is None else self.half_life
        times = train.rows().times
        self._now = 0 if times is None else int(times.max())
        self._ratings = self._inputs(train, np.arange(train.n_items))
        raters = rating_matrix(train, binary=True).T.tocsr()
        common, sizes = row_products(raters, raters), np.sqrt(train.item_counts)

        def cosine(block: slice) -> NDArray[np.float64]:
            # Rounded, so that equal cosines tie.
            return np.round(common(block) / (sizes[block, None] * sizes), 12)

        self._similarity = nearest_rows(train.n_items, self.k, cosine).T.tocsr()

    def _inputs(self, ratings: Ratings, items: NDArray[np.int64]) -> Any:
        history = History.of(ratings, self.name)
        users = history.users
        if self.step is not None:
            number, place = history.in_baskets()
            weights = self.step ** (number[users] - 1 - place).astype(np.float64)
        else:
            newest = np.full(ratings.n_users, np.iinfo(np.int64).min)
            np.maximum.at(newest, users, history.times)
            life = self._half_life * _DAY
            since = np.minimum((np.maximum(newest, self._now) - newest) / life, _MOST_HALF_LIVES)
            weights = 2.0 ** -(since[users] + (newest[users] - history.times) / life)
        rows = history.matrix(weights, ratings.n_items)
        return rows if len(items) == ratings.n_items else rows[:, items]

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        return twelve_digits(product_or_nan(profiles, self._similarity))


@dataclass(frozen=True, eq=False)
class Current:
    """The current session of each user: the last one, or all events if the data have no sessions."""

    steps: Any  # users × items: steps back from the end to the item, 1 for the last event
    events: NDArray[np.int64]  # how many there are
    items: NDArray[np.int64]  # how many different ones, of which some may be unknown

    def of(self, users: NDArray[np.int64]) -> Current:
        """Return the sessions of some users."""
        return Current(self.steps[users], self.events[users], self.items[users])


@register("sknn")
class SessionNeighbours(TimedModel):
    r"""S-KNN (Ludewig and Jannach 2018): the items of the k sessions most like the current one.

    .. math:: s(i) = \sum_{n \in N_k(c),\, i \in n} sim(c, n), \qquad
              sim(c, n) = \frac{\lvert c \cap n \rvert}{\sqrt{\lvert c \rvert \lvert n \rvert}}

    N_k(c) are the k most similar of the ``sample`` newest training sessions that share an item with the current session
    c; among equally similar ones, the newest, and then the one with the smaller id. NaN if no neighbour has the item.

    The sessions are those of the data, or the baskets; without them, each user's events are one session. c is the
    user's last session, which is not its own neighbour. A session is as old as its last event.

    Parameters
    ----------
    k
        The number of neighbours.
    sample
        The number of sessions to choose them from.
    """

    k: int = setting(100, low=1)
    sample: int = setting(1000, low=1)

    def _fit(self, train: Ratings) -> None:
        from scipy import sparse

        history = History.of(train, self.name)
        session = _sessions(history)
        last = np.append(session[1:] != session[:-1], True)
        count = int(session[-1]) + 1
        newest = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(newest, session, history.times)
        place = np.empty(count, dtype=np.int64)
        place[np.lexsort((np.arange(count), -newest))] = np.arange(count)
        cells = np.unique(place[session] * train.n_items + history.items)
        rows, items = np.divmod(cells, train.n_items)
        ends = np.searchsorted(rows, np.arange(count + 1))
        shape = (count, train.n_items)
        self._sessions = sparse.csr_array((np.ones(len(items)), items.astype(np.int32), ends), shape=shape)
        self._with_item = self._newest(self._sessions.T.tocsr())
        own = np.full(train.n_users, -1)
        own[history.users[last]] = place[session[last]]  # the last one of a user remains
        self._own = own
        self._current = self._inputs(train, np.arange(train.n_items))

    def _newest(self, with_item: Any) -> Any:
        """Return the items × sessions matrix with only the newest sessions of each item that can be in a sample.

        A session in the sample has each item that it shares among the ``sample`` newest sessions with that item, since
        all newer ones share an item too; one more, because the current session may be among them.
        """
        from scipy import sparse

        rows = row_of_entries(with_item)
        kept = _place_in_row(rows) <= self.sample
        ends = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=with_item.shape[0])))
        return sparse.csr_array((with_item.data[kept], with_item.indices[kept], ends), shape=with_item.shape)

    def _inputs(self, ratings: Ratings, items: NDArray[np.int64]) -> Current:
        from scipy import sparse

        history = History.of(ratings, self.name)
        users, session = history.users, _sessions(history)
        ends = history.indptr[1:][users] - 1  # the last event of each event's user
        kept = session == session[ends]
        users, codes, times = users[kept], history.items[kept], history.times[kept]
        events = np.bincount(users, minlength=ratings.n_users)
        order = np.lexsort((times, users))
        users, codes, times = users[order], codes[order], times[order]
        # Of events at the same time, none is nearer to the end than another.
        moments = _numbers(users, times)
        alike = np.searchsorted(moments, moments, side="right")
        steps = np.cumsum(events)[users] - alike + 1
        order = np.lexsort((steps, codes, users))
        cells = users[order] * ratings.n_items + codes[order]
        nearest = order[np.append(True, cells[1:] != cells[:-1])[: len(cells)]]
        data = (steps[nearest].astype(np.float64), (users[nearest], codes[nearest]))
        rows = sparse.csr_array(sparse.coo_array(data, shape=(ratings.n_users, ratings.n_items)))
        return Current(rows if len(items) == ratings.n_items else rows[:, items], events, np.diff(rows.indptr))

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._scores(self._current.of(users), self._own[users])

    def _score_profiles(self, profiles: Current) -> NDArray[np.float64]:
        return self._scores(profiles, np.full(len(profiles.events), -1))

    def _scores(self, current: Current, own: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of current sessions; ``own`` is the session that each must not have as a neighbour."""
        from scipy import sparse

        shared = self._similarities(current)
        shared.sort_indices()  # newest first
        rows, columns, values = row_of_entries(shared), shared.indices, np.round(shared.data, 12)
        chosen = np.flatnonzero(columns != own[rows])
        chosen = chosen[_place_in_row(rows[chosen]) < self.sample]
        chosen = chosen[np.lexsort((chosen, -values[chosen], rows[chosen]))]
        chosen = chosen[_place_in_row(rows[chosen]) < self.k]
        rows, columns, values = rows[chosen], columns[chosen], values[chosen]
        values = self._weights(current, rows, columns, values)
        ends = np.searchsorted(rows, np.arange(len(own) + 1))
        neighbours = sparse.csr_array((values, columns, ends), shape=shared.shape)
        return twelve_digits(product_or_nan(neighbours, self._sessions))

    def _similarities(self, current: Current) -> Any:
        """Return the similarities of current sessions to those that share an item, as a sparse matrix."""
        common = ones_like(current.steps) @ self._with_item
        sizes = np.diff(self._sessions.indptr)
        return with_data(common, common.data / np.sqrt(current.items[row_of_entries(common)] * sizes[common.indices]))

    def _weights(
        self,
        current: Current,  # noqa: ARG002
        rows: NDArray[np.int64],  # noqa: ARG002
        columns: NDArray[Any],  # noqa: ARG002
        similarities: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return how much each neighbour counts."""
        return similarities


@register("vsknn")
class VectorSessionNeighbours(SessionNeighbours):
    r"""V-SKNN (Ludewig and Jannach 2018): S-KNN where the recent items of the current session count more.

    .. math:: sim(c, n) = \sum_{i \in c \cap n} w(i), \qquad
              w(i) = \frac{\text{last position of } i \text{ in } c}{\text{length of } c}

    The length is the number of events. Events at the same time share the last of their positions, as their order is not
    known. All else is as for S-KNN.

    Parameters
    ----------
    k, sample
        As for S-KNN.
    score_decay
        Whether each neighbour counts sim / b, with b the number of steps back from the end of c to the newest item that
        both share: 1 for the last item.
    """

    score_decay: bool = setting(False)

    def _similarities(self, current: Current) -> Any:
        length = current.events[row_of_entries(current.steps)]
        return with_data(current.steps, (length - current.steps.data + 1) / length) @ self._with_item

    def _weights(
        self, current: Current, rows: NDArray[np.int64], columns: NDArray[Any], similarities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if not self.score_decay or not len(rows):
            return similarities
        steps = np.full(current.steps.shape, np.inf)
        steps[row_of_entries(current.steps), current.steps.indices] = current.steps.data
        neighbours = self._sessions[columns]
        back = steps[rows[row_of_entries(neighbours)], neighbours.indices]
        return np.asarray(similarities / np.minimum.reduceat(back, neighbours.indptr[:-1]))


def _sessions(history: History) -> NDArray[np.int64]:
    """Return the session of each event, numbered by user and then by time: its basket, or all events of its user."""
    if history.sessions:
        return history.baskets
    return np.cumsum(np.diff(history.indptr) > 0)[history.users] - 1


def _numbers(users: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ascending numbers of sorted pairs of a user and a time."""
    new = np.zeros(len(users), dtype=np.bool_)
    new[1:] = (users[1:] != users[:-1]) | (times[1:] != times[:-1])
    return np.cumsum(new)


def _place_in_row(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each entry in its row, from 0, given the rows in order."""
    return np.arange(len(rows)) - np.searchsorted(rows, rows)

"""Baselines of next-basket recommendation: how often an item was in a basket, and TIFU-KNN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.data import Ratings
from cranfield.recommenders.histories import History, TimedModel, twelve_digits
from cranfield.recommenders.matrices import dense_product, largest, nan_for_empty, row_of_entries, with_data
from cranfield.recommenders.model import setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks, each

_TIES = ("popularity", "recent", "id", "id_ascending")


@register("topfreq")
class TopFrequency(TimedModel):
    r"""How many baskets hold the item: all baskets, f(i), or those of the user, f_u(i); without baskets, events.

    Many items tie, so the rule for ties decides (Li et al. 2023 give none). With θ the place of an item in the order of
    ties, 0 ≤ θ < 1, and F = max f, the scores are

    ========  ================================================================================
    global    f(i) + θ
    personal  f_u(i) + θ; an item that the user never had cannot be scored
    both      f_u(i) + θ for the user's items, and (f(i) + θ) / (F + 1), which is below 1, for the rest
    ========  ================================================================================

    Parameters
    ----------
    scope
        ``global``, ``personal`` or ``both``.
    ties
        What decides between equal frequencies: ``popularity``, θ = f(i) / (F + 1); ``recent``, the basket (or time) in
        which the user last had the item, or for items that are new to the user, in which anyone last had it; ``id``,
        the usual rule alone, ids as text, descending, θ = 0; or ``id_ascending``, the order of the ids, numbers as
        numbers. What still ties goes by the usual rule.

    Examples
    --------
    >>> train = Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"])
    >>> TopFrequency(scope="both").fit(train).score([1]).round(3).tolist()
    [[1.667, 0.333]]
    """

    scope: str = setting("personal", choices=("global", "personal", "both"))
    ties: str = setting("popularity", choices=_TIES)

    def _fit(self, train: Ratings) -> None:
        counts = _frequencies(train)
        frequency = np.bincount(train.items, counts, train.n_items)
        self._most = float(frequency.max())
        self._place = np.zeros(train.n_items)  # θ of each item, unless it goes by the user
        if self.ties == "popularity":
            self._place = frequency / (self._most + 1)
        elif self.ties == "id_ascending":
            self._place = 1 - np.arange(1, train.n_items + 1) / (train.n_items + 1)
        elif self.ties == "recent":
            latest = np.full(train.n_items, np.iinfo(np.int64).min)
            np.maximum.at(latest, train.items, self._times(train))
            self._place = _places(latest, np.zeros(train.n_items, dtype=np.int64))
        self._of_all = frequency if self.ties == "popularity" else frequency + self._place
        self._ratings = self._inputs(train, np.arange(train.n_items))

    def _times(self, ratings: Ratings) -> NDArray[np.int64]:
        if ratings.times is None:
            raise InputError(
                f"{self.name}(ties=recent) needs times, and the ratings have none",
                remedy="name the column of times, or that of baskets, when reading them, or choose another rule",
            )
        events = ratings.events
        if events is None or not len(ratings):
            return ratings.times
        return np.maximum.reduceat(events.basket_times, events.starts[:-1])

    def _inputs(self, ratings: Ratings, items: NDArray[np.int64]) -> Any:
        counts, events = _frequencies(ratings), ratings.events
        if self.ties == "recent":
            latest = self._times(ratings)
            if events is not None and events.baskets is not None:
                latest = np.maximum.reduceat(events.baskets, events.starts[:-1]) if len(ratings) else latest
            counts = counts + _places(latest, ratings.users.astype(np.int64))
        rows = ratings.matrix(counts)
        return rows if len(items) == ratings.n_items else rows[:, items]

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        block = self._score_new_users(np.zeros(profiles.shape[0], dtype=np.int64))
        if self.scope != "global":
            of_items = 0 if self.ties == "recent" else self._place[profiles.indices]
            block[row_of_entries(profiles), profiles.indices] = profiles.data + of_items
        return block

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.scope == "personal":
            return np.full((len(users), len(self._of_all)), np.nan)
        return np.tile(self._of_all if self.scope == "global" else self._of_all / (self._most + 1), (len(users), 1))


def _frequencies(ratings: Ratings) -> NDArray[np.float64]:
    """Return how many baskets (or events) each pair of user and item has."""
    events = ratings.events
    if events is None:
        return np.ones(len(ratings))
    if events.baskets is None:
        return events.counts.astype(np.float64)
    rating = np.repeat(np.arange(len(ratings)), events.counts)
    pairs = np.unique(rating * (int(events.baskets.max(initial=0)) + 1) + events.baskets, return_index=True)[1]
    return np.bincount(rating[pairs], minlength=len(ratings)).astype(np.float64)


def _places(times: NDArray[Any], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the place of each time among the distinct ones of its group, later ones larger, between 0 and 1."""
    order = np.lexsort((times, groups))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = groups[order][1:] != groups[order][:-1]
    later = first.copy()
    later[1:] |= times[order][1:] != times[order][:-1]
    number = np.cumsum(later)
    group = np.cumsum(first) - 1
    before = number[first] - 1
    sizes = np.diff(np.append(before, number[-1] if len(number) else 0))
    places = np.empty(len(order))
    places[order] = (number - before[group]) / (sizes[group] + 1)
    return places


@register("tifu-knn")
class TifuNeighbours(TimedModel):
    r"""TIFU-KNN (Hu et al. 2020): baskets weighted by age, the user's own and those of the k nearest users.

    A user's n baskets, in order, form m = min(groups, n) groups. With n = q·m + r, the last r groups hold q + 1 baskets
    and the others q. Basket j of the s baskets of group g weighs

    .. math:: w = \frac{within^{\,s-j}\; across^{\,m-g}}{s\, m}

    and p_u is the sum of the user's baskets, as 0/1 vectors, times their weights. With N_k(u) the k *other* users
    nearest to p_u by the Euclidean distance,

    .. math:: s(u, i) = α\, p_{ui} + (1 - α)\, \frac{1}{\lvert N_k(u) \rvert} \sum_{v \in N_k(u)} p_{vi}

    NaN if neither the user nor a neighbour had the item, and for an empty profile. Squared distances are compared at 12
    digits; among equal ones the smaller user id wins. Without baskets, the events of a user at the same time are one.

    Parameters
    ----------
    k
        The number of neighbours; all other users if there are fewer.
    groups
        The largest number of groups.
    within, across
        How much less the basket before counts within a group, and the group before.
    alpha
        The share of the user's own baskets.
    """

    k: int = setting(300, low=1)
    groups: int = setting(7, low=1)
    within: float = setting(0.9, above=0, high=1)
    across: float = setting(0.7, above=0, high=1)
    alpha: float = setting(0.7, low=0, high=1)

    def _fit(self, train: Ratings) -> None:
        self._ratings = self._inputs(train, np.arange(train.n_items))
        count = train.n_users
        pieces = each(lambda block: self._nearest(block, self._ratings), blocks(count, count), "Finding neighbours")
        self._neighbours = np.concatenate(pieces)

    def _inputs(self, ratings: Ratings, items: NDArray[np.int64]) -> Any:
        history = History.of(ratings, self.name)
        number, place = history.in_baskets()
        weights = self._weights(number[history.users], place)
        rows = history.matrix(weights, ratings.n_items)
        return rows if len(items) == ratings.n_items else rows[:, items]

    def _weights(self, number: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of each basket, given how many there are and its place among them, from 0."""
        groups = np.minimum(self.groups, number)
        size, larger = np.divmod(number, groups)
        start = (groups - larger) * size  # of the groups that hold one more
        is_larger = place >= start
        size = size + is_larger
        inside = np.where(is_larger, place - start, place)
        group = inside // size + np.where(is_larger, groups - larger, 0)
        age = size - 1 - inside % size
        return np.asarray(self.within**age * self.across ** (groups - 1 - group) / (size * groups))

    def _nearest(self, block: slice, rows: Any) -> NDArray[np.int32]:
        """Return the nearest training users of some rows, which are training users if they are all of these rows."""
        everyone, some = self._ratings, rows[block]
        squared = np.asarray(everyone.multiply(everyone).sum(axis=1)).reshape(-1)
        own = np.asarray(some.multiply(some).sum(axis=1)).reshape(-1)
        near = 2 * dense_product(some, everyone.T.tocsr()) - squared - own[:, None]
        np.round(near, 12, out=near)
        others = len(squared)
        if rows is everyone:
            others -= 1
            near[np.arange(len(near)), np.arange(block.start, block.stop)] = -np.inf
        return largest(near, min(self.k, others))[0].astype(np.int32)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._scores(self._ratings[users], self._neighbours[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        near = [self._nearest(block, profiles) for block in blocks(profiles.shape[0], self._ratings.shape[0])]
        return self._scores(profiles, np.concatenate(near) if near else np.zeros((0, 0), dtype=np.int32))

    def _scores(self, profiles: Any, neighbours: NDArray[np.int32]) -> NDArray[np.float64]:
        from scipy import sparse

        rows, k = neighbours.shape
        ends = np.arange(rows + 1) * k
        mean = np.full(rows * k, (1 - self.alpha) / max(k, 1))
        near = sparse.csr_array((mean, neighbours.reshape(-1), ends), shape=(rows, self._ratings.shape[0]))
        block = dense_product(near, self._ratings)
        own = with_data(profiles, self.alpha * profiles.data)
        block[row_of_entries(own), own.indices] += own.data
        block = twelve_digits(block)
        block[block == 0] = np.nan
        return nan_for_empty(block, profiles)

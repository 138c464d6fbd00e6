"""Baselines without personalisation: random, popularity, average rating."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders.model import Model, PairModel, ProfileModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks
from cranfield.tables import Vocabulary


def best_first(scores: NDArray[np.float64], item_ids: Vocabulary) -> NDArray[np.int32]:
    """Return the items with a score, best first, ties by id as text, descending, as in trec_eval."""
    order = np.lexsort((-item_ids.string_order, -scores))
    return order[: len(scores) - np.count_nonzero(np.isnan(scores))].astype(np.int32)


def first_allowed(
    best: Callable[[NDArray[np.int64], int], NDArray[Any]], most: int, users: NDArray[Any], n: int, targets: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first ``n`` items of each user's order that the targets allow, and their positions in it.

    If there are fewer, both are −1. ``best(rows, wanted)`` gives the first ``wanted`` items of the order of each row of
    ``users``; −1 means no item, and does not count as a position. ``most`` is the length of these orders, and the rest
    is as for `GivesLists.top`.
    """
    items, places = np.full((len(users), n), -1, dtype=np.int64), np.full((len(users), n), -1, dtype=np.int64)
    rows, wanted = np.arange(len(users)), min(most, n + 64)
    while len(rows):
        short = []
        for part in blocks(len(rows), wanted):
            some = rows[part]
            candidates = best(some, wanted)
            keep = targets.contain(users[some], candidates)
            column = np.cumsum(keep, axis=1) - 1
            keep &= column < n
            row, place = np.nonzero(keep)
            items[some[row], column[row, place]] = candidates[row, place]
            places[some[row], column[row, place]] = (np.cumsum(candidates >= 0, axis=1) - 1)[row, place]
            short.append(some[np.count_nonzero(keep, axis=1) < n])
        if wanted == most:
            break
        rows, wanted = np.concatenate(short), min(most, 4 * wanted)
    return items, places


_MOST_DRAWN = 4096
"""Maximum number of draws for the top of a random order; items that were not drawn follow in random order."""


@register("random")
class Random(Model):
    """Items in a random order for each user; all orders are equally likely.

    Items are drawn with replacement, and items that were drawn before are skipped. So the top of a list is known
    without scoring every item.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob"], ["x", "y"])
    >>> random = Random(seed=1).fit(train)
    >>> bool((random.score([1]) == random.score([0, 1])[1]).all())
    True
    """

    seed: int = setting(0, low=0)

    def _fit(self, train: Ratings) -> None:
        self._n_items = train.n_items

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._scores([self._stream(user) for user in users])

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._scores([self._stream("newcomer", user) for user in users])

    def _stream(self, *names: str | np.int64) -> np.random.Generator:
        # Each user has its own random stream, so that results do not depend on which users are served.
        return stream(self.seed, "random", *map(str, names))

    def _drawn(self, draws: Sequence[np.random.Generator], wanted: int) -> NDArray[np.int64]:
        """Return the first ``wanted`` draws of each stream, -1 for an item that was drawn before."""
        drawn = (np.array([draw.random(wanted) for draw in draws]) * self._n_items).astype(np.int64)
        order = np.argsort(drawn, axis=1, kind="stable")
        in_order = np.take_along_axis(drawn, order, axis=1)
        again = np.zeros(drawn.shape, dtype=np.bool_)
        np.put_along_axis(again, order[:, 1:], in_order[:, 1:] == in_order[:, :-1], axis=1)
        return np.where(again, -1, drawn)

    def _scores(self, draws: Sequence[np.random.Generator]) -> NDArray[np.float64]:
        if not draws:
            return np.zeros((0, self._n_items))
        drawn = self._drawn(draws, self._n_drawn)
        scores = np.array([draw.random(self._n_items) for draw in draws])
        for row, items in zip(scores, drawn):
            first = items[items >= 0]
            row *= 1 - len(first) / self._n_items
            row[first] = self._score_at(np.arange(len(first)))
        return scores

    def _score_at(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return 1 - places / self._n_items

    @property
    def _n_drawn(self) -> int:
        return min(_MOST_DRAWN, self._n_items)

    def top(self, users: NDArray[Any], n: int, targets: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ``n`` best items of each user, of those that the targets allow."""
        known, codes = self._known_codes, np.asarray(users, dtype=np.int64)
        of_all = np.arange(self._n_items) if known is None else np.flatnonzero(known.items)
        known_codes = codes if known is None else known.users[codes]

        def draw(row: np.int64) -> np.random.Generator:
            user = known_codes[row]
            return self._stream(user) if user >= 0 else self._stream("newcomer", codes[row])

        def best(rows: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
            drawn = self._drawn([draw(row) for row in rows], wanted)
            return np.where(drawn >= 0, of_all[drawn], -1)

        items, places = first_allowed(best, self._n_drawn, codes, n, targets)
        scores = np.where(items >= 0, self._score_at(places), np.nan)
        short = np.flatnonzero(items[:, -1] < 0)
        for row in short:  # too few draws, or fewer than n items
            whole = self.score(codes[row : row + 1])[0]
            whole[~targets.allowed(codes[row : row + 1])[0]] = np.nan
            order = np.argsort(-whole)[:n]
            items[row, : len(order)], scores[row, : len(order)] = order, whole[order]
        return items, scores

    def fill_scores(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return a random score for each user and item, including those without training ratings."""
        scores = self.score(users)
        unknown = np.flatnonzero(self.train.item_counts == 0)
        for row, user in zip(scores, users):
            row[unknown] = stream(self.seed, "random", "unknown items", int(user)).random(len(unknown))
        return scores


class _SameForAll(ProfileModel, PairModel):
    """A system that gives an item the same score for every user."""

    _item_scores: NDArray[np.float64]
    _best_first: NDArray[np.int32]

    def _learn(self, item_scores: NDArray[np.float64], train: Ratings) -> None:
        self._item_scores, self._best_first = item_scores, best_first(item_scores, train.item_ids)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._item_scores, (len(users), 1))

    _score_new_users = _score

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:  # noqa: ARG002
        return self._item_scores[items]

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        return np.tile(self._item_scores, (profiles.shape[0], 1))

    def top(self, users: NDArray[Any], n: int, targets: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ``n`` best items of each user, of those that the targets allow."""
        known, order = self._known_codes, self._best_first
        items = order if known is None else np.flatnonzero(known.items)[order]

        def best(rows: NDArray[np.int64], wanted: int) -> NDArray[Any]:
            return np.broadcast_to(items[:wanted], (len(rows), wanted))

        listed, places = first_allowed(best, len(order), np.asarray(users), n, targets)
        return listed, np.append(self._item_scores[order], np.nan)[places]


@register("popularity")
class Popularity(_SameForAll):
    """The number of training ratings of the item, s(u, i) = |U_i|.

    Parameters
    ----------
    threshold
        Count only ratings of at least this much.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [2, 4, 5])
    >>> Popularity().fit(train).score([0]).tolist(), Popularity(threshold=4.0).fit(train).score([0]).tolist()
    ([[2.0, 1.0]], [[1.0, 1.0]])
    """

    threshold: float | None = setting(None, or_none=float)

    def _fit(self, train: Ratings) -> None:
        positive = train.items if self.threshold is None else train.items[train.values >= self.threshold]
        self._learn(np.bincount(positive, minlength=train.n_items).astype(np.float64), train)

    def fill_scores(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number of training ratings of every item, including 0."""
        return np.nan_to_num(self.score(users), nan=0.0)


@register("average", displayed="item mean")
class AverageRating(_SameForAll):
    r"""The mean training rating of the item; NaN for an item without training ratings.

    .. math:: s(u, i) = \frac{\sum_{v \in U_i} r_{vi} + a μ}{\lvert U_i \rvert + a}

    with μ the mean of all ratings.

    Parameters
    ----------
    damping
        a, the number of average ratings added to each item; 0 for the plain average.
    support
        The minimum number of ratings of an item; NaN below.
    threshold
        If given, a rating of at least this much counts 1 and any other 0: the score is the share of the item's ratings
        that are relevant (Cañamares and Castells 2018), with μ the share of all ratings that are relevant.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [2, 4, 5])
    >>> AverageRating().fit(train).score([0]).tolist(), AverageRating(support=2).fit(train).score([0]).tolist()
    ([[3.0, 5.0]], [[3.0, nan]])
    """

    damping: float = setting(0.0, low=0)
    support: int = setting(1, low=1)
    threshold: float | None = setting(None, or_none=float)

    @property
    def predicts_ratings(self) -> bool:
        """Whether the scores are average ratings, not shares."""
        return self.threshold is None

    def _fit(self, train: Ratings) -> None:
        values = (train.values if self.threshold is None else train.values >= self.threshold).astype(np.float64)
        total = np.bincount(train.items, weights=values, minlength=train.n_items)
        count = train.item_counts.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            average = (total + self.damping * values.mean()) / (count + self.damping)
        self._learn(np.where(count >= self.support, average, np.nan), train)


@register("useraverage")
class UserAverage(PairModel):
    """The mean training rating of the user, for every item; the mean of all ratings for a user without any.

    All items are tied, so it is a baseline for rating prediction, not for ranking.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [2, 4, 5])
    >>> UserAverage().fit(train).score([1]).tolist()
    [[4.5, 4.5]]
    """

    predicts_ratings = True

    def _fit(self, train: Ratings) -> None:
        values = train.values.astype(np.float64)
        total = np.bincount(train.users, weights=values, minlength=train.n_users)
        self._averages: Any = total / train.user_counts
        self._mean = float(values.mean())
        self._n_items = train.n_items

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.repeat(self._averages[users][:, None], self._n_items, axis=1)

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:  # noqa: ARG002
        return self._averages[users]

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full((len(users), self._n_items), self._mean)

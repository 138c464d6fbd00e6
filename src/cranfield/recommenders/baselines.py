"""The systems that know nobody: at random, by popularity, by average rating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._random import stream
from cranfield.data import Ratings
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register


@register("random")
@dataclass
class Random(Model):
    """An independent uniform score for each user and item.

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
        # A stream of its own for each user, so that no score depends on who else is asked for.
        rows = [stream(self.seed, "random", int(user)).random(self._n_items) for user in users]
        return np.array(rows).reshape(len(users), self._n_items)

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = [stream(self.seed, "random", "newcomer", int(user)).random(self._n_items) for user in users]
        return np.array(rows).reshape(len(users), self._n_items)

    def fill_scores(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return a uniform score for each user and item, those without training ratings too."""
        scores = self.score(users)
        unknown = np.flatnonzero(self.train.item_counts == 0)
        for row, user in zip(scores, users):
            row[unknown] = stream(self.seed, "random", "unknown items", int(user)).random(len(unknown))
        return scores


class _SameForAll(ProfileModel):
    """A system whose score of an item is the same for every user."""

    _item_scores: NDArray[np.float64]

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._item_scores, (len(users), 1))

    _score_newcomers = _score

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        return np.tile(self._item_scores, (profiles.shape[0], 1))


@register("popularity")
@dataclass
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
        self._item_scores = np.bincount(positive, minlength=train.n_items).astype(np.float64)

    def fill_scores(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number of training ratings of every item, 0 for one without any."""
        return np.nan_to_num(self.score(users), nan=0.0)


@register("average", displayed="item mean")
@dataclass
class AverageRating(_SameForAll):
    r"""The average training rating of the item, NaN for an item without any.

    .. math:: s(u, i) = \frac{\sum_{v \in U_i} r_{vi} + a μ}{\lvert U_i \rvert + a}

    with μ the mean of all ratings.

    Parameters
    ----------
    damping
        a, the number of average ratings added to each item; 0 for the plain average.
    support
        The fewest ratings an item must have; NaN below.
    threshold
        Where given, a rating of at least this much counts 1 and any other 0: the share of the item's ratings that are
        relevant (Cañamares and Castells 2018), with μ the share of all ratings that are.

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
        """Whether the scores are averages of ratings, not shares."""
        return self.threshold is None

    def _fit(self, train: Ratings) -> None:
        values = (train.values if self.threshold is None else train.values >= self.threshold).astype(np.float64)
        total = np.bincount(train.items, weights=values, minlength=train.n_items)
        count = train.item_counts.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            average = (total + self.damping * values.mean()) / (count + self.damping)
        self._item_scores = np.where(count >= self.support, average, np.nan)


@register("useraverage")
@dataclass
class UserAverage(Model):
    """The user's own average training rating, for every item; the mean of all ratings for a user without any.

    It ranks nothing (every item is tied): it is the baseline of rating prediction.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [2, 4, 5])
    >>> UserAverage().fit(train).score([1]).tolist()
    [[4.5, 4.5]]
    """

    @property
    def predicts_ratings(self) -> bool:
        """The scores are average ratings."""
        return True

    def _fit(self, train: Ratings) -> None:
        values = train.values.astype(np.float64)
        total = np.bincount(train.users, weights=values, minlength=train.n_users)
        self._averages: Any = total / train.user_counts
        self._mean = float(values.mean())
        self._n_items = train.n_items

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.repeat(self._averages[users][:, None], self._n_items, axis=1)

    def _score_newcomers(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full((len(users), self._n_items), self._mean)

"""The scale of ratings: its grades, the lowest relevant one, and play counts as ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cranfield import _checks as check
from cranfield._errors import InputError
from cranfield._record import Step
from cranfield.data.events import Merging
from cranfield.data.ratings import Ratings

# Steps between grades are rounded to a millionth: in single precision 0.3 − 0.2 is not 0.1.
_DIGITS = 6

LONGEST_SCALE = 10.0
"""The highest grade of a scale; ratings beyond it are counts."""

AUTO = "auto"
"""The threshold is chosen from the ratings; see `usual_threshold`."""

ANY = 1.0
"""The threshold that makes every positive rating relevant, as in trec_eval."""

_FIVE_STARS = (4.0, 5.0)
_STARS = 5  # the grades that play counts become
_HIGHEST_JUDGMENT = 3.0  # the highest grade of relevance judgments, whose lowest grade is 0 or below


@dataclass(frozen=True)
class RatingScale:
    """The lowest and the highest grade of some ratings, and the smallest step between two grades."""

    low: float
    high: float
    step: float = 1.0

    @classmethod
    def of(cls, *values: ArrayLike) -> RatingScale:
        """Return the scale of ratings, given in one or more arrays; a single grade has the step 1."""
        grades = np.unique(np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in values]))
        with np.errstate(over="ignore"):  # huge steps need no rounding
            steps = np.diff(grades)
            steps = np.where(steps < 1.0, np.round(steps, _DIGITS), steps)
        positive = steps[steps > 0]
        return cls(float(grades[0]), float(grades[-1]), float(positive.min()) if len(positive) else 1.0)

    @property
    def range(self) -> float:
        """The distance from the lowest to the highest grade."""
        return self.high - self.low

    @property
    def levels(self) -> Mapping[str, float]:
        """The lowest grade of each level of relevance: the whole scale, its upper half and its upper quarter.

        On a scale of 1 to 5 these are 1, 3 and 4, as in Aftab and Ramampiaro (2022), section V-D.
        """
        middle, upper = self.low + self.range / 2, self.low + 3 * self.range / 4
        return {"Low-High": self.low, "Medium-High": middle, "High": upper}

    @property
    def are_counts(self) -> bool:
        """Whether ratings go beyond 10, so that they are counts, such as plays, and not grades."""
        return self.high > LONGEST_SCALE


def usual_threshold(lowest: float, highest: float, least_event: float | None = None) -> float:
    """Return the lowest relevant rating on a scale from ``lowest`` to ``highest``.

    * 4 if the highest rating is from 4 to 5: the four or five stars out of five that the literature takes as liked.
    * 1 if no rating is above 1, as for clicks or for likes and dislikes: every 1 is relevant.
    * 1 if ratings go from 0 or below up to 3 at most: these are relevance judgments, of which 0 is not relevant, and
      every higher grade is, as in trec_eval.
    * 1 if ratings go beyond 10: these are counts, such as plays, and every one is relevant. A scale of points, such as
      0 to 100, needs an explicit threshold.
    * On other scales up to 10, the lowest whole rating in the upper quarter, ⌈l + 3/4 (h − l)⌉, with h the highest and
      l the lowest rating, or 1 if that is higher: 3 of 3, 8 of 10, 5 on a scale from −10 to 10. So most of a scale is
      not relevant, whatever its length.

    Counts of events are not a rating scale: an item is relevant from the smallest event on, ``least_event``.

    The threshold follows from the ratings alone, not from the kind of file or object that holds them.

    Examples
    --------
    >>> usual_threshold(1, 5), usual_threshold(0.5, 5), usual_threshold(1, 3), usual_threshold(1, 10)
    (4.0, 4.0, 3.0, 8.0)
    >>> usual_threshold(1, 1), usual_threshold(0, 1), usual_threshold(0, 3), usual_threshold(1, 25000)
    (1.0, 1.0, 1.0, 1.0)
    """
    if least_event:
        return least_event
    are_judgments = lowest <= 0 and highest <= _HIGHEST_JUDGMENT
    if highest <= 1 or highest > LONGEST_SCALE or are_judgments:
        return ANY
    if _FIVE_STARS[0] <= highest <= _FIVE_STARS[1]:
        return _FIVE_STARS[0]
    bottom = min(lowest, 1.0)
    return min(float(math.ceil(bottom + 0.75 * (highest - bottom))), highest)


@dataclass(frozen=True, eq=False)
class Relevance:
    """What makes an item relevant, decided once for all users, systems and engines."""

    threshold: float  # the lowest relevant rating
    grades: NDArray[np.float64]  # the distinct test ratings that are judgments, after repeated ones were merged
    scale: RatingScale  # of these and of the training ratings

    @classmethod
    def of(cls, test: Any, threshold: Any = AUTO, train: Ratings | None = None, *, negative: bool = True) -> Relevance:
        """Decide what is relevant: ``auto`` chooses a threshold for the scale, and None means 1, as in trec_eval.

        ``test`` is `Ratings` or a table of test ratings, which knows its ``grades`` after repeated ratings were merged.
        The scale is that of the test and training ratings together, if both are given: a small test set may lack the
        ends of the scale. ``negative``: whether test ratings below 0 are judgments; the threshold follows from all.
        """
        grades = np.asarray(test.grades, dtype=np.float64)
        if isinstance(threshold, str) and threshold == AUTO:
            scale = _scale(grades, train)
            events = getattr(test, "events", None) or (None if train is None else train.events)
            lowest = usual_threshold(scale.low, scale.high, None if events is None else events.least)
        else:
            lowest = ANY if threshold is None else check.number("threshold", threshold)
        grades = grades if negative else grades[grades >= 0]
        return cls(lowest, grades, _scale(grades, train))


def _scale(grades: NDArray[np.float64], train: Ratings | None) -> RatingScale:
    known = [grades, *([train.grades] if isinstance(train, Ratings) else [])]
    return RatingScale.of(*known) if any(map(len, known)) else RatingScale(ANY, ANY)


def auto_or_number(name: str, value: Any) -> float | str | None:
    """Return a threshold in standard form: ``auto``, a number, or None, which means 1."""
    return AUTO if isinstance(value, str) and value == AUTO else check.number_or_none(name, value)


def counts_to_ratings(ratings: Ratings) -> Ratings:
    """Return play counts as ratings from 1 to 5, by the fifth of the user's plays in which an item starts.

    For each user the items are sorted by descending count c. The rating of an item depends on the share of the user's
    plays that went to items played more often:

        r(u, i) = 5 − ⌊5 · Σ_{j : c(u,j) > c(u,i)} c(u, j) / Σ_j c(u, j)⌋

    so that items within the first 20 % of the plays get 5, up to 40 % get 4, and those in the last 20 % get 1. Items
    with equal counts get the same, better rating, and a user's most played item always gets 5. An item with a count of
    0 gets 1 (unless all counts of the user are 0: then it gets 5).

    References
    ----------
    Ò. Celma and P. Herrera, "A new approach to evaluating novel recommendations", RecSys 2008.

    Examples
    --------
    >>> plays = Ratings.of(["ann"] * 4, ["a", "b", "c", "d"], [50, 30, 15, 5])
    >>> counts_to_ratings(plays).frame()["rating"].to_list()
    [5.0, 3.0, 1.0, 1.0]
    """
    step, events = Step("counts_to_ratings", {"grades": _STARS}), ratings.events
    if events is not None:  # the parts of a split have counts of their own
        events = replace(events, merging=Merging("to_ratings", "to_ratings"))
    return replace(ratings, values=grades_of_counts(ratings), events=events, history=(*ratings.history, step))


def grades_of_counts(ratings: Ratings) -> NDArray[np.float32]:
    """Return the ratings that `counts_to_ratings` makes of counts."""
    counts = ratings.values.astype(np.float64)
    if (counts < 0).any():
        place = int(np.argmax(counts < 0))
        user, item = ratings.user_ids.ids(ratings.users[[place]])[0], ratings.item_ids.ids(ratings.items[[place]])[0]
        raise InputError(
            f"a play count of {counts[place]:g} is negative (user {user!r}, item {item!r})",
            remedy="leave such rows out, or keep the numbers as they are with counts='keep'",
        )
    users = ratings.users
    order = np.lexsort((-counts, users))
    sorted_counts = counts[order]
    # Whole numbers add up exactly below 2^53, so the running sum over all users is exact.
    plays_before = np.concatenate(([0.0], np.cumsum(sorted_counts)))
    total = np.diff(plays_before[ratings.indptr])
    leader = np.ones(len(order), dtype=np.bool_)
    leader[1:] = (sorted_counts[1:] != sorted_counts[:-1]) | (np.diff(users) != 0)
    tie_start = np.maximum.accumulate(np.where(leader, np.arange(len(order)), 0))
    before = plays_before[tie_start] - plays_before[ratings.indptr[users]]
    fifth = np.floor_divide(_STARS * before, np.maximum(total, np.finfo(float).tiny)[users])
    grades = np.empty(len(order), dtype=np.float32)
    grades[order] = _STARS - np.clip(fifth, 0, _STARS - 1)
    return grades

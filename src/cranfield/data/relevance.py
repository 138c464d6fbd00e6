"""What the ratings decide about a measurement: the lowest relevant rating and the rating scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield.data.ratings import Ratings
from cranfield.data.scale import LONGEST_SCALE, RatingScale

AUTO = "auto"
"""The threshold is chosen from the ratings; see `usual_threshold`."""

ANY = 1.0
"""The threshold that makes every positive rating relevant, as in trec_eval."""

_FIVE_STARS = (4.0, 5.0)
# The highest grade of relevance judgments, whose lowest grade is 0 or below.
_HIGHEST_JUDGMENT = 3.0


def usual_threshold(lowest: float, highest: float) -> float:
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

    The threshold follows from the ratings alone, not from the kind of file or object that holds them.

    Examples
    --------
    >>> usual_threshold(1, 5), usual_threshold(0.5, 5), usual_threshold(1, 3), usual_threshold(1, 10)
    (4.0, 4.0, 3.0, 8.0)
    >>> usual_threshold(1, 1), usual_threshold(0, 1), usual_threshold(0, 3), usual_threshold(1, 25000)
    (1.0, 1.0, 1.0, 1.0)
    """
    are_judgments = lowest <= 0 and highest <= _HIGHEST_JUDGMENT
    if highest <= 1 or highest > LONGEST_SCALE or are_judgments:
        return ANY
    if _FIVE_STARS[0] <= highest <= _FIVE_STARS[1]:
        return _FIVE_STARS[0]
    bottom = min(lowest, 1.0)
    return min(float(math.ceil(bottom + 0.75 * (highest - bottom))), highest)


class RatedTest(Protocol):
    """Test ratings, in memory or in a table."""

    @property
    def grades(self) -> NDArray[np.float64]:
        """The distinct ratings, ascending, after repeated ratings were merged."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """What makes an item relevant, decided once for all users, systems and engines.

    Parameters
    ----------
    threshold
        The lowest relevant rating.
    grades
        The distinct test ratings that are judgments, ascending, after repeated ratings were merged.
    scale
        The scale of these and of the training ratings.

    Examples
    --------
    >>> Relevance.of(Ratings.of(["ann", "bob"], ["x", "y"], [2, 5])).threshold
    4.0
    >>> test, train = Ratings.of(["ann"], ["x"], [3]), Ratings.of(["ann", "bob"], ["y", "y"], [1, 5])
    >>> Relevance.of(test).threshold, Relevance.of(test, AUTO, train).threshold, Relevance.of(test, None).threshold
    (3.0, 4.0, 1.0)
    """

    threshold: float
    grades: NDArray[np.float64]
    scale: RatingScale

    @classmethod
    def of(
        cls, test: RatedTest, threshold: Any = AUTO, train: Ratings | None = None, *, negative: bool = True
    ) -> Relevance:
        """Decide what is relevant: ``auto`` chooses a threshold for the scale, and None means 1, as in trec_eval.

        The scale is that of the test and training ratings together, if both are given: a small test set may lack the
        ends of the scale. ``negative``: whether test ratings below 0 are judgments; the threshold follows from all.
        """
        grades = np.asarray(test.grades, dtype=np.float64)
        if isinstance(threshold, str) and threshold == AUTO:
            scale = _scale(grades, train)
            lowest = usual_threshold(scale.low, scale.high)
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

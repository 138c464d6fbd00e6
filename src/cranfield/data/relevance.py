"""The lowest rating that makes an item relevant if none is given: the threshold ``auto``."""

from __future__ import annotations

import math
from typing import Any

from cranfield import _checks as check
from cranfield.data.ratings import Ratings
from cranfield.data.scale import LONGEST_SCALE

AUTO = "auto"
"""The threshold is chosen from the ratings; see `usual_threshold`."""

ANY = 1.0
"""The threshold that makes every positive rating relevant, as in trec_eval."""

_FIVE_STARS = (4.0, 5.0)


def usual_threshold(lowest: float, highest: float) -> float:
    """Return the lowest relevant rating on a scale from ``lowest`` to ``highest``.

    * 4 if the highest rating is from 4 to 5: the four or five stars out of five that the literature takes as liked.
    * On other scales up to 10, the lowest whole rating in the upper quarter, ⌈l + 3/4 (h − l)⌉, with h the highest and
      l the lowest rating, or 1 if that is higher: 3 of 3, 8 of 10, 5 on a scale from −10 to 10. So most of a scale is
      not relevant, whatever its length.
    * 1 if no rating is above 1, as for clicks or for likes and dislikes: every 1 is relevant.
    * 1 if ratings go beyond 10: these are counts, such as plays, and every one is relevant. A scale of points, such as
      0 to 100, needs an explicit threshold.

    Examples
    --------
    >>> usual_threshold(1, 5), usual_threshold(0.5, 5), usual_threshold(1, 3), usual_threshold(1, 10)
    (4.0, 4.0, 3.0, 8.0)
    >>> usual_threshold(1, 1), usual_threshold(0, 1), usual_threshold(1, 25000)
    (1.0, 1.0, 1.0)
    """
    if highest <= 1 or highest > LONGEST_SCALE:
        return ANY
    if _FIVE_STARS[0] <= highest <= _FIVE_STARS[1]:
        return _FIVE_STARS[0]
    bottom = min(lowest, 1.0)
    return min(float(math.ceil(bottom + 0.75 * (highest - bottom))), highest)


def threshold_of(test: Ratings, train: Ratings | None = None) -> float:
    """Return the lowest relevant rating of a test set; 1 for relevance judgments (TREC qrels), as in trec_eval.

    The scale is that of the test and training ratings together, if both are given: a small test set may lack the ends
    of the scale. An experiment has both.

    Examples
    --------
    >>> threshold_of(Ratings.of(["ann", "bob"], ["x", "y"], [2, 5])), threshold_of(Ratings.of(["ann"], ["x"]))
    (4.0, 1.0)
    >>> test, train = Ratings.of(["ann"], ["x"], [3]), Ratings.of(["ann", "bob"], ["y", "y"], [1, 5])
    >>> threshold_of(test), threshold_of(test, train)
    (3.0, 4.0)
    """
    judgments = bool(test.history) and test.history[-1].settings.get("format") == "qrels"
    if judgments or len(test) == 0:
        return ANY
    return threshold_on_scale(float(test.values.min()), float(test.values.max()), AUTO, train)


def threshold_on_scale(lowest: float, highest: float, threshold: Any, train: Ratings | None = None) -> float:
    """Return a threshold as a number, for test ratings from ``lowest`` to ``highest``.

    Examples
    --------
    >>> threshold_on_scale(1, 5, AUTO), threshold_on_scale(1, 5, 3), threshold_on_scale(1, 5, None)
    (4.0, 3.0, 1.0)
    """
    if threshold != AUTO:
        return ANY if threshold is None else check.number("threshold", threshold)
    if isinstance(train, Ratings) and len(train):
        lowest, highest = min(lowest, float(train.values.min())), max(highest, float(train.values.max()))
    return usual_threshold(lowest, highest)


def threshold_on(test: Ratings, threshold: Any, train: Ratings | None = None) -> float:
    """Return a threshold as a number: the value of ``auto`` for these ratings, 1 for None, or the given number."""
    if threshold == AUTO:
        return threshold_of(test, train)
    return ANY if threshold is None else check.number("threshold", threshold)


def auto_or_number(name: str, value: Any) -> float | str | None:
    """Return a threshold in standard form: ``auto``, a number, or None, which means 1."""
    return AUTO if isinstance(value, str) and value == AUTO else check.number_or_none(name, value)

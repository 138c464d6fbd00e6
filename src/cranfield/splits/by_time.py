"""The temporal split: one moment, before which everything is training and after which everything is test."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._rounding import nearest_count
from cranfield.data import Ratings
from cranfield.data.moment import day, seconds
from cranfield.splits._parts import TEST, TRAIN, VALIDATION, divide, some, timed, validation_share
from cranfield.splits.methods import registry
from cranfield.splits.split import Split


@registry.register
def temporal(ratings: Ratings, *, train: float | None = None, at: Any = None, validation: float | None = None) -> Split:
    """Take what was rated before a moment as training, and what was rated from that moment on as test.

    Parameters
    ----------
    ratings
        What to split; it must have times.
    train
        The share of the ratings to train with, the oldest: the moment is the time of the rating that many places
        along, n·train rounded to the nearest, in the order of time. Ratings of the same second are not separated, so
        training may be a little smaller than asked for. 0.8 if neither ``train`` nor ``at`` is given.
    at
        The moment itself: a date, a datetime, an ISO text (``"2001-12-31"``, in UTC unless it names a zone) or seconds
        since 1970.
    validation
        The share of the training ratings to set aside, the newest, cut in the same way; it does not change the test
        part.

    Notes
    -----
    For a temporal split within each user, see ``per_user(which="last")``.

    Examples
    --------
    >>> ratings = Ratings.of(range(4), range(4), times=[0, 86_400, 86_400, 200_000])
    >>> temporal(ratings, at="1970-01-03")
    Split(temporal: train 3, test 1)
    >>> temporal(ratings, train=0.5)
    Split(temporal: train 1, test 3)
    """
    some(ratings)
    if train is not None and at is not None:
        raise SettingError("temporal takes train or at, not both; the moment decides the share")
    times = timed(ratings, "temporal")
    share = validation_share(validation)
    train_share = None if at is not None else check.share("train", 0.8 if train is None else train)
    cut = seconds("at", at) if train_share is None else _cut(times, train_share)
    newest = times.max()
    if not times.min() < cut <= newest:
        raise ImpossibleSplitError(
            f"a cut at {day(cut)} leaves one part empty: the {len(times):,} ratings of "
            f"{np.count_nonzero(ratings.user_counts):,} users span {day(times.min())} to {day(newest)}; "
            "choose another moment or share"
        )
    parts = np.where(times < cut, TRAIN, TEST)
    effect = {"cut": day(cut)}
    if validation is not None:
        inner = _cut(times[parts == TRAIN], 1 - share)
        parts[(times >= inner) & (times < cut)] = VALIDATION
        effect["validation_cut"] = day(inner)
    settings = {"train": train_share, "at": None if at is None else day(cut), "validation": validation}
    return divide(ratings, parts, "temporal", settings, effect=effect)


def _cut(times: NDArray[np.int64], share: float) -> int:
    """Return the moment before which the share of the ratings lies, or less where several are of that moment."""
    place = min(int(nearest_count(share, len(times))), len(times) - 1)
    return int(np.partition(times, place)[place])

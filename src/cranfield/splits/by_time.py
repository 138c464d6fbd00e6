"""The temporal split: everything before one moment is training, and everything from it on is test."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text, nearest_count
from cranfield.data import Ratings
from cranfield.splits._after_cut import AfterCut
from cranfield.splits._parts import TEST, TRAIN, UNUSED, VALIDATION, divide, some, timed, validation_share
from cranfield.splits.methods import registry
from cranfield.splits.split import Split
from cranfield.tables import day, seconds

MOST_USERS = "most_users"
"""The cut at which the most users have ratings on both sides."""


@registry.register
def temporal(
    ratings: Ratings,
    *,
    train: float | None = None,
    at: Any = None,
    target: Any = "all",
    new_users: str = "keep",
    new_items: str = "keep",
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Train on the ratings before a moment, and test on the ratings from that moment on.

    Parameters
    ----------
    ratings
        The ratings to split; they must have times.
    train
        The share of the ratings to train with, the oldest: in the order of time, the moment is the time of the rating
        at position n·train, rounded to the nearest. Ratings in the same second are not separated, so training may be
        slightly smaller than requested. 0.8 if neither ``train`` nor ``at`` is given.
    at
        The moment itself: a date, a datetime, an ISO text (``"2001-12-31"``, in UTC unless it names a zone) or seconds
        since 1970. ``"most_users"``: the moment at which most users have ratings both before it and from it on; if
        there are several such moments, the last.
    target
        Which of a user's ratings from the moment on are test ratings: ``"all"``, the ``"first"``, the ``"last"``, a
        ``"random"`` one, or a number for that many next ones (all, if a user has fewer). The others are in no part.
    new_users, new_items
        What to do with users, and with items, that have no rating before the moment: ``"keep"`` them in the test part,
        ``"drop"`` their ratings before the target is chosen, or keep them and count them ``"apart"`` (an experiment
        then shows the segments ``cold_users`` and ``cold_items``).
    seed
        Seed of the random target; for the first, last or next ones, of the order of ratings in the same second.
    validation
        The share of the training ratings to set aside, the newest. They are cut in the same way, with the same target
        and rule for new users and items; this does not change the test part.

    Notes
    -----
    For a temporal split within each user, see ``per_user(which="last")``; for several cuts, see `rolling`.

    Examples
    --------
    >>> ratings = Ratings.of(range(4), range(4), times=[0, 86_400, 86_400, 200_000])
    >>> temporal(ratings, at="1970-01-03")
    Split(temporal: train 3, test 1)
    >>> temporal(ratings, train=0.5)
    Split(temporal: train 1, test 3)
    >>> ratings = Ratings.of(["a", "a", "a", "b", "b"], [1, 2, 3, 1, 2], times=[0, 20, 30, 10, 20])
    >>> temporal(ratings, at="most_users", target="first").test.frame().select("user", "item").rows()
    [('a', 2), ('b', 2)]
    """
    some(ratings)
    if train is not None and at is not None:
        raise SettingError("temporal takes train or at, not both; the moment decides the share")
    times = timed(ratings, "temporal")
    share = validation_share(validation)
    rule = AfterCut.checked(target, new_users, new_items, seed)
    train_share = None if at is not None else check.share("train", 0.8 if train is None else train)
    cut = _moment(ratings, times, at) if train_share is None else _cut(times, train_share)
    newest = times.max()
    if not times.min() < cut <= newest:
        raise ImpossibleSplitError(
            f"a cut at {day(cut)} leaves one part empty: the {count_text(len(times), 'rating')} of "
            f"{count_text(int(np.count_nonzero(ratings.user_counts)), 'user')} span {day(times.min())} to "
            f"{day(newest)}; choose another moment or share"
        )
    before = times < cut
    chosen = rule.choose(ratings, before, ~before, cut)
    parts = np.where(before, TRAIN, UNUSED)
    parts[chosen.test] = TEST
    effect: dict[str, Any] = {"cut": day(cut)}
    notes = list(chosen.notes())
    if validation is not None:
        inner_effect, inner_notes = set_newest_aside(parts, ratings, before, share, rule)
        effect |= inner_effect
        notes += inner_notes
    stated = at if train_share is not None or at == MOST_USERS else day(cut)
    settings = {"train": train_share, "at": stated, **rule.settings(), "validation": validation}
    effect |= chosen.effect()
    del chosen, before  # free the masks, which are as long as the ratings
    return divide(ratings, parts, "temporal", settings, effect=effect, notes=notes)


def _moment(ratings: Ratings, times: NDArray[np.int64], at: Any) -> int:
    return _most_users(ratings, times) if isinstance(at, str) and at == MOST_USERS else seconds("at", at)


def _most_users(ratings: Ratings, times: NDArray[np.int64]) -> int:
    """Return the last moment at which most users have ratings both before it and from it on."""
    starts = ratings.indptr[:-1][ratings.user_counts > 0]
    oldest, newest = np.sort(np.minimum.reduceat(times, starts)), np.sort(np.maximum.reduceat(times, starts))
    # The number only falls just after some user's last rating, so the maximum is at one of these moments.
    moments = np.unique(newest)
    both = np.searchsorted(oldest, moments) - np.searchsorted(newest, moments)
    if not both.any():
        raise ImpossibleSplitError(
            f"at=most_users: each of the {count_text(len(starts), 'user')} rated at one moment only, so no cut has "
            "ratings of a user on both sides; choose a date, or a random split"
        )
    return int(moments[np.flatnonzero(both == both.max())[-1]])


def set_newest_aside(
    parts: NDArray[np.uint8], ratings: Ratings, before: NDArray[np.bool_], share: float, rule: AfterCut
) -> tuple[dict[str, Any], list[str]]:
    """Move the newest ``share`` of the ratings ``before`` a cut to the validation part, by the rule of the test part.

    Returns the effect for the record, and the sentence that a reader should see.
    """
    times = timed(ratings, "temporal")
    cut = _cut(times[before], 1 - share)
    oldest = before & (times < cut)
    if not oldest.any():
        parts[before] = VALIDATION  # leaves no training rating, which is refused
        return {}, []
    newest = before & ~oldest
    validation = rule.choose(ratings, oldest, newest, cut).test
    parts[newest] = UNUSED
    parts[validation] = VALIDATION
    unused = int(np.count_nonzero(newest & ~validation))
    effect: dict[str, Any] = {"validation_cut": day(cut), **({"validation_unused": unused} if unused else {})}
    note = f"validation part: {rule.wanted} from {day(cut)} on; {count_text(unused, 'other rating')} in no part"
    return effect, [note] if unused else []


def _cut(times: NDArray[np.int64], share: float) -> int:
    """Return the moment before which that share of the ratings is, or less if several ratings are at that moment."""
    place = min(int(nearest_count(share, len(times))), len(times) - 1)
    return int(np.partition(times, place)[place])

"""Splits within each user's profile: by ratio, or l ratings left out; at random, or the last in time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._numbers import count_text, nearest_count
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits._parts import TEST, along, divide, some, timed, validation_share
from cranfield.splits._places import places
from cranfield.splits.methods import registry
from cranfield.splits.split import Split

_WHICH = ("random", "last")


@registry.register
def per_user(
    ratings: Ratings, *, train: float = 0.8, which: str = "random", seed: int = 0, validation: float | None = None
) -> Split:
    """Send a share of each user's ratings to training, and the rest to test.

    Parameters
    ----------
    ratings
        The ratings to split.
    train
        The share of each profile that goes to training, rounded to the nearest number of ratings (halves to
        training). A short profile may therefore have no test rating; the notes say how many users.
    which
        The test ratings of each user: ``"random"`` ones, or their ``"last"`` in time (a temporal split within each
        user).
    seed
        Seed of the draw; with ``"last"``, of which ratings in the same second come last.
    validation
        The share of each user's training ratings to set aside, at random or the last of them; it does not change the
        test part.

    Notes
    -----
    A coin toss for each rating is the same within each user as overall: see `random`.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 5 + [2] * 10, [*range(5), *range(10)], times=range(15))
    >>> split = per_user(ratings, train=0.8, which="last")
    >>> split.test.frame().select("user", "item").rows()
    [(1, 4), (2, 8), (2, 9)]
    """
    some(ratings)
    train, share = check.share("train", train), validation_share(validation)
    size = ratings.user_counts
    learn = nearest_count(train, size)
    settings = {"train": train, "which": which, "seed": seed, "validation": validation}
    return _cut(ratings, "per_user", size - learn, nearest_count(share, learn), settings)


@registry.register
def leave_out(
    ratings: Ratings,
    *,
    l: int = 1,  # noqa: E741  the papers' ℓ
    which: str = "random",
    short: str = "error",
    seed: int = 0,
    validation: int | None = None,
) -> Split:
    """Leave ``l`` ratings of each user out of training and test on them (leave-ℓ-out).

    Parameters
    ----------
    ratings
        The ratings to split.
    l
        Number of test ratings per user.
    which
        ``"random"`` ones, or the user's ``"last"`` in time.
    short
        What to do with users who have fewer than ``l`` ratings (or ``l`` and ``validation`` together): ``"error"``,
        or keep all their ratings in ``"train"``. Users with just enough have no training rating, and count as cold.
    seed
        Seed of the draw; with ``"last"``, of which ratings in the same second come last.
    validation
        Number of further ratings per user to set aside; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 1, 2, 2], ["a", "b", "c", "a", "c"], times=[3, 1, 2, 1, 2])
    >>> leave_out(ratings, l=1, which="last").test.frame().select("user", "item").rows()
    [(1, 'a'), (2, 'c')]
    """
    some(ratings)
    l = check.whole("l", l)  # noqa: E741
    validation = None if validation is None else check.whole("validation", validation)
    aside = validation or 0
    check.one_of("short", short, ("error", "train"))
    size = ratings.user_counts
    enough = size >= l + aside
    too_short = int(np.count_nonzero(~enough & (size > 0)))
    if too_short and short == "error":
        raise ImpossibleSplitError(
            f"{too_short:,} of {np.count_nonzero(size):,} users have fewer than the {l + aside} ratings to leave out; "
            f"filter with min_ratings(user={l + aside + 1}), choose a smaller l, or keep them with short=train"
        )
    notes = (
        [f"{count_text(too_short, 'user')} with fewer than {l + aside} ratings: all in training"] if too_short else []
    )
    settings = {"l": l, "which": which, "short": short, "seed": seed, "validation": validation}
    return _cut(ratings, "leave_out", np.where(enough, l, 0), np.where(enough, aside, 0), settings, notes)


def _cut(
    ratings: Ratings,
    method: str,
    test: NDArray[np.int64],
    validation: NDArray[np.int64],
    settings: dict[str, Any],
    notes: list[str] | None = None,
) -> Split:
    """Take the last ``test`` ratings of each profile, in random or temporal order, and ``validation`` before them."""
    which = check.one_of("which", settings["which"], _WHICH)
    times = timed(ratings, f"{method}(which=last)") if which == "last" else None
    generator = stream(check.whole("seed", settings["seed"], at_least=0), "split", method, which)
    size = ratings.user_counts
    parts = along(places(ratings.indptr, generator, times), size, test, validation)
    untested = int(np.count_nonzero((size > 0) & (test == 0)))
    notes = list(notes or ())
    if untested and method == "per_user":
        notes.append(f"{count_text(untested, 'user')} with too few ratings for a test rating at this ratio")
    effect: dict[str, Any] = {"users_without_test": untested}
    if times is not None:
        effect["users_tied_at_cut"] = _tied(ratings, times, parts == TEST)
        if effect["users_tied_at_cut"]:
            notes.append(
                f"for {count_text(effect['users_tied_at_cut'], 'user')} the cut falls among ratings of the same "
                "second; which of these are test ratings was drawn at random"
            )
    return divide(ratings, parts, method, settings, effect=effect, notes=notes)


def _tied(ratings: Ratings, times: NDArray[np.int64], test: NDArray[np.bool_]) -> int:
    """Count the users whose oldest test rating is in the same second as their newest other rating."""
    extreme = np.iinfo(np.int64)
    some_rating = ratings.user_counts > 0
    starts = ratings.indptr[:-1][some_rating]
    oldest = np.minimum.reduceat(np.where(test, times, extreme.max), starts)
    newest = np.maximum.reduceat(np.where(test, extreme.min, times), starts)
    return int(np.count_nonzero(oldest == newest))

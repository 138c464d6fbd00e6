"""Splits of single ratings: of all of them, within each user's profile, or into folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._numbers import nearest_count
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.parts import TEST, TRAIN, Division, Mask, Units, along, by_profile, places, validation_share
from cranfield.splits.split import Split, Splits, registry


@registry.register
def random(
    ratings: Ratings,
    *,
    train: float = 0.8,
    test: float | None = None,
    exact: bool = False,
    unit: str | None = None,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Send each rating to training with probability ``train``, to test otherwise.

    Parameters
    ----------
    train, test
        The split ratio: the share of training, or that of the test part, ``1 - train``.
    exact
        False: a coin is tossed for each rating, so the ratio holds in expectation, overall and within each user and
        item. True: exactly that share of the ratings, rounded to the nearest number (halves to training), drawn
        regardless of users; `per_user` does the same within each user.
    unit
        What is never divided if pairs repeat: by default the ``"pair"`` of user and item, so that the parts have none
        in common; or ``"event"`` or ``"basket"``.
    seed
        Seed of the draw.
    validation
        The share of the training ratings to set aside, drawn in the same way; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10 + [2] * 10, list(range(10)) * 2)
    >>> random(ratings, train=0.75, exact=True, seed=7)
    Split(random: train 15, test 5)
    >>> random(ratings, test=0.25, exact=True, seed=7)
    Split(random: train 15, test 5)
    """
    if test is not None:
        train = round(1 - check.share("test", test), 12)
    settings = {"train": check.share("train", train), "exact": check.flag("exact", exact)}
    division = Division(ratings, "random", {**settings, "seed": seed, "validation": validation, "unit": unit})
    if not exact:
        return division.split(division.coins())
    size = division.units.indptr[-1:]
    learn = nearest_count(train, size)
    place = places(np.append(0, size), division.stream())
    parts = along(place, size, size - learn, nearest_count(division.validation, learn))
    return division.split(division.units.of_rows(parts))


@registry.register
def per_user(
    ratings: Ratings,
    *,
    train: float = 0.8,
    which: str = "random",
    unit: str | None = None,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Send a share of each user's ratings to training, and the rest to test.

    Parameters
    ----------
    train
        The share of each profile that goes to training, rounded to the nearest number of ratings (halves to
        training). A short profile may therefore have no test rating; the notes say how many users.
    which
        The test ratings of each user: ``"random"`` ones, or their ``"last"`` in time (a temporal split within each
        user).
    unit
        What is counted and never divided if pairs repeat: the ``"pair"`` of user and item (for random ones), the
        ``"event"`` or the ``"basket"`` (for the last).
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
    settings = {"train": check.share("train", train), "which": which, "seed": seed, "validation": validation}
    division = _of_users(ratings, "per_user", settings, unit)
    size = division.units.counts
    learn = nearest_count(train, size)
    test = size - learn
    untested = int(np.count_nonzero((size > 0) & (test == 0)))
    notes = [facts.ShortProfiles(untested, "untested")] if untested else []
    return _cut(division, test, nearest_count(division.validation, learn), notes)


@registry.register
def leave_out(
    ratings: Ratings,
    *,
    l: int = 1,  # noqa: E741  the papers' ℓ
    which: str = "random",
    short: str = "error",
    unit: str | None = None,
    seed: int = 0,
    validation: int | None = None,
) -> Split:
    """Leave ``l`` ratings of each user out of training and test on them (leave-ℓ-out).

    Parameters
    ----------
    l
        Number of test ratings per user; of events or baskets, if that is the unit.
    which
        ``"random"`` ones, or the user's ``"last"`` in time.
    short
        What to do with users who have fewer than ``l`` ratings (or ``l`` and ``validation`` together): ``"error"``,
        or keep all their ratings in ``"train"``. Users with just enough have no training rating, and count as cold.
    unit, seed
        As for `per_user`.
    validation
        Number of further ratings per user to set aside; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 1, 2, 2], ["a", "b", "c", "a", "c"], times=[3, 1, 2, 1, 2])
    >>> leave_out(ratings, l=1, which="last").test.frame().select("user", "item").rows()
    [(1, 'a'), (2, 'c')]
    """
    l, aside = check.whole("l", l), 0 if validation is None else check.whole("validation", validation)  # noqa: E741
    check.one_of("short", short, ("error", "train"))
    settings = {"l": l, "which": which, "short": short, "seed": seed, "validation": validation}
    division = _of_users(ratings, "leave_out", settings, unit)
    size = division.units.counts
    # A basket alone has no history. A rating alone makes its user cold.
    in_baskets = division.unit in ("basket", "session")
    needed = l + aside + in_baskets
    enough = size >= needed
    too_short = int(np.count_nonzero(~enough & (size > 0)))
    if too_short and short == "error":
        what = "for training and to leave out" if in_baskets else "to leave out"
        filtered = "" if in_baskets else f"filter with min_ratings(user={needed + 1}), "
        raise ImpossibleSplitError(
            f"{too_short:,} of {np.count_nonzero(size):,} users have fewer than the {needed} {division.counted} "
            f"{what}; {filtered}choose a smaller l, or keep them with short=train"
        )
    notes = [facts.ShortProfiles(too_short, "training", needed)] if too_short else []
    return _cut(division, np.where(enough, l, 0), np.where(enough, aside, 0), notes)


def _of_users(ratings: Ratings, method: str, settings: dict[str, Any], unit: str | None) -> Division:
    """Return a division within each user, which keeps baskets, or single events, together if it goes by time."""
    return Division(ratings, method, {**settings, "unit": unit}, "basket" if settings["which"] == "last" else "pair")


def _cut(division: Division, test: NDArray[np.int64], validation: NDArray[np.int64], notes: Sequence[Fact]) -> Split:
    """Take the last ``test`` ratings of each profile, in random or temporal order, and ``validation`` before them."""
    units = division.units
    times = units.times if division.times_if_last() is not None else None
    place = places(units.indptr, division.stream(division.settings["which"]), times)
    parts = along(place, units.counts, test, validation)
    effect = {"users_without_test": int(np.count_nonzero((units.counts > 0) & (test == 0)))}
    if times is not None:
        tied = effect["users_tied_at_cut"] = _tied(units, times, parts == TEST)
        notes = [*notes, *([facts.TiedAtCut(tied)] if tied else [])]
    return division.split(units.of_rows(parts), effect, notes)


def _tied(units: Units, times: NDArray[np.int64], test: Mask) -> int:
    """Count the users whose oldest test rating is in the same second as their newest other rating."""
    extreme = np.iinfo(np.int64)
    oldest = by_profile(units, np.minimum, np.where(test, times, extreme.max))
    newest = by_profile(units, np.maximum, np.where(test, extreme.min, times))
    return int(np.count_nonzero(oldest == newest))


class Folds(Splits):
    """The splits of a cross-validation: ``fold_of`` is the fold in which each rating is a test rating."""

    def __init__(self, ratings: Ratings, fold_of: NDArray[Any], settings: dict[str, Any]) -> None:
        self.division, self.fold_of = Division(ratings, "k_fold", settings), fold_of
        fold_of.flags.writeable = False

    def __len__(self) -> int:
        return int(self.division.settings["k"])

    def __repr__(self) -> str:
        return f"Folds({len(self)} of {self.division.ratings!r})"

    def at(self, fold: int) -> Split:
        """Return the split of a fold."""
        parts = np.where(self.fold_of == fold, TEST, TRAIN)
        self.division.set_aside(parts, fold)
        return self.division.split(parts, fold=fold, folds=len(self))


@registry.register
def k_fold(
    ratings: Ratings, *, k: int = 5, per_user: bool = False, seed: int = 0, validation: float | None = None
) -> Folds:
    """Divide the ratings at random into ``k`` folds; each fold is the test part once, and the others are training.

    Parameters
    ----------
    k
        Number of folds. Their sizes differ by at most one rating.
    per_user
        Whether each user's ratings are also spread evenly: their numbers per fold differ by at most one.
    seed, validation
        As for `random`, in each fold.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10, range(10))
    >>> for split in k_fold(ratings, k=3, seed=7):
    ...     print(split)
    Split(k_fold: train 6, test 4, fold 1 of 3)
    Split(k_fold: train 7, test 3, fold 2 of 3)
    Split(k_fold: train 7, test 3, fold 3 of 3)
    """
    k, spread = check.whole("k", k, at_least=2), check.flag("per_user", per_user)
    validation_share(validation)
    settings = {"k": k, "per_user": spread, "seed": seed, "validation": validation}
    division = Division(ratings, "k_fold", settings)
    if k > len(ratings):
        raise ImpossibleSplitError(
            f"{len(ratings):,} ratings of {division.users} do not fill {k:,} folds; choose at most k={len(ratings)}"
        )
    segments = ratings.indptr if spread else np.array([0, len(ratings)], dtype=np.int64)
    place = places(segments, division.stream("per_user" if spread else "all"))
    # Each profile continues in the fold after the one where the previous profile ended, which keeps the folds even.
    place += np.repeat((segments[:-1] % k).astype(np.int32), np.diff(segments))
    place %= k
    return Folds(ratings, place.astype(np.min_scalar_type(k - 1)), settings)

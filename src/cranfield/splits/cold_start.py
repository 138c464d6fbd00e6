"""Splits that hold out whole users or whole items: cold start, and strong generalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text, nearest_count
from cranfield.data import Ratings
from cranfield.facts import split as facts
from cranfield.splits.parts import PROFILES, TEST, TRAIN, VALIDATION, Division, Mask, coins, item_places, places
from cranfield.splits.split import Split, registry


@registry.register
def cold_users(
    ratings: Ratings,
    *,
    users: float = 0.2,
    left: int = 0,
    which: str = "random",
    warm: float = 0.0,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Hold out a share of the users: their ratings are test ratings, except those that stay in training.

    Parameters
    ----------
    users
        The share of the users to hold out, rounded to the nearest number, drawn from those with more than ``left``
        ratings.
    left
        Number of ratings of each held-out user that stay in training: 0 for users who are unknown in training.
    which
        Which of their ratings are test ratings: ``"random"`` ones, or the ``"last"`` in time, so that the oldest stay.
    warm
        The probability of each rating of the other users to be a test rating too, so that warm and cold users can be
        compared (the segment ``cold_users``); 0 for none.
    seed
        Seed of the draw.
    validation
        The share of the other users to hold out for validation in the same way; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 4 + [2] * 4 + [3] * 4, [*"abcd"] * 3)
    >>> split = cold_users(ratings, users=0.34, left=1)
    >>> split, split.train.user_counts.tolist()
    (Split(cold_users: train 9, test 3), [4, 1, 4])
    """
    return _cold(ratings, "users", users, left=left, which=which, warm=warm, seed=seed, validation=validation)


@registry.register
def cold_items(
    ratings: Ratings,
    *,
    items: float = 0.2,
    left: int = 0,
    which: str = "random",
    warm: float = 0.0,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Hold out a share of the items: their ratings are test ratings, except those that stay in training.

    Parameters
    ----------
    items
        The share of the items to hold out, rounded to the nearest number, drawn from those with more than ``left``
        ratings.
    left, which, warm, seed, validation
        As for `cold_users`, with items in place of users; warm and cold items are the segment ``cold_items``.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 4 + [2] * 4 + [3] * 4, [*"abcd"] * 3)
    >>> split = cold_items(ratings, items=0.25)
    >>> split, split.train.item_counts.tolist()
    (Split(cold_items: train 9, test 3), [3, 3, 3, 0])
    """
    return _cold(ratings, "items", items, left=left, which=which, warm=warm, seed=seed, validation=validation)


def _cold(ratings: Ratings, kind: str, share: Any, **settings: Any) -> Split:
    """Hold out users or items; ``settings`` are those of both methods."""
    held_out = _HeldOut(ratings, f"cold_{kind}", kind, settings["left"], {kind: share, **settings})
    beyond = held_out.places() >= held_out.left
    held, aside = (
        np.repeat(chosen, ratings.user_counts) if kind == "users" else chosen[ratings.items]
        for chosen in held_out.draw()
    )
    parts = np.full(len(ratings), TRAIN)
    if settings["warm"] != 0:
        warm = check.share("warm", settings["warm"])
        parts = coins(len(ratings), 1 - warm, 0.0, held_out.division.stream("warm"))
    parts[aside & beyond & (parts == TRAIN)] = VALIDATION
    parts[held] = TRAIN
    parts[held & beyond] = TEST
    return held_out.split(parts)


@registry.register
def strong_generalisation(
    ratings: Ratings,
    *,
    users: float = 0.2,
    given: Any = 0.8,
    which: str = "random",
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Hold out a share of the users with all their ratings: one part of a profile is input, the other is test.

    Nothing is learned from the held-out users (strong generalisation; Marlin 2004, Liang et al. 2018). Their input is
    the part ``profiles`` of the split: a system that can score from a profile alone (`score_profiles`) makes their
    lists from it, and the items of the input are not recommended.

    Parameters
    ----------
    users
        The share of the users to hold out, rounded to the nearest number.
    given
        How much of each held-out profile is input: a share below 1, rounded to the nearest number with at least one
        rating on either side, or a number of ratings. Users are drawn from those who have more than that.
    which
        The test ratings of each held-out user: ``"random"`` ones, or their ``"last"`` in time.
    seed, validation
        As for `cold_users`.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 4 + [2] * 4 + [3] * 4, [*"abcd"] * 3)
    >>> strong_generalisation(ratings, users=0.34, given=0.5)
    Split(strong_generalisation: train 8, profiles 2, test 2)
    """
    share, given = _given(given)
    settings = {"users": users, "given": given, "which": which, "seed": seed, "validation": validation}
    held_out = _HeldOut(ratings, "strong_generalisation", "users", 1 if share else given, settings)
    held, aside = held_out.draw()
    size = ratings.user_counts
    inputs = np.clip(nearest_count(given, size), 1, np.maximum(size - 1, 1)) if share else np.full(len(size), given)
    is_input = held_out.places() < np.repeat(inputs.astype(np.int32), size)
    parts = np.repeat(np.where(held, TEST, np.where(aside, VALIDATION, TRAIN)), size)
    parts[(parts != TRAIN) & is_input] = PROFILES
    del is_input  # free it before the ratings are copied
    return held_out.split(parts)


def _given(given: Any) -> tuple[bool, Any]:
    """Return whether the input is a share of a profile, and the share or the number of ratings."""
    # 1.0 would be a whole profile, not one rating.
    for is_share, checked in ((True, check.share), (False, check.whole))[: 1 if isinstance(given, float) else 2]:
        try:
            return is_share, checked("given", given)
        except SettingError:
            continue
    raise SettingError(f"given={given!r} is neither a share below 1 nor a whole number of at least 1")


class _HeldOut:
    """Which users or items are held out: a share of them, drawn from those with more than ``left`` ratings."""

    def __init__(self, ratings: Ratings, method: str, kind: str, left: Any, settings: dict[str, Any]) -> None:
        share, self.left = check.share(kind, settings[kind]), check.whole("left", left, at_least=0)
        self.division, self.kind = Division(ratings, method, settings), kind
        self.counts = ratings.user_counts if kind == "users" else ratings.item_counts
        self.wanted = max(1, int(nearest_count(share, int(np.count_nonzero(self.counts)))))

    def places(self) -> NDArray[np.int32]:
        """Return each rating's position among those of its user or item, in random order or in that of time."""
        ratings, times = self.division.ratings, self.division.times_if_last()
        order = self.division.stream("order", self.division.settings["which"])
        return places(ratings.indptr, order, times) if self.kind == "users" else item_places(ratings, order, times)

    def draw(self) -> tuple[Mask, Mask]:
        """Return who is held out for the test part, and who for validation; one random key decides both."""
        counts, wanted = self.counts, self.wanted
        rated, enough = int(np.count_nonzero(counts)), np.flatnonzero(counts > self.left)
        others = int(nearest_count(self.division.validation, rated - wanted))
        if wanted + others > len(enough):
            raise ImpossibleSplitError(
                f"{self.division.method} cannot hold out {wanted + others:,} of {rated:,} {self.kind}: "
                f"{rated - len(enough):,} of them have {count_text(self.left, 'rating')} or fewer, which leaves none "
                "for the test part; filter with min_ratings, hold out a smaller share, or keep fewer of their ratings"
            )
        order = enough[np.argsort(self.division.stream("drawn").random(len(counts))[enough], kind="stable")]
        held, aside = np.zeros(len(counts), dtype=bool), np.zeros(len(counts), dtype=bool)
        held[order[:wanted]] = True
        aside[order[wanted : wanted + others]] = True
        return held, aside

    def split(self, parts: NDArray[np.uint8]) -> Split:
        too_short = int(np.count_nonzero((self.counts > 0) & (self.counts <= self.left)))
        effect = {f"held_out_{self.kind}": self.wanted, f"{self.kind}_too_short": too_short}
        note = facts.ShortProfiles(too_short, "not held out", self.left, self.kind[:-1])
        return self.division.split(parts, effect, [note] if too_short else [])

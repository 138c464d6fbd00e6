"""Splits that hold out whole users or whole items: cold start, and strong generalisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text, nearest_count
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits._parts import PROFILES, TEST, TRAIN, VALIDATION, coins, divide, some, timed, validation_share
from cranfield.splits._places import item_places, places
from cranfield.splits.methods import registry
from cranfield.splits.split import Split

_WHICH = ("random", "last")


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
    ratings
        The ratings to split.
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
    some(ratings)
    drawing = _Drawing.checked("cold_users", "users", users, left, seed)
    which = check.one_of("which", which, _WHICH)
    times = timed(ratings, "cold_users(which=last)") if which == "last" else None
    settings = {"users": users, "left": left, "which": which, "warm": warm, "seed": seed, "validation": validation}
    beyond = places(ratings.indptr, drawing.stream("order", which), times) >= drawing.left
    return _cold(
        ratings, drawing, ratings.user_counts, lambda chosen: np.repeat(chosen, ratings.user_counts), beyond, settings
    )


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
    ratings
        The ratings to split.
    items
        The share of the items to hold out, rounded to the nearest number, drawn from those with more than ``left``
        ratings.
    left
        Number of ratings of each held-out item that stay in training: 0 for items that are unknown in training.
    which
        Which of their ratings are test ratings: ``"random"`` ones, or the ``"last"`` in time, so that the oldest stay.
    warm
        The probability of each rating of the other items to be a test rating too, so that warm and cold items can be
        compared (the segment ``cold_items``); 0 for none.
    seed
        Seed of the draw.
    validation
        The share of the other items to hold out for validation in the same way; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 4 + [2] * 4 + [3] * 4, [*"abcd"] * 3)
    >>> split = cold_items(ratings, items=0.25)
    >>> split, split.train.item_counts.tolist()
    (Split(cold_items: train 9, test 3), [3, 3, 3, 0])
    """
    some(ratings)
    drawing = _Drawing.checked("cold_items", "items", items, left, seed)
    which = check.one_of("which", which, _WHICH)
    times = timed(ratings, "cold_items(which=last)") if which == "last" else None
    settings = {"items": items, "left": left, "which": which, "warm": warm, "seed": seed, "validation": validation}
    beyond = item_places(ratings, drawing.stream("order", which), times) >= drawing.left
    return _cold(ratings, drawing, ratings.item_counts, lambda chosen: chosen[ratings.items], beyond, settings)


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
    ratings
        The ratings to split.
    users
        The share of the users to hold out, rounded to the nearest number.
    given
        How much of each held-out profile is input: a share below 1, rounded to the nearest number with at least one
        rating on either side, or a number of ratings. Users are drawn from those who have more than that.
    which
        The test ratings of each held-out user: ``"random"`` ones, or their ``"last"`` in time.
    seed
        Seed of the draw.
    validation
        The share of the other users to hold out for validation in the same way; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 4 + [2] * 4 + [3] * 4, [*"abcd"] * 3)
    >>> strong_generalisation(ratings, users=0.34, given=0.5)
    Split(strong_generalisation: train 8, profiles 2, test 2)
    """
    some(ratings)
    share, given = _given(given)
    drawing = _Drawing.checked("strong_generalisation", "users", users, 1 if share else given, seed, at_least=1)
    which = check.one_of("which", which, _WHICH)
    times = timed(ratings, "strong_generalisation(which=last)") if which == "last" else None
    held, aside = drawing.draw(ratings.user_counts, validation_share(validation))
    size = ratings.user_counts
    inputs = np.clip(nearest_count(given, size), 1, np.maximum(size - 1, 1)) if share else np.full(len(size), given)
    place = places(ratings.indptr, drawing.stream("order", which), times)
    is_input = place < np.repeat(inputs.astype(np.int32), size)
    del place  # free it before the ratings are copied
    parts = np.repeat(np.where(held, TEST, np.where(aside, VALIDATION, TRAIN)), size)
    parts[(parts != TRAIN) & is_input] = PROFILES
    del is_input
    settings = {"users": users, "given": given, "which": which, "seed": seed, "validation": validation}
    effect, notes = drawing.effect(ratings.user_counts, held), drawing.notes(ratings.user_counts)
    return divide(ratings, parts, "strong_generalisation", settings, effect=effect, notes=notes)


def _given(given: Any) -> tuple[bool, Any]:
    """Return whether the input is a share of a profile, and the share or the number of ratings."""
    # 1.0 would be a whole profile, not one rating.
    for is_share, checked in ((True, check.share), (False, check.whole))[: 1 if isinstance(given, float) else 2]:
        try:
            return is_share, checked("given", given)
        except SettingError:
            continue
    raise SettingError(f"given={given!r} is neither a share below 1 nor a whole number of at least 1")


def _cold(
    ratings: Ratings,
    drawing: _Drawing,
    counts: NDArray[np.int64],
    spread: Callable[[NDArray[np.bool_]], NDArray[np.bool_]],
    beyond: NDArray[np.bool_],
    settings: dict[str, Any],
) -> Split:
    """Hold out users or items. ``spread`` gives each rating the value of its user or item; ``beyond`` are not kept."""
    held, aside = drawing.draw(counts, validation_share(settings["validation"]))
    warm = settings["warm"]
    parts = np.full(len(ratings), TRAIN)
    if warm != 0:
        parts = coins(len(ratings), 1 - check.share("warm", warm), 0.0, drawing.stream("warm"))
    parts[spread(aside) & beyond & (parts == TRAIN)] = VALIDATION
    cold = spread(held)
    parts[cold] = TRAIN
    parts[cold & beyond] = TEST
    effect, notes = drawing.effect(counts, held), drawing.notes(counts)
    return divide(ratings, parts, drawing.method, settings, effect=effect, notes=notes)


@dataclass(frozen=True)
class _Drawing:
    """Which users or items are held out: a share of them, drawn from those with more than ``left`` ratings."""

    method: str
    kind: str
    share: float
    left: int
    seed: int

    @classmethod
    def checked(cls, method: str, kind: str, share: Any, left: Any, seed: Any, at_least: int = 0) -> _Drawing:
        return cls(
            method,
            kind,
            check.share(kind, share),
            check.whole("left", left, at_least=at_least),
            check.whole("seed", seed, at_least=0),
        )

    def stream(self, *names: str) -> np.random.Generator:
        return stream(self.seed, "split", self.method, *names)

    def draw(self, counts: NDArray[np.int64], validation: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return who is held out for the test part, and who for validation; one random key decides both."""
        rated, enough = int(np.count_nonzero(counts)), np.flatnonzero(counts > self.left)
        wanted = max(1, int(nearest_count(self.share, rated)))
        others = int(nearest_count(validation, rated - wanted))
        if wanted + others > len(enough):
            raise ImpossibleSplitError(
                f"{self.method} cannot hold out {wanted + others:,} of {rated:,} {self.kind}: {rated - len(enough):,} "
                f"of them have {count_text(self.left, 'rating')} or fewer, which leaves none for the test part; filter "
                "with min_ratings, hold out a smaller share, or keep fewer of their ratings"
            )
        keys = self.stream("drawn").random(len(counts))[enough]
        order = enough[np.argsort(keys, kind="stable")]
        held, aside = np.zeros(len(counts), dtype=bool), np.zeros(len(counts), dtype=bool)
        held[order[:wanted]] = True
        aside[order[wanted : wanted + others]] = True
        return held, aside

    def effect(self, counts: NDArray[np.int64], held: NDArray[np.bool_]) -> dict[str, int]:
        return {f"held_out_{self.kind}": int(np.count_nonzero(held)), f"{self.kind}_too_short": self.too_short(counts)}

    def notes(self, counts: NDArray[np.int64]) -> list[str]:
        number = self.too_short(counts)
        if not number:
            return []
        return [
            f"{count_text(number, self.kind[:-1])} with {count_text(self.left, 'rating')} or fewer: not held out, "
            "because no test rating would be left"
        ]

    def too_short(self, counts: NDArray[np.int64]) -> int:
        return int(np.count_nonzero((counts > 0) & (counts <= self.left)))

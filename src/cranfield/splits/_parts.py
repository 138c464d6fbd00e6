"""From the part of each rating to a `Split`, with its notes for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield.data import Ratings, check_ratings
from cranfield.splits.split import Split

TRAIN, VALIDATION, TEST = np.uint8(0), np.uint8(1), np.uint8(2)
PROFILES = np.uint8(3)
"""The input of users whose ratings are all held out."""
UNUSED = np.uint8(255)
"""Ratings that are in no part."""

_BLOCK = 1 << 22


def some(ratings: Ratings) -> None:
    """Refuse empty ratings, and anything that is not ratings."""
    check_ratings(ratings)
    if len(ratings) == 0:
        raise ImpossibleSplitError("there are no ratings to split; read some, or filter less")


def timed(ratings: Ratings, method: str) -> NDArray[np.int64]:
    """Return the times, or say that a temporal split needs them."""
    if ratings.times is None:
        users = int(np.count_nonzero(ratings.user_counts))
        raise ImpossibleSplitError(
            f"{method} needs times, and the ratings of the {count_text(users, 'user')} have none; "
            "name the column of times when reading them, or choose a random split"
        )
    return ratings.times


def validation_share(validation: float | None) -> float:
    """Return the share of the training ratings to set aside, or 0 for None."""
    return 0.0 if validation is None else check.share("validation", validation)


def coins(
    count: int, train: float, validation: float, generator: np.random.Generator, parts: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Toss a coin for each rating: training with probability ``train``, of which a share goes to validation.

    One uniform number decides both, so a validation part does not change the test part. Ratings that are in the test
    part according to ``parts`` (if given) stay there.
    """
    drawn = np.full(count, TRAIN) if parts is None else parts
    for start in range(0, count, _BLOCK):
        block = drawn[start : start + _BLOCK]
        keys = generator.random(len(block))
        block[(keys >= train * (1 - validation)) & (block == TRAIN)] = VALIDATION
        block[keys >= train] = TEST
    return drawn


def along(
    place: NDArray[np.int32], size: NDArray[np.int64], test: NDArray[np.int64], validation: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Cut each segment along its order: training first, then validation, then test.

    Parameters
    ----------
    place
        The position of each rating in its segment.
    size, test, validation
        The number of ratings of each segment, and how many of them go to each part.
    """
    parts = np.full(len(place), TRAIN)
    start = size - test
    parts[place >= np.repeat((start - validation).astype(np.int32), size)] = VALIDATION
    parts[place >= np.repeat(start.astype(np.int32), size)] = TEST
    return parts


def divide(
    ratings: Ratings,
    parts: NDArray[np.uint8],
    method: str,
    settings: Mapping[str, Any],
    *,
    effect: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    **fields: Any,
) -> Split:
    """Make the `Split` from ratings and the part of each, with its effect and its notes."""
    middle = ratings.keep(parts == VALIDATION) if settings.get("validation") is not None else None
    given = parts == PROFILES
    if given.any():
        fields["profiles"] = ratings.keep(given)
    return describe(
        ratings.keep(parts == TRAIN),
        ratings.keep(parts == TEST),
        middle,
        Step(f"split.{method}", settings, effect or {}, tuple(notes)),
        **fields,
    )


def describe(
    train: Ratings,
    test: Ratings,
    validation: Ratings | None,
    step: Step,
    *,
    profiles: Ratings | None = None,
    **fields: Any,
) -> Split:
    """Make a `Split` from its parts; its step gets the sizes, cold users and items, and leakage in time."""
    named = {"training": train, "test": test} | ({} if validation is None else {"validation": validation})
    for name, part in named.items():
        if len(part) == 0:
            total = sum(len(ratings) for ratings in named.values())
            users = np.count_nonzero(sum(ratings.user_counts for ratings in named.values()))
            spelled = ", ".join(f"{key}={value}" for key, value in step.settings.items() if value is not None)
            raise ImpossibleSplitError(
                f"{step.action.removeprefix('split.')}({spelled}) leaves the {name} part empty "
                f"({count_text(total, 'rating')} of {count_text(int(users), 'user')} in all); choose another size for "
                "it, or use more ratings"
            )
    optional = {"profiles": profiles, "validation": validation}
    sizes = {"train": len(train), **{name: None if part is None else len(part) for name, part in optional.items()}}
    sizes["test"] = len(test)
    inputs = train if profiles is None else profiles
    cold, cold_note = _cold(train, test, inputs)
    leaked, leak_note = _leakage(train, test, inputs)
    step = replace(
        step,
        effect={
            **{name: size for name, size in sizes.items() if size is not None},
            **step.effect,
            **cold,
            **leaked,
        },
        notes=(*step.notes, *cold_note, *leak_note),
    )
    return Split(
        _with(step, train),
        _with(step, test),
        step,
        None if validation is None else _with(step, validation),
        profiles=None if profiles is None else _with(step, profiles),
        **fields,
    )


def _with(step: Step, part: Ratings) -> Ratings:
    return replace(part, history=(*part.history, step))


def _cold(train: Ratings, test: Ratings, inputs: Ratings) -> tuple[dict[str, int], list[str]]:
    """Count the test users about whom nothing is known, and the test items without a training rating."""
    cold_user = (test.user_counts > 0) & (inputs.user_counts == 0)
    cold_item = (test.item_counts > 0) & (train.item_counts == 0)
    users, items = int(np.count_nonzero(cold_user)), int(np.count_nonzero(cold_item))
    effect = {"test_users": int(np.count_nonzero(test.user_counts)), "cold_users": users, "cold_items": items}
    if not users and not items:
        return effect, []
    affected = np.repeat(cold_user, test.user_counts) | cold_item[test.items]
    return effect, [
        f"cold start: {count_text(users, 'user')} and {count_text(items, 'item')} of the test part have no training "
        f"rating ({count_text(int(np.count_nonzero(affected)), 'test rating')}, {np.mean(affected):.1%})"
    ]


def _leakage(train: Ratings, test: Ratings, inputs: Ratings) -> tuple[dict[str, Any], list[str]]:
    """Describe leakage in time: test ratings strictly older than training ratings, or than the input."""
    if train.times is None or test.times is None or inputs.times is None:
        return {}, []
    has_some = inputs.user_counts > 0
    newest = np.full(inputs.n_users, np.iinfo(np.int64).min)
    newest[has_some] = np.maximum.reduceat(inputs.times, inputs.indptr[:-1][has_some])
    precede = int(np.count_nonzero(test.times < np.repeat(newest, test.user_counts)))
    older = float(np.mean(test.times < np.median(train.times)))
    effect = {"test_before_own_train": precede, "test_share_older_than_train_median": older}
    return effect, [
        f"leakage in time: {count_text(precede, 'test rating')} ({precede / len(test):.1%}) "
        f"{'precedes' if precede == 1 else 'precede'} a training rating of the same user; {older:.1%} of the test "
        "ratings are older than the median training rating"
    ]

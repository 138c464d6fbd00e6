"""From the part of each rating to a `Split`: how parts are drawn, and what the split's record says about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.split import Split

Mask = NDArray[np.bool_]

TRAIN, VALIDATION, TEST = np.uint8(0), np.uint8(1), np.uint8(2)
PROFILES = np.uint8(3)
"""The input of users whose ratings are all held out."""
UNUSED = np.uint8(255)
"""Ratings that are in no part."""

# Number of ratings drawn or sorted per block: it bounds the memory, and does not change the results.
_BLOCK = 1 << 20
# The longest span of times that fits in an int64 together with the number of a segment.
_SPAN = 1 << 42


def validation_share(validation: float | None) -> float:
    """Return the share of the training ratings to set aside, or 0 for None."""
    return 0.0 if validation is None else check.share("validation", validation)


@dataclass(frozen=True, eq=False)
class Division:
    """Ratings that a method divides: its settings, its random streams, and in the end the split."""

    ratings: Ratings
    method: str
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_ratings(self.ratings)
        if len(self.ratings) == 0:
            raise ImpossibleSplitError("there are no ratings to split; read some, or filter less")
        if "seed" in self.settings:
            seed = check.whole("seed", self.settings["seed"], at_least=0)
            object.__setattr__(self, "settings", {**self.settings, "seed": seed})

    @property
    def validation(self) -> float:
        """The share of the training ratings to set aside; 0 for none."""
        return validation_share(self.settings["validation"])

    @property
    def users(self) -> str:
        """The number of users with ratings, in words."""
        return count_text(int(np.count_nonzero(self.ratings.user_counts)), "user")

    def times(self, which: str = "") -> NDArray[np.int64]:
        """Return the times, or say that the method needs them (``which``: with this setting)."""
        if self.ratings.times is None:
            raise ImpossibleSplitError(
                f"{self.method}{which} needs times, and the ratings of the {self.users} have none; "
                "name the column of times when reading them, or choose a random split"
            )
        return self.ratings.times

    def times_if_last(self) -> NDArray[np.int64] | None:
        """Return the times if the test ratings are the last ones in time, and None if they are random ones."""
        is_last = check.one_of("which", self.settings["which"], ("random", "last")) == "last"
        return self.times("(which=last)") if is_last else None

    def stream(self, *names: str | int) -> np.random.Generator:
        """Return a random stream of the method."""
        return stream(self.settings["seed"], "split", self.method, *names)

    def coins(self) -> NDArray[np.uint8]:
        """Toss a coin for each rating, as in the method `random`."""
        return coins(len(self.ratings), self.settings["train"], self.validation, self.stream())

    def set_aside(self, parts: NDArray[np.uint8], *names: int) -> None:
        """Move each training rating to the validation part with the probability that the settings state."""
        if self.validation:
            coins(len(parts), 1.0, self.validation, self.stream("validation", *names), parts)

    def split(
        self,
        parts: NDArray[np.uint8],
        effect: Mapping[str, Any] = MappingProxyType({}),
        notes: Sequence[Fact] = (),
        **fields: Any,
    ) -> Split:
        """Return the split, given the part of each rating."""
        if self.settings["validation"] is not None:
            fields["validation"] = self.ratings.keep(parts == VALIDATION)
        if (is_input := parts == PROFILES).any():
            fields["profiles"] = self.ratings.keep(is_input)
        step = Step(f"split.{self.method}", self.settings, effect, tuple(notes))
        return describe(self.ratings.keep(parts == TRAIN), self.ratings.keep(parts == TEST), step, **fields)


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

    ``place`` is the position of each rating in its segment; the others are the number of ratings of each segment, and
    how many of them go to each part.
    """
    parts = np.full(len(place), TRAIN)
    start = size - test
    parts[place >= np.repeat((start - validation).astype(np.int32), size)] = VALIDATION
    parts[place >= np.repeat(start.astype(np.int32), size)] = TEST
    return parts


def places(
    indptr: NDArray[np.int64], generator: np.random.Generator, times: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """Return each rating's position, 0, 1, 2, ..., in the order of its segment, the slice ``indptr[s]:indptr[s + 1]``.

    One key per rating is drawn, in order, so the result does not depend on the block size. The order is that of
    ``times``, and of the keys only if times are equal; without times, that of the keys alone.

    Examples
    --------
    >>> places(np.array([0, 3, 3, 5]), np.random.default_rng(0), np.array([9, 7, 8, 2, 1])).tolist()
    [2, 0, 1, 1, 0]
    """
    place = np.empty(int(indptr[-1]), dtype=np.int32)
    for first, last in _blocks(indptr):
        start, stop = indptr[first], indptr[last]
        if start == stop:
            continue
        counts = np.diff(indptr[first : last + 1])
        keys = generator.random(stop - start)
        segment = np.repeat(np.arange(last - first, dtype=np.int32), counts)
        # Segment plus key sorts by segment and then by key in one pass. A block has few enough segments to leave at
        # least 32 bits for a key.
        keys += segment
        order = _order(keys)
        if times is not None:
            order = order[np.argsort(_stamps(segment, times[start:stop])[order], kind="stable")]
        # The order permutes within segments only, so sorted position j is in the segment of rating j.
        begins = np.repeat((indptr[first:last] - start).astype(np.int32), counts)
        place[start:stop][order] = np.arange(stop - start, dtype=np.int32) - begins
    return place


def item_places(
    ratings: Ratings, generator: np.random.Generator, times: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """Return each rating's position among its item's ratings: in the order of ``times``, or else in random order."""
    by_item = ratings.matrix(np.arange(len(ratings), dtype=np.int32)).tocsc()
    place = np.empty(len(ratings), dtype=np.int32)
    place[by_item.data] = places(by_item.indptr, generator, None if times is None else times[by_item.data])
    return place


def _order(keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stable order of keys that hardly ever tie: by the faster unstable sort, unless two of them tie."""
    order: NDArray[np.int64] = np.argsort(keys)
    ascending = keys[order]
    return np.argsort(keys, kind="stable") if (ascending[1:] == ascending[:-1]).any() else order


def _stamps(segment: NDArray[np.int32], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each rating that ascends by segment and then by time."""
    oldest, newest = int(times.min()), int(times.max())
    if newest - oldest >= _SPAN:
        times = np.unique(times, return_inverse=True)[1]
        oldest, newest = 0, len(times)
    return segment.astype(np.int64) * (newest - oldest + 1) + (times - oldest)


def _blocks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of segments with at most `_BLOCK` segments and at most `_BLOCK` ratings, unless one alone has more."""
    first, segments = 0, len(indptr) - 1
    while first < segments:
        last = int(np.searchsorted(indptr, indptr[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK, segments)
        yield first, last
        first = last


def by_profile(ratings: Ratings, reduce: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Reduce the values of each profile to one, for the users with ratings: ``np.maximum`` for the largest."""
    reduced: NDArray[Any] = reduce.reduceat(values, ratings.indptr[:-1][ratings.user_counts > 0])
    return reduced


def in_both(part: Ratings, other: Ratings) -> Mask:
    """Return which ratings of a part have their (user, item) pair in another part, over the same vocabulary."""
    if not len(part) or not len(other):
        return np.zeros(len(part), dtype=bool)
    pairs, others = (ratings.users.astype(np.int64) * ratings.n_items + ratings.items for ratings in (part, other))
    common: Mask = others[np.minimum(np.searchsorted(others, pairs), len(others) - 1)] == pairs
    return common


def describe(
    train: Ratings,
    test: Ratings,
    step: Step,
    *,
    validation: Ratings | None = None,
    profiles: Ratings | None = None,
    **fields: Any,
) -> Split:
    """Make a `Split` from its parts; its step gets the sizes, cold users and items, and leakage in time."""
    optional = {name: part for name, part in (("profiles", profiles), ("validation", validation)) if part is not None}
    for name, part in {"training": train, "test": test, **optional}.items():
        if len(part) == 0:
            named = [train, test, *([] if validation is None else [validation])]
            users = np.count_nonzero(sum(ratings.user_counts for ratings in named))
            spelled = ", ".join(f"{key}={value}" for key, value in step.settings.items() if value is not None)
            raise ImpossibleSplitError(
                f"{step.action.removeprefix('split.')}({spelled}) leaves the {name} part empty "
                f"({count_text(sum(map(len, named)), 'rating')} of {count_text(int(users), 'user')} in all); choose "
                "another size for it, or use more ratings"
            )
    inputs = train if profiles is None else profiles
    sizes = {name: len(part) for name, part in {"train": train, **optional, "test": test}.items()}
    cold, tested = cold_counts(train, test, inputs), int(np.count_nonzero(test.user_counts))
    effect = {**sizes, **step.effect}
    effect |= {"test_users": tested, "cold_users": cold["users"], "cold_items": cold["items"]}
    notes = [*step.notes, *([facts.ColdStart("attention", **cold, of=len(test))] if cold["ratings"] else [])]
    if train.times is not None and test.times is not None and inputs.times is not None:
        precede = int(np.count_nonzero(before_own_training(test, inputs)))
        older = float(np.mean(test.times < np.median(train.times)))
        effect |= {"test_before_own_train": precede, "test_share_older_than_train_median": older}
        notes.append(facts.LeakageInTime(precede, len(test), older))
    step = replace(step, effect=effect, notes=tuple(notes))
    parts: dict[str, Any] = {
        name: replace(part, history=(*part.history, step))
        for name, part in {"train": train, "test": test, **optional}.items()
    }
    return Split(step=step, **parts, **fields)


def cold_counts(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, int]:
    """Count test users about whom nothing is known, test items without training ratings, and the ratings of both."""
    user = (test.user_counts > 0) & (inputs.user_counts == 0)
    item = (test.item_counts > 0) & (train.item_counts == 0)
    ratings = np.repeat(user, test.user_counts) | item[test.items]
    masks = {"users": user, "items": item, "ratings": ratings}
    return {name: int(np.count_nonzero(mask)) for name, mask in masks.items()}


def moments(part: Ratings, reduce: np.ufunc) -> NDArray[np.int64]:
    """Return the newest or the oldest time of each user; the smallest integer for users without ratings."""
    assert part.times is not None
    times = np.full(part.n_users, np.iinfo(np.int64).min)
    if len(part):
        times[part.user_counts > 0] = by_profile(part, reduce, part.times)
    return times


def before_own_training(test: Ratings, inputs: Ratings) -> Mask:
    """Return which test ratings are strictly older than a training rating (or the input) of the same user."""
    assert test.times is not None
    return test.times < np.repeat(moments(inputs, np.maximum), test.user_counts)

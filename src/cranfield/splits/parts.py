"""From the part of each rating, or from parts made elsewhere, to a `Split`; and what its record says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings, over_one_vocabulary
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


UNITS = ("pair", "event", "basket", "session")
"""What a split never divides: all events of a user and item, one event, or the events of a basket or session."""


class Units(NamedTuple):
    """What is counted within a user: rows, or baskets of several rows."""

    indptr: NDArray[np.int64]  # those of user u are at indptr[u]:indptr[u + 1]
    times: NDArray[np.int64] | None
    place: NDArray[np.int64] | None = None  # of each row among them; None if they are the rows

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many each user has."""
        return np.diff(self.indptr)

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of each row, given those of the units."""
        return values if self.place is None else values[self.place]


@dataclass(frozen=True, eq=False)
class Division:
    """Ratings that a method divides: its settings, its random streams, and in the end the split.

    If pairs repeat, the events are divided, and each part is merged by itself. ``unit`` is what the method keeps
    together unless its settings state another one: methods that draw keep pairs, so that parts have none in common, and
    methods that go by time keep baskets, or else single events.
    """

    ratings: Ratings
    method: str
    settings: Mapping[str, Any]
    unit: str = "pair"

    def __post_init__(self) -> None:
        check_ratings(self.ratings)
        if len(self.ratings) == 0:
            raise ImpossibleSplitError("there are no ratings to split; read some, or filter less")
        self._decide_unit()
        if "seed" in self.settings:
            seed = check.whole("seed", self.settings["seed"], at_least=0)
            object.__setattr__(self, "settings", {**self.settings, "seed": seed})

    def _decide_unit(self) -> None:
        """Decide what is never divided, and record it if the ratings are events."""
        given = self.settings.get("unit")
        if given == "user":
            raise SettingError(
                f"{self.method} has no unit=user; the splits cold_users and strong_generalisation hold users out whole"
            )
        unit = self.unit if given is None else check.one_of("unit", given, UNITS)
        baskets = None if self.ratings.events is None else self.ratings.events.baskets
        if unit in ("basket", "session") and baskets is None:
            if given is not None:
                raise ImpossibleSplitError(
                    f"unit={given} needs baskets or sessions, and the ratings of the {self.users} have none; name "
                    "their column with basket=NAME, or make sessions with session_gap=30min"
                )
            unit = "event"
        settings = {name: value for name, value in self.settings.items() if name != "unit"}
        recorded = {} if self.ratings.events is None else {"unit": unit, "repeated": str(self.ratings.events.merging)}
        object.__setattr__(self, "settings", settings | recorded)
        object.__setattr__(self, "unit", "pair" if self.ratings.events is None else unit)

    @cached_property
    def rows(self) -> Ratings:
        """What is divided: ratings, events, or events at the time of the last one of their basket."""
        events = self.ratings.events
        if self.unit == "pair" or events is None:
            return self.ratings
        rows = self.ratings.rows()
        return rows if self.unit == "event" else replace(rows, times=events.basket_times)

    @cached_property
    def units(self) -> Units:
        """What is counted within a user: rows, or baskets."""
        return self.units_of(np.ones(len(self.rows), dtype=np.bool_))

    def units_of(self, mask: Mask) -> Units:
        """Return what is counted within a user, of some of the rows."""
        rows, events = self.rows if mask.all() else self.rows.keep(mask), self.ratings.events
        if self.unit not in ("basket", "session") or events is None or events.baskets is None:
            return Units(rows.indptr, rows.times)
        _, first, place = np.unique(events.baskets[mask], return_index=True, return_inverse=True)
        assert rows.times is not None
        # Codes of baskets ascend by user.
        indptr = np.searchsorted(rows.users[first], np.arange(rows.n_users + 1)).astype(np.int64)
        return Units(indptr, rows.times[first], place)

    @property
    def validation(self) -> float:
        """The share of the training ratings to set aside; 0 for none."""
        return validation_share(self.settings["validation"])

    @property
    def users(self) -> str:
        """The number of users with ratings, in words."""
        return count_text(int(np.count_nonzero(self.ratings.user_counts)), "user")

    def straddling(self, cut: int) -> int:
        """Return the number of baskets with events before and after a moment; they are at the time of the last one."""
        events = self.ratings.events
        assert events is not None
        assert events.baskets is not None
        return len(np.unique(events.baskets[(events.times < cut) & (self.times() >= cut)]))

    @property
    def counted(self) -> str:
        """What is counted within a user, in the plural."""
        if self.ratings.events is None:
            return "ratings"
        return {"pair": "items", "event": "events"}.get(self.unit, f"{self.unit}s")

    def times(self, which: str = "") -> NDArray[np.int64]:
        """Return the times, or say that the method needs them (``which``: with this setting)."""
        if self.rows.times is None:
            raise ImpossibleSplitError(
                f"{self.method}{which} needs times, and the ratings of the {self.users} have none; "
                "name the column of times when reading them, or choose a random split"
            )
        return self.rows.times

    def times_if_last(self) -> NDArray[np.int64] | None:
        """Return the times if the test ratings are the last ones in time, and None if they are random ones."""
        is_last = check.one_of("which", self.settings["which"], ("random", "last")) == "last"
        return self.times("(which=last)") if is_last else None

    def stream(self, *names: str | int) -> np.random.Generator:
        """Return a random stream of the method."""
        return stream(self.settings["seed"], "split", self.method, *names)

    def coins(self) -> NDArray[np.uint8]:
        """Toss a coin for each rating, as in the method `random`."""
        count = int(self.units.indptr[-1])
        return self.units.of_rows(coins(count, self.settings["train"], self.validation, self.stream()))

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
        """Return the split, given the part of each row."""
        if self.settings["validation"] is not None:
            fields["validation"] = self._part(parts == VALIDATION)
        if (is_input := parts == PROFILES).any():
            fields["profiles"] = self._part(is_input, of_train=True)
        step = Step(f"split.{self.method}", self.settings, effect, tuple(notes))
        return describe(self._part(parts == TRAIN, of_train=True), self._part(parts == TEST), step, **fields)

    def _part(self, mask: Mask, *, of_train: bool = False) -> Ratings:
        """Return a part of the rows, merged by itself."""
        if self.ratings.events is not None and self.unit == "pair":
            mask = np.repeat(mask, self.ratings.events.counts)
        return self.ratings.keep_rows(mask, of_train=of_train)


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


def by_profile(ratings: Ratings | Units, reduce: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Reduce the values of each profile to one, for the users with ratings: ``np.maximum`` for the largest."""
    reduced: NDArray[Any] = reduce.reduceat(values, ratings.indptr[:-1][np.diff(ratings.indptr) > 0])
    return reduced


def in_both(part: Ratings, other: Ratings) -> Mask:
    """Return which ratings of a part have their (user, item) pair in another part, over the same vocabulary."""
    return other.places(part.users, part.items) >= 0


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
    if "repeated" in step.settings:
        repeats = repeats_in({"train": train, **optional, "test": test})
        effect |= {"events": repeats.events, "repeated_test_pairs": repeats.repeated}
        notes.append(repeats)
    train_rows, test_rows, input_rows = (in_time(part) for part in (train, test, inputs))
    if train_rows.times is not None and test_rows.times is not None and input_rows.times is not None:
        precede = int(np.count_nonzero(before_own_training(test_rows, input_rows)))
        older = float(np.mean(test_rows.times < np.median(train_rows.times)))
        effect |= {"test_before_own_train": precede, "test_share_older_than_train_median": older}
        notes.append(facts.LeakageInTime(precede, len(test_rows), older))
    step = replace(step, effect=effect, notes=tuple(notes))
    parts: dict[str, Any] = {
        name: replace(part, history=(*part.history, step))
        for name, part in {"train": train, "test": test, **optional}.items()
    }
    return Split(step=step, **parts, **fields)


def in_time(part: Ratings) -> Ratings:
    """Return the rows of a part, each at the time of its basket if there are baskets."""
    return part if part.events is None else replace(part.rows(), times=part.events.basket_times)


def repeats_in(parts: Mapping[str, Ratings]) -> facts.RepeatsInTest:
    """Count the events of each part, and the test items that their user had before."""
    test = parts["test"]
    repeated = np.any([in_both(test, part) for name, part in parts.items() if name != "test"], axis=0)
    users, of_users = len(np.unique(test.users[repeated])), int(np.count_nonzero(test.user_counts))
    events = {name: len(part) if part.events is None else len(part.events) for name, part in parts.items()}
    return facts.RepeatsInTest(int(np.count_nonzero(repeated)), len(test), users, of_users, events)


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


def predefined(
    train: Ratings,
    test: Ratings,
    *,
    validation: Ratings | float | None = None,
    profiles: Ratings | None = None,
    overlap: str = "error",
    seed: int = 0,
) -> Split:
    """Make a split from ratings that are already divided, for example into two files.

    Parameters
    ----------
    train, test
        The parts, each over its own vocabulary. If one has numbers as ids and the other text, both become text.
    validation
        The validation part, or the probability of each training rating to be set aside for one.
    profiles
        The profiles of held-out users, as `strong_generalisation` makes them; none of these users may be in training.
    overlap
        What to do with (user, item) pairs that are in more than one part: ``"error"``, or drop them from all but the
        test part (``"test"``) or the training part (``"train"``); the notes say how many.
    seed
        Seed of the draw of a validation share.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob"], ["x", "x"], [5, 3])
    >>> test = Ratings.of(["bob", "cid"], ["y", "x"], [4, 4])
    >>> split = predefined(train, test)
    >>> split, split.train.n_users
    (Split(predefined: train 2, test 2), 3)
    """
    overlap = check.one_of("overlap", overlap, ("error", "test", "train"))
    seed = check.whole("seed", seed, at_least=0)
    parts = {"train": train, "test": test}
    if isinstance(validation, Ratings):
        parts["validation"] = validation
    if profiles is not None:
        parts["profiles"] = profiles
    for name, part in parts.items():
        check_ratings(part)
        if len(part) == 0:
            raise ImpossibleSplitError(f"the {name} part has no ratings; give the right file")
    parts = dict(zip(parts, over_one_vocabulary(list(parts.values()))))
    merging = next((str(part.events.merging) for part in parts.values() if part.events is not None), None)
    # Of events, a pair may be in several parts: the user had the item again.
    parts, repeated = _disjoint(parts, overlap) if merging is None else (parts, 0)
    if profiles is not None:
        learned = int(np.count_nonzero((parts["profiles"].user_counts > 0) & (parts["train"].user_counts > 0)))
        if learned:
            raise ImpossibleSplitError(
                f"{learned:,} users of profiles are in the training part too, so they are not held out; leave profiles "
                "out, or train without them"
            )
    if not isinstance(validation, Ratings) and validation is not None:
        drawn = coins(len(parts["train"]), 1.0, validation_share(validation), stream(seed, "split", "given"))
        parts["validation"] = parts["train"].keep(drawn == VALIDATION)
        parts["train"] = parts["train"].keep(drawn == TRAIN)
    notes = (facts.PairsMoved(repeated, overlap),) if repeated else ()
    settings: dict[str, Any] = {"overlap": overlap} if merging is None else {"repeated": merging}
    if isinstance(validation, Ratings):
        settings["validation"] = "given"
    elif validation is not None:
        settings |= {"validation": validation, "seed": seed}
    step = Step("split.predefined", settings, {"repeated_pairs": repeated}, notes)
    optional = {name: parts.get(name) for name in ("validation", "profiles")}
    return describe(parts["train"], parts["test"], step, **optional)


def _disjoint(parts: dict[str, Ratings], overlap: str) -> tuple[dict[str, Ratings], int]:
    """Return the parts without their common pairs in all but one of them, and the number of such pairs."""
    # The part that keeps a common pair comes first; validation and profiles lose it to both others.
    order = sorted(parts, key=lambda name: (name not in ("train", "test"), name != overlap))
    disjoint: dict[str, Ratings] = {}
    repeated = 0
    for place, name in enumerate(order):
        again = np.zeros(len(parts[name]), dtype=np.int8)
        for other in order[:place]:
            again += in_both(parts[name], parts[other])
        fresh = again == 0
        # A pair in all three parts was already counted in the second one.
        repeated += int(np.count_nonzero(again == 1))
        if overlap == "error" and not fresh.all():
            user = int(parts[name].users[np.argmin(fresh)])
            item = int(parts[name].items[np.argmin(fresh)])
            raise ImpossibleSplitError(
                f"{np.count_nonzero(~fresh):,} (user, item) pairs of the {name} part are also in another part "
                f"(first user {parts[name].user_ids.ids([user])[0]!r}, item {parts[name].item_ids.ids([item])[0]!r}); "
                "drop them with overlap=test or overlap=train"
            )
        disjoint[name] = parts[name] if fresh.all() else parts[name].keep(fresh)
    return disjoint, repeated

"""Groups of users, items or test ratings to show results for, and the decision to use them.

A group is built in, or comes from a user's data: a file or a frame with ids and a group, a column of the test file, or
a mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits, share, whole
from cranfield._decisions import DecisionGroup, decision
from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield._numbers import listed
from cranfield._registry import Registry, parse
from cranfield.data import Ratings, column_names, read
from cranfield.facts import Fact
from cranfield.facts import segment as segment_facts
from cranfield.metrics import translated
from cranfield.rankings import named_groups
from cranfield.tables import UNKNOWN, Role, Vocabulary, day, place_by_name

SegmentOf = Literal["users", "items", "ratings"]


class Basis(NamedTuple):
    """The data for groups: the ids of the test set, its ratings, and the training ratings if known."""

    user_ids: Vocabulary
    item_ids: Vocabulary | None = None
    test: Ratings | None = None
    train: Ratings | None = None

    def training(self, name: str) -> Ratings:
        """Return the training ratings, or raise an error that names the segment that needs them."""
        if self.train is None:
            raise SettingError(f"the segment {name} needs the training ratings; give them as train=...")
        return self.train


@dataclass(frozen=True, eq=False)
class Segment:
    """The group of each user, item or test rating."""

    name: str  # the name of the grouping
    of: SegmentOf  # what is grouped: ``users``, ``items`` or (test) ``ratings``
    # The group of each user code, of each item code, or of each test rating, as an index of ``names``.
    codes: NDArray[np.int16]
    names: tuple[str, ...]  # the groups in order
    notes: tuple[Fact, ...] = ()  # how the groups are made
    unknown: int | None = None  # the index of the group of ids that the grouping does not mention, if it has one
    examples: tuple[str, ...] = ()  # some of the ids that the grouping mentions, for messages


SEGMENTS: Registry[Callable[..., Segment]] = Registry("segment")
"""The built-in segments by name: functions from a `Basis` to a `Segment`."""


HEAD_MID_TAIL: Mapping[str, float] = {"head": 0.2, "mid": 0.6, "tail": 0.2}
"""The most popular items with a fifth of the ratings, the least popular items with a fifth, and those between."""

# Sums of floats such as 0.1 are not exact.
_DIGITS = 9


def shares_of(groups: int | Mapping[str, float]) -> Mapping[str, float]:
    """Return the share of each popularity group by name, or raise an error if they are not valid shares."""
    if not isinstance(groups, Mapping):
        count = whole("groups", groups)
        return {str(number): 1.0 / count for number in range(1, count + 1)}
    if len(groups) > 1:
        for name, value in groups.items():
            share(name, value)
    if abs(sum(groups.values()) - 1.0) > 1e-9:
        raise SettingError(f"the shares of the popularity groups sum to {sum(groups.values()):g}; make them sum to 1")
    return groups


def group_of_items(
    train: Ratings, shares: Sequence[float] = tuple(HEAD_MID_TAIL.values()), of: str = "ratings"
) -> NDArray[np.float64]:
    """Return the number of the group of each item of the training ratings; by default head, mid and tail.

    An item belongs to the group that contains the middle of its share of the ratings (or of the items).
    """
    counts = train.item_counts.astype(np.float64)
    order = np.argsort(-counts, kind="stable")
    weight = counts[order] if of == "ratings" else np.ones(len(counts))
    middles = (np.cumsum(weight) - weight / 2.0) / max(float(weight.sum()), 1.0)
    groups = np.empty(len(counts))
    ends, middles = np.round(np.cumsum(shares), _DIGITS), np.round(middles, _DIGITS)
    groups[order] = np.minimum(np.searchsorted(ends, middles, side="right"), len(shares) - 1)
    return groups


@SEGMENTS.register
def activity(
    basis: Basis, new: Annotated[int, Limits(low=1)] = 5, light: Annotated[float, Limits(above=0, below=1)] = 0.5
) -> Segment:
    """New, light and heavy users, by how many training ratings they have.

    A new user has fewer than ``new`` training ratings. Of the training users who have at least ``new``, the share
    ``light`` with the fewest ratings is light and the others are heavy; users with equally many ratings are in the same
    group: the limit is the smallest number of ratings that at least this share of them does not exceed.
    """
    train = basis.training("activity")
    of_user = train.user_counts.astype(np.float64)
    counts = translated(of_user, train.user_ids, basis.user_ids, missing=0.0)
    known = of_user[of_user >= new]
    limit = float(np.quantile(known, light, method="inverted_cdf")) if len(known) else float(new)
    codes = np.where(counts < new, 0, np.where(counts <= limit, 1, 2))
    note = segment_facts.ByActivity(new, limit)
    return Segment("activity", "users", codes.astype(np.int16), ("new", "light", "heavy"), (note,))


@SEGMENTS.register
def popularity(
    basis: Basis, groups: Annotated[int | None, Limits(low=2)] = None, of: Literal["ratings", "items"] = "ratings"
) -> Segment:
    """Test items by how many training ratings they have: head, mid and tail, or equal groups from 1, the most popular.

    See `by_popularity`: the head makes up a fifth of the training ratings, and so does the tail.
    """
    train, shares = basis.training("popularity"), shares_of(HEAD_MID_TAIL if groups is None else groups)
    assert basis.item_ids is not None
    of_train = group_of_items(train, list(shares.values()), of)
    codes = translated(of_train, train.item_ids, basis.item_ids, missing=len(shares) - 1.0)
    note = segment_facts.ByPopularity(tuple(shares.items()), of)
    return Segment("popularity", "items", codes.astype(np.int16), tuple(shares), (note,))


@SEGMENTS.register
def period(basis: Basis, parts: Annotated[int, Limits(low=2, high=50)] = 3) -> Segment:
    """Test ratings by time: consecutive periods with equally many test ratings, as far as times differ."""
    if basis.test is None or basis.test.times is None:
        raise SettingError("the segment period needs times, and the test set has none; choose another segment")
    times = basis.test.times
    limits = np.quantile(times, np.arange(1, parts) / parts, method="inverted_cdf")
    codes = np.searchsorted(limits, times, side="left")
    names = tuple(f"period {number}" for number in range(1, parts + 1))
    spans = [(name, times[codes == place]) for place, name in enumerate(names)]
    note = segment_facts.ByPeriod(tuple((name, day(span.min()), day(span.max())) for name, span in spans if len(span)))
    return Segment("period", "ratings", codes.astype(np.int16), names, (note,))


@SEGMENTS.register
def cold_users(basis: Basis, most: Annotated[int, Limits(low=0)] = 0) -> Segment:
    """Warm and cold users: a cold one has at most ``most`` training ratings."""
    train = basis.training("cold_users")
    return _warm_and_cold("users", train.user_counts, train.user_ids, basis.user_ids, most)


@SEGMENTS.register
def cold_items(basis: Basis, most: Annotated[int, Limits(low=0)] = 0) -> Segment:
    """Test ratings of warm and of cold items: a cold one has at most ``most`` training ratings."""
    train = basis.training("cold_items")
    assert basis.item_ids is not None
    return _warm_and_cold("items", train.item_counts, train.item_ids, basis.item_ids, most)


@SEGMENTS.register
def repeats(basis: Basis) -> Segment:
    """Test items that their user had before, in training, and those that are new to the user."""
    train = basis.training("repeats")
    if basis.test is None:
        raise SettingError("the segment repeats needs the test ratings; choose another segment")
    test = basis.test
    users = train.user_ids.recoded(test.users, test.user_ids)
    places = train.places(users, train.item_ids.recoded(test.items, test.item_ids))
    codes = np.where(places >= 0, 0, 1).astype(np.int16)
    note = segment_facts.ByRepeats(int((codes == 0).sum()), len(codes))
    return Segment("repeats", "ratings", codes, ("repeated", "new"), (note,))


def _warm_and_cold(of: SegmentOf, counts: NDArray[Any], own: Vocabulary, ids: Vocabulary, most: int) -> Segment:
    codes = (translated(counts.astype(np.float64), own, ids, missing=0.0) <= most).astype(np.int16)
    return Segment(f"cold_{of}", of, codes, ("warm", "cold"), (segment_facts.WarmAndCold(of, most),))


def _segment(name: str, value: Any) -> tuple[str, ...]:
    stated = (value,) if isinstance(value, str) else value
    if not isinstance(stated, list | tuple) or not all(isinstance(text, str) and text for text in stated):
        raise SettingError(f"{name}={value!r} is not text; write a segment such as 'activity' or 'users.csv:age'")
    spelled = [str(SEGMENTS.spelling(text)) if Segmenting.is_built_in(text) else text for text in stated]
    return tuple(dict.fromkeys(spelled))


@dataclass(frozen=True)
class Segmenting(DecisionGroup):
    """The groups that results are also shown by."""

    # ``activity``, ``popularity``, ``period``, ``cold_users`` or ``cold_items`` (with parameters); a file with a user
    # or item column and a group, ``users.csv`` or ``users.csv:age``; or a column of the test file.
    segment: Any = decision(
        "D",
        (),
        "groups to show apart: activity, popularity, period, cold_users, cold_items, repeats, a column or file",
        check=_segment,
        phrase=lambda value: f"by {listed(list(value))}" if value else None,
    )

    @staticmethod
    def is_built_in(text: str) -> bool:
        """Whether a text spells a built-in segment, right or wrong."""
        try:
            return parse(text).name in SEGMENTS
        except SettingError:
            return False

    @staticmethod
    def check(text: str, where: Callable[[str], Path], data: Any, reading: Mapping[str, Any]) -> None:
        """Refuse a segment that is neither a file nor a column of ``data``, or that does not group users or items.

        ``where`` resolves the path of a file, and ``reading`` are options of `read` for ``data``.
        """
        file = file_and_column(text, where)
        if file is not None:
            given_groups(*file)
            return
        _check_column(data, text, reading)
        given_groups(data, text, reading)


UNKNOWN_GROUP = "unknown"
"""The group of the users or items that a grouping does not mention."""

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""No options of `cranfield.read`: everything is detected."""

_MOST_GROUPS = 50
_GROUP_NAMES = ("group", "segment", "cohort")
_KINDS: Mapping[Role, SegmentOf] = {"user": "users", "item": "items"}


def segment_of(by: Any, basis: Basis, *, data: Any = None, reading: Mapping[str, Any] = NOTHING) -> Segment:
    """Return the segment of the ids and ratings of a basis: see `measure_segments` for the other arguments."""
    if isinstance(by, str) and Segmenting.is_built_in(by):
        built_in: Segment = SEGMENTS.call(by, basis)
        return built_in
    if isinstance(by, str | Path):
        file = file_and_column(str(by))
        if file is not None:
            return _given(*file, str(by), basis)
        _check_column(data, str(by), reading)
        return _given(data, str(by), str(by), basis, reading)
    if isinstance(by, Mapping) and not any(isinstance(group, list | tuple | np.ndarray) for group in by.values()):
        table = {"user": list(by), "group": [str(group) for group in by.values()]}
        return _given(table, "group", "given", basis)
    return _given(by, None, "given", basis)


def file_and_column(text: str, where: Callable[[str], Path] = meant) -> tuple[Path, str | None] | None:
    """Return the file that a text names, and the column after ``:``, if any; None if there is no such file.

    ``where`` resolves the path of a file.
    """
    for name, column in ((text, None), text.rpartition(":")[::2]):
        if name and where(name).is_file():
            return where(name), column
    return None


def _check_column(data: Any, column: str, reading: Mapping[str, Any]) -> None:
    """Refuse a name that is not a column of the test file, with an error that lists the valid segments."""
    names = None if data is None else column_names(data, **_written(reading))
    if names is None or column not in names:
        known = [*SEGMENTS, *(names or ())]
        raise SettingError(
            f"segment={column!r} is not a file, a column of the test file or a built-in segment{nearest(column, known)}"
        )


def _written(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `read` that describe a text format."""
    return {name: reading[name] for name in ("separator", "header", "quote", "encoding") if name in reading}


def given_groups(table: Any, column: str | None, reading: Mapping[str, Any] = NOTHING) -> tuple[Role, Ratings]:
    """Return the groups of a table: of its users if each user is in one group, otherwise of its items.

    The ids are the users of the ratings that are returned, and their groups the items. ``reading`` are options of
    `read`, for a table that is read as ratings are.
    """
    label = str(table) if isinstance(table, str | Path) else "the segments"
    in_two: list[str] = []
    for role, place in _id_columns(table, column, label, reading):
        group = column or _group_column(table, place, label)
        groups = read(table, user=place, item=group, rating=False, time=False, repeated="last", **_written(reading))
        if (groups.user_counts <= 1).all() and groups.n_items > _MOST_GROUPS:
            raise InputError(
                f"{groups.n_items:,} different groups are too many",
                source=label,
                remedy=f"give a column with at most {_MOST_GROUPS} values, such as ages in ranges",
            )
        if (groups.user_counts <= 1).all():
            return role, groups
        in_two.append(_in_two_groups(role, groups))
    if len(in_two) > 1:
        raise InputError(
            f"the column {column or 'of groups'!r} groups neither users nor items: {' and '.join(in_two)}",
            source=label,
            remedy="name a column that is the same in all rows of a user, or of an item",
        )
    raise InputError(in_two[0], source=label, remedy=f"give every {in_two[0].split()[0]} one group")


def _id_columns(
    table: Any, column: str | None, label: str, reading: Mapping[str, Any]
) -> Iterator[tuple[Role, str | int]]:
    """Yield the columns that may contain the ids, users first."""
    names = column_names(table, **_written(reading))
    if names is None:
        yield "user", 1
        return
    if column is not None and column not in names:
        raise InputError(f"there is no column {column!r}{nearest(column, names)}", source=label)
    taken = [names.index(column)] if column is not None else []
    roles: tuple[Role, ...] = ("user", "item")
    places = {role: _place(names, role, reading.get(role), taken) for role in roles}
    if all(place is None for place in places.values()):
        raise InputError(
            f"no column is known to hold users or items (columns: {', '.join(names)})",
            source=label,
            remedy="name one of them user or item",
        )
    yield from ((role, names[place]) for role, place in places.items() if place is not None)


def _place(names: Sequence[str], role: Role, given: str | int | None, taken: Sequence[int]) -> int | None:
    """Return the index of the column of a role: the named one, or the one with a usual name."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given - 1
    if isinstance(given, str) and given in names:
        return names.index(given)
    if isinstance(given, str) and given.isdecimal():
        return int(given) - 1
    return place_by_name(names, role, taken=taken)


def _group_column(table: Any, id_column: str | int, label: str) -> str | int:
    """Return the column with the groups: the only other one, or the one with that name."""
    names = column_names(table)
    if names is None:
        return 2
    others = [name for name in names if name != id_column]
    named = [name for name in others if name.strip().lower() in _GROUP_NAMES] or others
    if len(named) == 1:
        return named[0]
    raise InputError(
        f"it is not clear which column holds the groups (columns: {', '.join(names)})",
        source=label,
        remedy=f"write {label}:COLUMN, or name the column group",
    )


def _in_two_groups(role: Role, groups: Ratings) -> str:
    place = int(np.argmax(groups.user_counts > 1))
    first, second = groups.item_ids.ids(groups.items[groups.indptr[place] :][:2])
    return f"{role} {groups.user_ids.ids([place])[0]} is in the groups {first} and {second}"


def _given(table: Any, column: str | None, name: str, basis: Basis, reading: Mapping[str, Any] = NOTHING) -> Segment:
    """Return the group of each user or item of the test set, from a table."""
    role, groups = given_groups(table, column, reading)
    wanted: Vocabulary | None = basis.user_ids if role == "user" else basis.item_ids
    assert wanted is not None
    places, names = named_groups(groups.item_ids.text)
    assert places is not None
    if UNKNOWN_GROUP not in names:
        names = (*names, UNKNOWN_GROUP)
    unknown = names.index(UNKNOWN_GROUP)
    codes = groups.user_ids.codes(wanted.all)
    of_id = places[groups.items]
    group_of_id = np.where(codes == UNKNOWN, unknown, np.append(of_id, unknown)[codes])
    examples = tuple(str(example) for example in groups.user_ids.all.head(3))
    return Segment(name, _KINDS[role], group_of_id.astype(np.int16), names, (), unknown, examples)

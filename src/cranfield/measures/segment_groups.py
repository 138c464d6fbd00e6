"""Groups from a user's data: a file or a frame with ids and a group, a column of the test file, or a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield.data import Ratings, column_names, read
from cranfield.measures.segmenting import SEGMENTS, Basis, Segment, SegmentOf, is_built_in
from cranfield.rankings import named_groups
from cranfield.tables import UNKNOWN, Role, Vocabulary, place_by_name

UNKNOWN_GROUP = "unknown"
"""The group of the users or items that a grouping does not mention."""

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""No options of `cranfield.read`: everything is detected."""

_MOST_GROUPS = 50
_GROUP_NAMES = ("group", "segment", "cohort")
_KINDS: Mapping[Role, SegmentOf] = {"user": "users", "item": "items"}


def segment_of(by: Any, basis: Basis, *, data: Any = None, reading: Mapping[str, Any] = NOTHING) -> Segment:
    """Return the segment for a text, a table or a mapping.

    Parameters
    ----------
    by
        The spelling of a built-in segment; a file, or ``FILE:COLUMN``; a column of ``data``; a frame; or a mapping from
        users to groups.
    basis
        The ids and ratings that are grouped.
    data
        The file or frame of the test set, whose columns can be named.
    reading
        Options of `cranfield.read` for it.
    """
    if isinstance(by, str) and is_built_in(by):
        built_in: Segment = SEGMENTS.call(by, basis)
        return built_in
    if isinstance(by, str | Path):
        file = file_and_column(str(by))
        if file is not None:
            return _given(*file, str(by), basis)
        check_column(data, str(by), reading)
        return _given(data, str(by), str(by), basis, reading)
    if isinstance(by, Mapping) and not any(isinstance(group, list | tuple | np.ndarray) for group in by.values()):
        table = {"user": list(by), "group": [str(group) for group in by.values()]}
        return _given(table, "group", "given", basis)
    return _given(by, None, "given", basis)


def file_and_column(text: str, where: Callable[[str], Path] = meant) -> tuple[Path, str | None] | None:
    """Return the file that a text names, and the column after ``:``, if any; None if there is no such file.

    ``where`` resolves the path of a file.

    Examples
    --------
    >>> file_and_column("activity") is None
    True
    """
    for name, column in ((text, None), text.rpartition(":")[::2]):
        if name and where(name).is_file():
            return where(name), column
    return None


def check_column(data: Any, column: str, reading: Mapping[str, Any] = NOTHING) -> None:
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


def _given(table: Any, column: str | None, name: str, basis: Basis, reading: Mapping[str, Any] = NOTHING) -> Segment:
    role, groups = given_groups(table, column, reading)
    return _of_ids(role, groups, name, basis)


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
        if (groups.user_counts <= 1).all():
            _check_number(groups, label)
            return role, groups
        in_two.append(_in_two_groups(role, groups))
    if len(in_two) > 1:
        raise InputError(
            f"the column {column or 'of groups'!r} groups neither users nor items: {' and '.join(in_two)}",
            source=label,
            remedy="name a column that is the same in all rows of a user, or of an item",
        )
    raise InputError(in_two[0], source=label, remedy=f"give every {in_two[0].split()[0]} one group")


def _check_number(groups: Ratings, label: str) -> None:
    if groups.n_items > _MOST_GROUPS:
        raise InputError(
            f"{groups.n_items:,} different groups are too many",
            source=label,
            remedy=f"give a column with at most {_MOST_GROUPS} values, such as ages in ranges",
        )


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


def _of_ids(role: Role, groups: Ratings, name: str, basis: Basis) -> Segment:
    """Return the group of each user or item of the test set."""
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

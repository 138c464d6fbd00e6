"""Runs in dictionaries, such as ``{user: {item: score}}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.rankings.layouts import Rows


def rows_of_dict(lists: Mapping[Any, Any], source: str) -> Rows:
    """Return the rows of a dictionary from user to ``{item: score}``, ``[(item, score), ...]`` or ``[item, ...]``.

    The first is the format of pytrec_eval and ranx, the second that of Elliot, the third a ranking without scores.

    Examples
    --------
    >>> rows = rows_of_dict({"ann": {"x": 2.0, "y": 1.0}, "bob": {}}, "a dictionary")
    >>> rows.users, rows.items, rows.scores.tolist(), rows.sizes.tolist()
    (['ann', 'bob'], ['x', 'y'], [2.0, 1.0], [2, 0])
    """
    values = [_as_list(value, user, source) for user, value in lists.items()]
    sizes = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    some = next((value for value in values if len(value)), None)
    if isinstance(some, Mapping):
        _all_mappings(lists, values, source)
        items: list[Any] = list(chain.from_iterable(values))
        numbers: Iterable[Any] | None = chain.from_iterable(value.values() for value in values)
    elif some is not None and all(_is_pair(entry) for value in values for entry in value):
        items = [entry[0] for value in values for entry in value]
        numbers = (entry[1] for value in values for entry in value)
    else:
        items, numbers = list(chain.from_iterable(values)), None
    scores = None if numbers is None else _numbers(list(numbers), items, source)
    return Rows(list(lists), items, scores, sizes=sizes)


def _as_list(value: Any, user: Any, source: str) -> Any:
    if isinstance(value, (Mapping, list, tuple, np.ndarray)):
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(
            f"the list of user {user!r} is {value!r}",
            source=source,
            remedy="give {item: score}, [(item, score), ...] or [item, ...]",
        )
    return list(value)


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, (tuple, list)) and len(entry) == 2


def _all_mappings(lists: Mapping[Any, Any], values: list[Any], source: str) -> None:
    for user, value in zip(lists, values):
        if len(value) and not isinstance(value, Mapping):
            raise InputError(
                f"user {user!r} has a plain list, but others have scores",
                source=source,
                remedy="give every user {item: score}",
            )


def _numbers(values: list[Any], items: list[Any], source: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    for item, value in zip(items, values):
        try:
            float("nan" if value is None else value)
        except (TypeError, ValueError):
            raise InputError(
                f"the score {value!r} of item {item!r} is not a number", source=source, remedy="fix it or leave it out"
            ) from None
        except OverflowError:
            raise InputError(
                f"the score of item {item!r} is too large a number", source=source, remedy="fix it or leave it out"
            ) from None
    return np.array([np.nan if value is None else float(value) for value in values])

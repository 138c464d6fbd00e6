"""Groups of lists. Each list belongs to one group, so that values can be averaged by group first."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

GroupsOfLists = tuple[NDArray[np.int16] | None, tuple[str, ...]]
"""The group of each list, as an index into the names, and the names; None and no names if lists are not grouped."""


def named_groups(column: Any) -> GroupsOfLists:
    """Return the groups in a column of names, sorted as numbers if all are numbers, otherwise as text.

    Examples
    --------
    >>> groups, names = named_groups(["10", "9", "10"])
    >>> groups.tolist(), names
    ([1, 0, 1], ('9', '10'))
    """
    texts = pl.Series(column).cast(pl.String)
    distinct = texts.unique().to_list()
    if None in distinct or len(distinct) > np.iinfo(np.int16).max:
        return None, ()
    numbers = all(name.isascii() and name.isdigit() for name in distinct)
    names = sorted(distinct, key=lambda name: (int(name) if numbers else 0, name))
    places = texts.replace_strict(names, list(range(len(names))), return_dtype=pl.Int16) if names else texts
    return places.cast(pl.Int16).to_numpy().astype(np.int16), tuple(names)


def groups_by_list(column: Any, lists: NDArray[Any], n_lists: int) -> GroupsOfLists:
    """Return the group of each list from the groups of its rows; nothing if the rows of a list disagree.

    Parameters
    ----------
    lists
        The list of each row.

    Examples
    --------
    >>> groups_by_list(["a", "a", "b"], np.array([0, 0, 1]), 2)[1], groups_by_list(["a", "b"], np.array([0, 0]), 1)[1]
    (('a', 'b'), ())
    """
    of_rows, names = named_groups(column)
    if of_rows is None:
        return None, ()
    of_lists = np.zeros(n_lists, dtype=np.int16)
    of_lists[lists] = of_rows
    return (of_lists, names) if np.array_equal(of_lists[lists], of_rows) else (None, ())

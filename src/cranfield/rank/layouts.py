"""The shapes in which tables hold ranked lists, and how each is told from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._spelling import nearest
from cranfield.rank.roles import find_roles


@dataclass(frozen=True)
class Table:
    """Columns as a file or a frame holds them: Polars columns, or pandas ones where those are cheaper to use.

    ``first_row`` is the number a person gives to the first row: 2 in a file with a header.
    """

    columns: Mapping[str, Any]
    source: str
    header: bool = True
    first_row: int = 1

    @property
    def names(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self.columns)


@dataclass(frozen=True)
class Rows:
    """The columns of a run by what they mean, ids as they came.

    With ``sizes`` there is one user for each list, however long; without, one for each row.
    """

    users: Any
    items: Any
    scores: Any = None
    ranks: Any = None
    predictions: Any = None
    sizes: NDArray[np.int64] | None = None
    tag: str | None = None
    columns: Mapping[str, str] | None = None


Given = Mapping[str, str | int | None]


@dataclass(frozen=True)
class Layout:
    """A shape of table: whether a table has it, and how to take it apart."""

    name: str
    says: str
    fits: Callable[[Table, Given], bool]
    take: Callable[[Table, Given], Rows]


def choose_layout(table: Table, given: Given, asked: str | None) -> Layout:
    """Return the layout asked for (by its name or a tool's), or the first that fits."""
    if asked is not None and asked not in LAYOUTS and asked not in TOOLS:
        raise SettingError(f"format={asked!r} is not known{nearest(asked, [*LAYOUTS, *TOOLS])}")
    allowed = LAYOUTS if asked is None else TOOLS.get(asked, (asked,))
    for name in allowed:
        if LAYOUTS[name].fits(table, given):
            return LAYOUTS[name]
    if asked is not None:
        # Whoever names a format shall hear what it lacks, not that it was not recognised.
        return LAYOUTS[[*allowed][-1]]
    raise InputError(
        f"the columns {', '.join(table.names)} do not tell user and item",
        source=table.source,
        remedy="name them: user=..., item=..., score=... or rank=... (a name, or a place from 0)",
    )


def _is_trec(table: Table, _: Given) -> bool:
    """Six columns without a header, of which the fourth and fifth are numbers, as far as the first row tells."""
    if table.header or len(table.columns) != 6:
        return False
    first = [column[0] for column in table.columns.values()]
    return _is_number(first[3]) and _is_number(first[4])


def _take_trec(table: Table, _: Given) -> Rows:
    if len(table.columns) != 6:
        raise InputError(
            f"{len(table.columns)} columns cannot be a TREC run",
            source=table.source,
            remedy="a TREC run has six: user Q0 item rank score tag",
        )
    users, _q0, items, ranks, scores, tags = table.columns.values()
    roles = dict(zip(("user", "q0", "item", "rank", "score", "tag"), table.names))
    return Rows(users, items, scores, ranks, tag=str(tags[0]), columns=roles)


def _is_nested(table: Table, given: Given) -> bool:
    roles = find_roles(table.names, given, table.source)
    return {"user", "item"} <= roles.keys() and _is_list(table.columns[roles["item"]])


def _take_nested(table: Table, given: Given) -> Rows:
    """One row a list: the items in a column of lists, scores in another or both in a structure."""
    roles = find_roles(table.names, given, table.source)
    nested = pl.Series(table.columns[_needed(roles, "item", table)])
    users = table.columns[_needed(roles, "user", table)]
    sizes = nested.list.len().fill_null(0).to_numpy().astype(np.int64)
    if isinstance(nested.dtype, pl.List) and isinstance(nested.dtype.inner, pl.Struct):
        inner = _exploded(nested).struct.unnest()
        fields = find_roles(inner.columns, {}, table.source)
        found = {role: inner[name] for role, name in fields.items()}
        columns = {"user": roles["user"], **{role: f"{nested.name}.{name}" for role, name in fields.items()}}
    else:
        lists = {role: name for role, name in roles.items() if _is_list(table.columns[name])}
        found = {role: _flat(pl.Series(table.columns[name]), sizes, table) for role, name in lists.items()}
        columns = {"user": roles["user"], **lists}
    return _rows(users, found, columns, table, sizes)


def _flat(column: pl.Series, sizes: NDArray[np.int64], table: Table) -> pl.Series:
    mine = column.list.len().fill_null(0).to_numpy()
    if not np.array_equal(mine, sizes):
        row = int(np.flatnonzero(mine != sizes)[0])
        raise InputError(
            f"the list has {mine[row]} entries where that of the items has {sizes[row]}",
            source=table.source,
            row=row + table.first_row,
            column=column.name,
            remedy="give one for each item",
        )
    return _exploded(column)


def _exploded(column: pl.Series) -> pl.Series:
    # An empty list would leave a null behind.
    return column.filter(column.list.len() > 0).explode()


def _is_named(table: Table, given: Given) -> bool:
    roles = find_roles(table.names, given, table.source)
    return (table.header or given.get("user") is not None) and {"user", "item"} <= roles.keys()


def _take_named(table: Table, given: Given) -> Rows:
    roles = find_roles(table.names, given, table.source)
    _needed(roles, "user", table), _needed(roles, "item", table)
    found = {role: table.columns[name] for role, name in roles.items() if role not in ("user", "system")}
    return _rows(table.columns[roles["user"]], found, roles, table)


def _is_mahout(table: Table, _: Given) -> bool:
    if table.header or len(table.columns) != 2:
        return False
    first = list(table.columns.values())[1][0]
    return isinstance(first, str) and first.startswith("[") and first.endswith("]")


def _take_mahout(table: Table, _: Given) -> Rows:
    """``user<tab>[item:score,item:score]``, one line a list."""
    users, texts = (pl.Series(column) for column in table.columns.values())
    pairs = texts.str.strip_chars("[] \t").str.split(",")
    # Splitting nothing gives one empty piece.
    sizes = np.where(texts.str.contains(r"^\[\s*\]$"), 0, pairs.list.len()).astype(np.int64)
    flat = pairs.explode().to_frame("pair").filter(pl.col("pair") != "")
    split = flat.select(pl.col("pair").str.strip_chars().str.extract_groups(r"^(?<item>.*):(?<score>[^:]*)$"))
    found = split["pair"].struct.unnest()
    return _rows(users, {"item": found["item"], "score": found["score"]}, {}, table, sizes)


def _is_bare(width: int) -> Callable[[Table, Given], bool]:
    return lambda table, _: not table.header and len(table.columns) == width


def _take_bare(roles: Sequence[str]) -> Callable[[Table, Given], Rows]:
    def take(table: Table, given: Given) -> Rows:
        if len(table.columns) < len(roles):
            raise InputError(
                f"{len(table.columns)} columns are too few for {', '.join(roles)}",
                source=table.source,
                remedy="choose another format=",
            )
        places = {role: place for place, role in enumerate(roles)}
        return _take_named(table, {**dict.fromkeys(("rank", "prediction")), **places, **_chosen(given)})

    return take


def _chosen(given: Given) -> dict[str, str | int]:
    return {role: column for role, column in given.items() if column is not None}


def _rows(
    users: Any,
    found: Mapping[str, Any],
    columns: Mapping[str, str],
    table: Table,
    sizes: NDArray[np.int64] | None = None,
) -> Rows:
    if "item" not in found:
        raise InputError("no column tells the items", source=table.source, remedy="name it: item=...")
    score, prediction = found.get("score"), found.get("prediction")
    if score is None and "rank" not in found:
        # A predicted rating alone is also what the list is ordered by.
        score = prediction
    return Rows(users, found["item"], score, found.get("rank"), prediction, sizes, columns=dict(columns))


def _needed(roles: Mapping[str, str], role: str, table: Table) -> str:
    if role not in roles:
        raise InputError(
            f"no column tells the {role}; there are {', '.join(table.names)}",
            source=table.source,
            remedy=f"name it: {role}=...",
        )
    return roles[role]


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_list(column: Any) -> bool:
    return isinstance(column, pl.Series) and isinstance(column.dtype, (pl.List, pl.Array))


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("trec", "user Q0 item rank score tag, no header", _is_trec, _take_trec),
        Layout("mahout", "user, then [item:score,...], no header", _is_mahout, _take_mahout),
        Layout("nested", "one row a list, items in a column of lists", _is_nested, _take_nested),
        Layout("table", "one row an item, columns told by their names", _is_named, _take_named),
        Layout("triples", "user item score, no header", _is_bare(3), _take_bare(("user", "item", "score"))),
        Layout("pairs", "user item, best first, no header", _is_bare(2), _take_bare(("user", "item"))),
    )
}
"""The layouts by name, in the order in which they are tried."""

TOOLS = {
    "elliot": ("triples",),
    "lenskit": ("nested", "table"),
    "ranksys": ("trec", "mahout", "triples"),
    "ranx": ("trec", "table"),
    "recbole": ("nested", "table"),
    "recommenders": ("table",),
    "rectools": ("table",),
    "replay": ("table",),
    "trec_eval": ("trec",),
}
"""The layouts in which a tool writes recommendations, in the order in which they are tried."""

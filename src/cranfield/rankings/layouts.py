"""The layouts of tables of ranked lists, and how each is recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError, nearest
from cranfield.rankings.columns import find_roles
from cranfield.rankings.run import ONE_RELEVANT
from cranfield.rankings.sources import Roles, Rows, RunTable, StatedColumns
from cranfield.rankings.text import are_lists, are_several, have_scores, in_brackets, taken_apart
from cranfield.tables import Fault, TextTable, as_series, is_number

# The roles of columns with a value for each item.
_OF_ITEMS = ("score", "rank", "prediction")


@dataclass(frozen=True)
class RunLayout:
    """A layout of tables: how to find the roles of the columns if a table has it, and how to read the rows."""

    name: str
    says: str
    roles: Callable[[RunTable, StatedColumns], Roles | None]
    take: Callable[[RunTable, Roles], Rows]


def choose_layout(table: RunTable, stated: StatedColumns, wanted: str | None) -> tuple[RunLayout, Roles]:
    """Return the requested layout (by its name or a tool's) or the first that fits, and the roles of the columns."""
    if wanted is not None and wanted not in LAYOUTS and wanted not in TOOLS:
        raise SettingError(f"format={wanted!r} is not known{nearest(wanted, [*LAYOUTS, *TOOLS])}")
    for name in LAYOUTS if wanted is None else TOOLS.get(wanted, (wanted,)):
        roles = LAYOUTS[name].roles(table, stated)
        if roles is not None:
            return LAYOUTS[name], roles
    if wanted is None and _are_qrels(table):
        raise InputError(
            "the file holds relevance judgments (qrels), not ranked lists",
            source=table.source,
            remedy="give it as the test set (test=...), and the lists of a system as the run",
        )
    columns = ", ".join(table.names) if table.header else f"{len(table.names)} columns without names"
    if wanted is not None:
        says = "; or ".join(LAYOUTS[name].says for name in TOOLS.get(wanted, (wanted,)))
        raise InputError(f"{columns} cannot be format={wanted!r}, which is {says}", source=table.source)
    raise InputError(
        f"{columns} do not say which one is the user and which the item",
        source=table.source,
        remedy="name them, or count them from 1: user=..., item=..., score=... or rank=...",
    )


def _are_qrels(table: RunTable) -> bool:
    """Whether a table contains TREC judgments: user, 0, item, grade."""
    if table.header or len(table.names) != 4:
        return False
    iterations = table.sample(table.names[1])
    return bool(iterations) and all(str(iteration).strip() in ("0", "Q0", "00") for iteration in iterations)


def _trec_roles(table: RunTable, _: StatedColumns) -> Roles | None:
    if table.header or len(table.names) != 6 or not (is_number(f"{table.first(3)}") and is_number(f"{table.first(4)}")):
        return None
    user, _q0, item, rank, score, tag = table.names
    return {"user": user, "item": item, "rank": rank, "score": score, "tag": tag}


def _take_trec(table: RunTable, roles: Roles) -> Rows:
    tag = str(table.first(5))
    return replace(_take_rows(table, {role: name for role, name in roles.items() if role != "tag"}), tag=tag)


def _mahout_roles(table: RunTable, _: StatedColumns) -> Roles | None:
    if table.header or len(table.names) != 2:
        return None
    first = table.first(1)
    whole = isinstance(first, str) and first.strip().startswith("[") and first.strip().endswith("]")
    return dict(zip(("user", "item"), table.names)) if whole and (":" in first or first.strip() == "[]") else None


def _take_mahout(table: RunTable, roles: Roles) -> Rows:
    columns = table.fetch(roles)
    pairs = columns["item"].cast(pl.String).str.strip_chars("[] \t").str.split(",")
    # Splitting an empty text gives one empty piece.
    pairs = pairs.list.eval(pl.element().filter(pl.element() != ""))
    entry = _exploded(pairs).str.strip_chars().str.extract_groups(r"^(?<item>.*):(?<score>[^:]*)$").struct.unnest()
    return Rows(columns["user"], entry["item"], entry["score"], sizes=_sizes(pairs))


def _nested_roles(table: RunTable, stated: StatedColumns) -> Roles | None:
    roles = _named_roles(table, stated)
    if roles is None or not _is_list(table.head[roles["item"]]):
        return None
    return {role: name for role, name in roles.items() if role in ("user", "item", *_OF_ITEMS)}


def _take_nested(table: RunTable, roles: Roles) -> Rows:
    columns = table.fetch(roles)
    nested = columns["item"]
    sizes = _sizes(nested)
    if isinstance(nested.dtype, pl.List) and isinstance(nested.dtype.inner, pl.Struct):
        inner = _exploded(nested).struct.unnest()
        fields = find_roles(inner.columns, {}, table.source)
        if "item" not in fields:
            raise InputError(
                f"the fields {', '.join(inner.columns)} do not say which one is the item",
                source=table.source,
                column=roles["item"],
                remedy="name one of them item",
            )
        flat = {role: inner[name] for role, name in fields.items()}
    else:
        flat = {"item": _exploded(nested)}
    beside = {role: _aligned(columns[role], sizes, role, table) for role in _OF_ITEMS if role in columns.keys() - flat}
    return _rows(columns["user"], {**beside, **flat}, sizes)


def _joined_roles(table: RunTable, stated: StatedColumns) -> Roles | None:
    roles = _named_roles(table, stated)
    if roles is None and not table.header and len(table.names) in (2, 3):
        roles = dict(zip(("user", "item", "score"), table.names))
    if roles is None or not are_lists(table.sample(roles["item"]), table.sample(roles["user"]), roles["item"]):
        return None
    for role in _OF_ITEMS:
        # Beside lists in brackets, a single value belongs to a single item.
        if role in roles and not (are_several(table.sample(roles[role])) or in_brackets(table.sample(roles["item"]))):
            return None
    return {role: name for role, name in roles.items() if role in ("user", "item", *_OF_ITEMS)}


def _take_joined(table: RunTable, roles: Roles) -> Rows:
    columns = dict(table.fetch(roles))
    users = columns.pop("user")
    lists = {role: taken_apart(as_series(column)) for role, column in columns.items()}
    sizes = _sizes(lists["item"])
    entries = {role: _aligned(column, sizes, role, table) for role, column in lists.items()}
    if set(entries) == {"item"} and have_scores(table.sample(roles["item"])):
        pairs = entries["item"].str.extract_groups(r"^(?<item>.*):(?<score>[^:]*)$").struct.unnest()
        entries = {"item": pairs["item"], "score": pairs["score"]}
    return _rows(users, {**entries, "item": TextTable.ids(entries["item"])}, sizes)


def _aligned(column: Any, sizes: NDArray[np.int64], role: str, table: RunTable) -> pl.Series:
    """Return the values of lists that stand beside lists of items; a single value may stand beside a single item."""
    single = not _is_list(column)
    mine = np.minimum(sizes, 1) if single else _sizes(column)
    if not np.array_equal(mine, sizes):
        row = int(np.argmax(mine != sizes))
        problem = f"the list has {mine[row]} entries, but the list of items has {sizes[row]}"
        problem = f"there is one {role} for a list of {sizes[row]} items" if single else problem
        raise table.error(Fault(row, problem, "give one for each item"), role)
    return as_series(column).filter(pl.Series(sizes > 0)) if single else _exploded(column)


def _named_roles(table: RunTable, stated: StatedColumns) -> Roles | None:
    roles = find_roles(table.names, stated, table.source)
    if not table.header:  # columns without names have only the roles that the caller states
        roles = {role: name for role, name in roles.items() if stated.get(role) is not None}
    return roles if {"user", "item"} <= roles.keys() else None


def _one_relevant_roles(table: RunTable, _: StatedColumns) -> Roles | None:
    # Exactly the names that `write_run` writes: in other files, a column called length may be anything.
    fits = table.header and tuple(table.names) in (ONE_RELEVANT, (*ONE_RELEVANT, "group"))
    return {name: name for name in table.names} if fits else None


def _take_one_relevant(table: RunTable, roles: Roles) -> Rows:
    columns = table.fetch(roles)
    ranks, lengths, groups = (columns.get(name) for name in ("rank", "length", "group"))
    return Rows(columns["user"], columns["item"], ranks=ranks, lengths=lengths, groups=groups)


def _bare_roles(*roles: str) -> Callable[[RunTable, StatedColumns], Roles | None]:
    def find(table: RunTable, _: StatedColumns) -> Roles | None:
        fits = not table.header and len(table.names) == len(roles)
        return dict(zip(roles, table.names)) if fits else None

    return find


def _take_rows(table: RunTable, roles: Roles) -> Rows:
    columns = dict(table.fetch({role: name for role, name in roles.items() if role != "system"}))
    return _rows(columns.pop("user"), columns)


def _rows(users: Any, columns: Mapping[str, Any], sizes: NDArray[np.int64] | None = None) -> Rows:
    score, prediction = columns.get("score"), columns.get("prediction")
    if score is None and "rank" not in columns:
        # A predicted rating without a score or rank also orders the list.
        score = prediction
    return Rows(users, columns["item"], score, columns.get("rank"), prediction, sizes, groups=columns.get("group"))


def _is_list(column: Any) -> bool:
    return isinstance(column, pl.Series) and isinstance(column.dtype, (pl.List, pl.Array))


def _sizes(column: pl.Series) -> NDArray[np.int64]:
    if isinstance(column.dtype, pl.Array):
        return np.full(len(column), column.dtype.size, dtype=np.int64)
    return column.list.len().fill_null(0).to_numpy().astype(np.int64)


def _exploded(column: pl.Series) -> pl.Series:
    # Exploding an empty list would give a null.
    return column.filter(pl.Series(_sizes(column) > 0)).explode()


LAYOUTS: Mapping[str, RunLayout] = {
    layout.name: layout
    for layout in (
        RunLayout("trec", "user Q0 item rank score tag, without a header", _trec_roles, _take_trec),
        RunLayout("mahout", "user and [item:score,...], without a header", _mahout_roles, _take_mahout),
        RunLayout("nested", "one row per list, its items in a column of lists", _nested_roles, _take_nested),
        RunLayout(
            "joined", "one row per list, its items joined in one cell: '181 173 195'", _joined_roles, _take_joined
        ),
        RunLayout(
            "one-relevant", "one row per list: user, item, rank, length", _one_relevant_roles, _take_one_relevant
        ),
        RunLayout("table", "one row per item, columns known by their names", _named_roles, _take_rows),
        RunLayout("triples", "user item score, without a header", _bare_roles("user", "item", "score"), _take_rows),
        RunLayout("pairs", "user item, best first, without a header", _bare_roles("user", "item"), _take_rows),
    )
}
"""The layouts by name, in the order in which they are tried."""

TOOLS: Mapping[str, Sequence[str]] = {
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

"""Sources of ranked lists as tables: files (text, Parquet, Arrow, JSON; plain or compressed), frames, dictionaries."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._record import check_unchanged
from cranfield._registry import parse
from cranfield._terminal import shown
from cranfield.rankings.columns import find_roles
from cranfield.rankings.lists import Gaps, ListOrder, Ties
from cranfield.rankings.text import find_cells, gap, has_wide_gaps, single_tabs, tidy_trec
from cranfield.tables import (
    Fault,
    FrameTable,
    Layout,
    TextTable,
    as_series,
    as_utf8,
    contents,
    file_and_member,
    is_number,
    is_parquet,
    is_parquet_folder,
    refuse_text_options,
    unpacked,
)

SAMPLE = 100
"""Number of rows to inspect for the content of a column."""

_ARROW = b"ARROW1"
_LZ4 = b"\x04\x22\x4d\x18"  # ranx's own files
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_KINDS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".arrow", ".ipc", ".feather", ".json")
_HABITS = (".run", ".trec", ".recs", ".res", ".out", ".inter", ".qrels", ".qrel")

Roles = Mapping[str, str]
"""The name of the column of each role: user, item, score and so on."""

StatedColumns = Mapping[str, str | int | None]
"""The columns that the user states: role to name or position, None for roles that are not stated."""

ROLES = ("user", "item", "score", "rank", "prediction")
"""The roles of columns that can be stated."""


@dataclass(frozen=True)
class Rows:
    """The columns of a run by their roles, with the original ids."""

    users: Any
    items: Any
    scores: Any = None
    ranks: Any = None
    predictions: Any = None
    sizes: NDArray[np.int64] | None = None  # of lists that have one user each; without, each row has a user
    tag: str | None = None
    lengths: Any = None  # every row is a list of this length, of which only the rank of the one relevant item is known
    groups: Any = None  # the group of the list of each row


@dataclass(frozen=True)
class RunTable:
    """A table of ranked lists from any source, before the roles of its columns are known."""

    head: Mapping[str, Any]  # the columns by name, or only their first rows, which are enough to detect the layout
    source: str  # the name of the table in messages
    header: bool  # whether its columns have names
    fetch: Callable[[Roles], Mapping[str, Any]]  # returns whole columns of Polars or pandas
    error: Callable[[Fault, str], InputError]  # locates a fault in the column of a role: file, row from 1, column
    rows: Rows | None = None  # those of a dictionary, whose layout is known
    name: str | None = None  # the name of the system
    about: Mapping[str, Any] = field(default_factory=dict)  # fields of the run, from the record next to a file

    @property
    def names(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self.head)

    def sample(self, name: str) -> list[Any]:
        """Return the first values of a column."""
        column = self.head[name]
        return list(column.head(SAMPLE) if hasattr(column, "head") else column[:SAMPLE])

    def first(self, place: int) -> Any:
        """Return the first value of a column."""
        return self.sample(self.names[place])[0]


def system_name(path: Path) -> str:
    """Return the name of a file without its endings: ``knn(k=0.5)`` for ``runs/knn(k=0.5).tsv.gz``."""
    name = path.name
    while Path(name).suffix.lower() in _COMPRESSED + _KINDS + _HABITS:
        name = Path(name).stem
    # A file name may contain any character, but the name of a system is printed.
    return shown(name)


def file_name(systems: Iterable[str]) -> dict[str, str]:
    """Return a file stem for each spelled system, by the name of its run.

    The stem is the name without spaces. Characters that are special in file systems or shells become underscores.
    """
    stems: dict[str, str] = {}
    for system in systems:
        name = str(parse(system))
        stem = re.sub(r"[^\w.()=,+-]", "_", name.replace(" ", ""))
        if stem in stems.values():
            raise SettingError(f"two systems would be written to the file {stem!r}; give each system once")
        stems[name] = stem
    return stems


@dataclass(frozen=True)
class RunReading:
    """How a source of ranked lists is read, whole, by ranges of users or on Spark.

    The options are those of `read_run`; ``system`` is the column of system names of `read_runs`. A table among others
    (``among_others``) keeps its own name, unless that column names several systems.
    """

    name: str | None = None
    tag: bool = False
    format: str | None = None
    ties: Ties | None = None
    gaps: Gaps = "keep"
    user: str | int | None = None
    item: str | int | None = None
    score: str | int | None = None
    rank: str | int | None = None
    prediction: str | int | None = None
    system: str | int | None = None
    separator: str | None = None
    header: bool | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    among_others: bool = False
    order: ListOrder = field(init=False)

    def __post_init__(self) -> None:
        order = ListOrder("trec_eval" if self.ties is None else self.ties, self.gaps)
        object.__setattr__(self, "order", order)

    @property
    def columns(self) -> StatedColumns:
        """The columns that are stated, by role."""
        return {role: getattr(self, role) for role in ROLES}

    @property
    def named_columns(self) -> list[str]:
        """The columns that are stated by name, which a header would contain."""
        return [column for column in (*self.columns.values(), self.system) if isinstance(column, str)]

    def roles_by_system(self, names: Sequence[str], source: str) -> dict[str, str]:
        """Return the roles of the columns of a table if one of them names systems; otherwise nothing."""
        roles = find_roles(names, {**self.columns, "system": self.system}, source)
        return roles if {"user", "item", "system"} <= roles.keys() else {}

    def refuse_text(self, label: str) -> None:
        """Refuse options of text files for a source that is not text."""
        refuse_text_options(label, self.separator, self.header, self.quote, self.encoding)

    def refuse_tag(self, label: str) -> None:
        """Refuse to name the system by the tag of a source that has none."""
        if self.tag:
            raise SettingError(f"{label} has no tag to name the system by; only TREC runs have one; leave tag=... out")


def table_of_file(path: Path, reading: RunReading) -> RunTable:
    """Return the table in a file, or in a folder of parts (``part-00000``, ...), as Spark and Mahout write."""
    path = meant(path)
    if path.is_dir() and not is_parquet_folder(path) and (parts := sorted(path.glob("part-*"))):
        texts = [file_text(part) for part in parts]
        return _of_text(b"\n".join(text[0] for text in texts if text), str(path), reading)
    text = file_text(path)
    if text is None:
        reading.refuse_text(str(path))
        return _of_table(FrameTable.of_parquet(path, str(path)))
    return table_of_bytes(*text, reading)


def table_of_bytes(data: bytes, label: str, reading: RunReading) -> RunTable:
    """Return the table in the content of a file."""
    if is_parquet(data) or data.startswith(_ARROW):
        reading.refuse_text(label)
        if is_parquet(data):
            return _of_table(FrameTable.of_parquet(data, label))
        return _of_table(FrameTable(pl.scan_ipc(io.BytesIO(data)), label))
    lists = json_lists(data, label)
    return _of_text(data, label, reading) if lists is None else table_of_dict(lists, label)


def file_text(path: Path) -> tuple[bytes, str] | None:
    """Return the decompressed content of a file and its label; None for Parquet, which need not be in memory."""
    if is_parquet_folder(path := meant(path)):
        return None
    path, member = file_and_member(path)
    check_unchanged(path)
    if is_parquet(path):
        return None
    data, label = unpacked(contents(path), str(path), member)
    if data.startswith(_LZ4):
        raise InputError("LZ4 is not read", source=label, remedy="save it as .json, .trec or .parquet instead")
    return data, label


def json_lists(data: bytes, label: str) -> Mapping[str, Any] | None:
    """Return the dictionary if the text is JSON, otherwise None."""
    if data[:1000].lstrip()[:1] != b"{":
        return None
    try:
        lists: Mapping[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the JSON cannot be read ({error})", source=label, remedy="write one object, {user: {item: score}}"
        ) from error
    return lists


def _of_table(table: FrameTable) -> RunTable:
    head = table.head()
    return RunTable(head.to_dict(), table.label, True, *_access(table, head.columns))


def _of_text(data: bytes, label: str, reading: RunReading) -> RunTable:
    separator, header, wanted = reading.separator, reading.header, reading.named_columns
    data = as_utf8(data, reading.encoding, label)
    tidy = tidy_trec(data, 6) if separator is None else None
    quote = reading.quote if tidy is None else None  # TREC has no quotes
    if tidy is not None:
        data, separator = tidy, gap(tidy)
    elif separator is None:
        data, separator = find_cells(data)
    body = data.lstrip(b"\r\n")
    above = data.count(b"\n", 0, len(data) - len(body))
    table = TextTable.of(body, label, separator=separator, header=header, quote=quote, wanted=wanted)
    if separator is None and tidy is None and table.layout.separator == " " and has_wide_gaps(body):
        body, separator = single_tabs(body), "\t"
        table = TextTable.of(body, label, separator=separator, header=header, quote=quote, wanted=wanted)
    if header is None and _has_header(table.layout, wanted) != (table.layout.names is not None):
        named = table.layout.names is None
        table = TextTable.of(body, label, separator=separator, header=named, quote=quote, wanted=wanted)
    table.layout = layout = replace(table.layout, first_line=table.layout.first_line + above)
    if not layout.sample:
        raise InputError("there are no rows", source=label, remedy="give a run with at least one list")
    names = layout.names or [f"column {place + 1}" for place in range(layout.width)]
    _refuse_same_names(names, label)
    head = {name: [row[place] for row in layout.sample] for place, name in enumerate(names)}
    return RunTable(head, label, layout.names is not None, *_access(table, list(names)))


def _has_header(layout: Layout, wanted: Sequence[str]) -> bool:
    """Whether the first row names the columns: it has no number, and known names, or words above numbers."""
    first = [field.strip() for field in layout.names or layout.sample[0]]
    if any(name in first for name in wanted):
        return True
    if any(is_number(field) or field.startswith("[") for field in first):
        return False
    return layout.names is not None or {"user", "item"} <= find_roles(first, {}, "").keys()


def _refuse_same_names(names: Sequence[str], label: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError("two columns have this name", source=label, column=twice, remedy="rename one")


def _access(table: TextTable | FrameTable, names: Sequence[str]) -> tuple[Any, Any]:
    """Return functions that fetch the columns of roles from a table of ratings, and that locate a fault in it."""

    def called(role: str) -> Any:
        # The rating is the only column of a text file that is parsed as numbers.
        return "rating" if role == "score" else role

    def fetch(roles: Roles) -> dict[str, pl.Series]:
        table.load({called(role): names.index(name) for role, name in roles.items()})
        return {role: table.column(called(role)) for role in roles}

    def error(fault: Fault, role: str) -> InputError:
        return table.error(fault, called(role))

    return fetch, error


def is_frame(source: Any) -> bool:
    """Whether this is a dataframe: of pandas, Polars, or any library that supports Arrow."""
    return isinstance(source, pl.LazyFrame) or hasattr(source, "__arrow_c_stream__") or is_pandas(source)


def is_pandas(frame: Any) -> bool:
    """Whether this is a pandas dataframe."""
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def table_of_columns(columns: Mapping[str, Any], source: str, *, header: bool = True) -> RunTable:
    """Make a table of columns in memory; its first row is row 1."""
    wanted: dict[str, str] = {}

    def fetch(roles: Roles) -> dict[str, Any]:
        wanted.update(roles)
        return {role: columns[name] for role, name in roles.items()}

    def error(fault: Fault, role: str) -> InputError:
        column = wanted.get(role)
        return InputError(fault.problem, source=source, row=fault.row + 1, column=column, remedy=fault.remedy)

    return RunTable(columns, source, header, fetch, error)


def table_of_tuples(rows: list[tuple[Any, ...]]) -> RunTable:
    """Return the columns of a list of tuples, which have no names."""
    width = len(rows[0])
    odd = next((place for place, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise InputError(
            f"the tuple has {len(rows[odd])} entries, but the first has {width}",
            source="the list",
            row=odd + 1,
            remedy="give tuples of one length",
        )
    columns = {f"column {place + 1}": as_series(list(column)) for place, column in enumerate(zip(*rows))}
    return table_of_columns(columns, "the list", header=False)


def table_of_frame(frame: Any) -> RunTable:
    """Return the columns of a dataframe of pandas, Polars or a library with Arrow support (PyArrow, DuckDB, ...)."""
    source = f"the {type(frame).__name__}"
    if is_pandas(frame):  # pandas hashes its text faster than it can be converted
        columns = _pandas_columns(frame, source)
    else:
        frame = frame.collect() if isinstance(frame, pl.LazyFrame) else pl.DataFrame(frame)
        columns = frame.to_dict()
    # pandas names the columns of a file without a header 0, 1, 2, and Polars column_1, column_2.
    header = not all(name.removeprefix("column_").isdecimal() for name in columns)
    return table_of_columns(columns, source, header=header)


def _pandas_columns(frame: Any, source: str) -> dict[str, Any]:
    named_levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named_levels:
        frame = frame.reset_index(named_levels)
    names = [str(name) for name in frame.columns]
    _refuse_same_names(names, source)
    columns = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    for name, column in columns.items():
        if column.dtype == object and len(column) and isinstance(column.iloc[0], (list, tuple, np.ndarray)):
            columns[name] = pl.Series(column.name, [list(value) for value in column])
    return columns


def table_of_dict(lists: Mapping[Any, Any], source: str = "the dictionary") -> RunTable:
    """Return the table of a dictionary of columns, as `cranfield.read` takes them, or of lists by user."""
    named = {"user", "item"} <= lists.keys() or {"user_id", "item_id"} <= lists.keys()
    columns = [values for values in lists.values() if hasattr(values, "__len__") and not isinstance(values, Mapping)]
    if named and len(columns) == len(lists) and len({len(values) for values in columns}) == 1:
        return table_of_columns({column: as_series(values) for column, values in lists.items()}, source)

    def error(fault: Fault, _: str) -> InputError:
        return InputError(f"{fault.problem} (list {fault.row + 1})", source=source, remedy=fault.remedy)

    rows = rows_of_dict(lists, source)
    return RunTable({}, source, True, lambda _: {}, error, rows)


def rows_of_dict(lists: Mapping[Any, Any], source: str) -> Rows:
    """Return the rows of a dictionary from user to ``{item: score}``, ``[(item, score), ...]`` or ``[item, ...]``.

    The first is the format of pytrec_eval and ranx, the second that of Elliot, the third a ranking without scores.
    """
    values = [_as_list(value, user, source) for user, value in lists.items()]
    sizes = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    some = next((value for value in values if len(value)), None)
    if isinstance(some, Mapping):
        for user, value in zip(lists, values):
            if len(value) and not isinstance(value, Mapping):
                raise InputError(
                    f"user {user!r} has a plain list, but others have scores",
                    source=source,
                    remedy="give every user {item: score}",
                )
        items: list[Any] = list(chain.from_iterable(values))
        numbers: Iterable[Any] | None = chain.from_iterable(value.values() for value in values)
    elif some is not None and all(_is_pair(entry) for value in values for entry in value):
        items = [entry[0] for value in values for entry in value]
        numbers = (entry[1] for value in values for entry in value)
    else:
        items, numbers = list(chain.from_iterable(values)), None
    scores = None if numbers is None else _scores(list(numbers), items, source)
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


def _scores(values: list[Any], items: list[Any], source: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    scores = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        try:
            scores[place] = np.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"the score {value!r} of item {items[place]!r} is not a number"
            if isinstance(error, OverflowError):
                problem = f"the score of item {items[place]!r} is too large a number"
            raise InputError(problem, source=source, remedy="fix it or leave it out") from None
    return scores

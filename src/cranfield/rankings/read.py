"""Reading of runs: files, frames and dictionaries of ranked lists become `Run`s."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield._own_code import names_code
from cranfield._record import Step, made_of
from cranfield.rankings.calibrating import predicts_ratings
from cranfield.rankings.calibration import Calibration
from cranfield.rankings.dicts import rows_of_dict
from cranfield.rankings.encode import encode
from cranfield.rankings.files import TextOptions, open_bytes, open_file, system_name
from cranfield.rankings.frames import is_frame, table_of_frame, table_of_tuples
from cranfield.rankings.groups import groups_by_list, named_groups
from cranfield.rankings.layouts import LAYOUTS, GivenColumns, Rows, choose_layout
from cranfield.rankings.lists import Gaps, ListEntries, ListOrder, Ties, arrange, first_rank, lengths_of
from cranfield.rankings.names import file_name
from cranfield.rankings.numbers import numbers
from cranfield.rankings.roles import find_roles
from cranfield.rankings.run import Run
from cranfield.rankings.serving import made_for
from cranfield.rankings.table import Roles, RunTable, table_of_columns
from cranfield.recommenders import displayed_name, recommender
from cranfield.tables import Fault, Vocabulary, as_series, unpacked

RunSource = Any
"""A path, a dataframe of any library, a dictionary, a run of ranx, a collection of LensKit."""

Codes = NDArray[np.int32]

_NOTES = {
    "nan_scores": "{:,} items without a score (NaN) were dropped: the system could not compute them",
    "duplicate_items": "{:,} items were in their list more than once; the best ranked was kept",
    "tied_items": "{:,} items share their score with another of their list",
    "rank_disagreements": "{:,} lists have a different order by rank than by score; the scores were used",
    "empty_lists": "{:,} lists are empty; their users are not covered",
    "unranked": "{:,} items were not ranked",
    "missing_ranks": "{:,} ranks are missing, and count as places with an unknown item",
    "lists_with_gaps": "{:,} lists have ranks that leave places out",
    "lists_in_row_order": "{:,} lists have neither scores nor ranks, and are taken in the order of the rows",
    "joined_lists": "{:,} lists were written in one cell each, and split",
}


# The layouts in which a cell contains a whole list.
_IN_CELLS = ("joined", "nested")


def read_run(
    source: RunSource,
    *,
    name: str | None = None,
    tag: bool = False,
    format: str | None = None,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    user: str | int | None = None,
    item: str | int | None = None,
    score: str | int | None = None,
    rank: str | int | None = None,
    prediction: str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> Run:
    """Read the ranked lists of one system.

    Parameters
    ----------
    source
        A path or an open file (TREC run, CSV, TSV, any text with a separator, Parquet, Arrow, JSON; compressed or not),
        a dataframe of any library, a list of tuples (user, item[, score]), or a dictionary: ``{user: {item: score}}``,
        ``{user: [(item, score), ...]}``, ``{user: [item, ...]}``, or columns as in ``{"user": [...], "item": [...],
        "score": [...]}``.
    name
        The system's name; by default the file's name without its endings.
    tag
        Take the name from the tag of a TREC run instead.
    format
        The layout (detected by default): ``"trec"``, ``"table"``, ``"triples"``, ``"pairs"``, ``"nested"``,
        ``"mahout"``, ``"one-relevant"``, or the tool that wrote it: ``"elliot"``, ``"lenskit"``, ``"ranksys"``,
        ``"recbole"``, ``"rectools"``, ...
    ties
        How items of equal score are ordered: ``"trec_eval"``, by item id as text, descending; ``"input"``, in input
        order; ``"average"``, metrics in expectation over all orders of the tied items. By default a `Run` keeps the
        order that it has, and everything else is read in trec_eval's order.
    gaps
        What ranks mean if there are no scores. ``"keep"``: a rank is a place in a list, counted from 0 if any rank of
        the source is 0, otherwise from 1. A place that no rank names has an unknown item. Items of equal rank take the
        places from their rank on, and an item whose place is taken has the next one: the ranks 1, 1, 2 and 1, 1, 3 are
        both the places 1, 2, 3. ``"close"``: ranks are only an order.
    user, item, score, rank, prediction
        Names (or positions, from 1) of columns that are not recognised by their names. ``prediction`` is a predicted
        rating that does not order the list.
    separator, header, quote, encoding
        The format of a text file; detected by default. See `cranfield.read`.

    Returns
    -------
    Run
        Its lists are ordered by descending score; without scores, by ascending rank; without ranks, in the order of the
        rows. `Run.counts` and the last step of `Run.history` say what was changed while reading.

    Examples
    --------
    >>> run = read_run({"ann": {"x": 0.3, "y": 0.9}, "bob": {"x": 0.1}}, name="knn")
    >>> run
    Run(knn: 2 lists, 3 items)
    >>> run.frame().rows()
    [('ann', 'y', 1, 0.9), ('ann', 'x', 2, 0.3), ('bob', 'x', 1, 0.1)]
    """
    order = _order(ties, gaps)
    if isinstance(source, Run):
        source = source if ties is None else source.with_ties(ties)
        source = source.without_gaps() if gaps == "close" else source
        return source if name is None else replace(source, name=name)
    given: GivenColumns = {"user": user, "item": item, "score": score, "rank": rank, "prediction": prediction}
    content = _content(source, TextOptions(separator, header, quote, encoding, _names(given)))
    return _one_run(content, given, name=name, tag=tag, format=format, order=order)


def _order(ties: Ties | None, gaps: Gaps) -> ListOrder:
    return ListOrder("trec_eval" if ties is None else ties, gaps)


def read_part(frame: pl.DataFrame, roles: Roles, order: ListOrder, *, name: str, layout: str) -> Run:
    """Read the lists of some users, given all their rows and what follows from the rows of all users."""
    table = table_of_frame(frame)
    return _run(_Opened(LAYOUTS[layout].take(table, roles), layout, table.source, None, roles, table), name, order)


def read_runs(sources: Any, *, system: str | int | None = None, **reading: Any) -> list[Run]:
    """Read the runs of several systems.

    Parameters
    ----------
    sources
        A dictionary from name to source, several sources, or one table (a file or a frame) with a column of system
        names. A table among several sources keeps its own name, unless that column names several systems.
    system
        The column of system names, if it is not called system, model, run, tag, algorithm, ...
    reading
        As for `read_run`.

    Examples
    --------
    >>> read_runs({"a": {"ann": ["x", "y"]}, "b": {"ann": ["y"]}})
    [Run(a: 1 lists, 2 items), Run(b: 1 lists, 1 items)]
    """
    if isinstance(sources, Mapping):
        runs = [read_run(source, name=str(name), **reading) for name, source in sources.items()]
    elif is_one_source(sources):
        runs = _by_system(sources, system, reading)
    elif isinstance(sources, Iterable):
        runs = [run for source in sources for run in _by_system(source, system, reading, among_others=True)]
    else:
        raise _not_a_source(sources)
    if not runs:
        raise InputError("there are no runs", remedy="give at least one file, frame or dictionary")
    return check_names(runs)


def is_one_source(sources: Any) -> bool:
    """Whether this is one file or frame, not several of them."""
    return isinstance(sources, (str, os.PathLike)) or is_frame(sources) or hasattr(sources, "read")


def check_names(runs: list[Run]) -> list[Run]:
    """Return the runs, or raise an error if two have the same name."""
    check_system_names([run.name for run in runs])
    return runs


def check_system_names(names: list[str]) -> list[str]:
    """Return the names, or raise an error if two are the same."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"two systems are called {name!r}", remedy="rename a file, or give a dictionary from name to source"
            )
    return names


@dataclass(frozen=True)
class _Opened:
    """A parsed source: its rows, the detected format, and its label."""

    rows: Rows
    format: str
    source: str
    name: str | None
    roles: Roles
    table: RunTable | None = None

    def error(self, fault: Fault, role: str) -> InputError:
        """Locate a fault in the source, as exactly as its kind allows."""
        row, sizes = fault.row, self.rows.sizes
        if sizes is not None and role != "user":
            row = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
        if self.table is not None:
            return self.table.error(Fault(row, fault.problem, fault.remedy), role)
        return InputError(f"{fault.problem} (list {row + 1})", source=self.source, remedy=fault.remedy)


@dataclass(frozen=True)
class _Content:
    """The content of a source, the name of its system, its label, and the fields from the record next to it."""

    held: RunTable | Mapping[Any, Any]
    name: str | None
    word: str
    about: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the record of the run, by name."""


def name_of_run(path: Path) -> str:
    """Return the name of a file's system: the display name if cranfield made the file, otherwise the file's name."""
    spelling = (made_of(path) or {}).get("system")
    name = system_name(path)
    return displayed_name(spelling) if isinstance(spelling, str) and file_name([spelling]) == {spelling: name} else name


def _content(source: RunSource, options: TextOptions) -> _Content:
    name, word, about = None, "the dictionary", {}
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        name, word, about = name_of_run(path), str(path), about_run(path)
        source = open_file(path, options)
    elif hasattr(source, "read") and not is_frame(source):
        content, label = source.read(), str(getattr(source, "name", "the open file"))
        content = content.encode() if isinstance(content, str) else content
        source = open_bytes(*unpacked(content, label), options)
    elif _comes_from(source, "ranx") and hasattr(source, "to_dict"):
        name, word, source = source.name, "the run", source.to_dict()
    elif _comes_from(source, "lenskit") and hasattr(source, "to_arrow"):
        source = source.to_arrow()
    if isinstance(source, list) and source and all(isinstance(row, tuple) for row in source):
        source = table_of_tuples(source)
    if isinstance(source, Mapping) and _are_columns(source):
        source = table_of_columns({column: as_series(values) for column, values in source.items()}, word)
    if not isinstance(source, (RunTable, Mapping)):
        if not is_frame(source):
            raise _not_a_source(source)
        source = table_of_frame(source)
    return _Content(source, name, word, about)


def about_run(path: Path) -> dict[str, Any]:
    """Return fields of `Run` from the record next to a file, as ``cranfield recommend`` writes it.

    A record that was edited, or is from another version, may have fewer fields.
    """
    record = made_of(path) or {}
    parameters, spelling, calibrated = (record.get(key) for key in ("parameters", "system", "calibrated"))
    about: dict[str, Any] = {
        "draws": isinstance(parameters, dict) and "seed" in parameters,
        "made_for": made_for(record),
    }
    with suppress(TypeError, KeyError, ValueError):
        about["calibration"] = None if calibrated is None else Calibration.of(calibrated)
    if isinstance(spelling, str) and not names_code(spelling):
        with suppress(CranfieldError):
            about["only_ranks"] = predicts_ratings(recommender(spelling)) is False
    return about


def _are_columns(source: Mapping[Any, Any]) -> bool:
    """Whether a dictionary contains columns, as `cranfield.read` takes them, not lists by user."""
    named = {"user", "item"} <= source.keys() or {"user_id", "item_id"} <= source.keys()
    columns = [values for values in source.values() if hasattr(values, "__len__") and not isinstance(values, Mapping)]
    return named and len(columns) == len(source) and len({len(values) for values in columns}) == 1


def _one_run(
    content: _Content,
    given: GivenColumns,
    *,
    name: str | None = None,
    tag: bool = False,
    format: str | None = None,
    order: ListOrder,
) -> Run:
    """Read the content of a source as the lists of one system."""
    if isinstance(content.held, RunTable):
        opened = _laid_out(content.held, format, given, content.name)
    else:
        opened = _Opened(rows_of_dict(content.held, content.word), "dict", content.word, content.name, {})
    if tag and opened.rows.tag is None:
        raise SettingError(
            f"{opened.source} has no tag to name the system by; only TREC runs have one; leave tag (--tag) out"
        )
    chosen = name or (opened.rows.tag if tag else opened.name)
    return replace(_run(opened, chosen or "run", order), **content.about)


def _laid_out(table: RunTable, format: str | None, given: GivenColumns, name: str | None) -> _Opened:
    if not table.names or len(next(iter(table.head.values()))) == 0:
        raise InputError("there are no rows", source=table.source, remedy="give a run with at least one list")
    layout, roles = choose_layout(table, given, format)
    return _Opened(layout.take(table, roles), layout.name, table.source, name, roles, table)


def _names(given: GivenColumns) -> list[str]:
    return [column for column in given.values() if isinstance(column, str)]


def _comes_from(source: Any, library: str) -> bool:
    return type(source).__module__.partition(".")[0] == library


def _run(opened: _Opened, name: str, order: ListOrder) -> Run:
    rows = opened.rows
    if len(rows.users) == 0:
        raise InputError("there are no lists", source=opened.source, remedy="give a run with at least one list")
    user_ids, users = _codes(rows.users, "user", opened)
    item_ids, items = _codes(rows.items, "item", opened)
    if rows.sizes is not None:
        users = np.repeat(users, rows.sizes)
    if rows.lengths is not None:
        return _one_relevant_run(opened, name, user_ids, users, item_ids, items).with_ties(order.ties)
    scores, ranks, predictions = (
        None if column is None else _numbers(column, role, opened)
        for role, column in (("score", rows.scores), ("rank", rows.ranks), ("prediction", rows.predictions))
    )
    try:
        scores, first = order.decided(scores, ranks)
    except Fault as fault:
        raise opened.error(fault, "rank") from None
    entries = ListEntries(users, items, scores, ranks, predictions)
    lists = arrange(entries, user_ids, item_ids, order.ties, first)
    groups, group_names = (None, ()) if rows.groups is None else groups_by_list(rows.groups, users, len(user_ids))
    counts = dict(lists.counts)
    if opened.format in _IN_CELLS:
        counts["joined_lists"] = len(user_ids)
    elif scores is None and ranks is None and rows.sizes is None:
        counts["lists_in_row_order"] = len(user_ids)
    return Run(
        name=name,
        user_ids=user_ids,
        item_ids=item_ids,
        users=np.arange(len(user_ids), dtype=np.int32),
        indptr=lists.indptr,
        items=lists.entries.items,
        scores=lists.entries.scores,
        predictions=lists.entries.predictions,
        ranks=lists.places,
        lengths=None if lists.places is None else lengths_of(lists.places, lists.indptr),
        groups=groups,
        group_names=group_names,
        made_scores=scores is None and lists.entries.scores is not None,
        ties=order.ties,
        counts=counts,
        history=(_step(opened, order, len(user_ids), len(lists.entries.items), counts),),
    )


def _one_relevant_run(
    opened: _Opened, name: str, user_ids: Vocabulary, users: Codes, item_ids: Vocabulary, items: Codes
) -> Run:
    """Return the lists of a one-relevant design: the rank of an item in a list, 0 for an item that was not ranked."""
    ranks, lengths = _whole(opened.rows.ranks, "rank", opened), _whole(opened.rows.lengths, "length", opened)
    beyond = ranks > lengths
    if beyond.any():
        row = int(np.argmax(beyond))
        fault = Fault(row, f"the rank {ranks[row]} is beyond the end of a list of {lengths[row]}", "fix one of them")
        raise opened.error(fault, "rank")
    unranked = int(np.count_nonzero(ranks == 0))
    groups, group_names = (None, ()) if opened.rows.groups is None else named_groups(opened.rows.groups)
    return Run(
        name=name,
        user_ids=user_ids,
        item_ids=item_ids,
        users=users,
        indptr=np.arange(len(users) + 1, dtype=np.int64),
        items=items,
        ranks=ranks,
        lengths=lengths,
        groups=groups,
        group_names=group_names,
        one_relevant=True,
        counts={"unranked": unranked},
        history=(_step(opened, ListOrder(), len(users), len(items), {"unranked": unranked}),),
    )


def _whole(column: Any, role: str, opened: _Opened) -> Codes:
    """Return a column of non-negative integers."""
    numbers = _numbers(column, role, opened)
    with np.errstate(invalid="ignore"):
        wrong = ~((numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise opened.error(Fault(row, f"{numbers[row]:g} is not a {role}", "give a whole number from 0"), role)
    return numbers.astype(np.int32)


def _codes(ids: Any, role: str, opened: _Opened) -> tuple[Vocabulary, NDArray[np.int32]]:
    try:
        vocabulary, codes = encode(ids)
    except InputError as error:
        if error.row is not None:
            raise opened.error(Fault(error.row - 1, error.problem, str(error.remedy)), role) from error
        raise InputError(
            error.problem, source=opened.source, column=opened.roles.get(role, role), remedy=error.remedy
        ) from error
    missing = codes < 0
    if vocabulary.dtype == pl.String and len(vocabulary) and vocabulary.all[0] == "":
        missing |= codes == 0
    if missing.any():
        fault = Fault(int(np.argmax(missing)), f"the {role} is missing", "fill it in or leave the row out")
        raise opened.error(fault, role)
    return vocabulary, codes


def _numbers(column: Any, role: str, opened: _Opened) -> NDArray[np.float64]:
    try:
        return numbers(column)
    except Fault as fault:
        # Scores without a column are predicted ratings, or are in the cells of their items.
        column_role = next((candidate for candidate in (role, "prediction") if candidate in opened.roles), "item")
        raise opened.error(fault, column_role) from None


def _step(opened: _Opened, order: ListOrder, n_lists: int, n_items: int, counts: Mapping[str, int]) -> Step:
    happened = {what: count for what, count in counts.items() if count}
    return Step(
        "read_run",
        {
            "source": opened.source,
            "format": opened.format,
            "columns": dict(opened.roles),
            "ties": order.ties,
            "gaps": order.gaps,
        },
        {"lists": n_lists, "items": n_items, **happened},
        tuple(_NOTES[what].format(count) for what, count in happened.items()),
    )


def _by_system(
    source: RunSource, system: str | int | None, reading: Mapping[str, Any], *, among_others: bool = False
) -> list[Run]:
    """Split one table by its column of systems; without one, it is the run of one system.

    Among other sources, a table whose column names only one system keeps its own name.
    """
    if isinstance(source, Run):
        return [read_run(source, **reading)]
    how = dict(reading)
    order = _order(how.pop("ties", None), how.pop("gaps", "keep"))
    given: GivenColumns = {role: how.pop(role, None) for role in ("user", "item", "score", "rank", "prediction")}
    written = {name: how.pop(name) for name in ("separator", "header", "quote", "encoding") if name in how}
    content = _content(source, TextOptions(**written, wanted=_names({**given, "system": system})))
    table = content.held
    if not isinstance(table, RunTable) or how.get("tag") or not (table.header or system is not None):
        return [_one_run(content, given, order=order, **how)]
    roles = find_roles(table.names, {**given, "system": system}, table.source)
    if "system" not in roles or not {"user", "item"} <= roles.keys():
        return [_one_run(content, given, order=order, **how)]
    columns = dict(table.fetch(roles))
    system_ids, systems = _systems(columns.pop("system"), table)
    if among_others and len(system_ids) == 1:
        return [_one_run(content, given, order=order, **how)]
    own = {role: roles[role] for role in columns}

    def laid_out(rows: NDArray[np.int64] | None) -> _Opened:
        def error(fault: Fault, role: str) -> InputError:
            row = fault.row if rows is None else int(rows[fault.row])
            return table.error(Fault(row, fault.problem, fault.remedy), role)

        part = {roles[role]: column if rows is None else _at(column, rows) for role, column in columns.items()}
        return _laid_out(replace(table_of_columns(part, table.source), error=error), how.get("format"), own, None)

    if order.gaps == "keep":
        order = replace(order, first_rank=first_rank(laid_out(None).rows.ranks))
    return [
        _run(laid_out(np.flatnonzero(systems == code)), str(name), order) for code, name in enumerate(system_ids.all)
    ]


def _systems(column: Any, table: RunTable) -> tuple[Vocabulary, Codes]:
    ids, codes = encode(column)
    # The code of a missing id is -1, which selects the appended cell.
    missing = np.append((ids.all.cast(pl.String) == "").to_numpy(), True)[codes]
    if missing.any():
        fault = Fault(int(np.argmax(missing)), "the system is missing", "fill it in or leave the row out")
        raise table.error(fault, "system")
    return ids, codes


def _at(column: Any, rows: NDArray[np.int64]) -> Any:
    return column.gather(rows) if isinstance(column, pl.Series) else column.iloc[rows]


def _not_a_source(source: Any) -> SettingError:
    return SettingError(
        f"a {type(source).__name__} cannot be read as a run; give a file, a dataframe, or {{user: {{item: score}}}}"
    )

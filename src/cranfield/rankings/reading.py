"""Reading of runs: files, frames and dictionaries of ranked lists become `Run`s."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield._own_code import names_code
from cranfield._record import Step, made_of
from cranfield.facts import scores as scores_facts
from cranfield.rankings.calibration import Calibration
from cranfield.rankings.columns import encode, groups_by_list, named_groups, numbers
from cranfield.rankings.layouts import LAYOUTS, choose_layout
from cranfield.rankings.lists import Gaps, ListEntries, ListOrder, Ties, arrange, first_rank
from cranfield.rankings.run import Run
from cranfield.rankings.sources import (
    Roles,
    Rows,
    RunReading,
    RunTable,
    StatedColumns,
    file_name,
    is_frame,
    system_name,
    table_of_bytes,
    table_of_columns,
    table_of_dict,
    table_of_file,
    table_of_frame,
    table_of_tuples,
)
from cranfield.recommenders import displayed_name, predicts_ratings, recommender
from cranfield.tables import Fault, Vocabulary, unpacked

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


def read_run(
    source: Any,
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
    reading = RunReading(
        name=name, tag=tag, format=format, ties=ties, gaps=gaps,
        user=user, item=item, score=score, rank=rank, prediction=prediction,
        separator=separator, header=header, quote=quote, encoding=encoding,
    )  # fmt: skip
    return _one_run(source, reading)


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
    options = RunReading(system=system, **reading)
    if isinstance(sources, Mapping):
        runs = [_one_run(source, replace(options, name=str(name))) for name, source in sources.items()]
    elif is_one_source(sources):
        runs = _by_system(sources, options)
    elif isinstance(sources, Iterable):
        among = replace(options, among_others=True)
        runs = [run for source in sources for run in _by_system(source, among)]
    else:
        raise _not_a_source(sources)
    if not runs:
        raise InputError("there are no runs", remedy="give at least one file, frame or dictionary")
    check_system_names([run.name for run in runs])
    return runs


def is_one_source(sources: Any) -> bool:
    """Whether this is one file or frame, not several of them."""
    return isinstance(sources, (str, os.PathLike)) or is_frame(sources) or hasattr(sources, "read")


def check_system_names(names: list[str]) -> list[str]:
    """Return the names, or raise an error if two are the same."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"two systems are called {name!r}", remedy="rename a file, or give a dictionary from name to source"
            )
    return names


def read_part(frame: pl.DataFrame, roles: Roles, order: ListOrder, *, name: str, layout: str) -> Run:
    """Read the lists of some users, given all their rows and what follows from the rows of all users."""
    table = table_of_frame(frame)
    return _run(_Parsed(LAYOUTS[layout].take(table, roles), layout, roles, table), name, order)


def _one_run(source: Any, reading: RunReading) -> Run:
    """Read a source as the lists of one system; a run is changed as the options say."""
    if not isinstance(source, Run):
        return _run_of(_opened(source, reading), reading)
    run = source if reading.ties is None else source.with_ties(reading.ties)
    run = run.without_gaps() if reading.gaps == "close" else run
    return run if reading.name is None else replace(run, name=reading.name)


def _by_system(source: Any, reading: RunReading) -> list[Run]:
    """Split one table by its column of systems; without one, it is the run of one system."""
    if isinstance(source, Run):
        return [_one_run(source, reading)]
    table = _opened(source, reading)
    may_name = table.rows is None and not reading.tag and (table.header or reading.system is not None)
    roles = reading.roles_by_system(table.names, table.source) if may_name else {}
    if not roles:
        return [_run_of(table, reading)]
    columns = dict(table.fetch(roles))
    system_ids, systems = _Parsed(Rows(None, None), "table", roles, table).codes(columns.pop("system"), "system")
    if reading.among_others and len(system_ids) == 1:
        return [_run_of(table, reading)]

    def parsed(rows: NDArray[np.int64] | None) -> _Parsed:
        def error(fault: Fault, role: str) -> InputError:
            row = fault.row if rows is None else int(rows[fault.row])
            return table.error(Fault(row, fault.problem, fault.remedy), role)

        part = {roles[role]: column if rows is None else _at(column, rows) for role, column in columns.items()}
        own = {role: roles[role] for role in columns}
        return _Parsed.of(replace(table_of_columns(part, table.source), error=error), own, reading.format)

    order = reading.order
    if order.gaps == "keep":
        order = replace(order, first_rank=first_rank(parsed(None).rows.ranks))
    return [_run(parsed(np.flatnonzero(systems == code)), str(name), order) for code, name in enumerate(system_ids.all)]


def _at(column: Any, rows: NDArray[np.int64]) -> Any:
    return column.gather(rows) if isinstance(column, pl.Series) else column.iloc[rows]


def _opened(source: Any, reading: RunReading) -> RunTable:
    library = type(source).__module__.partition(".")[0]
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        name, about = name_of_run(path), about_run(path)
        return replace(table_of_file(path, reading), name=name, about=about)
    if hasattr(source, "read") and not is_frame(source):
        content, label = source.read(), str(getattr(source, "name", "the open file"))
        content = content.encode() if isinstance(content, str) else content
        return table_of_bytes(*unpacked(content, label), reading)
    if library == "ranx" and hasattr(source, "to_dict"):
        return replace(table_of_dict(source.to_dict(), "the run"), name=source.name)
    if library == "lenskit" and hasattr(source, "to_arrow"):
        source = source.to_arrow()
    if isinstance(source, list) and source and all(isinstance(row, tuple) for row in source):
        return table_of_tuples(source)
    if isinstance(source, Mapping):
        return table_of_dict(source)
    if not is_frame(source):
        raise _not_a_source(source)
    return table_of_frame(source)


def _not_a_source(source: Any) -> SettingError:
    return SettingError(
        f"a {type(source).__name__} cannot be read as a run; give a file, a dataframe, or {{user: {{item: score}}}}"
    )


def name_of_run(path: Path) -> str:
    """Return the name of a file's system: the display name if cranfield made the file, otherwise the file's name."""
    spelling = (made_of(path) or {}).get("system")
    name = system_name(path)
    return displayed_name(spelling) if isinstance(spelling, str) and file_name([spelling]) == {spelling: name} else name


def about_run(path: Path) -> dict[str, Any]:
    """Return fields of `Run` from the record next to a file; one that was edited may have fewer fields."""
    record = made_of(path) or {}
    parameters, spelling, calibrated = (record.get(key) for key in ("parameters", "system", "calibrated"))
    draws = isinstance(parameters, dict) and "seed" in parameters
    about: dict[str, Any] = {"draws": draws, "made_for": _made_for(record)}
    with suppress(TypeError, KeyError, ValueError):
        about["calibration"] = None if calibrated is None else Calibration.of(calibrated)
    if isinstance(spelling, str) and not names_code(spelling):
        with suppress(CranfieldError):
            about["only_ranks"] = predicts_ratings(recommender(spelling)) is False
    return about


def _made_for(record: Mapping[str, Any]) -> scores_facts.ServedUsers | None:
    """Return the users that the lists of a record were made for; None if nobody was left out."""
    least, sample = record.get("min_ratings"), record.get("sample")
    # Users without training ratings have no list in any case.
    made_for = scores_facts.ServedUsers(
        min_ratings=least if isinstance(least, int) and least > 1 else 0,
        sample=sample if isinstance(sample, int | float) else None,
    )
    return None if made_for == scores_facts.ServedUsers() else made_for


@dataclass(frozen=True)
class _Parsed:
    """The rows of a table, its layout, and the roles of its columns."""

    rows: Rows
    layout: str
    roles: Roles
    table: RunTable

    @classmethod
    def of(cls, table: RunTable, stated: StatedColumns, format: str | None) -> _Parsed:
        """Find the layout of a table, and read its rows."""
        if table.rows is not None:
            return cls(table.rows, "dict", {}, table)
        if not table.names or len(next(iter(table.head.values()))) == 0:
            raise InputError("there are no rows", source=table.source, remedy="give a run with at least one list")
        layout, roles = choose_layout(table, stated, format)
        return cls(layout.take(table, roles), layout.name, roles, table)

    def error(self, row: int, problem: str, remedy: str, role: str) -> InputError:
        """Locate a fault in the source, as exactly as its kind allows."""
        if self.rows.sizes is not None and role != "user":
            row = int(np.searchsorted(np.cumsum(self.rows.sizes), row, side="right"))
        return self.table.error(Fault(row, problem, remedy), role)

    def codes(self, ids: Any, role: str) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary and the codes of a column of ids, none of which may be missing."""
        try:
            vocabulary, codes = encode(ids)
        except InputError as error:
            if error.row is not None:
                raise self.error(error.row - 1, error.problem, str(error.remedy), role) from error
            column = self.roles.get(role, role)
            raise InputError(error.problem, source=self.table.source, column=column, remedy=error.remedy) from error
        missing = codes < 0
        if vocabulary.dtype == pl.String and len(vocabulary) and vocabulary.all[0] == "":
            missing |= codes == 0
        if missing.any():
            row = int(np.argmax(missing))
            raise self.error(row, f"the {role} is missing", "fill it in or leave the row out", role)
        return vocabulary, codes

    def numbers(self, column: Any, role: str) -> NDArray[np.float64]:
        """Return a column of numbers."""
        try:
            return numbers(column)
        except Fault as fault:
            # Scores without a column are predicted ratings, or are in the cells of their items.
            column_role = next((candidate for candidate in (role, "prediction") if candidate in self.roles), "item")
            raise self.error(fault.row, fault.problem, fault.remedy, column_role) from None

    def whole(self, column: Any, role: str) -> Codes:
        """Return a column of non-negative integers."""
        values = self.numbers(column, role)
        with np.errstate(invalid="ignore"):
            wrong = ~((values >= 0) & (values < 2**31) & (values == np.floor(values)))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(row, f"{values[row]:g} is not a {role}", "give a whole number from 0", role)
        return values.astype(np.int32)


def _run_of(table: RunTable, reading: RunReading) -> Run:
    """Read a table as the lists of one system."""
    parsed = _Parsed.of(table, reading.columns, reading.format)
    if parsed.rows.tag is None:
        reading.refuse_tag(table.source)
    name = reading.name or (parsed.rows.tag if reading.tag else table.name)
    if len(parsed.rows.users) == 0:
        raise InputError("there are no lists", source=table.source, remedy="give a run with at least one list")
    return replace(_run(parsed, name or "run", reading.order), **table.about)


def _run(parsed: _Parsed, name: str, order: ListOrder) -> Run:
    rows = parsed.rows
    user_ids, users = parsed.codes(rows.users, "user")
    item_ids, items = parsed.codes(rows.items, "item")
    if rows.sizes is not None:
        users = np.repeat(users, rows.sizes)
    if rows.lengths is not None:
        run = Run(name, user_ids, item_ids, users, items=items, **_one_relevant_fields(parsed))
        return _with_step(run, parsed, ListOrder()).with_ties(order.ties)
    scores, ranks, predictions = (
        None if column is None else parsed.numbers(column, role)
        for role, column in (("score", rows.scores), ("rank", rows.ranks), ("prediction", rows.predictions))
    )
    try:
        scores, first = order.decided(scores, ranks)
    except Fault as fault:
        raise parsed.error(fault.row, fault.problem, fault.remedy, "rank") from None
    entries = ListEntries(users, items, scores, ranks, predictions)
    lists = arrange(entries, user_ids, item_ids, order.ties, first)
    groups, group_names = (None, ()) if rows.groups is None else groups_by_list(rows.groups, users, len(user_ids))
    counts = dict(lists.counts)
    if parsed.layout in ("joined", "nested"):
        counts["joined_lists"] = len(user_ids)
    elif scores is None and ranks is None and rows.sizes is None:
        counts["lists_in_row_order"] = len(user_ids)
    run = Run(
        name=name,
        user_ids=user_ids,
        item_ids=item_ids,
        users=np.arange(len(user_ids), dtype=np.int32),
        indptr=lists.indptr,
        items=lists.entries.items,
        scores=lists.entries.scores,
        predictions=lists.entries.predictions,
        ranks=lists.places,
        groups=groups,
        group_names=group_names,
        made_scores=scores is None and lists.entries.scores is not None,
        ties=order.ties,
        counts=counts,
    )
    return _with_step(run, parsed, order)


def _one_relevant_fields(parsed: _Parsed) -> dict[str, Any]:
    """Return the lists of a one-relevant design: the rank of an item in a list, 0 for an item that was not ranked."""
    ranks, lengths = parsed.whole(parsed.rows.ranks, "rank"), parsed.whole(parsed.rows.lengths, "length")
    beyond = ranks > lengths
    if beyond.any():
        row = int(np.argmax(beyond))
        problem = f"the rank {ranks[row]} is beyond the end of a list of {lengths[row]}"
        raise parsed.error(row, problem, "fix one of them", "rank")
    groups, group_names = (None, ()) if parsed.rows.groups is None else named_groups(parsed.rows.groups)
    return {
        "indptr": np.arange(len(ranks) + 1, dtype=np.int64),
        "ranks": ranks,
        "lengths": lengths,
        "groups": groups,
        "group_names": group_names,
        "one_relevant": True,
        "counts": {"unranked": int(np.count_nonzero(ranks == 0))},
    }


def _with_step(run: Run, parsed: _Parsed, order: ListOrder) -> Run:
    """Return the run with how its lists were read."""
    happened = {what: count for what, count in run.counts.items() if count}
    settings = {"source": parsed.table.source, "format": parsed.layout, "columns": dict(parsed.roles)}
    step = Step(
        "read_run",
        {**settings, "ties": order.ties, "gaps": order.gaps},
        {"lists": len(run), "items": len(run.items), **happened},
        tuple(_NOTES[what].format(count) for what, count in happened.items()),
    )
    return replace(run, history=(step,))

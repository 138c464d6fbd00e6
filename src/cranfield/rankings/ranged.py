"""Runs and test sets in Parquet, read for some of the users at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.data import Ratings, RepeatedPairError, read, test_policy
from cranfield.rankings.columns import MISSING, encode, find_roles, numbers
from cranfield.rankings.layouts import choose_layout
from cranfield.rankings.lists import ListOrder, first_rank
from cranfield.rankings.qrels import columns_of_test, not_qrels
from cranfield.rankings.reading import about_run, name_of_run, read_part
from cranfield.rankings.run import Run
from cranfield.rankings.sources import ROLES, SAMPLE, RunReading, system_name, table_of_columns
from cranfield.rankings.text import taken_apart
from cranfield.tables import Fault, ParquetTable, RowTable, UserRanges, Vocabulary, find_columns, refuse_text_options
from cranfield.tables import ratings as as_ratings

T = TypeVar("T")

_TEXT = {"separator": None, "header": None, "quote": '"', "encoding": "utf-8"}


@dataclass(frozen=True)
class RunTables:
    """The runs of one or more systems in a Parquet file or folder."""

    missing: ClassVar[tuple[str, ...]] = MISSING

    table: RowTable
    systems: tuple[str, ...]
    column: str | None  # has the names of the systems; None if there is one system
    layout: str
    roles: Mapping[str, str]
    order: ListOrder
    scored: tuple[str, ...] = ()  # systems whose lists are ordered by scores; others by ranks, if there are any
    about: Mapping[str, Any] = field(default_factory=dict)  # fields of the runs, from the record next to the file

    @classmethod
    def opened(cls, path: Path, **options: Any) -> RunTables:
        """Open a file or folder; the options are those of `RunReading`."""
        return cls.of_table(ParquetTable(path), RunReading(**options), name_of_run(path), about_run(path))

    @classmethod
    def of_table(
        cls, table: RowTable, reading: RunReading, own_name: str | None = None, about: Mapping[str, Any] | None = None
    ) -> RunTables:
        """Inspect a table; ``own_name``, or its label, names the system if neither the caller nor a column does."""
        reading.refuse_text(table.label)
        reading.refuse_tag(table.label)
        if len(table) == 0:
            raise InputError("there are no rows", source=table.label, remedy="give a run with at least one list")
        column = reading.roles_by_system(table.names, table.label).get("system") if reading.name is None else None
        systems = () if column is None else cls.systems_in(table, column)
        if column is None or (reading.among_others and len(systems) == 1):
            systems, column = (reading.name or own_name or system_name(Path(table.label)),), None
        head = table.rows(0, SAMPLE, [name for name in table.names if name != column])
        first_rows = table_of_columns(head.to_dict(), table.label)
        layout, roles = choose_layout(first_rows, reading.columns, reading.format)
        if layout.name == "one-relevant":
            raise SettingError(
                f"{table.label} holds one-relevant lists, which are only measured in memory; raise memory=... "
                "(memory=...)"
            )
        roles = {role: name for role, name in roles.items() if role != "system"}
        about = about if about and column is None else {}
        return cls(table, systems, column, layout.name, roles, reading.order, (), about)._with_order()

    @staticmethod
    def systems_in(table: RowTable, column: str) -> tuple[str, ...]:
        """Return the sorted names of the systems in a column."""
        parts = []
        for start, frame in table.batches([column]):
            names = frame.to_series()
            missing = names.is_null() | (names.cast(pl.String) == "")
            if missing.any():
                raise InputError(
                    "the system is missing",
                    source=table.label,
                    row=start + int(missing.arg_max() or 0) + 1 if table.has_places else None,
                    column=column,
                    remedy="fill it in or leave the row out",
                )
            parts.append(names.unique())
        return tuple(str(name) for name in encode(pl.concat(parts))[0].all)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys((*self.roles.values(), *([] if self.column is None else [self.column]))))

    @property
    def user(self) -> str:
        """The column of users."""
        return self.roles["user"]

    @property
    def history(self) -> tuple[Step, ...]:
        """As what it is read."""
        settings = {"source": self.table.label, "format": self.layout, "columns": dict(self.roles)}
        return (Step("read_run", {**settings, "ties": self.order.ties, "gaps": self.order.gaps}),)

    def _with_order(self) -> RunTables:
        """Return the same runs with what follows from all rows: which systems have scores, and the first rank."""
        has_scores = self._place_of("score") is not None
        if self._place_of("rank") is None:
            return replace(self, scored=self.systems if has_scores else ())
        try:
            scored = self._systems_with_scores() if has_scores else ()
            by_place = self.order.gaps != "close" and scored != self.systems
            first = min(map(first_rank, self._ranks())) if by_place else None
        except Fault:
            self.check()
            raise
        return replace(self, scored=scored, order=replace(self.order, first_rank=first))

    def _place_of(self, role: str) -> tuple[str, str | None] | None:
        """Return the column of a role, and its field if the column has lists of structures; None if there is none."""
        kind = self.table.schema[self.roles["item"]]
        if isinstance(kind, pl.List | pl.Array) and isinstance(kind.inner, pl.Struct):
            field = find_roles([field.name for field in kind.inner.fields], {}, self.table.label).get(role)
            if field is not None:
                return self.roles["item"], field
        return (self.roles[role], None) if role in self.roles else None

    def _values(self, frame: pl.DataFrame, role: str) -> NDArray[np.float64]:
        """Return the numbers of a role, list after list."""
        place = self._place_of(role)
        assert place is not None
        values = self._single(frame[place[0]])
        return numbers(values if place[1] is None else values.struct.field(place[1]))

    def _single(self, cells: pl.Series) -> pl.Series:
        """Return the values in cells, which may be lists."""
        values = taken_apart(cells) if self.layout == "joined" else cells
        return values.explode() if values.dtype.is_nested() else values

    def _systems_with_scores(self) -> tuple[str, ...]:
        """Return the systems with a score that is a number."""
        left, place = set(self.systems), self._place_of("score")
        assert place is not None
        for _, frame in self.table.batches([place[0], *([] if self.column is None else [self.column])]):
            left -= {name for name in left if not np.isnan(self._values(self._rows(frame, name), "score")).all()}
            if not left:
                break
        return tuple(name for name in self.systems if name not in left)

    def _ranks(self) -> Iterator[Any]:
        """Yield the ranks of all lists, column after column."""
        place = self._place_of("rank")
        assert place is not None
        for _, frame in self.table.batches([place[0]]):
            yield self._values(frame, "rank")

    def runs(self, frame: pl.DataFrame) -> list[Run]:
        """Return the runs of some users, given all rows of these users; one per system, even if it is empty."""
        try:
            return [self._run(name, self._rows(frame, name)) for name in self.systems]
        except InputError as error:
            self.check()
            raise _located(error, self.table.label) from error

    def _rows(self, frame: pl.DataFrame, system: str) -> pl.DataFrame:
        if self.column is None:
            return frame
        return frame.filter(pl.col(self.column).cast(pl.String) == system).drop(self.column)

    def _run(self, name: str, frame: pl.DataFrame) -> Run:
        by: Any = "score" if name in self.scored else "rank"
        run = read_part(frame, self.roles, replace(self.order, by=by), name=name, layout=self.layout)
        return replace(run, history=self.history, **self.about)

    def check(self) -> None:
        """Raise the error that reading the whole table would raise, if any: by column, then by row."""
        single = [*(role for role in ROLES if role in self.roles)] if self.layout == "table" else [None]
        for role in single:
            for start, frame in self.table.batches(self.columns):
                self._check_rows(frame, role, start)

    def _check_rows(self, frame: pl.DataFrame, role: str | None, start: int) -> None:
        """Read rows, looking for faults in the column of one role, or in all columns."""
        if role is not None:
            others = [name for other, name in self.roles.items() if other != role]
            frame = frame.with_columns(*(pl.lit(1).alias(name) for name in others))
        if role == "rank" and self.column is not None:  # ranks beside scores may be missing
            is_scored = pl.col(self.column).cast(pl.String).is_in(self.scored)
            first = pl.lit("1").cast(frame.schema[self.roles["rank"]], strict=False)
            frame = frame.with_columns(pl.when(~is_scored).then(self.roles["rank"]).otherwise(first))
        by: Any = None if role is None else "rank" if role == "rank" and self.scored != self.systems else "score"
        order = replace(self.order, ties="input", by=by)
        try:
            read_part(frame.select(self.roles.values()), self.roles, order, name="", layout=self.layout)
        except InputError as error:
            raise _located(error, self.table.label, start) from error


@dataclass(frozen=True)
class HeldOutTable:
    """A test set in a Parquet file or folder; ``reading`` says how repeated ratings and counts are read."""

    table: RowTable
    roles: Mapping[str, str]
    reading: Mapping[str, Any]

    @classmethod
    def opened(cls, path: Path, *, format: str | None = None, **reading: Any) -> HeldOutTable:
        """Open a file or folder; the options are those of `read_test`."""
        if format == "qrels":
            raise not_qrels()
        return cls.of_table(ParquetTable(path), format=format, **reading)

    @classmethod
    def of_table(cls, table: RowTable, *, format: str | None = None, **reading: Any) -> HeldOutTable:
        """Inspect a table."""
        refuse_text_options(table.label, *(reading.pop(name, usual) for name, usual in _TEXT.items()))
        if len(table) == 0:
            raise InputError("there are no ratings", source=table.label, remedy="give at least one row")
        chosen: Any = {role: reading.pop(role, None) for role in ("user", "item", "rating", "time")}
        named = {} if format is not None else columns_of_test(table.names)
        chosen = {role: named.get(role) if choice is None else choice for role, choice in chosen.items()}
        places = find_columns(table.names, len(table.names), chosen, {}, table.label)
        reading["repeated"] = test_policy(reading.get("repeated", "error"))
        return cls(table, {role: table.names[place] for role, place in places.items()}, reading)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return list(self.roles.values())

    @property
    def user(self) -> str:
        """The column of users."""
        return self.roles["user"]

    @property
    def history(self) -> tuple[Step, ...]:
        """As what it is read."""
        settings = {"format": "ratings", "source": self.table.label, "columns": dict(self.roles), **self.reading}
        return (Step("read_test", settings),)

    def each(self, function: Callable[[Ratings], T]) -> list[T]:
        """Call a function on the ratings of all users, some users at a time."""
        results, repeated = list[T](), list[RepeatedPairError]()
        for frame in UserRanges.frames(self):
            try:
                results.append(function(self.ratings(frame)))
            except RepeatedPairError as error:
                repeated.append(error)
        if repeated:
            raise self.repeated_error(repeated)
        return results

    @cached_property
    def grades(self) -> NDArray[np.float64]:
        """The distinct ratings, ascending, after repeated ratings were merged."""
        # Ratings change while they are read if repeated ones are merged or counts become ratings.
        if self.reading.get("repeated", "error") != "error" or self.reading.get("counts", "keep") != "keep":
            return np.unique(np.concatenate(self.each(attrgetter("grades"))))
        if "rating" not in self.roles:
            return np.ones(1)
        return self._column_grades()

    def _column_grades(self) -> NDArray[np.float64]:
        """Return the distinct ratings of the column, ascending."""
        grades = np.zeros(0)
        for _, frame in self.table.batches([self.roles["rating"]]):
            try:
                values = as_ratings(frame.to_series())
            except Fault:
                self.check()
                raise
            grades = np.union1d(grades, values.astype(np.float64))
        return grades

    def ratings(self, frame: pl.DataFrame) -> Ratings:
        """Return the ratings of some users, given all rows of these users.

        A pair that occurs more than once raises `RepeatedPairError`; pass the errors of all ranges to `repeated_error`.
        """
        if frame.is_empty():
            return self._none(frame)
        try:
            ratings = read(frame, **self._chosen, **self.reading)
        except InputError as error:
            if isinstance(error.__cause__, RepeatedPairError):
                raise error.__cause__ from None
            self.check()
            raise _located(error, self.table.label) from error
        return replace(ratings, name=system_name(Path(self.table.label)), history=self.history)

    def _none(self, frame: pl.DataFrame) -> Ratings:
        users, items = (Vocabulary(frame[self.roles[role]]) for role in ("user", "item"))
        nothing = np.zeros(0, dtype=np.int32)
        return Ratings.from_codes(users, items, nothing, nothing, np.zeros(0, dtype=np.float32))

    def repeated_error(self, errors: Sequence[RepeatedPairError]) -> InputError:
        """Return the error for the first repeated pair of the table, given the first of each range."""
        names = [self.roles["user"], self.roles["item"]]
        pairs = pl.DataFrame([error.pair for error in errors], schema=names, orient="row")
        rows = []
        for start, frame in self.table.batches(names):
            # Reading may have changed the type of ids, such as 1.0 to 1.
            frame = frame.cast({name: pairs.schema[name] for name in names}, strict=False)
            rows.append(frame.with_row_index("row", offset=start + 1).join(pairs, on=names, how="semi"))
        places = pl.concat(rows).group_by(names, maintain_order=True).agg(pl.col("row").sort().head(2))
        first = places.filter(pl.col("row").list.len() > 1).sort(pl.col("row").list.get(1)).row(0)
        earlier, row = first[2]
        error = RepeatedPairError(first[0], first[1], row, earlier, sum(error.count for error in errors))
        problem = f"{error.problem}, already in row {earlier}"
        return InputError(problem, source=self.table.label, row=row, remedy=error.remedy)

    @property
    def _chosen(self) -> dict[str, Any]:
        return {role: self.roles.get(role, False) for role in ("user", "item", "rating", "time")}

    def check(self) -> None:
        """Raise the error that reading the whole table would raise, if any: by column, then by row."""
        for role, column in self.roles.items():
            for start, frame in self.table.batches([column]):
                self._check_rows(frame.to_series(), role, start)

    def _check_rows(self, column: pl.Series, role: str, start: int) -> None:
        """Read rows, looking for faults in the column of one role."""
        columns = {name: pl.Series(np.arange(len(column))) for name in self.roles.values()}
        columns[self.roles.get("rating", "rating")] = pl.Series(np.ones(len(column)))
        how = {**self.reading, "repeated": "last"}
        try:
            read(pl.DataFrame({**columns, self.roles[role]: column}), **self._chosen, **how)
        except InputError as error:
            raise _located(error, self.table.label, start) from error


def _located(error: InputError, label: str, start: int | None = None) -> InputError:
    """Return an error about some rows of a table as one about the table; without the row unless ``start`` is known."""
    row = None if error.row is None or start is None else error.row + start
    return InputError(error.problem, source=label, row=row, column=error.column, remedy=error.remedy)

"""A table of ranked lists from any source, before the roles of its columns are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield._errors import InputError
from cranfield.tables import SAMPLE, Fault

Roles = Mapping[str, str]
"""The name of the column of each role: user, item, score and so on."""


@dataclass(frozen=True)
class RunTable:
    """Columns of a file or a frame.

    Parameters
    ----------
    head
        The columns by name, or only their first rows, which are enough to detect the layout.
    source
        The name of the table in messages.
    header
        Whether the columns have names.
    fetch
        Returns the whole columns of the requested roles, as Polars or pandas columns.
    error
        Locates a fault in the column of a role: the file, the row counted from 1, the column.
    """

    head: Mapping[str, Any]
    source: str
    header: bool
    fetch: Callable[[Roles], Mapping[str, Any]]
    error: Callable[[Fault, str], InputError]

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
        column = self.head[self.names[place]]
        return column.iloc[0] if hasattr(column, "iloc") else column[0]


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

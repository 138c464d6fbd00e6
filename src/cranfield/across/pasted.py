"""A table of averages of systems on datasets, as papers print it: with or without standard errors."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._files import meant
from cranfield.across.effects import Floats

_MISSING = {"", "-", "–", "—", "oom", "oot", "na", "n/a", "nan", "null", "none", "failed"}
_LONG = ("system", "dataset", "value")
_SEPARATED = re.compile(r"\s*(?:±|\+/-|\\pm)\s*")


@dataclass(frozen=True, eq=False)
class PastedTable:
    """Averages of systems on datasets, NaN where there is none, and their standard errors if they are known."""

    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    means: Floats  # systems × datasets
    errors: Floats | None
    rounding: float  # half a printed digit, relative to the smallest value other than 0


def is_table(source: Any) -> bool:
    """Return whether something is a table of averages: a frame, or the name of a file."""
    return isinstance(source, str | os.PathLike) or (hasattr(source, "columns") and not isinstance(source, Mapping))


def read_table(source: Any) -> PastedTable:
    """Return a table from a frame or a CSV file.

    A long table has the columns ``system, dataset, value`` and perhaps ``error``, a standard error. A wide one has a
    first column named ``dataset``, with one column per system, or ``system``, with one column per dataset; a cell may
    hold a value and its standard error, as in ``0.310 ± 0.004``. A cell that is empty, or ``-`` or ``OOM``, is missing.
    """
    name, header, rows = _cells(source)
    lowered = [column.strip().lower() for column in header]
    if len(set(header)) < len(header):
        twice = next(column for column in header if header.count(column) > 1)
        raise InputError(f"the column {twice!r} is there twice", source=name, remedy="give each its own name")
    cells: dict[tuple[str, str], tuple[float, float, int]] = {}
    if set(_LONG) <= set(lowered):
        place = {column: lowered.index(column) for column in (*_LONG, "error") if column in lowered}
        for number, row in rows:
            pair = (row[place["system"]].strip(), row[place["dataset"]].strip())
            error = _number(row[place["error"]], name, number, "error")[0] if "error" in place else np.nan
            value, inner, digits = _number(row[place["value"]], name, number, header[place["value"]])
            _put(cells, pair, (value, inner if np.isnan(error) else error, digits), name, number)
    elif lowered and lowered[0] in ("dataset", "system"):
        for number, row in rows:
            for column, text in zip(header[1:], row[1:]):
                pair = (column.strip(), row[0].strip())
                pair = pair if lowered[0] == "dataset" else (pair[1], pair[0])
                _put(cells, pair, _number(text, name, number, column), name, number)
    else:
        raise InputError(
            "it is not clear which side of the table holds the systems",
            source=name,
            remedy="name the first column 'dataset' or 'system', or give the columns system, dataset, value",
        )
    return _table(cells, name)


def _put(
    cells: dict[tuple[str, str], tuple[float, float, int]], pair: tuple[str, str], cell: tuple[float, float, int],
    name: str | None, row: int,
) -> None:  # fmt: skip
    if pair in cells:
        raise InputError(f"{pair[0]!r} has two values on {pair[1]!r}", source=name, row=row, remedy="leave one out")
    cells[pair] = cell


def _table(cells: Mapping[tuple[str, str], tuple[float, float, int]], name: str | None) -> PastedTable:
    systems, datasets = (tuple(dict.fromkeys(pair[side] for pair in cells)) for side in (0, 1))
    means, errors = (np.full((len(systems), len(datasets)), np.nan) for _ in range(2))
    digits = np.zeros(len(datasets))
    for (system, dataset), (value, error, decimals) in cells.items():
        place = systems.index(system), datasets.index(dataset)
        means[place], errors[place] = value, error
        digits[place[1]] = max(digits[place[1]], decimals)
    if not np.isfinite(means).any():
        raise InputError("the table holds no numbers", source=name, remedy="give the averages of systems on datasets")
    known = (errors >= 0)[~np.isnan(means)]
    sizes = np.where(means == 0, np.nan, np.abs(means))
    smallest = np.nanmin(sizes, axis=0, initial=np.inf, where=~np.isnan(sizes))
    return PastedTable(
        systems, datasets, means, errors if known.any() else None, float((0.5 * 10.0**-digits / smallest).max())
    )


def _number(text: str, name: str | None, row: int, column: str) -> tuple[float, float, int]:
    """Return the value of a cell, its standard error, and its number of decimals; NaN for what is missing."""
    value, *errors = _SEPARATED.split(text.strip())
    if value.lower() in _MISSING and not errors:
        return np.nan, np.nan, 0
    try:
        numbers = [Decimal(part) for part in (value, *errors)]
        if len(numbers) > 2 or not all(number.is_finite() for number in numbers) or min(numbers[1:], default=0) < 0:
            raise InvalidOperation
    except InvalidOperation:
        raise InputError(
            f"{text.strip()!r} is not a number",
            source=name,
            row=row,
            column=column,
            remedy="write a number, as in 0.310 or 0.310 ± 0.004, or - for a missing one",
        ) from None
    exponent = numbers[0].as_tuple().exponent
    return float(numbers[0]), float(numbers[1]) if errors else np.nan, max(0, -int(exponent))


def _cells(source: Any) -> tuple[str | None, list[str], list[tuple[int, Sequence[str]]]]:
    """Return the name of a table, its header, and its rows as text with their numbers (the header is row 1)."""
    if not isinstance(source, str | os.PathLike):
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
        texts = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
        return None, list(frame.columns), list(enumerate(texts, start=2))
    path = meant(Path(source))
    try:
        content = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the file cannot be read ({error})", source=path, remedy="give a CSV file of averages"
        ) from error
    first = next((line for line in content.splitlines() if line.strip()), "")
    separator = max(",;\t|", key=first.count)
    try:
        rows = [
            (number, row) for number, row in enumerate(csv.reader(io.StringIO(content), delimiter=separator), start=1)
        ]
    except csv.Error as error:
        raise InputError(
            f"the file cannot be read ({error})", source=path, remedy="give a CSV file of averages"
        ) from error
    rows = [(number, row) for number, row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError("the table has no rows", source=path, remedy="give a header and one row per dataset")
    header = rows[0][1]
    for number, row in rows[1:]:
        if len(row) != len(header):
            problem = f"there are {len(row)} cells, and the header has {len(header)}"
            raise InputError(problem, source=path, row=number, remedy="give every row one cell per column")
    return str(path), header, list(rows[1:])

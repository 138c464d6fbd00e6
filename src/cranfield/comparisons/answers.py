"""Judgments that came back: the file that `suggest_judgments` wrote, with ratings filled in."""

from __future__ import annotations

import csv
import io
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.data import Ratings, over_one_vocabulary, read, together
from cranfield.judgments import as_test

_COLUMNS = ("user", "item", "rating")


def add_judgments(test: Any, judgments: Any) -> Ratings:
    """Return a test set with the judgments that came back.

    Parameters
    ----------
    test
        The held-out ratings.
    judgments
        A CSV file or a dataframe with the columns user, item and rating, as made by `suggest_judgments`. Rows without a
        rating have not been judged yet and are left out. A pair that is judged twice, or is in the test set, must have
        the same rating everywhere.

    Examples
    --------
    >>> test = Ratings.of(["ann"], ["x"], [5])
    >>> add_judgments(test, pl.DataFrame({"user": ["ann", "ann"], "item": ["y", "z"], "rating": [2, None]}))
    Ratings(1 users, 2 items, 2 ratings)
    """
    known, answers = over_one_vocabulary([as_test(test), _read_answers(judgments)])
    keys, new = known.pairs, answers.pairs
    _, in_test, in_answers = np.intersect1d(keys, new, assume_unique=True, return_indices=True)
    other = np.flatnonzero(known.values[in_test] != answers.values[in_answers])
    if len(other):
        before, after = int(in_test[other[0]]), int(in_answers[other[0]])
        user, item = answers.user_ids.ids(answers.users[[after]])[0], answers.item_ids.ids(answers.items[[after]])[0]
        raise InputError(
            f"the judgment of item {item!r} by user {user!r} is {answers.values[after]:g}, and the test set has "
            f"{known.values[before]:g}",
            remedy="correct one of them, or leave the judgment out",
        )
    fresh = answers.keep(~np.isin(new, keys))
    return replace(together([known, fresh]), history=known.history)


def _read_answers(source: Any) -> Ratings:
    """Read judgments without duplicate rows and rows that have no rating."""
    if isinstance(source, Ratings):
        return source
    named = Path(source) if isinstance(source, str | os.PathLike) else None
    if named is None:
        rows = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
        _check_columns(rows.columns, None)
        rows = rows.select(_COLUMNS)
    else:
        rows = _file(named)
    filled = rows.filter(pl.col("rating").is_not_null()).unique(maintain_order=True)
    if not filled.height:
        raise InputError(
            "no row has a rating", source=named, remedy="fill in the column rating, and leave others empty"
        )
    twice = filled.filter(pl.struct("user", "item").is_duplicated())
    if twice.height:
        user, item = twice.row(0)[:2]
        raise InputError(
            f"item {item!r} has two different judgments by user {user!r}", source=named, remedy="leave one of them out"
        )
    # Ids are read as text, as in a test set that is read from a file.
    return read(filled) if named is None else read(io.BytesIO(filled.write_csv().encode()), user="user", item="item")


def _file(path: Path, *, check: bool = True) -> pl.DataFrame:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            _check_columns(reader.fieldnames or (), path)
            rows = []
            for row in reader:
                rows.append({name: (row[name] or "").strip() or None for name in _COLUMNS})
                if check:
                    _check_number(rows[-1]["rating"], path, reader.line_num)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"the file cannot be read ({error})", source=path, remedy="give the CSV file that suggest-judgments wrote"
        ) from error
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String))


def _check_number(rating: str | None, source: Path, row: int) -> None:
    try:
        number = math.isfinite(float(rating or 0))
    except ValueError:
        number = False
    if not number:
        raise InputError(
            f"{rating!r} is not a number",
            source=source,
            row=row,
            column="rating",
            remedy="write a number, or leave it empty",
        )


def is_answered(path: str | Path) -> bool:
    """Return whether a file was written by `suggest_judgments` and has at least one rating filled in."""
    try:
        return _file(Path(path), check=False)["rating"].is_not_null().any()
    except InputError:
        return False


def _check_columns(names: Any, source: Path | None) -> None:
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise InputError(
            f"there is no column {missing[0]!r}",
            source=source,
            remedy="judgments have the columns user, item and rating",
        )

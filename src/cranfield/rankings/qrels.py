"""The test set of an evaluation: ratings of any kind, or TREC relevance judgments."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._record import Step
from cranfield.data import Ratings, read, test_policy
from cranfield.rankings.columns import encode, find_roles
from cranfield.rankings.sources import file_text, is_pandas, json_lists, rows_of_dict, system_name
from cranfield.rankings.text import gap, has_trec, tidy_trec
from cranfield.tables import FrameTable, as_series


def read_test(source: Any, *, format: Literal["ratings", "qrels"] | None = None, **reading: Any) -> Ratings:
    """Read a test set.

    Parameters
    ----------
    source
        Ratings as `cranfield.read` takes them: a file or a dataframe. Or judgments: a TREC qrels file (user 0 item
        grade), a dictionary ``{user: {item: grade}}`` as in pytrec_eval and ranx, or a ``Qrels`` of ranx.
    format
        ``"ratings"`` or ``"qrels"``; detected by default. A file contains qrels if its rows have four words, the second
        0 (00, Q0) and the last a number.
    reading
        As for `cranfield.read`; pairs that repeat are an error unless ``repeated`` says how they become one rating.

    Returns
    -------
    Ratings
        The grades as ratings; the format is stated in the last step of their history.

    Examples
    --------
    >>> read_test({"ann": {"x": 1, "y": 0}, "bob": {"x": 2}})
    Ratings(2 users, 2 items, 3 ratings)
    """
    if format not in (None, "ratings", "qrels"):
        raise SettingError(f"format={format!r} is not known; a test set is 'ratings' or 'qrels'")
    reading["repeated"] = test_policy(reading.get("repeated", "error"))
    name, text = reading.pop("name", None), None
    if type(source).__module__.partition(".")[0] == "ranx" and hasattr(source, "to_dict"):
        source = source.to_dict()
    elif isinstance(source, (str, os.PathLike)):
        name = name or system_name(Path(source))
        text = None if format == "ratings" else file_text(Path(source))
        source = os.fspath(source) if text is None else json_lists(*text) or _file(*text)
    if isinstance(source, Mapping) and source and all(isinstance(grades, Mapping) for grades in source.values()):
        return _stated(_of_dict(source, name, reading), "qrels")
    if text is not None and has_trec(text[0], 6):
        raise InputError(
            "the file holds ranked lists (a TREC run), not a test set",
            source=text[1],
            remedy="give the held-out ratings or judgments as the test set (test=...), and this file as a run",
        )
    if text is not None and (format == "qrels" or has_trec(text[0], 4)):
        return _stated(_of_qrels(*text, name, reading), "qrels")
    if format == "qrels":
        raise not_qrels()
    columns = {} if text is not None or format is not None else columns_of_test(_names(source))
    reading = {"name": name, **columns, **reading}
    return _stated(_of_pandas(source, reading) or read(source, **reading), "ratings")


def not_qrels() -> SettingError:
    """Return the error for judgments that are asked for in a source of another kind."""
    return SettingError("only a text file or {user: {item: grade}} can be qrels; leave format out for ratings")


def _names(source: Any) -> list[str]:
    """Return the names of the columns of a frame or a Parquet file."""
    if isinstance(source, str):
        names: Any = FrameTable.of_parquet(meant(source), source).names
    elif isinstance(source, pl.LazyFrame):
        names = source.collect_schema().names()
    else:
        names = getattr(source, "column_names", None) or getattr(source, "columns", ())
    return [str(name) for name in names]


def columns_of_test(names: Sequence[str]) -> dict[str, str]:
    """Return the user and item columns of a table that calls them ``q_id`` and ``doc_id``, as ranx does."""
    roles = find_roles(names, {}, "the test set")
    return {role: roles[role] for role in ("user", "item") if role in roles}


def _of_pandas(source: Any, reading: Mapping[str, Any]) -> Ratings | None:
    """Read a pandas frame whose ids are text, which pandas hashes faster; None for others, and for invalid frames."""
    names = [reading.get("user"), reading.get("item")]
    if not (
        is_pandas(source) and len(source) and all(isinstance(name, str) and name in source.columns for name in names)
    ):
        return None
    if any(isinstance(source[name].dtype, np.dtype) and source[name].dtype != object for name in names):
        return None
    try:
        ids = {name: encode(source[name]) for name in names}
        # The empty string sorts first, and is not a valid id.
        if any(known.dtype != pl.String or known.all[0] == "" or codes.min() < 0 for known, codes in ids.values()):
            return None
        columns = {name: ids[name][1] if name in ids else source[name] for name in source.columns}
        ratings = read(type(source)(columns), **reading)
    except InputError:
        return None
    user_ids, item_ids = (ids[name][0] for name in names)
    return replace(ratings, user_ids=user_ids, item_ids=item_ids)


def _of_dict(grades: Mapping[Any, Any], name: str | None, reading: Mapping[str, Any]) -> Ratings:
    rows = rows_of_dict(grades, name or "the dictionary")
    users = as_series(rows.users).gather(np.repeat(np.arange(len(grades)), [len(own) for own in grades.values()]))
    return read({"user": users, "item": rows.items, "rating": rows.scores}, name=name, **reading)


def _of_qrels(data: bytes, label: str, name: str | None, reading: Mapping[str, Any]) -> Ratings:
    places = {"user": 1, "item": 3, "rating": 4, "time": False, "header": False}
    tidy = tidy_trec(data, 4)
    # TREC has no quotes.
    divided = {} if tidy is None else {"separator": gap(tidy), "quote": None}
    # An option that is None keeps the columns of TREC's layout.
    options = {option: value for option, value in reading.items() if value is not None or option == "quote"}
    return read(_file((tidy or data).lstrip(b"\r\n"), label), **{**places, "name": name, **options, **divided})


def _file(data: bytes, label: str) -> io.BytesIO:
    """Return text as an open file with the original name, since a pipe cannot be read twice."""
    file = io.BytesIO(data)
    file.name = label
    return file


def _stated(ratings: Ratings, format: str) -> Ratings:
    *before, last = ratings.history
    step = Step("read_test", {"format": format, **last.settings}, last.effect, last.notes)
    return replace(ratings, history=(*before, step), events=None)  # a test set by itself is not divided

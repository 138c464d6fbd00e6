"""Ratings from files and dataframes, and into files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield._record import Step, check_unchanged
from cranfield._settings import settings
from cranfield.data.features import About, Features, features_of
from cranfield.data.pairs import REMEDY, Repeated, RepeatedPairError, check_policy
from cranfield.data.ratings import Ratings
from cranfield.data.scale import counts_to_ratings
from cranfield.tables import (
    UNKNOWN,
    ColumnTable,
    Fault,
    FrameTable,
    Role,
    TextTable,
    contents,
    file_and_member,
    find_columns,
    is_parquet,
    is_parquet_folder,
    refuse_text_options,
    unpacked,
    write_table,
)

_COUNTS = ("keep", "to_ratings")


def read(
    source: Any,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | bool | None = None,
    time: str | int | bool | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    repeated: Repeated = "error",
    counts: Literal["keep", "to_ratings"] = "keep",
    user_features: Any = None,
    item_features: Any = None,
    name: str | None = None,
) -> Ratings:
    r"""Read ratings from a file or a dataframe.

    Parameters
    ----------
    source
        A file: CSV, TSV or other text, plain or inside gzip, Zstandard, bzip2, xz or zip (``archive.zip/file.csv``
        names one of several), or Parquet, also a folder of its parts. The content decides the kind, not the name. Or
        an open binary file, or a dataframe: pandas, Polars, PyArrow, DuckDB, any with Arrow support; or a dictionary of
        columns, or a list of tuples (user, item[, rating[, time]]) or of dictionaries.
    user, item, rating, time
        The columns, by name or by position counted from 1. By default they are found by the names they usually have
        (``userId``, ``movieId``, ``asin``, ``stars``, ``timestamp``, ...); columns without names are taken in the
        order user, item, rating, time. ``rating=False`` and ``time=False`` ignore a column. Without a column of
        ratings, every rating is 1 (implicit feedback). Times are seconds, milliseconds (or finer, told by their size),
        ISO dates or a date column, and become whole seconds since 1970 in UTC.
    separator
        The separator between fields, of any length (``"::"``). Detected by default.
    header
        Whether the first row holds the column names. Detected by default.
    quote
        The character that may enclose fields; None if quotes are ordinary characters. With a separator of more than one
        character, quotes are always ordinary characters.
    encoding
        The text encoding: ``"utf-8"``, ``"latin-1"``, ``"cp1252"``, ...
    repeated
        What to do with a (user, item) pair that has several ratings: ``"error"``, or keep one rating, the ``"last"``,
        ``"first"``, ``"mean"``, ``"max"`` or ``"sum"`` of them. First and last are by time, and by the order of the
        rows if times are equal or missing. Mean, max and sum get the latest time.
    counts
        ``"to_ratings"`` turns play counts into ratings from 1 to 5 (`counts_to_ratings`); ``"keep"`` leaves numbers
        unchanged.
    user_features, item_features
        A file or a dataframe that describes the users, or the items, for systems that use it: a column of ids, and
        others of numbers or of text, which is taken for categories. Empty cells and ids without a row are missing
        values. Text is in UTF-8.
    name
        The name of the ratings; by default the file's name without its extensions.

    Returns
    -------
    Ratings
        Ids are integers if the whole column is written as integers, else text (``007`` stays ``007``). The first step
        of ``history`` says what was detected.

    Raises
    ------
    InputError
        One line with the file, the row (the line, as in an editor; the data row for frames and Parquet), the column,
        the value and what to do.

    Examples
    --------
    >>> read([("ann", "x", 5), ("bob", "x", 3)])
    Ratings(2 users, 1 items, 2 ratings)
    >>> import io
    >>> ratings = read(io.BytesIO(b"userId::movieId::stars\n1::10::4.5\n2::10::3\n"))
    >>> ratings.frame().rows()
    [(1, 10, 4.5), (2, 10, 3.0)]
    >>> dict(ratings.history[0].settings)["separator"]
    '::'
    """
    check_policy(repeated)
    if counts not in _COUNTS:
        raise SettingError(f"counts={counts!r} is not known{nearest(counts, _COUNTS)}")
    chosen: dict[Role, Any] = {"user": user, "item": item, "rating": rating, "time": time}
    wanted = [choice for choice in chosen.values() if isinstance(choice, str)]
    text = {"separator": separator, "header": header, "quote": quote, "encoding": encoding}
    table = _table(source, wanted=wanted, **text)
    if isinstance(table, FrameTable):
        refuse_text_options(table.label, separator, header, quote, encoding)
    places = find_columns(table.names, table.width, chosen, table.guess, table.label)
    table.load(places)
    ratings, rows = _gathered(table, places, repeated, counts)
    step = _step(table, places, ratings, rows, encoding, repeated)
    ratings = with_features(replace(ratings, name=name or _name(source), history=(step,)), user_features, item_features)
    return counts_to_ratings(ratings) if counts == "to_ratings" else ratings


def with_features(ratings: Ratings, user_features: Any = None, item_features: Any = None) -> Ratings:
    """Return ratings together with features of their users and items; see `read` for what may be given.

    Examples
    --------
    >>> ratings = with_features(Ratings.of(["ann"], ["x"]), {"user": ["ann", "bob"], "age": [30, 40]})
    >>> ratings.user_features, dict(ratings.history[-1].effect)
    (Features(2 ids: age), {'columns': 1, 'users': 1})
    """
    sources: dict[About, Any] = {"user": user_features, "item": item_features}
    for about, source in sources.items():
        if source is None:
            continue
        ids = ratings.user_ids if about == "user" else ratings.item_ids
        table = None if isinstance(source, Features) else _table(source)
        features = source if table is None else features_of(table, about)
        label = "the features" if table is None else table.label
        described = int(np.count_nonzero(features.ids.codes(ids.all) != UNKNOWN))
        if not described:
            problem = f"none of its {len(features.ids):,} {about}s has ratings (such as {features.ids.all[0]!r})"
            remedy = f"check that its first column holds the {about}s as the ratings name them"
            raise InputError(problem, source=label, remedy=remedy)
        missing = len(ids) - described
        step = Step(
            f"{about}_features",
            {"source": label, "columns": features.columns.columns},
            {"columns": features.columns.width, f"{about}s": described},
            (f"There are no features for {missing:,} of the {len(ids):,} {about}s.",) if missing else (),
        )
        ratings = replace(ratings, history=(*ratings.history, step), **{f"{about}_features": features})  # type: ignore[arg-type]
    return ratings


def column_names(source: Any, **reading: Any) -> tuple[str, ...] | None:
    """Return the column names of a file or a dataframe, as `read` takes it; None if there are none.

    ``reading`` holds options of a text file: ``separator``, ``header``, ``quote`` and ``encoding``.

    Examples
    --------
    >>> column_names({"user": [1, 2], "age": [20, 30]})
    ('user', 'age')
    """
    return _table(source, **reading).names


def _table(source: Any, **text: Any) -> ColumnTable:
    """Return the table of a source; the options are those of `TextTable.of`."""
    if isinstance(source, (str, Path)):
        if is_parquet_folder(folder := meant(source)):
            return FrameTable.of_parquet(folder, str(source))
        path, member = file_and_member(Path(source))
        check_unchanged(path)
        if is_parquet(path):
            return FrameTable.of_parquet(path, str(source))
        data, label = contents(path), str(path)
    elif hasattr(source, "read") and not hasattr(source, "__arrow_c_stream__"):
        data, label, member = source.read(), str(getattr(source, "name", "the open file")), None
        data = data.encode() if isinstance(data, str) else data
    else:
        return FrameTable.of(source)
    data, label = unpacked(data, label, member)
    if is_parquet(data):
        return FrameTable.of_parquet(data, label)
    if label.endswith((".parquet", ".pq")) and data:
        raise InputError("the file is not Parquet", source=label, remedy="fetch or write it again")
    return TextTable.of(data, label, **text)


def _gathered(table: ColumnTable, places: dict[Role, int], repeated: Repeated, counts: str) -> tuple[Ratings, int]:
    """Convert the columns to codes and numbers, in parallel threads, and make ratings from them."""
    with ThreadPoolExecutor(settings.workers) as threads:
        futures = {role: threads.submit(table.values, role) for role in places}
    columns: dict[Role, Any] = {role: future.result() for role, future in futures.items()}
    (user_ids, users), (item_ids, items) = columns["user"], columns["item"]
    values = columns.get("rating", np.ones(len(users), dtype=np.float32))
    if counts == "to_ratings" and (negative := values < 0).any():
        row = int(np.argmax(negative))
        remedy = "leave the row out, or keep the numbers as they are with counts='keep' (--counts keep)"
        raise table.error(Fault(row, f"a play count of {values[row]:g} is negative", remedy), "rating")
    try:
        ratings = Ratings.from_codes(user_ids, item_ids, users, items, values, columns.get("time"), repeated=repeated)
        return ratings, len(users)
    except RepeatedPairError as error:
        row, earlier = table.lines(error.place, error.earlier)
        problem = f"{error.problem}, already in row {earlier}"
        raise InputError(problem, source=table.label, row=row, remedy=REMEDY) from error


def _step(
    table: ColumnTable, places: dict[Role, int], ratings: Ratings, rows: int, encoding: str, repeated: str
) -> Step:
    """Record what was read, and what was detected."""
    columns = {role: table.names[place] if table.names is not None else place + 1 for role, place in places.items()}
    settings: dict[str, Any] = {"source": table.label, "columns": columns, "repeated": repeated}
    if isinstance(table, TextTable):
        layout = table.layout
        settings |= {"separator": layout.separator, "header": layout.names is not None, "encoding": encoding}
    effect = {"rows": rows, "ratings": len(ratings), "users": ratings.n_users, "items": ratings.n_items}
    notes = []
    if "rating" not in places:
        notes.append("There is no rating column: every rating is 1 (implicit feedback).")
    if rows > len(ratings):
        merged = rows - len(ratings)
        repeats = "1 repeated rating was" if merged == 1 else f"{merged:,} repeated ratings were"
        notes.append(f"{repeats} merged (repeated={repeated!r}).")
    return Step("read", settings, effect, tuple(notes))


def _name(source: Any) -> str | None:
    return Path(source).name.split(".")[0] or None if isinstance(source, (str, Path)) else None


def write(ratings: Ratings, path: str | Path) -> Path:
    """Write ratings with columns user, item, rating and, if known, time (seconds since 1970).

    Parameters
    ----------
    ratings
        The ratings to write.
    path
        The file, ending in ``.parquet``, ``.csv`` or ``.tsv``. It is written completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = write(Ratings.of(["ann"], ["x"], [4]), Path(tempfile.mkdtemp()) / "ratings.csv")
    >>> path.read_text().split()
    ['user,item,rating', 'ann,x,4.0']
    """
    return write_table(ratings.frame(), path)

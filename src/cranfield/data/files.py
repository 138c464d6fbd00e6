"""Ratings from files and dataframes, and into files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield._numbers import listed
from cranfield._record import Step, check_unchanged, made_of
from cranfield._settings import settings
from cranfield.data.events import DEFAULT_MERGING, basket_codes, out_of_order, session_codes
from cranfield.data.features import About, Features, features_of
from cranfield.data.pairs import REMEDY, Repeated, RepeatedPairError, check_policy
from cranfield.data.ratings import Ratings
from cranfield.data.scale import counts_to_ratings
from cranfield.facts import Fact
from cranfield.facts import ratings as rating_facts
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
    basket: str | int | None = None,
    type: str | int | None = None,
    weights: Mapping[str, float] | None = None,
    session_gap: str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    repeated: Repeated = "auto",
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
    basket
        The column of baskets or sessions, which splits by time keep together. Without times, their numbers are their
        order.
    type, weights
        The column of types of events, and what an event of each type is worth: ``{"click": 1, "purchase": 5}``. The
        value of an event is its weight times its rating.
    session_gap
        Make sessions of each user's events: a pause longer than this (``"30min"``) starts a new one.
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
        What to do with a (user, item) pair that has several rows: ``"error"``, or make one rating of them, the
        ``"last"``, ``"first"``, ``"mean"``, ``"max"``, ``"sum"``, ``"count"`` or ``"binary"`` (1). First and last are
        by time, and by value if times are equal; without times, by the order of the rows. The others get the latest
        time.
        If there are times, the rows are kept as events: a split divides them, and merges each part by itself.
        ``"sum/max"`` merges training by one rule, and the other parts by another. ``"auto"``: ``"sum/max"`` for events,
        which have times or baskets and no rating, or a type or basket; ``"error"`` for ratings.
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
    recorded: Mapping[str, Any] = {}
    if repeated == "auto" and isinstance(source, str | Path):
        recorded = made_of(meant(source)) or {}
        repeated = recorded.get("repeated", "auto")
    chosen: dict[Role, Any] = {"user": user, "item": item, "rating": rating, "time": time}
    chosen |= {"basket": basket, "type": type}
    wanted = [choice for choice in chosen.values() if isinstance(choice, str)]
    text = {"separator": separator, "header": header, "quote": quote, "encoding": encoding}
    table = _table(source, wanted=wanted, **text)
    if isinstance(table, FrameTable):
        refuse_text_options(table.label, separator, header, quote, encoding)
    if "repeated" in recorded and basket is None and table.names is not None and "basket" in table.names:
        chosen["basket"] = "basket"
    numbered = recorded.get("baskets") if basket is None and chosen["basket"] else None
    places = find_columns(table.names, table.width, chosen, table.guess, table.label)
    table.load(places)
    columns = _columns(table, places, weights)
    if counts == "to_ratings" and (negative := columns["rating"] < 0).any():
        row = int(np.argmax(negative))
        remedy = "leave the row out, or keep the numbers as they are with counts='keep'"
        raise table.error(Fault(row, f"a play count of {columns['rating'][row]:g} is negative", remedy), "rating")
    in_order = _add_baskets(table, columns, session_gap, numbered is not None)
    # A log of events; ratings on a scale are not added up unless somebody says so.
    is_log = "rating" not in places or "type" in places or columns["basket"] is not None
    if repeated == "auto":
        repeated = str(DEFAULT_MERGING) if is_log and columns["time"] is not None else "error"
    ratings = _merged(table, columns, repeated)
    rows = len(columns["user"])
    repeated = "error" if rows == len(ratings) else repeated
    step = _step(table, places, ratings, rows, encoding, repeated)
    stated = {"weights": weights, "session_gap": session_gap, "baskets": numbered}
    settings_of = {**step.settings, **{option: value for option, value in stated.items() if value is not None}}
    step = replace(step, settings=settings_of, notes=(*step.notes, *in_order))
    ratings = with_features(replace(ratings, name=name or _name(source), history=(step,)), user_features, item_features)
    return counts_to_ratings(ratings) if counts == "to_ratings" else ratings


READING = {
    name: parameter.default
    for name, parameter in inspect.signature(read).parameters.items()
    if name not in ("source", "name", "user_features", "item_features")
}
"""The options of `read` that commands and experiment files share, with their defaults."""


def with_features(ratings: Ratings, user_features: Any = None, item_features: Any = None) -> Ratings:
    """Return ratings together with features of their users and items; see `read` for what may be given."""
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
            (rating_facts.WithoutFeatures(missing, len(ids), about),) if missing else (),
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


def _columns(table: ColumnTable, places: dict[Role, int], weights: Mapping[str, float] | None) -> dict[str, Any]:
    """Convert the columns to codes and numbers, in parallel threads; ratings are multiplied by the weights of types."""
    with ThreadPoolExecutor(settings.workers) as threads:
        futures = {role: threads.submit(table.values, role) for role in places}
    by_role: dict[Role, Any] = {role: future.result() for role, future in futures.items()}
    columns: dict[str, Any] = {"time": by_role.get("time"), "basket": None, "basket_ids": None}
    for role in ("user", "item", "basket"):
        if role in by_role:
            columns[f"{role}_ids"], columns[role] = by_role[role]
    columns["rating"] = by_role.get("rating", np.ones(len(columns["user"]), dtype=np.float32))
    if ("type" in places) != (weights is not None):
        raise SettingError(
            "types of events need weights, such as weights={'click': 1, 'purchase': 5}"
            if weights is None
            else "weights are those of types of events; name their column with type=NAME"
        )
    if weights is not None:
        names, codes = by_role["type"]
        known = {str(name): check.number(f"the weight of {name}", weight) for name, weight in weights.items()}
        for name, weight in known.items():
            if not 0 <= weight < np.inf:
                raise SettingError(f"the weight {weight:g} of {name!r} is not a number of at least 0; give another")
        missing = [place for place, name in enumerate(names.text) if name not in known]
        if missing:
            row = int(np.argmax(np.isin(codes, missing)))
            remedy = f"give its weight, or leave these rows out; weights are given for {listed(list(known))}"
            raise table.error(Fault(row, f"the type {names.text[int(codes[row])]!r} has no weight", remedy), "type")
        columns["rating"] = columns["rating"] * np.array([known[name] for name in names.text])[codes]
    return columns


def _add_baskets(table: ColumnTable, columns: dict[str, Any], session_gap: Any, numbered: bool) -> list[Fact]:
    """Number the baskets of each user in the order of time, or make sessions where there is a longer pause.

    ``numbered`` if they have the numbers of a split already, which its parts share.
    """
    users, times, codes = columns["user"], columns["time"], columns["basket"]
    if codes is not None:
        if session_gap is not None:
            raise SettingError("there are baskets already; leave session_gap or basket out")
        ids = columns["basket_ids"].all
        if times is None:
            if not ids.dtype.is_integer():
                odd = next((name for name in ids.cast(pl.String) if not re.fullmatch(r"[+-]?\d+", name)), ids[0])
                problem = f"the baskets have no order: there are no times, and {odd!r} is not a whole number"
                raise InputError(problem, source=table.label, remedy="name a column of times, or number the baskets")
            times = columns["time"] = ids.to_numpy()[codes].astype(np.int64)
        if numbered:
            columns["basket"] = ids.to_numpy()[codes].astype(np.int32)
            return []
        columns["basket"] = basket_codes(users, codes, times)
        facts = rating_facts.TiedBaskets, rating_facts.BasketsAgainstTime
        counts = out_of_order(users, codes, times)
        return [fact(count) for fact, count in zip(facts, counts if ids.dtype.is_integer() else counts[:1]) if count]
    if session_gap is not None:
        if times is None:
            raise InputError("sessions need times", source=table.label, remedy="name the column of times")
        columns["basket"] = session_codes(users, times, check.duration("session_gap", session_gap))
    return []


def _merged(table: ColumnTable, columns: dict[str, Any], repeated: Repeated) -> Ratings:
    """Make ratings from columns."""
    ids = columns["user_ids"], columns["item_ids"]
    arrays = (columns[name] for name in ("user", "item", "rating", "time"))
    try:
        return Ratings.from_codes(*ids, *arrays, repeated=repeated, baskets=columns["basket"])
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
    notes: list[Fact] = []
    if "rating" not in places and "type" not in places:
        notes.append(rating_facts.ImplicitFeedback())
    if ratings.events is not None:
        notes.append(rating_facts.KeptEvents(rows, len(ratings), *ratings.events.merging))
    elif rows > len(ratings):
        notes.append(rating_facts.MergedRepeats(rows - len(ratings), repeated))
    return Step("read", settings, effect, tuple(notes))


def _name(source: Any) -> str | None:
    return Path(source).name.split(".")[0] or None if isinstance(source, (str, Path)) else None


def write(ratings: Ratings, path: str | Path) -> Path:
    """Write ratings with columns user, item, rating and, if known, time (seconds since 1970).

    Events are written one by one, with their baskets if they have any. `read` needs to know how they are merged
    (``repeated``), unless a record that cranfield kept of the file says it.

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
    frame = ratings.rows().frame()
    if ratings.events is not None and ratings.events.baskets is not None:
        frame = frame.with_columns(basket=ratings.events.baskets)
    return write_table(frame, path)

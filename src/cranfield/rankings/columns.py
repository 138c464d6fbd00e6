"""Columns of ranked lists: their roles, ids as codes, numbers, and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, nearest
from cranfield.tables import UNKNOWN, Fault, MissingColumnError, Vocabulary, as_series, check_exact, place_by_name

# Names in lower case without separators, the most specific first. LensKit and RecTools write user_id, item_id, score,
# rank; RecBole the same with types (user_id:token); RePlay query_id and rating; recommenders userID, itemID,
# prediction; ranx q_id, doc_id; Spark's ALS a column of recommendations. Users and items have these names and those of
# ratings.
_NAMES: Mapping[str, Sequence[str]] = {
    role: names.split()
    for role, names in {
        "user": "query queryid qid topic topicid targetitemid",
        "item": "docno itemids recommendations recs",
        "score": "score scores relevance value",
        "rank": "rank ranks position pos ranking",
        "prediction": "prediction predictions predictedrating predicted pred rhat est rating",
        "system": "system model run runid tag algorithm algo recommender method",
        "group": "group",
    }.items()
}


def find_roles(names: Sequence[str], stated: Mapping[str, str | int | None], source: str) -> dict[str, str]:
    """Return the column of each role: the one the user named, otherwise the one with a known name."""
    roles = {role: _stated(column, role, names, source) for role, column in stated.items() if column is not None}
    for role, known in _NAMES.items():
        if role in roles:
            continue
        free = [name for name in names if name not in roles.values()]
        place = place_by_name(free, "user" if role == "user" else "item") if role in ("user", "item") else None
        # ``q_id``, ``Q ID``, ``qId`` and RecBole's ``q_id:token`` are the same name.
        plain = ["".join(filter(str.isalnum, name.partition(":")[0].lower())) for name in free]
        if place is None:
            place = next((plain.index(name) for name in known if name in plain), None)
        if place is not None:
            roles[role] = free[place]
    return roles


def _stated(column: str | int, role: str, names: Sequence[str], source: str) -> str:
    if column in names:
        return str(column)
    if str(column).isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    raise MissingColumnError(
        role, f"there is no column {column!r} to take the {role} from{nearest(str(column), names)}", source=source
    )


# Number of objects to check before testing whether all come in runs.
_PROMISE = 1000


def encode(ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the vocabulary of ``ids`` and the code of each, `UNKNOWN` where an id is missing.

    Like `Vocabulary.encode`, but for raw columns: ids may be missing, pandas hashes its own text, and ids that come in
    runs, such as the users in a file of lists, are looked up once per run.
    """
    if hasattr(ids, "factorize") and not (isinstance(ids.dtype, np.dtype) and ids.dtype.kind in "iuf"):
        # pandas hashes its own columns of text and objects faster than they can be converted.
        starts = _object_run_starts(ids.to_numpy()) if ids.dtype == object else None
        vocabulary, codes = _factorized(ids if starts is None else ids.take(starts))
    else:
        ids = _plain(ids)
        starts = _run_starts(ids)
        vocabulary, codes = _encode(ids if starts is None else ids.gather(starts))
    if starts is not None:
        codes = np.repeat(codes, np.diff(starts, append=len(ids)))
    return vocabulary, codes


def _factorized(ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
    try:
        codes, distinct = ids.factorize()
    except TypeError as error:
        raise InputError(f"the ids cannot be read ({error})", remedy="use numbers, text or dates") from error
    try:
        vocabulary, code_of = _sorted(_plain(distinct.tolist()))
    except InputError as error:  # its row is one of the distinct ids
        raise InputError(error.problem, remedy=error.remedy) from None
    # factorize marks a missing id with -1, which selects the appended cell.
    return vocabulary, np.append(code_of, np.int32(UNKNOWN))[codes]


def _sorted(distinct: pl.Series) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the vocabulary of distinct ids, and the code of each."""
    if distinct.dtype != pl.String:
        return _encode(distinct)
    order = distinct.arg_sort()
    codes = np.empty(len(distinct), dtype=np.int32)
    codes[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
    return Vocabulary(distinct.gather(order)), codes


def _plain(ids: Any) -> pl.Series:
    """Convert ids to one of a few types; integers and whole floats become Int64."""
    try:
        series = as_series(ids)
    except InputError as error:
        raise InputError("the ids are of several types", remedy=error.remedy) from error
    kind = series.dtype
    if kind.is_nested() or kind == pl.Object:
        raise InputError(f"{series.head(1).to_list()[0]!r} cannot be an id", remedy="use numbers, text or dates")
    check_exact(series)
    if kind.is_float():
        known = series.fill_nan(None)
        whole = known.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == known.null_count() and bool((whole == known).all()) else known
    if kind.is_integer() and kind not in (pl.Int64, pl.UInt64):
        return series.cast(pl.Int64)
    return series


def _run_starts(series: pl.Series) -> NDArray[np.int64] | None:
    """Return the starts of runs of equal ids, or None if the runs are too short to be worth it."""
    if len(series) < 2:
        return None
    if series.dtype.is_integer() and not series.null_count():
        values = series.to_numpy()
        changes = values[1:] != values[:-1]
    else:
        changes = series.slice(1).ne_missing(series.slice(0, len(series) - 1)).to_numpy()
    return _starts(changes)


def _object_run_starts(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """Do what `_run_starts` does for Python objects. They are slow to compare, so the first ones are tested alone."""
    try:
        for some in (values[:_PROMISE], values):
            starts = _starts(some[1:] != some[:-1])
            if starts is None:
                return None
    except TypeError:
        # pandas.NA cannot be compared.
        return None
    return starts


def _starts(changes: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    if 4 * np.count_nonzero(changes) >= len(changes):
        return None
    return np.append(0, np.flatnonzero(changes) + 1)


def _encode(series: pl.Series) -> tuple[Vocabulary, NDArray[np.int32]]:
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if not series.null_count():
        return Vocabulary.encode(series)
    vocabulary = Vocabulary.of(series.drop_nulls())
    return vocabulary, vocabulary.codes(series)


MISSING = ("", "nan", "na", "n/a", "null", "none")
"""Texts of missing numbers, in lower case."""


def numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as float64, with NaN for missing values; text that is not a number is a fault with its row."""
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "iufb":
        # A copy, since the user may change the frame.
        return np.array(column, dtype=np.float64)
    series = column if isinstance(column, pl.Series) else pl.Series(column, strict=False)
    if series.dtype == pl.Object:
        series = pl.Series(series.to_list(), strict=False)
    if series.dtype != pl.String:
        if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
            raise Fault(0, f"{series.head(1).to_list()[0]!r} is not a number", "name the right column")
        return series.cast(pl.Float64).to_numpy()
    text = series.str.strip_chars()
    values = text.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & ~text.str.to_lowercase().is_in(MISSING)).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise Fault(row, f"{series[row]!r} is not a number", "fix it, or name the right column")
    return values.to_numpy()


GroupsOfLists = tuple[NDArray[np.int16] | None, tuple[str, ...]]
"""The group of each list, as an index into the names, and the names; None and no names if lists are not grouped."""


def named_groups(column: Any) -> GroupsOfLists:
    """Return the groups in a column of names, sorted as numbers if all are numbers, otherwise as text."""
    texts = pl.Series(column).cast(pl.String)
    distinct = texts.unique().to_list()
    if None in distinct or len(distinct) > np.iinfo(np.int16).max:
        return None, ()
    numbers = all(name.isascii() and name.isdigit() for name in distinct)
    names = sorted(distinct, key=lambda name: (int(name) if numbers else 0, name))
    places = texts.replace_strict(names, list(range(len(names))), return_dtype=pl.Int16) if names else texts
    return places.cast(pl.Int16).to_numpy().astype(np.int16), tuple(names)


def groups_by_list(column: Any, lists: NDArray[Any], n_lists: int) -> GroupsOfLists:
    """Return the group of each list from the groups of its rows; nothing if the rows of a list disagree."""
    of_rows, names = named_groups(column)
    if of_rows is None:
        return None, ()
    of_lists = np.zeros(n_lists, dtype=np.int16)
    of_lists[lists] = of_rows
    return (of_lists, names) if np.array_equal(of_lists[lists], of_rows) else (None, ())

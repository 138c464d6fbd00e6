"""Features of users and items besides their ratings: age, occupation, genre."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield.tables import UNKNOWN, ColumnTable, Fault, FrameTable, Vocabulary, place_by_name

About = Literal["user", "item"]
"""What a table of features describes."""


@dataclass(frozen=True, eq=False)
class Features:
    """Columns that describe users or items, one row per id: numbers (Float64) or categories (String); null if missing.

    It has its own vocabulary, and rows are looked up by id (`rows`). So it does not change when a filter or a split
    changes the vocabularies of the ratings that it belongs to.

    Examples
    --------
    >>> ages = Features.of(["bob", "ann"], {"age": [40, 30], "town": ["Oslo", None]})
    >>> ages.rows(Vocabulary.of(["ann", "eve"])).rows()
    [(30.0, None), (None, None)]
    """

    ids: Vocabulary
    columns: pl.DataFrame

    @classmethod
    def of(cls, ids: Any, columns: Any) -> Features:
        """Make features by hand, from ids in any order and a frame or a dictionary of columns."""
        frame = pl.DataFrame(columns)
        return features_of(FrameTable(frame.insert_column(0, pl.Series(_ID, ids)).lazy(), "the features"), "user")

    def __repr__(self) -> str:
        return f"Features({len(self.ids):,} ids: {', '.join(self.columns.columns)})"

    def rows(self, ids: Vocabulary) -> pl.DataFrame:
        """Return one row per id of another vocabulary, in the order of its codes; null if nothing is known."""
        codes = self.ids.codes(ids.all)
        places = pl.Series(np.where(codes == UNKNOWN, 0, codes)).set(pl.Series(codes == UNKNOWN), None)
        return self.columns.select(pl.all().gather(places))

    def only(self, ids: Vocabulary) -> Features:
        """Return the features of the ids that are also in another vocabulary."""
        known = ids.codes(self.ids.all) != UNKNOWN
        return Features(Vocabulary(self.ids.all.filter(pl.Series(known))), self.columns.filter(pl.Series(known)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the ids and all values."""
        digest = hashlib.sha256("\x1f".join(self.ids.text.to_list()).encode())
        for column in self.columns:
            values = ("" if value is None else repr(value) for value in column)
            digest.update("\x1e".join((column.name, str(column.dtype), *values)).encode())
        return digest.hexdigest()[:16]


_ID = "id"


def features_of(table: ColumnTable, about: About) -> Features:
    """Return the features in a table.

    The ids are in the column with a usual name (``user_id``, ``movieId``, ``id``), else in the first one. All other
    columns are features: numbers and true or false are numeric; text and codes with leading zeros are categories.
    """
    names = table.names or tuple(f"column {place + 1}" for place in range(table.width))
    place = place_by_name(names, about)
    if place is None:
        place = next((at for at, name in enumerate(names) if name.strip().lower() == _ID), 0)
    others = [other for other in range(table.width) if other != place]
    if not others:
        problem = f"there is no column other than that of the {about}s"
        remedy = f"give a table with a column of {about}s and others that describe them"
        raise InputError(problem, source=table.label, remedy=remedy)
    columns = []
    for other in others:
        # A table returns columns by role; here the second role is a feature.
        table.load({"user": place, "item": other})
        ids, codes = table.values("user")
        repeated = np.flatnonzero(np.bincount(codes, minlength=len(ids))[codes] > 1)
        if len(repeated):
            problem = f"{about} {ids.ids(codes[repeated[-1:]])[0]} is described twice"
            raise table.error(Fault(int(repeated[-1]), problem, "leave one of the rows out"), "user")
        try:
            values = _values(table.column("item"))
        except Fault as fault:
            raise table.error(fault, "item") from fault
        columns.append(values.gather(np.argsort(codes, kind="stable")).alias(names[other]))
    return Features(ids, pl.DataFrame(columns))


def _values(column: pl.Series) -> pl.Series:
    """Return a column as numbers or as categories, null if a value is missing."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        return column.cast(pl.String)
    if column.dtype == pl.String:
        text = column.str.strip_chars().replace("", None)
        numbers = text.cast(pl.Float64, strict=False)
        # 0123 is a code, such as a postcode.
        if numbers.null_count() > text.null_count() or text.str.contains(r"^-?0\d").any():
            return text
        column = numbers
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise Fault(0, f"a column of type {column.dtype} is neither numbers nor text", "make it one of them")
    numbers = column.cast(pl.Float64).fill_nan(None)
    infinite = numbers.is_infinite().fill_null(False)
    if infinite.any():
        raise Fault(int(infinite.arg_max() or 0), "the number is infinite", "leave the value empty")
    return numbers

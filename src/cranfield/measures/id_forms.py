"""Ids of two sources that are the same but for the way in which they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from cranfield._phrases import listed
from cranfield.data import Vocabulary

_SHOWN = 3
# So many ids tell whether those of two sources are the same.
_SAMPLE = 2000

_FORMS: Mapping[str, Callable[[pl.Series], pl.Series]] = {
    "surrounding spaces": lambda ids: ids.str.strip_chars(),
    "a decimal part (1.0 against 1)": lambda ids: ids.str.replace(r"\.0+$", ""),
    "leading zeros (007 against 7)": lambda ids: ids.str.replace(r"^0+([0-9])", "$1"),
    "upper and lower case": lambda ids: ids.str.to_lowercase(),
    "a prefix (user_7 against 7)": lambda ids: ids.str.replace(r"^[^0-9]+", ""),
}
"""By what ids may differ, and what makes them alike; tried in this order, and then all together."""


def differing_form(own: Vocabulary, others: Vocabulary, share: float = 0.5) -> str | None:
    """Return by what the ids of two vocabularies differ, in words; None if they are not the same ids.

    They are if, written alike, more of them meet than before, and at least this ``share`` of the smaller vocabulary.

    Examples
    --------
    >>> differing_form(Vocabulary.of(["007", "008"]), Vocabulary.of([7, 8, 9]))
    'leading zeros (007 against 7)'
    >>> differing_form(Vocabulary.of(["ann", "bob"]), Vocabulary.of([7, 8, 9])) is None
    True
    """
    if own.dtype.is_integer() and others.dtype.is_integer():
        return None
    mine, theirs = sorted((own.text, others.text), key=len)
    mine = mine.head(_SAMPLE)
    wanted = max(share * len(mine), _common(mine, theirs) + 1)
    changing = {}
    for name, alike in _FORMS.items():
        if all(alike(ids).equals(ids) for ids in (mine, theirs.head(_SAMPLE))):
            continue
        changing[name] = alike
        if _common(alike(mine), alike(theirs)) >= wanted:
            return name
    if len(changing) < 2:
        return None
    for alike in changing.values():
        mine, theirs = alike(mine), alike(theirs)
    return listed([name.partition(" (")[0] for name in changing]) if _common(mine, theirs) >= wanted else None


def examples(ids: Vocabulary) -> str:
    """Return the first ids of a vocabulary, as a person would point at them.

    Examples
    --------
    >>> examples(Vocabulary.of(["a ", "b"])), examples(Vocabulary.of([3, 1, 2, 4]))
    ("'a ' and 'b'", '1, 2 and 3')
    """
    return listed([repr(one) for one in ids.all.head(_SHOWN)])


def _common(mine: pl.Series, theirs: pl.Series) -> int:
    distinct = mine.unique()
    # An id that was nothing but a prefix is empty now, and says nothing.
    return int((distinct.is_in(theirs.unique().implode()) & (distinct != "")).sum())

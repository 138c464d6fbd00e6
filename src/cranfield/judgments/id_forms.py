"""Ids of two sources that differ only in the way they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from cranfield._numbers import listed
from cranfield.tables import Vocabulary

_SHOWN = 3
# Number of ids to compare.
_SAMPLE = 2000

_FORMS: Mapping[str, Callable[[pl.Series], pl.Series]] = {
    "Unicode normalisation (é as one character or as two: write both in the form NFC)": lambda ids: ids.str.normalize(),
    "surrounding spaces": lambda ids: ids.str.strip_chars(),
    "upper and lower case": lambda ids: ids.str.to_lowercase(),
    "a prefix (user_7 against 7)": lambda ids: ids.str.replace(r"^[^0-9]+", ""),
    "a decimal part (1.0 against 1)": lambda ids: ids.str.replace(r"\.0+$", ""),
    "leading zeros (007 against 7)": lambda ids: ids.str.replace(r"^0+([0-9])", "$1"),
}
"""Ways in which ids may differ, and functions that normalise them; each is tried alone, then all in sequence."""


def differing_form(own: Vocabulary, others: Vocabulary, share: float = 0.5) -> str | None:
    """Return a description of how the same ids are written in two vocabularies; None if they are not the same ids.

    They are the same if normalising matches more of them, and at least this ``share`` of the smaller vocabulary.

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
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs) and _common(alike(mine), alike(theirs)) >= wanted:
            return name
    changing = []
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs):
            changing.append(name.partition(" (")[0])
            mine, theirs = alike(mine), alike(theirs)
    return listed(changing) if len(changing) > 1 and _common(mine, theirs) >= wanted else None


def _changes(alike: Callable[[pl.Series], pl.Series], mine: pl.Series, theirs: pl.Series) -> bool:
    """Whether normalising a form changes any of the first ids."""
    return not all(alike(ids).equals(ids) for ids in (mine.head(_SAMPLE), theirs.head(_SAMPLE)))


def examples(ids: Vocabulary) -> str:
    """Return the first ids of a vocabulary, as text for messages.

    Examples
    --------
    >>> examples(Vocabulary.of(["a ", "b"])), examples(Vocabulary.of([3, 1, 2, 4]))
    ("'a ' and 'b'", '1, 2 and 3')
    """
    return listed([repr(example) for example in ids.all.head(_SHOWN)])


def _common(mine: pl.Series, theirs: pl.Series) -> int:
    distinct = mine.unique()
    # Ids that consisted only of a prefix are empty now, and do not count.
    return int((distinct.is_in(theirs.unique().implode()) & (distinct != "")).sum())

"""Recommended items outside the catalogue, which generative systems may invent."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._decisions import DecisionGroup, decision, unless
from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._polars import read_parquet, readable
from cranfield.data import Ratings
from cranfield.judgments.judged import Judged
from cranfield.tables import Vocabulary, check_exact, contents, is_parquet, place_by_name

NONE, TRAIN = "none", "train"
"""No catalogue, and the items with training ratings."""

# Separators of columns in a text file; a line without any of them is one id.
_SEPARATORS = ("\t", "::", ";", ",", "|")


def _catalogue(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name}={value!r} is not a catalogue; give a file, 'train' or 'none'")
    return value


@dataclass(frozen=True)
class Cataloguing(DecisionGroup):
    """Which items exist, so that recommended items that do not exist are counted separately."""

    catalogue: Any = decision(
        "C1",
        NONE,
        "the items that exist: a file, 'train' for the training items; recommended items outside it are counted "
        "separately",
        check=_catalogue,
        phrase=unless(
            NONE, "items outside {} counted separately", {TRAIN: "items outside training counted separately"}
        ),
        help="The items that exist: a file with a column of items or one id per line, or train for the training items. "
        "Recommended items outside it are counted separately from unjudged ones.",
    )


def is_no_catalogue(catalogue: Any) -> bool:
    """Whether there is no catalogue."""
    return catalogue is None or (isinstance(catalogue, str) and catalogue == NONE)


def catalogue_ids(catalogue: Any, train: Ratings | None = None) -> Vocabulary:
    """Return the ids of the items that exist.

    The catalogue is ``"train"`` for the items with training ratings; a file or a frame with a column of items, or with
    one id per line; ratings, for their items; or the ids themselves.
    """
    if isinstance(catalogue, str) and catalogue == TRAIN:
        if train is None:
            raise SettingError("catalogue='train' needs the training ratings; give them as train=... (--train FILE)")
        return catalogue_ids(train)
    if isinstance(catalogue, Vocabulary):
        return catalogue
    if isinstance(catalogue, Ratings):
        return catalogue.compact().item_ids
    if isinstance(catalogue, str | Path):
        ids = _of_file(meant(catalogue))
    elif hasattr(catalogue, "columns"):
        ids = _item_column(catalogue if isinstance(catalogue, pl.DataFrame) else pl.DataFrame(catalogue), "catalogue")
    else:
        ids = _of_ids(catalogue)
    try:
        check_exact(ids)
    except InputError as error:
        source = str(catalogue) if isinstance(catalogue, str | Path) else "the catalogue"
        raise InputError(error.problem, source=source, row=error.row, remedy=error.remedy) from None
    ids = ids.drop_nulls()
    if len(ids) == 0:
        raise InputError("the catalogue holds no items", remedy="give one with at least one id")
    return Vocabulary.of(ids)


def _of_ids(catalogue: Any) -> pl.Series:
    try:
        return pl.Series(list(catalogue))
    except TypeError:  # not a collection, or a mix of numbers and text
        raise SettingError(
            f"catalogue={reprlib.repr(catalogue)} is not a catalogue; give a file, a frame, ratings, or ids of one type"
        ) from None


def _of_file(path: Path) -> pl.Series:
    if is_parquet(path):
        with readable(path):
            return _item_column(read_parquet(path), str(path))
    lines = contents(path).decode("utf-8", errors="replace").lstrip("\ufeff").splitlines()
    lines = [line for line in lines if line.strip()]
    separator = next((mark for mark in _SEPARATORS if lines and mark in lines[0]), None)
    rows = [[line.strip()] if separator is None else line.split(separator) for line in lines]
    head = [cell.strip().strip('"') for cell in rows[0]] if rows else []
    place = place_by_name(head, "item")
    if separator is not None and place is None:
        raise InputError(
            f"no column is known to hold the items (columns: {', '.join(head)})",
            source=str(path),
            remedy="name one of them item, or give a file with one id per line",
        )
    column = 0 if place is None else place
    return pl.Series([row[column].strip().strip('"') for row in rows[0 if place is None else 1 :] if len(row) > column])


def _item_column(frame: pl.DataFrame, label: str) -> pl.Series:
    place = place_by_name(frame.columns, "item")
    if place is None and frame.width != 1:
        raise InputError(
            f"no column is known to hold the items (columns: {', '.join(frame.columns)})",
            source=label,
            remedy="name one of them item",
        )
    return frame.to_series(place or 0)


def with_live(judged: Sequence[Judged], catalogue: Any, train: Ratings | None) -> list[Judged]:
    """Return lists in which items outside a catalogue earn nothing; an item with a test rating is always live.

    Without a catalogue (``none``), the lists are returned as they are.
    """
    if is_no_catalogue(catalogue):
        return list(judged)
    if any(lists.ranked is not None and lists.ranked.one_relevant for lists in judged):
        raise SettingError(
            "a catalogue needs whole lists, but these hold only their relevant item; leave the catalogue out"
        )
    live = Vocabulary.union([catalogue_ids(catalogue, train), judged[0].judgments.judged_items])
    return [lists.fresh(context=replace(lists.context, live=live)) for lists in judged]

"""Parsers of the files that describe users and items of the known datasets; each returns the ids, then features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from cranfield._polars import scan_ndjson
from cranfield.datasets.entry import FeaturesParser
from cranfield.datasets.parsers import unreadable

_GENRES_100K = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
_NO_GENRE = "(no genres listed)"


def fields(separator: str, columns: dict[str, tuple[int, type[pl.DataType]]], *, skip: int = 0) -> FeaturesParser:
    """Return a parser of lines with separated fields.

    Parameters
    ----------
    separator
        The text between the fields.
    columns
        The position and the type of the ids, which come first, and of each feature.
    skip
        Number of lines before the first row.
    """

    def parse(file: Path) -> pl.DataFrame:
        rows = [line.split(separator) for line in _text(file).splitlines()[skip:] if line.strip()]
        try:
            return pl.DataFrame(
                {
                    name: pl.Series([row[place].strip() or None for row in rows], dtype=pl.String).cast(kind)
                    for name, (place, kind) in columns.items()
                }
            )
        except (IndexError, pl.exceptions.PolarsError) as error:
            raise unreadable(file, error) from error

    return parse


def films_100k(file: Path) -> pl.DataFrame:
    """Parse ``u.item``: one film per line, with its genres as 0 or 1 in the last 19 fields."""
    rows = [line.split("|") for line in _text(file).splitlines() if line.strip()]
    try:
        flags = np.array([row[-len(_GENRES_100K) :] for row in rows], dtype=np.int64)
        return pl.DataFrame({"item": [int(row[0]) for row in rows], **dict(zip(_GENRES_100K, flags.T, strict=True))})
    except ValueError as error:
        raise unreadable(file, error) from error


def films(file: Path) -> pl.DataFrame:
    """Parse ``movies.dat`` or ``movies.csv``: id, title, and genres separated by ``|``, each of which becomes 0/1."""
    lines = [line for line in _text(file).splitlines() if line.strip()]
    separator, lines = ("::", lines) if file.suffix == ".dat" else (",", lines[1:])
    try:
        items = [int(line.partition(separator)[0]) for line in lines]
    except ValueError as error:
        raise unreadable(file, error) from error
    genres = [set(line.rpartition(separator)[2].split("|")) - {_NO_GENRE, ""} for line in lines]
    known = sorted(set().union(*genres))
    return pl.DataFrame({"item": items, **{genre: [int(genre in own) for own in genres] for genre in known}})


def ascii_features(file: Path) -> pl.DataFrame:
    """Parse a matrix of 0 and 1 without names, one row per id; ids count from 0."""
    try:
        matrix = np.loadtxt(file, ndmin=2)
    except ValueError as error:
        raise unreadable(file, error) from error
    columns = {f"feature {place + 1}": column for place, column in enumerate(matrix.T)}
    return pl.DataFrame({"id": np.arange(len(matrix)), **columns})


def book_crossing_users(file: Path) -> pl.DataFrame:
    """Parse ``BX-Users.csv`` (``"id";"town, state, country";"age"`` or NULL): the country and a plausible age."""
    lines = pl.Series([line for line in _text(file).splitlines()[1:] if line.strip()], dtype=pl.String)
    pattern = r'^\s*"?(?P<user>\d+)"?[;,]"?(?P<place>.*?)"?[;,]"?(?P<age>[\d.]+|NULL|)"?\s*$'
    parts = lines.str.extract_groups(pattern).struct.unnest().drop_nulls("user")
    if parts.is_empty():
        raise unreadable(file, ValueError("no line is id;place;age"))
    age = pl.col("age").cast(pl.Float64, strict=False)
    country = pl.col("place").str.split(",").list.last().str.strip_chars().str.to_lowercase()
    return parts.select(
        pl.col("user").cast(pl.Int64),
        pl.when(age.is_between(5, 100)).then(age).alias("age"),
        pl.when(country != "").then(country).alias("country"),
    )


def renttherunway_users(file: Path) -> pl.DataFrame:
    """Take the measurements of each user from their reviews: the first stated value of each."""
    keys = ("user_id", "age", "height", "weight", "body type", "bust size")
    inches = pl.col("height").str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Float64))
    try:
        return (
            scan_ndjson(file, schema=dict.fromkeys(keys, pl.String))
            .select(
                pl.col("user_id").cast(pl.Int64).alias("user"),
                pl.col("age").cast(pl.Float64, strict=False),
                (inches.list.first() * 12 + inches.list.get(1, null_on_oob=True)).alias("height"),
                pl.col("weight").str.extract(r"(\d+)").cast(pl.Float64).alias("weight"),
                pl.col("body type"),
                pl.col("bust size"),
            )
            .group_by("user", maintain_order=True)
            .agg(pl.all().drop_nulls().first())
            .collect()
        )
    except pl.exceptions.PolarsError as error:
        raise unreadable(file, error) from error


def renttherunway_items(file: Path) -> pl.DataFrame:
    """Take the category of each garment from its reviews."""
    try:
        return (
            scan_ndjson(file, schema=dict.fromkeys(("item_id", "category"), pl.String))
            .select(pl.col("item_id").cast(pl.Int64).alias("item"), "category")
            .group_by("item", maintain_order=True)
            .agg(pl.col("category").drop_nulls().first())
            .collect()
        )
    except pl.exceptions.PolarsError as error:
        raise unreadable(file, error) from error


def _text(file: Path) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")

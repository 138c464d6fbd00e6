"""Parsers of the files of known datasets: of ratings, and of what describes users and items."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._polars import read_parquet, scan_csv, scan_ndjson
from cranfield._terminal import progress
from cranfield.datasets.entry import FeaturesParser, Parser

_BLOCK = 1 << 26
_DAY = 86_400
# The share of the plays before the split point of a temporal split.
_BEFORE = 0.8
_GENRES_100K = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
_NO_GENRE = "(no genres listed)"


@contextmanager
def parsing(file: Path) -> Iterator[None]:
    """Refuse a file that is not what its parser expects."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, IndexError, ValueError) as error:
        # The first sentence says what is wrong; the rest is advice for programmers.
        raise _unreadable(file, " ".join(str(error).split()).partition(". ")[0][:200]) from error


def _unreadable(file: Path, problem: str) -> InputError:
    remedy = "check that it is the file that the dataset's page offers"
    return InputError(f"the file is not what this dataset holds ({problem})", source=file, remedy=remedy)


def delimited(separator: str, columns: Sequence[str], *, header: bool = False, text_ids: bool = False) -> Parser:
    """Return a parser of plain columns, named in order from ``user``, ``item``, ``rating`` and ``time``.

    ``header``: the first line holds names. ``text_ids``: ids are text even if they look like numbers (``0133093``).
    """
    ids: Any = pl.String if text_ids else pl.Int64
    types = {"user": ids, "item": ids, "rating": pl.Float64, "time": pl.Int64}
    schema = {name: types[name] for name in columns}

    def parse(files: list[Path]) -> pl.DataFrame:
        return pl.concat([_table(file, separator, schema, header) for file in files])

    return parse


def _table(file: Path, separator: str, schema: dict[str, Any], header: bool) -> pl.DataFrame:
    how: dict[str, Any] = {"has_header": False, "skip_rows": int(header), "schema": schema, "quote_char": None}
    with parsing(file):
        if len(separator) == 1:
            return scan_csv(file, separator=separator, **how).collect()
        return pl.read_csv(file.read_bytes().replace(separator.encode(), b"\t"), separator="\t", **how)


def netflix(files: list[Path]) -> pl.DataFrame:
    """Parse the Netflix files: a line ``1:`` names the film, followed by lines ``user,rating,date``, one per rating."""
    frames, film = [], None
    with progress("Reading Netflix", total=len(files), unit="files") as bar:
        for file in files:
            with parsing(file):
                for block in _blocks(file):
                    frame = _netflix_block(block, film)
                    film = frame["item"][-1]
                    frames.append(frame.drop_nulls("rating"))
            bar.advance()
    return pl.concat(frames)


def _netflix_block(block: bytes, film: int | None) -> pl.DataFrame:
    schema: dict[str, Any] = {"first": pl.String, "rating": pl.Float32, "date": pl.Date}
    # The header sets the number of columns, because the line of a film has only one.
    lines = pl.read_csv(b"first,rating,date\n" + block, schema=schema, quote_char=None)
    first = pl.col("first").str.strip_chars()
    is_film = first.str.ends_with(":")
    item = pl.when(is_film).then(first.str.strip_chars_end(":")).cast(pl.Int32).forward_fill()
    return lines.select(
        pl.when(~is_film).then(first).cast(pl.Int32).alias("user"),
        item.fill_null(pl.lit(film, dtype=pl.Int32)).alias("item"),
        "rating",
        (pl.col("date").cast(pl.Int64) * _DAY).alias("time"),
    )


def _blocks(file: Path) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines, so that 100 million lines need little memory."""
    with file.open("rb") as stream:
        rest = b""
        while block := stream.read(_BLOCK):
            whole, newline, rest_of_block = (rest + block).rpartition(b"\n")
            rest = rest_of_block
            if newline:
                yield whole + newline
        if rest.strip():
            yield rest


_BOOK_CROSSING = r"""^\s*"?(?P<user>\d+)"?\s*[;,]"?(?P<item>.*?)"?[;,]\s*"?(?P<rating>\d+)"?\s*$"""


def book_crossing(files: list[Path]) -> pl.DataFrame:
    """Parse ``BX-Book-Ratings.csv`` (Latin-1, quoted, ``;``): the explicit ratings, 1 to 10."""
    return _book_crossing(files).filter(pl.col("rating") > 0)


def book_crossing_implicit(files: list[Path]) -> pl.DataFrame:
    """Parse ``BX-Book-Ratings.csv``: every book a user interacted with (rated, or 0 for unrated) as 1."""
    return _book_crossing(files).with_columns(rating=pl.lit(1.0))


def _book_crossing(files: list[Path]) -> pl.DataFrame:
    # Some ISBNs hold quotes and backslashes, which break a CSV reader; the fields around them are numbers.
    lines = _lines(files[0], encoding="latin-1")[1:]
    fields = _matched(lines, _BOOK_CROSSING, files[0], "user;ISBN;rating", first_row=2)
    return fields.with_columns(pl.col("user").cast(pl.Int64), pl.col("rating").cast(pl.Float64))


def _matched(lines: pl.Series, pattern: str, file: Path, form: str, first_row: int = 1) -> pl.DataFrame:
    """Return the groups of a pattern in each line, or say which line does not match it."""
    fields = lines.str.extract_groups(pattern).struct.unnest()
    bad = fields["user"].is_null()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(f"{lines[row]!r} is not {form}", source=file, row=row + first_row)
    return fields


def _lines(file: Path, encoding: str = "utf-8") -> pl.Series:
    text = file.read_bytes().decode(encoding, errors="replace")
    return pl.Series("line", [line for line in text.split("\n") if line.strip()], dtype=pl.String)


def renttherunway(files: list[Path]) -> pl.DataFrame:
    """Parse the JSON lines of RentTheRunway, without reviews that have no rating."""
    schema = {"user_id": pl.String, "item_id": pl.String, "rating": pl.String, "review_date": pl.String}
    with parsing(files[0]):
        return (
            scan_ndjson(files[0], schema=schema)
            .collect()
            .select(
                pl.col("user_id").cast(pl.Int64).alias("user"),
                pl.col("item_id").cast(pl.Int64).alias("item"),
                pl.col("rating").cast(pl.Float64),
                (pl.col("review_date").str.to_date("%B %d, %Y").cast(pl.Int64) * _DAY).alias("time"),
            )
            .drop_nulls("rating")
        )


def beeradvocate(files: list[Path]) -> pl.DataFrame:
    """Parse the BeerAdvocate reviews, one Python dictionary per line, with their overall ratings.

    Some reviews have an empty user name. They are kept as one user, ``(no name)``, as in the published counts.
    """
    keys = {"user": "review/profileName", "item": "beer/beerId", "rating": "review/overall", "time": "review/time"}
    return _dictionaries(files[0], keys, prose="review/text").with_columns(user=pl.col("user").replace("", "(no name)"))


def librarything_reviews(files: list[Path]) -> pl.DataFrame:
    """Parse the LibraryThing reviews: ``reviews[(work, user)] = {...}``, one Python dictionary per line."""
    keys = {"user": "user", "item": "work", "rating": "stars", "time": "unixtime"}
    return _dictionaries(files[0], keys, prose="comment").filter(pl.col("user") != "")


def _dictionaries(file: Path, keys: dict[str, str], prose: str) -> pl.DataFrame:
    """Read a Python dictionary from each line that holds one; lines that lack one of the keys are left out."""
    frames, row = [], 1
    with progress(f"Reading {file.name}", total=file.stat().st_size / 1e6, unit="MB") as bar:
        for block in _blocks(file):
            lines = pl.Series("line", block.decode("utf-8", errors="replace").removesuffix("\n").split("\n"))
            frames.append(_dictionary_values(lines, keys, prose, file, row))
            row += len(lines)
            bar.advance(len(block) / 1e6)
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(keys, pl.String))
    return frame.with_columns(pl.col("rating").cast(pl.Float64), pl.col("time").cast(pl.Int64))


def _dictionary_values(lines: pl.Series, keys: dict[str, str], prose: str, file: Path, first_row: int) -> pl.DataFrame:
    """Extract the values from the lines: with a pattern if that is safe, else by parsing Python.

    The pattern is several times faster. It is safe if no double quote and no backslash remain once the prose is
    removed: then no text holds a quote, and whatever looks like a key is one.
    """
    rest = pl.col("line").str.replace(_PROSE.format(key=prose), "")
    fields = lines.to_frame().with_row_index().with_columns(rest=rest)
    fields = fields.select("index", "line", "rest", **{name: _plain(key) for name, key in keys.items()})
    trusted = ~pl.col("rest").str.contains(r"""["\\]""") & pl.all_horizontal(
        pl.col(name).is_not_null() for name in keys
    )
    others = []
    for index, line in fields.filter(~trusted).select("index", "line").iter_rows():
        if "{" in line and not line.rstrip().endswith("= {}"):
            text = line if line.lstrip().startswith("{") else line.partition(" = ")[2]
            entry = _dictionary(text, file, first_row + index)
            values = (entry.get(key) for key in keys.values())
            others.append((index, *(None if value is None else str(value) for value in values)))
    schema: dict[str, Any] = {"index": fields.schema["index"], **dict.fromkeys(keys, pl.String)}
    both = [fields.filter(trusted).drop("line", "rest"), pl.DataFrame(others, schema=schema, orient="row")]
    return pl.concat(both).sort("index").drop("index").drop_nulls()


# A key and its text as Python writes it: in single quotes, or in double quotes if it holds a single quote.
_PROSE = r"""'{key}': u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""


def _plain(key: str) -> pl.Expr:
    pattern = rf"'{key}': u?(?:'([^']*)'|([-+.\deE]+))"
    return pl.coalesce(pl.col("rest").str.extract(pattern, group) for group in (1, 2))


def _dictionary(line: str, file: Path, row: int) -> dict[str, Any]:
    try:
        entry = ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise InputError(f"the line is not a Python dictionary ({error})", source=file, row=row) from error
    if not isinstance(entry, dict):
        raise InputError("the line is not a Python dictionary", source=file, row=row)
    return entry


def librarything(files: list[Path]) -> pl.DataFrame:
    """Parse ``UI2.txt``: user, work, twice the rating, and a tag; a rating is repeated for each of its tags."""
    pattern = r"^\s*(?P<user>\S+)\s+(?P<item>\S+)\s+(?P<rating>\d+)(?:\s|$)"
    fields = _matched(_lines(files[0]), pattern, files[0], "user, work, rating and tag")
    return fields.with_columns(pl.col("rating").cast(pl.Float64) / 2)


def lastfm_360k(files: list[Path]) -> pl.DataFrame:
    """Parse the play counts of users and artists; an artist without a MusicBrainz id is identified by name."""
    schema = dict.fromkeys(("user", "mbid", "name", "plays"), pl.String)
    return (
        _tabs(files[0], schema)
        .select("user", _artist(), pl.col("plays").str.strip_chars().cast(pl.Float64, strict=False).alias("rating"))
        .drop_nulls()
        .filter(pl.col("rating") > 0)
        .collect(engine="streaming")
    )


def _plays(file: Path) -> pl.LazyFrame:
    """Return one row per play: the user, the artist and the time in seconds."""
    schema = dict.fromkeys(("user", "time", "mbid", "name", "track_id", "track"), pl.String)
    moment = pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="ms", strict=False)
    return _tabs(file, schema).select("user", _artist(), (moment.cast(pl.Int64) // 1000).alias("time")).drop_nulls()


def lastfm_1k(files: list[Path]) -> pl.DataFrame:
    """Parse the plays, one per line, and count them by artist; the time is that of the last play."""
    return (
        _plays(files[0])
        .group_by("user", "item")
        .agg(pl.len().cast(pl.Float64).alias("rating"), pl.col("time").max())
        .collect(engine="streaming")
    )


def lastfm_1k_temporal(files: list[Path]) -> pl.DataFrame:
    """Parse the plays and count them by artist, separately for the first 80 % of all plays in time and the rest.

    The column ``late`` marks the counts of the later plays, the test part.
    """
    plays = _plays(files[0]).collect(engine="streaming")
    if plays.is_empty():
        raise _unreadable(files[0], "it holds no plays")
    moment = plays["time"].sort()[int(_BEFORE * len(plays))]
    return (
        plays.group_by("user", "item", (pl.col("time") >= moment).alias("late"))
        .agg(pl.len().cast(pl.Float64).alias("rating"))
        .select("user", "item", "rating", "late")
    )


def _tabs(file: Path, schema: dict[str, Any]) -> pl.LazyFrame:
    how: dict[str, Any] = {"has_header": False, "quote_char": None, "encoding": "utf8-lossy"}
    return scan_csv(file, separator="\t", schema=schema, truncate_ragged_lines=True, **how)


def _artist() -> pl.Expr:
    def filled(name: str) -> pl.Expr:
        text = pl.col(name).str.strip_chars()
        return pl.when(text != "").then(text)

    return pl.coalesce(filled("mbid"), filled("name")).alias("item")


def ascii_matrix(files: list[Path]) -> pl.DataFrame:
    """Parse a matrix of users by items in which 0 means that there is no rating; ids count from 0."""
    with parsing(files[0]):
        matrix = np.loadtxt(files[0], ndmin=2)
    users, items = np.nonzero(matrix)
    return pl.DataFrame({"user": users, "item": items, "rating": matrix[users, items]})


def cm100k(files: list[Path]) -> pl.DataFrame:
    """Parse ``data.txt`` (user, item, rating, and 1 for a track known before), or a Parquet file of the same.

    The column ``known`` marks the ratings that belong to the training part.
    """
    types: dict[str, Any] = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64, "known": pl.Int8}
    if files[0].suffix == ".parquet":
        frame = read_parquet(files[0])
        if missing := [name for name in types if name not in frame.columns]:
            raise _unreadable(files[0], f"it has no column {', '.join(missing)}")
        frame = frame.select(pl.col(name).cast(kind) for name, kind in types.items())
    else:
        frame = _table(files[0], "\t", types, header=False)
    return frame.with_columns(pl.col("known") == 1)


def fields(separator: str, columns: dict[str, tuple[int, type[pl.DataType]]], *, skip: int = 0) -> FeaturesParser:
    """Return a parser of separated fields: ``columns`` are the place and the type of the ids and of each feature."""

    def parse(file: Path) -> pl.DataFrame:
        rows = [line.split(separator) for line in _text_lines(file)[skip:]]
        with parsing(file):
            return pl.DataFrame(
                {
                    name: pl.Series([row[place].strip() or None for row in rows], dtype=pl.String).cast(kind)
                    for name, (place, kind) in columns.items()
                }
            )

    return parse


def films_100k(file: Path) -> pl.DataFrame:
    """Parse ``u.item``: one film per line, with its genres as 0 or 1 in the last 19 fields."""
    rows = [line.split("|") for line in _text_lines(file)]
    with parsing(file):
        flags = np.array([row[-len(_GENRES_100K) :] for row in rows], dtype=np.int64)
        return pl.DataFrame({"item": [int(row[0]) for row in rows], **dict(zip(_GENRES_100K, flags.T, strict=True))})


def films(file: Path) -> pl.DataFrame:
    """Parse ``movies.dat`` or ``movies.csv``: id, title, and genres separated by ``|``, each of which becomes 0/1."""
    lines = _text_lines(file)
    separator, lines = ("::", lines) if file.suffix == ".dat" else (",", lines[1:])
    with parsing(file):
        items = [int(line.partition(separator)[0]) for line in lines]
    genres = [set(line.rpartition(separator)[2].split("|")) - {_NO_GENRE, ""} for line in lines]
    known = sorted(set().union(*genres))
    return pl.DataFrame({"item": items, **{genre: [int(genre in own) for own in genres] for genre in known}})


def ascii_features(file: Path) -> pl.DataFrame:
    """Parse a matrix of 0 and 1 without names, one row per id; ids count from 0."""
    with parsing(file):
        matrix = np.loadtxt(file, ndmin=2)
    columns = {f"feature {place + 1}": column for place, column in enumerate(matrix.T)}
    return pl.DataFrame({"id": np.arange(len(matrix)), **columns})


def book_crossing_users(file: Path) -> pl.DataFrame:
    """Parse ``BX-Users.csv`` (``"id";"town, state, country";"age"`` or NULL): the country and a plausible age."""
    lines = pl.Series(_text_lines(file)[1:], dtype=pl.String)
    pattern = r'^\s*"?(?P<user>\d+)"?[;,]"?(?P<place>.*?)"?[;,]"?(?P<age>[\d.]+|NULL|)"?\s*$'
    parts = lines.str.extract_groups(pattern).struct.unnest().drop_nulls("user")
    if parts.is_empty():
        raise _unreadable(file, "no line is id;place;age")
    age = pl.col("age").cast(pl.Float64, strict=False)
    country = pl.col("place").str.split(",").list.last().str.strip_chars().str.to_lowercase()
    return parts.select(
        pl.col("user").cast(pl.Int64),
        pl.when(age.is_between(5, 100)).then(age).alias("age"),
        pl.when(country != "").then(country).alias("country"),
    )


def renttherunway_users(file: Path) -> pl.DataFrame:
    """Take the measurements of each user from their reviews: the first stated value of each."""
    inches = pl.col("height").str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Float64))
    measures = {
        "age": pl.col("age").cast(pl.Float64, strict=False),
        "height": inches.list.first() * 12 + inches.list.get(1, null_on_oob=True),
        "weight": pl.col("weight").str.extract(r"(\d+)").cast(pl.Float64),
        "body type": pl.col("body type"),
        "bust size": pl.col("bust size"),
    }
    return _first_stated(file, "user", measures)


def renttherunway_items(file: Path) -> pl.DataFrame:
    """Take the category of each garment from its reviews."""
    return _first_stated(file, "item", {"category": pl.col("category")})


def _first_stated(file: Path, about: str, values: dict[str, pl.Expr]) -> pl.DataFrame:
    """Return the first stated values of each user or item in JSON lines."""
    with parsing(file):
        return (
            scan_ndjson(file, schema=dict.fromkeys((f"{about}_id", *values), pl.String))
            .select(pl.col(f"{about}_id").cast(pl.Int64).alias(about), **values)
            .group_by(about, maintain_order=True)
            .agg(pl.all().drop_nulls().first())
            .collect()
        )


def _text_lines(file: Path) -> list[str]:
    """Return the lines that are not blank; text that is not UTF-8 is Latin-1."""
    data = file.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return [line for line in text.splitlines() if line.strip()]

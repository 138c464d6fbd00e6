"""Tables read by ranges of users: directly if they are sorted by user, else after dividing them into files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import CranfieldError
from cranfield._files import TEMPORARY
from cranfield._numbers import size_text
from cranfield._polars import read_parquet, write_parquet
from cranfield._terminal import Progress, progress
from cranfield.tables.frames import RowTable

BATCH = 1 << 19
"""Number of rows to read at a time."""

# Number of evenly spaced rows whose users estimate how many rows a range has.
_SAMPLE = 50_000


class Survey(NamedTuple):
    """Facts about the column of users: whether it ascends, and the user of every ``step``-th row."""

    ascends: bool
    users: pl.Series
    step: int


def common_kind(kinds: Sequence[pl.DataType]) -> pl.DataType:
    """Return a type in which the users of several tables can be sorted together: whole numbers, or else text.

    Examples
    --------
    >>> common_kind([pl.Int32(), pl.UInt8()]), common_kind([pl.Int64(), pl.String()])
    (Int64, String)
    """
    whole = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
    return pl.Int64() if all(kind in whole for kind in kinds) else pl.String()


def keys_of(users: pl.Series, kind: pl.DataType) -> pl.Series:
    """Return users in one type that can be sorted; matching ids, such as 12 and ``"12"``, get the same key.

    Examples
    --------
    >>> keys_of(pl.Series([2.0, 10.5]), pl.String()).to_list()
    ['2', '10.5']
    """
    if users.dtype.is_float() and kind == pl.String:
        whole = users.cast(pl.Int64, strict=False)
        both = pl.when(whole.cast(pl.Float64) == users).then(whole.cast(pl.String)).otherwise(users.cast(pl.String))
        return pl.select(both.alias(users.name)).to_series()
    if users.dtype == pl.Binary:
        return users.bin.encode("hex")
    return users.cast(kind)


def survey(table: RowTable, user: str, kind: pl.DataType, bar: Progress) -> Survey | None:
    """Survey the users of a table; return None if a user is missing."""
    step = max(1, len(table) // _SAMPLE)
    ascends, last, seen = True, None, []
    for start, frame in table.batches([user], BATCH):
        keys = keys_of(frame[user], kind)
        if keys.null_count():
            return None
        if ascends:
            ascends = _ascends(keys) and (last is None or last <= keys[0])
            last = keys[-1]
        seen.append(keys.gather_every(step, offset=-start % step))
        bar.advance(len(frame))
    return Survey(ascends, pl.concat(seen) if seen else pl.Series([], dtype=kind), step)


def _ascends(keys: pl.Series) -> bool:
    if keys.dtype != pl.Int64:
        return keys.is_sorted()
    values = keys.to_numpy()
    return bool((values[1:] >= values[:-1]).all())


def range_starts(surveys: Sequence[Survey], row_bytes: Sequence[float], most: float) -> pl.Series:
    """Return the first user of each range but the first, such that a range takes about ``most`` bytes.

    All rows of a user are in one range, so a user with many rows makes a larger range.
    """
    users = pl.concat([survey.users for survey in surveys])
    bytes = np.repeat([s.step * weight for s, weight in zip(surveys, row_bytes)], [len(s.users) for s in surveys])
    order = users.arg_sort()
    total = np.cumsum(bytes[order.to_numpy()])
    count = int(np.ceil(total[-1] / most)) if len(total) else 1
    places = np.searchsorted(total, total[-1] / count * np.arange(1, count)) if count > 1 else np.zeros(0, dtype=int)
    starts = users.gather(order.gather(places)).unique().sort()
    return starts.filter(starts > users.min()) if len(starts) else starts


@dataclass
class AscendingRows:
    """The rows of a table that is sorted by user, taken range by range from the start."""

    table: RowTable
    user: str
    columns: Sequence[str]
    starts: pl.Series
    _next: int = 0
    _held: pl.DataFrame | None = None

    def take(self, place: int) -> pl.DataFrame:
        """Return the rows of the next range, which must be the one at ``place``."""
        parts = [self.table.rows(0, 0, self.columns) if self._held is None else self._held]
        while not self._cut(parts, place) and self._next < len(self.table):
            stop = min(self._next + BATCH, len(self.table))
            parts.append(self.table.rows(self._next, stop, self.columns))
            self._next = stop
        return pl.concat(parts, how="vertical_relaxed")

    def _cut(self, parts: list[pl.DataFrame], place: int) -> bool:
        """Hold back the rows of later ranges; return whether there are any."""
        self._held = None
        if place == len(self.starts):
            return False
        keys = keys_of(parts[-1][self.user], self.starts.dtype)
        cut = int(keys.search_sorted(self.starts[place], side="left"))
        if cut < len(keys):
            self._held, parts[-1] = parts[-1].slice(cut), parts[-1].head(cut)
        return cut < len(keys)


@dataclass
class DividedRows:
    """The rows of a table divided into files, several per range, each in the order of the table."""

    table: RowTable
    columns: Sequence[str]
    files: dict[int, list[Path]] = field(default_factory=dict)

    def take(self, place: int) -> pl.DataFrame:
        """Return the rows of a range, and remove its files, because they are not read again."""
        parts = [self.table.rows(0, 0, self.columns)]
        for file in self.files.pop(place, []):
            parts.append(read_parquet(file))
            file.unlink()
        return pl.concat(parts, how="vertical_relaxed")


def divide(
    table: RowTable,
    user: str,
    columns: Sequence[str],
    starts: pl.Series,
    folder: Path,
    *,
    held_bytes: float,
    bar: Progress,
) -> DividedRows:
    """Write the rows of a table to files by range of users; at most about ``held_bytes`` wait to be written."""
    divided = DividedRows(table, columns)
    waiting: dict[int, list[pl.DataFrame]] = {}
    waiting_bytes = 0.0
    for first, frame in table.batches(columns, BATCH):
        for place, part in _parts(frame, range_places(keys_of(frame[user], starts.dtype), starts)):
            waiting.setdefault(place, []).append(part)
        waiting_bytes += frame.estimated_size()
        if waiting_bytes >= held_bytes or first + len(frame) == len(table):
            for place, parts in waiting.items():
                file = folder / f"{first}-{place}.parquet"
                write_parquet(pl.concat(parts, how="vertical_relaxed"), file, compression="uncompressed")
                divided.files.setdefault(place, []).append(file)
            waiting, waiting_bytes = {}, 0.0
        bar.advance(len(frame))
    return divided


def user_ranges(table: RowTable, user: str, columns: Sequence[str], rows: int = 1 << 20) -> Iterator[pl.DataFrame]:
    """Yield all rows of a table, about ``rows`` at a time, such that the rows of a user come together."""
    kind = common_kind([table.schema[user]])
    with progress("Surveying users", total=len(table), unit="rows") as bar:
        users = survey(table, user, kind, bar)
    assert users is not None  # a missing user is refused before
    starts = range_starts([users], [1.0], rows)
    if users.ascends:
        ascending = AscendingRows(table, user, columns, starts)
        yield from map(ascending.take, range(len(starts) + 1))
        return
    needed = table.rows(0, min(rows, len(table)), columns).estimated_size() * max(len(table) / rows, 1.0)
    with temporary_folder(needed) as folder, progress("Dividing rows by user", total=len(table), unit="rows") as bar:
        divided = divide(table, user, columns, starts, folder, held_bytes=needed / max(len(table) / rows, 1.0), bar=bar)
        yield from map(divided.take, range(len(starts) + 1))


def range_places(keys: pl.Series, starts: pl.Series) -> NDArray[np.int64]:
    """Return the range of each user."""
    if keys.dtype == pl.Int64:
        return np.searchsorted(starts.to_numpy(), keys.to_numpy(), side="right")
    return np.asarray(starts.search_sorted(keys, side="right").to_numpy(), dtype=np.int64)


def _parts(frame: pl.DataFrame, places: NDArray[np.int64]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of each range, in order."""
    kind = np.uint16 if places.max(initial=0) < 1 << 16 else np.int64  # NumPy sorts 16-bit numbers in linear time
    order = np.argsort(places.astype(kind), kind="stable")
    frame, places = frame[order], places[order]
    first = np.append(0, np.flatnonzero(np.diff(places)) + 1)[: len(places)]
    for start, stop in zip(first, np.append(first[1:], len(places))):
        yield int(places[start]), frame.slice(int(start), int(stop - start))


@contextmanager
def temporary_folder(needed: float) -> Iterator[Path]:
    """Yield a folder for temporary files, and remove it; raise at once if the disk has fewer than ``needed`` bytes."""
    where = Path(tempfile.gettempdir())
    free = shutil.disk_usage(where).free
    if free < needed:
        raise CranfieldError(
            f"the rows are not sorted by user, and dividing them takes about {size_text(needed)} in {where}, where "
            f"{size_text(free)} are free; set TMPDIR to a folder with more space, or sort the files by user"
        )
    with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
        yield Path(folder)

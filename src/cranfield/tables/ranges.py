"""Tables read by ranges of users: directly if they are sorted by user, else after dividing them into files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import CranfieldError
from cranfield._files import TEMPORARY
from cranfield._numbers import size_text
from cranfield._polars import read_parquet, write_parquet
from cranfield._terminal import Progress, progress

# Number of evenly spaced rows whose users estimate how many rows a range has, and of rows that estimate their size.
_SAMPLE, _HEAD = 50_000, 1_000


@dataclass(frozen=True)
class UserRanges:
    """Ranges of users, the same for several tables, which are then read range by range.

    Each source has a ``table``, the column of its ``user``, the ``columns`` to read, and a function ``check``, which
    raises the error of a row that cannot be used.
    """

    sources: Sequence[Any]
    ascend: Sequence[bool]  # which of the tables are sorted by user
    starts: pl.Series  # the first user of each range but the first

    @classmethod
    def of(
        cls,
        sources: Sequence[Any],
        row_bytes: Sequence[float],
        most: float,
        beside: Sequence[tuple[pl.Series, float]] = (),
    ) -> UserRanges:
        """Survey the users of all tables, and choose ranges that take about ``most`` bytes.

        ``row_bytes`` are those of a row of each table. ``beside`` are sampled users of ratings in memory, with the
        bytes that each of them stands for. All rows of a user are in one range, so a user with many rows makes a larger
        range.
        """
        kinds = [source.table.schema[source.user] for source in sources]
        for source, own in zip(sources, kinds):
            if own.is_nested():
                source.check()
        kind = _common_kind([*kinds, *(users.dtype for users, _ in beside)])
        with progress("Surveying users", total=sum(len(source.table) for source in sources), unit="rows") as bar:
            surveys = [_survey(source, kind, bar) for source in sources]
        sampled = [(users, step * own) for (_, users, step), own in zip(surveys, row_bytes)]
        sampled += [(_keys(users, kind), own) for users, own in beside]
        return cls(sources, [ascends for ascends, _, _ in surveys], _starts(sampled, most))

    @classmethod
    def frames(cls, source: Any, rows: int = 1 << 20) -> Iterator[pl.DataFrame]:
        """Yield all rows of a table, about ``rows`` at a time, such that the rows of a user come together."""
        ranges = cls.of([source], [1.0], rows)
        with ranges.opened(rows * _row_bytes(source)) as [reader]:
            yield from map(reader.take, range(len(ranges)))

    def __len__(self) -> int:
        return len(self.starts) + 1

    def places(self, users: pl.Series) -> NDArray[np.int64]:
        """Return the range of each user."""
        keys = _keys(users, self.starts.dtype)
        if keys.dtype == pl.Int64:
            return np.searchsorted(self.starts.to_numpy(), keys.to_numpy(), side="right")
        return np.asarray(self.starts.search_sorted(keys, side="right").to_numpy(), dtype=np.int64)

    @contextmanager
    def opened(self, held_bytes: float) -> Iterator[list[_AscendingRows | _DividedRows]]:
        """Yield a reader of each table, whose ranges must be taken in order.

        Tables that are not sorted are divided into files first; at most about ``held_bytes`` wait to be written.
        """
        unsorted = [source for source, ascends in zip(self.sources, self.ascend) if not ascends]
        if not unsorted:
            yield [_AscendingRows(source, self.starts) for source in self.sources]
            return
        needed = sum(len(source.table) * _row_bytes(source) for source in unsorted)
        total = sum(len(source.table) for source in unsorted)
        with _temporary_folder(needed) as folder:
            with progress("Dividing rows by user", total=total, unit="rows") as bar:
                readers = [
                    _AscendingRows(source, self.starts)
                    if ascends
                    else self._divided(source, folder / str(place), held_bytes, bar)
                    for place, (source, ascends) in enumerate(zip(self.sources, self.ascend))
                ]
            yield readers

    def _divided(self, source: Any, folder: Path, held_bytes: float, bar: Progress) -> _DividedRows:
        """Write the rows of a table to files by range of users."""
        folder.mkdir()
        divided = _DividedRows(source)
        waiting: dict[int, list[pl.DataFrame]] = {}
        waiting_bytes = 0.0
        for first, frame in source.table.batches(source.columns):
            for place, part in _parts(frame, self.places(frame[source.user])):
                waiting.setdefault(place, []).append(part)
            waiting_bytes += frame.estimated_size()
            if waiting_bytes >= held_bytes or first + len(frame) == len(source.table):
                for place, parts in waiting.items():
                    file = folder / f"{first}-{place}.parquet"
                    write_parquet(pl.concat(parts, how="vertical_relaxed"), file, compression="uncompressed")
                    divided.files.setdefault(place, []).append(file)
                waiting, waiting_bytes = {}, 0.0
            bar.advance(len(frame))
        return divided


@dataclass
class _AscendingRows:
    """The rows of a table that is sorted by user, taken range by range from the start."""

    source: Any
    starts: pl.Series
    _held: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        self._batches = (frame for _, frame in self.source.table.batches(self.source.columns))

    def take(self, place: int) -> pl.DataFrame:
        """Return the rows of the next range, which must be the one at ``place``."""
        parts = [self.source.table.rows(0, 0, self.source.columns) if self._held is None else self._held]
        while not self._cut(parts, place) and (batch := next(self._batches, None)) is not None:
            parts.append(batch)
        return pl.concat(parts, how="vertical_relaxed")

    def _cut(self, parts: list[pl.DataFrame], place: int) -> bool:
        """Hold back the rows of later ranges; return whether there are any."""
        self._held = None
        if place == len(self.starts):
            return False
        keys = _keys(parts[-1][self.source.user], self.starts.dtype)
        cut = int(keys.search_sorted(self.starts[place], side="left"))
        if cut < len(keys):
            self._held, parts[-1] = parts[-1].slice(cut), parts[-1].head(cut)
        return cut < len(keys)


@dataclass
class _DividedRows:
    """The rows of a table divided into files, several per range, each in the order of the table."""

    source: Any
    files: dict[int, list[Path]] = field(default_factory=dict)

    def take(self, place: int) -> pl.DataFrame:
        """Return the rows of a range, and remove its files, because they are not read again."""
        parts = [self.source.table.rows(0, 0, self.source.columns)]
        for file in self.files.pop(place, []):
            parts.append(read_parquet(file))
            file.unlink()
        return pl.concat(parts, how="vertical_relaxed")


def _survey(source: Any, kind: pl.DataType, bar: Progress) -> tuple[bool, pl.Series, int]:
    """Return whether the column of users ascends, the user of every n-th row, and n."""
    step = max(1, len(source.table) // _SAMPLE)
    ascends, last, seen = True, None, [pl.Series([], dtype=kind)]
    for start, frame in source.table.batches([source.user]):
        keys = _keys(frame[source.user], kind)
        if keys.null_count():
            source.check()
            raise AssertionError("the check has raised the error of a missing user")
        if ascends:
            ascends = _ascends(keys) and (last is None or last <= keys[0])
            last = keys[-1]
        seen.append(keys.gather_every(step, offset=-start % step))
        bar.advance(len(frame))
    return ascends, pl.concat(seen), step


def _ascends(keys: pl.Series) -> bool:
    if keys.dtype != pl.Int64:
        return keys.is_sorted()
    values = keys.to_numpy()
    return bool((values[1:] >= values[:-1]).all())


def _common_kind(kinds: Sequence[pl.DataType]) -> pl.DataType:
    """Return a type in which the users of several tables can be sorted together: whole numbers, or else text."""
    whole = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
    return pl.Int64() if all(kind in whole for kind in kinds) else pl.String()


def _keys(users: pl.Series, kind: pl.DataType) -> pl.Series:
    """Return users in one type that can be sorted; matching ids, such as 12.0 and ``"12"``, get the same key."""
    if users.dtype.is_float() and kind == pl.String:
        whole = users.cast(pl.Int64, strict=False)
        both = pl.when(whole.cast(pl.Float64) == users).then(whole.cast(pl.String)).otherwise(users.cast(pl.String))
        return pl.select(both.alias(users.name)).to_series()
    if users.dtype == pl.Binary:
        return users.bin.encode("hex")
    return users.cast(kind)


def _starts(sampled: Sequence[tuple[pl.Series, float]], most: float) -> pl.Series:
    """Return the first user of each range but the first, given sampled users and the bytes that each stands for."""
    users = pl.concat([users for users, _ in sampled])
    bytes = np.repeat([own for _, own in sampled], [len(users) for users, _ in sampled])
    order = users.arg_sort()
    total = np.cumsum(bytes[order.to_numpy()])
    count = int(np.ceil(total[-1] / most)) if len(total) else 1
    places = np.searchsorted(total, total[-1] / count * np.arange(1, count)) if count > 1 else np.zeros(0, dtype=int)
    starts = users.gather(order.gather(places)).unique().sort()
    return starts.filter(starts > users.min()) if len(starts) else starts


def _row_bytes(source: Any) -> float:
    """Estimate the bytes of a row by the first ones."""
    head = source.table.rows(0, min(_HEAD, len(source.table)), source.columns)
    return float(head.estimated_size() / max(len(head), 1))


def _parts(frame: pl.DataFrame, places: NDArray[np.int64]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of each range, in order."""
    kind = np.uint16 if places.max(initial=0) < 1 << 16 else np.int64  # NumPy sorts 16-bit numbers in linear time
    order = np.argsort(places.astype(kind), kind="stable")
    frame, places = frame[order], places[order]
    first = np.append(0, np.flatnonzero(np.diff(places)) + 1)[: len(places)]
    for start, stop in zip(first, np.append(first[1:], len(places))):
        yield int(places[start]), frame.slice(int(start), int(stop - start))


@contextmanager
def _temporary_folder(needed: float) -> Iterator[Path]:
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

"""Rows of a Spark dataframe in blocks of many users, which a worker processes at once with NumPy and Polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from cranfield.tables.spark import quoted

Schema = Mapping[str, str]
"""The type of each column, as Spark calls it."""

NUMBERS: dict[str, pl.DataType] = {
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
}
"""The types of numbers, as Spark calls them."""

# The size of a partition, in bytes of its files; and the size that Spark reports if it does not know it.
_PARTITION_BYTES, _UNKNOWN_BYTES = 32 << 20, 1 << 60


def partitions_for(rows: Any) -> int:
    """Return the number of partitions: by the size of the rows if Spark knows it, and at least two per core."""
    try:
        context = rows.sparkSession.sparkContext
        size = int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Exception:  # a remote session (Spark Connect) does not say
        size = _UNKNOWN_BYTES
    if size >= _UNKNOWN_BYTES:
        return int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return max(2 * int(context.defaultParallelism), int(size // _PARTITION_BYTES))


def ddl(schema: Schema) -> str:
    """Return a schema as Spark reads it."""
    return ", ".join(f"`{name}` {kind}" for name, kind in schema.items())


def id_kind(kinds: Sequence[str]) -> str:
    """Return the common type of ids in several tables: whole numbers, or else text.

    Examples
    --------
    >>> id_kind(["int", "bigint"]), id_kind(["int", "string"])
    ('bigint', 'string')
    """
    whole = {"boolean", "tinyint", "smallint", "int", "bigint"}
    return "bigint" if set(kinds) <= whole else "string"


def as_ids(column: str, kind: str, own: str) -> Any:
    """Return a column of type ``own`` as ids of that kind; as text, whole numbers are written without .0."""
    from pyspark.sql import functions as F

    ids = F.col(quoted(column))
    if kind != "string" or own not in ("float", "double"):
        return ids.cast(kind)
    whole = ids.try_cast("bigint")
    return F.when(whole.cast(own) == ids, whole.cast(kind)).otherwise(ids.cast(kind))


def own_ids(users: pl.Expr, own: str) -> pl.Expr:
    """Return ids that `as_ids` made in the type that they had, if it is one of numbers."""
    return users.cast(NUMBERS[own]) if own in NUMBERS else users


def user_blocks(batches: Iterator[Any], size: int) -> Iterator[pl.DataFrame]:
    """Yield rows, which are sorted by user, in blocks of about ``size`` rows that contain all rows of their users."""
    held: list[pl.DataFrame] = []
    rows, enough = 0, size
    for batch in batches:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        held.append(frame)
        rows += len(frame)
        if rows < enough:
            continue
        block = pl.concat(held)
        first_of_last = int(block["user"].eq_missing(block["user"][-1]).arg_max() or 0)
        # If a user has more rows than a block, read on; the block doubles each time.
        enough = size if first_of_last else 2 * rows
        if first_of_last:
            yield block[:first_of_last]
        held = [block[first_of_last:]]
        rows = len(held[0])
    if rows:
        yield pl.concat(held)


def frames_of(rows: Any) -> Iterator[pl.DataFrame]:
    """Yield the rows of a dataframe in parts, so that no more than a partition comes from Spark at a time."""
    import pyarrow as pa

    for row in rows.mapInArrow(_as_bytes, "part binary").toLocalIterator():
        frame = pl.from_arrow(pa.ipc.open_stream(bytes(row.part)).read_all())
        assert isinstance(frame, pl.DataFrame)
        yield frame


def _as_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield each batch as a row of bytes, which Spark hands over faster than rows of values."""
    import pyarrow as pa

    for batch in batches:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([stream.getvalue().to_pybytes()], pa.binary())], names=["part"])


def arrow_batches(frame: pl.DataFrame, schema: Schema) -> Iterator[Any]:
    """Yield a frame as Arrow batches with the columns of a schema, null where the frame has none."""
    import pyarrow as pa

    names = {"bigint": "int64", "int": "int32", "smallint": "int16", "tinyint": "int8", "boolean": "bool"}
    fields = pa.schema([(name, pa.type_for_alias(names.get(kind, kind))) for name, kind in schema.items()])
    rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(frame), field.type)
        for field in fields
    ]
    yield from pa.Table.from_arrays(columns, schema=fields).to_batches()

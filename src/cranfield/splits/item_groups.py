"""The popularity groups of items, read from the file that a split writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._polars import UNREADABLE, read_parquet, scan_csv
from cranfield.tables import Vocabulary

_REMEDY = "give the groups.parquet, .csv or .tsv that cranfield split --method percentiles writes"


def read_item_groups(path: str | Path, items: Vocabulary) -> NDArray[np.int16]:
    r"""Return the popularity group of each item from a file with columns ``item`` and ``group``; ids match as text.

    Every item must be in the file. A group is a whole number from 0, or -1 for an item without one.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "groups.csv"
    >>> _ = place.write_text("item,group\na,0\nb,1\n")
    >>> read_item_groups(place, Vocabulary.of(["a", "b"])).tolist()
    [0, 1]
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("it is not a file", source=path, remedy=_REMEDY)
    table = _table(path)
    missing = [name for name in ("item", "group") if name not in table.columns]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}", source=path, remedy=_REMEDY)
    known = table.select(pl.col("item").cast(pl.String), pl.col("group").cast(pl.Int16, strict=False))
    if known["item"].is_duplicated().any():
        twice = known["item"].filter(known["item"].is_duplicated())[0]
        raise InputError(f"item {twice} has more than one row", source=path, remedy="give one row per item")
    wanted = pl.DataFrame({"item": items.all.cast(pl.String)})
    groups = wanted.join(known, on="item", how="left", maintain_order="left")
    wrong = groups.filter(pl.col("group").is_null() | (pl.col("group") < -1))
    if len(wrong):
        raise InputError(
            f"item {wrong['item'][0]} has no group, a whole number from 0",
            source=path,
            remedy="give every item of the ratings a group",
        )
    return groups["group"].to_numpy().astype(np.int16)


def _table(path: Path) -> pl.DataFrame:
    if path.suffix.lower() == ".parquet":
        return read_parquet(path)
    try:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        return scan_csv(path, separator=separator, infer_schema=False).collect()
    except UNREADABLE as error:
        raise InputError("it cannot be read as a table", source=path, remedy=_REMEDY) from error

"""Splits as files: a table for each part, and the record of how they were made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cranfield import _checks as check
from cranfield._files import whole_file
from cranfield._progress import progress
from cranfield.data.write import FORMATS, write_table
from cranfield.data.write import write as write_ratings
from cranfield.split.split import Split

RECORD = "split.json"


def write(
    splits: Split | Sequence[Split],
    folder: str | Path,
    *,
    format: str = "parquet",
    fingerprint: str | None = None,
) -> Path:
    """Write the parts of a split, or of the folds of one, with the record ``split.json``.

    Parameters
    ----------
    splits
        A split, or the folds of a cross-validation, which go to the subfolders ``fold-1``, ``fold-2``, ...
    folder
        Where; made if need be. The files of an earlier split in it, as its record lists them, are replaced. The record
        is written last: a folder that has one is complete.
    format
        ``"parquet"``, ``"csv"`` or ``"tsv"``: ``train.parquet``, ``test.parquet``, ``validation.parquet`` if there is
        such a part, and ``groups.parquet`` (item, group) if the items are in popularity groups.
    fingerprint
        The hash of the ratings before the split (`Ratings.fingerprint`), for the record.

    Returns
    -------
    Path
        The record. It holds the version of cranfield, the settings of the split, its effect and notes, the steps
        before it, and a hash of each part.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.data import Ratings
    >>> from cranfield.split import random
    >>> split = random(Ratings.of([1] * 10, range(10)), train=0.5, exact=True)
    >>> record = write(split, tempfile.mkdtemp(), format="csv")
    >>> sorted(path.name for path in record.parent.iterdir())
    ['split.json', 'test.csv', 'train.csv']
    """
    folder = Path(folder)
    check.one_of("format", format, FORMATS)
    splits = [splits] if isinstance(splits, Split) else splits
    earlier = _files_of_earlier(folder)
    if (folder / RECORD).is_file():
        (folder / RECORD).unlink()
    written: list[Path] = []
    records: list[dict[str, Any]] = []
    with progress("Writing folds", total=len(splits)) as bar:
        for split in splits:
            home = folder / f"fold-{split.fold + 1}" if split.folds > 1 else folder
            written += _write_parts(split, home, format)
            records.append(split.record())
            bar.advance()
    for path in earlier.difference(written):
        path.unlink(missing_ok=True)
    record = {
        "cranfield": records[0].pop("cranfield"),
        "data": {"fingerprint": fingerprint, **records[0].pop("data")},
        "files": [path.relative_to(folder).as_posix() for path in written],
        "splits": [{key: value for key, value in one.items() if key not in ("cranfield", "data")} for one in records],
    }
    with whole_file(folder / RECORD) as temporary:
        temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder / RECORD


def _write_parts(split: Split, home: Path, form: str) -> list[Path]:
    written = [write_ratings(part, home / f"{name}.{form}") for name, part in split.parts.items()]
    if split.item_groups is not None:
        groups = pl.DataFrame({"item": split.train.item_ids.all, "group": split.item_groups})
        written.append(write_table(groups, home / f"groups.{form}"))
    return written


def _files_of_earlier(folder: Path) -> set[Path]:
    """Return what an earlier record lists, as far as it names files that a split may have, inside the folder."""
    try:
        listed = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
        return {folder / name for name in listed if _is_ours(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _is_ours(name: object) -> bool:
    if not isinstance(name, str):
        return False
    *home, file = Path(name).parts
    fold = not home or (len(home) == 1 and home[0].startswith("fold-"))
    stem, _, form = file.partition(".")
    return fold and stem in ("train", "test", "validation", "groups") and form in FORMATS

"""Splits as files: one table per part, the groups of items, and a record of how they were made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._files import meant, record_path, remove_record, write_text
from cranfield._polars import UNREADABLE, read_parquet, scan_csv
from cranfield._record import Step, is_as_written
from cranfield._record import record as record_checksum
from cranfield._terminal import progress
from cranfield.data import write as write_ratings
from cranfield.splits.split import Split
from cranfield.tables import FORMATS, Vocabulary, write_table

_RECORD = "split.json"
_GROUPS = "give the groups.parquet, .csv or .tsv that the split percentiles writes"


def write(
    splits: Split | Sequence[Split],
    folder: str | Path,
    *,
    format: str = "parquet",
    fingerprint: str | None = None,
    force: bool = False,
) -> Path:
    """Write the parts of a split, or of several folds, with the record ``split.json``.

    Parameters
    ----------
    splits
        A split, or the folds of a cross-validation, which go to the subfolders ``fold-1``, ``fold-2``, ...
    folder
        The folder, which is created if needed. The record is written last, so a folder with a record is complete. The
        checksums of the parts go to the hidden folder ``.cranfield-records``; cranfield warns if a part has changed
        when it is read.
    format
        ``"parquet"``, ``"csv"`` or ``"tsv"``: ``train.parquet``, ``test.parquet``, ``validation.parquet`` if there is
        such a part, ``profiles.parquet`` if users are held out whole, and ``groups.parquet`` (item, group) if the
        items are in popularity groups.
    fingerprint
        The hash of the ratings before the split (`Ratings.fingerprint`), for the record.
    force
        Replace another split in the folder, or files of the same names that no record there lists. Without it either is
        a `SettingError`. The same split can always be written again. A file of the earlier split that the new one does
        not have is removed, unless it has been changed since it was written.

    Returns
    -------
    Path
        The record. It holds the version of cranfield, the settings of the split, its effect and notes, the steps
        before it, and a hash of each part.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.data import Ratings
    >>> from cranfield.splits import random
    >>> split = random(Ratings.of([1] * 10, range(10)), train=0.5, exact=True)
    >>> record = write(split, tempfile.mkdtemp(), format="csv")
    >>> sorted(path.name for path in record.parent.iterdir())
    ['.cranfield-records', 'split.json', 'test.csv', 'train.csv']
    """
    folder = Path(folder)
    check.one_of("format", format, FORMATS)
    splits = [splits] if isinstance(splits, Split) else splits
    if not splits:
        raise SettingError("there is no split to write; give one")
    if len(splits) > splits[0].folds:
        raise SettingError(f"{len(splits)} splits that are not folds do not fit in one folder; give each its own")
    files, hashes = _earlier(folder)
    if not force:
        _check_room(folder, splits, format, files, hashes)
    if (folder / _RECORD).is_file():
        (folder / _RECORD).unlink()
    written: list[Path] = []
    rules: dict[Path, dict[str, str]] = {}
    records: list[dict[str, Any]] = []
    with progress("Writing folds", total=len(splits)) as bar:
        for split in splits:
            home = _home(folder, split.fold, split.folds)
            for name, part in split.parts.items():
                # A test set is read as ratings; systems may learn from single events.
                kept = replace(part, events=None) if name == "test" else part
                written.append(write_ratings(kept, home / f"{name}.{format}"))
                if kept.events is not None:
                    rules[written[-1]] = {"repeated": str(kept.events.merging), "baskets": "of the split"}
            if split.item_groups is not None:
                groups = pl.DataFrame({"item": split.train.item_ids.all, "group": split.item_groups})
                written.append(write_table(groups, home / f"groups.{format}"))
            records.append(split.record())
            bar.advance()
    for path in written:
        record_checksum(path, rules.get(path))
    for path in sorted(files.difference(written)):
        _remove(path, folder)
    versions, origins = ([entry.pop(key) for entry in records] for key in ("cranfield", "data"))
    record = {
        "cranfield": versions[0],
        "data": {"fingerprint": fingerprint, **origins[0]},
        "files": [path.relative_to(folder).as_posix() for path in written],
        "splits": records,
    }
    write_text(folder / _RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return folder / _RECORD


def _remove(path: Path, folder: Path) -> None:
    """Remove a file of an earlier split, unless it has been changed since; and the folder of a fold, once empty."""
    if not is_as_written(path):
        return
    remove_record(path)
    path.unlink()
    if path.parent != folder:
        with suppress(OSError):
            record_path(path).parent.rmdir()
            path.parent.rmdir()


def _home(folder: Path, fold: int, folds: int) -> Path:
    return folder / f"fold-{fold + 1}" if folds > 1 else folder


def _earlier(folder: Path) -> tuple[set[Path], list[Any]]:
    """Return the files of the split that a folder's record describes, and the hashes of its parts; nothing if none."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        files = {folder / name for name in record["files"] if _is_ours(name)}
        return files, [split["fingerprints"] for split in record["splits"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set(), []


def _check_room(folder: Path, splits: Sequence[Split], form: str, files: set[Path], hashes: list[Any]) -> None:
    """Refuse to replace another split, or files that belong to no split."""
    remedy = "choose another folder with out=..., or replace it with force=True"
    first = splits[0]
    names = [*first.parts, *(["groups"] if first.item_groups is not None else [])]
    targets = [_home(folder, fold, first.folds) / f"{name}.{form}" for fold in range(first.folds) for name in names]
    if not hashes:
        targets.append(folder / _RECORD)
    stranger = next((path for path in targets if path.exists() and path not in files), None)
    if stranger is not None:
        raise SettingError(f"{stranger} already exists, and no record says that it belongs to a split; {remedy}")
    # Folds are the same if their number and the first fold are, so there is no need to make them all.
    same = len(hashes) == len(splits) and hashes[0] == first.record()["fingerprints"]
    if hashes and not same:
        raise SettingError(f"{folder} already holds another split; {remedy}")


def _is_ours(name: object) -> bool:
    if not isinstance(name, str):
        return False
    *home, file = Path(name).parts
    fold = not home or (len(home) == 1 and home[0].startswith("fold-"))
    stem, _, form = file.partition(".")
    return fold and stem in ("train", "test", "validation", "profiles", "groups") and form in FORMATS


def recorded_steps(folder: Path) -> tuple[Step, ...]:
    """Return how a split in a folder of `write` was made: the steps before it, and its own; empty if unknown."""
    for home in (folder, folder.parent):
        try:
            record = json.loads((home / _RECORD).read_text(encoding="utf-8"))
            steps = [*record["data"]["history"], record["splits"][0]["split"]]
            return tuple(map(Step.of, steps))
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue
    return ()


def split_folders(folder: str | Path) -> list[Path]:
    """Return the folders of the folds of a written split, or the folder itself if there are none."""
    home = meant(folder)
    folds = sorted(home.glob("fold-*"), key=lambda path: (len(path.name), path.name))
    return [path for path in folds if path.is_dir()] or [home]


def part_file(folder: Path, part: str) -> Path | None:
    """Return the file of a part; other tools may have another name for the validation part."""
    names = ("validation", "valid", "val", "dev") if part == "validation" else (part,)
    endings = (*FORMATS, "txt", "dat", "csv.gz", "tsv.gz")
    files = [file for name in names for ending in endings if (file := folder / f"{name}.{ending}").is_file()]
    if len(files) > 1:
        problem = f"{files[0].name} and {files[1].name} are both there, and only one can be the {part} part"
        remedy = "give the files themselves"
        raise InputError(problem, source=str(folder), remedy=remedy)
    return files[0] if files else None


def read_item_groups(path: str | Path, items: Vocabulary) -> NDArray[np.int16]:
    r"""Return the popularity group of each item from a file with columns ``item`` and ``group``; ids match as text.

    Every item must be in the file. A group is a whole number from 0, or -1 for an item without one.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("it is not a file", source=path, remedy=_GROUPS)
    try:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        is_parquet = path.suffix.lower() == ".parquet"
        table = read_parquet(path) if is_parquet else scan_csv(path, separator=separator, infer_schema=False).collect()
    except UNREADABLE as error:
        raise InputError("it cannot be read as a table", source=path, remedy=_GROUPS) from error
    missing = [name for name in ("item", "group") if name not in table.columns]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}", source=path, remedy=_GROUPS)
    known = table.select(pl.col("item").cast(pl.String), pl.col("group").cast(pl.Int16, strict=False))
    if known["item"].is_duplicated().any():
        twice = known["item"].filter(known["item"].is_duplicated())[0]
        raise InputError(f"item {twice} has more than one row", source=path, remedy="give one row per item")
    wanted = pl.DataFrame({"item": items.all.cast(pl.String)})
    groups = wanted.join(known, on="item", how="left", maintain_order="left")
    wrong = groups.filter(pl.col("group").is_null() | (pl.col("group") < -1))
    if len(wrong):
        problem = f"item {wrong['item'][0]} has no group, a whole number from 0"
        remedy = "give every item of the ratings a group"
        raise InputError(problem, source=path, remedy=remedy)
    return groups["group"].to_numpy().astype(np.int16)

"""Where fetched datasets are stored, and how a damaged or half-written one is recognized."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cranfield._errors import CranfieldError
from cranfield._files import cache_root, try_lock, write_text
from cranfield._record import file_checksum
from cranfield.datasets.entry import Counts, Dataset

# Increase it when the parsers or the columns of the cached files change, so that old caches are rebuilt.
_FORMAT = 2


def cache_folder() -> Path:
    """Return the folder of fetched datasets.

    It is ``$CRANFIELD_CACHE`` if that is set, else ``cranfield`` in ``$XDG_CACHE_HOME`` or in the system's folder for
    caches.
    """
    return cache_root() / "datasets"


@dataclass(frozen=True)
class CachedPart:
    """A part in the cache, or a table of features: its Parquet file, the hash of that file, and its counts."""

    file: str
    sha256: str
    counts: Counts


@dataclass(frozen=True)
class Cached:
    """A dataset in the cache, as described by its ``record.json``."""

    folder: Path
    source: str
    parts: Mapping[str, CachedPart]
    features: Mapping[str, CachedPart] = field(default_factory=dict)  # ``user_features``, ``item_features``

    def path(self, part: str) -> Path:
        """Return the Parquet file of a part, or of a table of features."""
        return self.folder / {**self.parts, **self.features}[part].file

    @property
    def whole(self) -> bool:
        """Whether every file exists and is unchanged, byte for byte."""
        return all(
            self.path(name).is_file() and file_checksum(self.path(name)) == part.sha256
            for name, part in {**self.parts, **self.features}.items()
        )


def folder_of(dataset: Dataset) -> Path:
    """Return the folder of a dataset in the cache, whether it exists or not."""
    return cache_folder() / dataset.name


def cached(dataset: Dataset) -> Cached | None:
    """Return what the cache holds of a dataset, or None if it holds nothing usable; the files are not checked."""
    folder = folder_of(dataset)
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        if record["made_by"] != _made_by(dataset):
            return None
        parts, features = (
            {
                name: CachedPart(part["file"], part["sha256"], Counts(**part["counts"]))
                for name, part in record[kind].items()
            }
            for kind in ("parts", "features")
        )
        return Cached(folder, record["source"], parts, features) if set(parts) == set(dataset.parts) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_record(
    dataset: Dataset, source: str, parts: Mapping[str, CachedPart], features: Mapping[str, CachedPart]
) -> Cached:
    """Write ``record.json``, which completes the dataset in the cache."""
    folder = folder_of(dataset)
    record = {
        "name": dataset.name,
        "made_by": _made_by(dataset),
        "source": source,
        "parts": {name: asdict(part) for name, part in parts.items()},
        "features": {name: asdict(table) for name, table in features.items()},
    }
    write_text(folder / "record.json", json.dumps(record, indent=2) + "\n")
    return Cached(folder, source, parts, features)


def _made_by(dataset: Dataset) -> dict[str, Any]:
    """Return what the cached files depend on, besides the download."""
    files = {part: list(patterns) for part, patterns in dataset.files.items()}
    return {"format": _FORMAT, "address": dataset.address, "files": files, "repeated": dataset.repeated}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder of the cache: if several processes fetch the same dataset, one works and the others wait.

    The system releases the lock when the process ends, however it ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("a+b")
    except OSError as error:
        raise CranfieldError(
            f"the cache folder {folder} cannot be written ({error.strerror}); set CRANFIELD_CACHE to another folder"
        ) from error
    with handle:
        while not try_lock(handle):
            time.sleep(0.2)
        yield

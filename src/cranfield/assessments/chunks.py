"""Finished pieces of a long study, stored as Parquet so that an interrupted study can continue where it stopped."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._files import whole_file
from cranfield._polars import scan_parquet, write_parquet


class Chunks:
    """A folder of chunks. A chunk's name contains a hash of its inputs and a hash of its bytes.

    A chunk made from other inputs is therefore never used, and a damaged one is detected and made again. Without a
    folder, nothing is stored.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)

    @property
    def keeps(self) -> bool:
        """Whether there is a folder to store chunks in."""
        return self._folder is not None

    def get(self, name: str, inputs: Mapping[str, Any], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return the stored chunk of ``inputs``, or make and store it."""
        if self._folder is None:
            return make()
        key = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()[:16]
        stem = f"{name}-{key}"
        for path in self._kept(stem):
            kept = _whole(path)
            if kept is not None:
                return kept
            path.unlink(missing_ok=True)
        frame = make()
        buffer = io.BytesIO()
        write_parquet(frame, buffer)
        with whole_file(self._folder / f"{stem}-{_digest(buffer.getvalue())}.parquet") as temporary:
            temporary.write_bytes(buffer.getvalue())
        return frame

    def _kept(self, stem: str) -> list[Path]:
        """Return only the files with the name of a chunk of this study: a damaged chunk is removed."""
        if self._folder is None or not self._folder.is_dir():
            return []
        form = re.compile(re.escape(stem) + r"-[0-9a-f]{16}\.parquet")
        return sorted(path for path in self._folder.iterdir() if form.fullmatch(path.name))


def _whole(path: Path) -> pl.DataFrame | None:
    """Return a chunk, or None if its contents do not match the hash in its name."""
    content = path.read_bytes()
    return scan_parquet(io.BytesIO(content)).collect() if _digest(content) == path.stem.rsplit("-", 1)[1] else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]

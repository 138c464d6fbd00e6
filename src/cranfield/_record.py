"""Records: what was done to data, step by step; and, next to a file, what its bytes were when cranfield wrote it.

The record of ``runs/knn.parquet`` is ``runs/.cranfield-records/knn.parquet.json``. It holds the SHA-256 of the file
and what the file was made from. A file without a record is not checked.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield._errors import CranfieldWarning, InputError
from cranfield._files import record_path, write_text
from cranfield._version import __version__


@dataclass(frozen=True)
class Step:
    """One step in the history of a result; its settings and its effect are ready for JSON."""

    action: str  # "read", "min_ratings", "split.random", ...
    settings: Mapping[str, Any] = field(default_factory=dict)
    effect: Mapping[str, Any] = field(default_factory=dict)  # what it changed: counts before and after, for instance
    notes: tuple[Any, ...] = ()  # facts: leakage, users left out, a rule applied; sentences if read from a file

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "effect", MappingProxyType(dict(self.effect)))

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        effect = ", ".join(f"{name} {value}" for name, value in self.effect.items())
        return f"{self.action}({settings})" + (f": {effect}" if effect else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the step as plain dictionaries and lists, ready for JSON."""
        settings, effect = dict(self.settings), dict(self.effect)
        return {
            "action": self.action,
            "settings": settings,
            "effect": effect,
            "notes": [str(note) for note in self.notes],
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Step:
        """Return the step that `as_dict` made a dictionary of."""
        return cls(record["action"], record["settings"], record["effect"], tuple(record["notes"]))


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Return a hash of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def record(path: Path, made_of: Mapping[str, Any] | None = None) -> Path:
    """Record the checksum of a file that was just written, and what it was made from; return the path of the record."""
    about = {"file": path.name, "sha256": file_checksum(path), "made_of": dict(made_of or {})}
    contents = {"cranfield": __version__, **about}
    write_text(record_path(path), json.dumps(contents, indent=1, ensure_ascii=False) + "\n")
    return record_path(path)


def made_of(path: Path) -> dict[str, Any] | None:
    """Return what a file was made from, or None if it has no record."""
    contents = _record_of(path)
    return None if contents is None else contents["made_of"]


def is_as_written(path: Path) -> bool:
    """Whether a file has a record and still matches it byte for byte."""
    contents = _record_of(path)
    try:
        return contents is not None and contents["sha256"] == file_checksum(path)
    except OSError:
        return False


def check_unchanged(path: Path) -> None:
    """Compare a file that is about to be read with its record, if it has one. Links are followed.

    A Parquet file that does not match is an error, because nobody edits those by hand. A text file may have been
    edited, so it only gets a `CranfieldWarning`.
    """
    if path.is_symlink() and not record_path(path).is_file():
        path = path.resolve()
    if not path.is_file() or not record_path(path).is_file() or is_as_written(path):
        return
    if path.suffix.lower() == ".parquet":
        raise InputError(
            "the file has changed since cranfield wrote it",
            source=path,
            remedy=f"write it again, or remove {record_path(path)} to read it as it is",
        )
    warnings.warn(f"{path} has changed since it was written; reading it as it is", CranfieldWarning, stacklevel=2)


def _record_of(path: Path) -> dict[str, Any] | None:
    """Return the record of a file, or None if it is missing or damaged."""
    try:
        contents: dict[str, Any] = json.loads(record_path(path).read_text(encoding="utf-8"))
        has_both = isinstance(contents["made_of"], dict) and isinstance(contents["sha256"], str)
        return contents if has_both and contents["file"] == path.name else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None

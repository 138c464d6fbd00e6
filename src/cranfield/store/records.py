"""What a store records: artifacts, roots, which say what artifacts an experiment uses, the machine, and versions."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cranfield._files import write_text
from cranfield._version import __version__

FORMAT = 2
"""Version of an experiment's files. Raise it when their columns or names change, so that old ones are not reused."""

RECORD = "record.json"


@dataclass(frozen=True, eq=False)
class Artifact:
    """Files that were made together."""

    name: str  # what the experiment calls them, such as ``runs/movielens/knn``
    home: Path | None = None  # the folder that contains them; None for an artifact that has not been made yet
    # The checksum of each file, by its path in ``home``; and further information about them, ready for JSON.
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The hash of its inputs; empty if it has not been made yet."""
        return "" if self.home is None else self.home.name

    @cached_property
    def digest(self) -> str:
        """A hash of the bytes and the facts, for artifacts that depend on this one."""
        return fingerprint([dict(self.files), dict(self.facts)])

    def path(self, file: str | None = None) -> Path:
        """Return the path of a file; the name can be omitted if there is only one."""
        assert self.home is not None
        return self.home / (next(iter(self.files)) if file is None else file)


@dataclass(frozen=True)
class Record:
    """The record of an artifact: its inputs, the library versions that made it, and the checksums of its files.

    It has the name that the artifact had when it was made; other experiments may use another name.
    """

    home: Path
    name: str
    made_of: Mapping[str, Any]
    versions: Mapping[str, str]
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    @classmethod
    def write(
        cls, home: Path, name: str, made_of: Mapping[str, Any], files: Mapping[str, str], facts: Mapping[str, Any]
    ) -> Record:
        """Write the record of finished files; it goes through JSON, so that it equals what later runs read."""
        stated = {"name": name, "made_of": made_of, "versions": versions(), "files": files, "facts": facts}
        body = json.loads(json.dumps(stated))
        text = json.dumps({"sha256": fingerprint(body), **body}, indent=1, ensure_ascii=False)
        write_text(home / RECORD, text + "\n")
        return cls(home, **body)

    @classmethod
    def read(cls, home: Path) -> Record | None:
        """Return the record in a folder; None if it is invalid, of another version, or does not match the key."""
        try:
            stated: dict[str, Any] = json.loads((home / RECORD).read_text(encoding="utf-8"))
            checksum = stated.pop("sha256")
            record = cls(home, **stated)
            ours = checksum == fingerprint(stated) and home.name == key_of(record.name, record.made_of)
            return record if ours else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def called(self, name: str) -> Artifact:
        """Return the artifact under the name that an experiment uses."""
        return Artifact(name, self.home, self.files, self.facts)


def fingerprint(value: Any) -> str:
    """Return a hash of any value that JSON can represent, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def key_of(name: str, made_of: Mapping[str, Any]) -> str:
    """Return the key of an artifact: a hash of its stage and of everything that it is made of."""
    stage = name.split("/", 1)[0]
    return fingerprint({"cranfield": __version__, "format": FORMAT, "stage": stage, "made_of": made_of})


def size_of(paths: Iterable[Path]) -> int:
    """Return the total size in bytes of the files that exist."""
    size = 0
    for path in paths:
        with suppress(OSError):
            size += path.stat().st_size
    return size


@dataclass(frozen=True)
class Root:
    """The artifacts that an experiment uses: their keys by name, and whether all of them are listed and made.

    Experiments whose files have the same text are the same experiment.
    """

    title: str = ""
    text: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False

    @property
    def id(self) -> str:
        """A short hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def with_artifact(self, name: str, key: str) -> Root:
        """Return the root with an artifact added; if this changes the root, it is no longer finished."""
        if self.artifacts.get(name) == key:
            return self
        return replace(self, artifacts={**self.artifacts, name: key}, finished=False)


class Roots:
    """The roots of a folder, and which one is current: that of the experiment that was run last."""

    def __init__(self, home: Path) -> None:
        self._home = home
        # A run saves its root after every artifact, and need not read again what it wrote itself.
        self._saved: Root | None = None

    def begin(self, title: str, text: str) -> Root:
        """Make the experiment with this ``text`` the current one; return its existing root or a new one."""
        root = self._read(Root(title, text).id) or Root(title, text)
        self.save(root)
        return root

    def save(self, root: Root) -> None:
        """Write a root and mark it as current; nothing is written unless something has changed."""
        if not root.text or root == self._saved:
            return
        if self._saved is not None or self._read(root.id) != root:
            stated = {**vars(root), "artifacts": dict(root.artifacts)}
            text = json.dumps({"sha256": fingerprint(stated), **stated}, ensure_ascii=False)
            write_text(self._path(root.id), text + "\n")
        if (self._saved is None or self._saved.text != root.text) and self._current() != root.id:
            write_text(self._home / "current.json", json.dumps({"root": root.id}) + "\n")
        self._saved = root

    def all(self) -> list[Root]:
        """Return every readable root, sorted by when it was written."""
        paths = []
        with suppress(OSError):
            paths = sorted((self._home / "roots").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return [root for path in paths if (root := self._read(path.stem)) is not None]

    def current(self, *, sure: bool = False) -> Root | None:
        """Return the root of the last run; if that is not recorded, the newest root, or None if ``sure``."""
        named = self._read(self._current() or "")
        return named if named is not None or sure else next(reversed(self.all()), None)

    def forget(self, root: Root) -> None:
        """Remove a root, so that artifacts used by no other root can be freed."""
        self._path(root.id).unlink(missing_ok=True)
        self._saved = None

    def _path(self, name: str) -> Path:
        return self._home / "roots" / f"{name}.json"

    def _current(self) -> str | None:
        try:
            return str(json.loads((self._home / "current.json").read_text(encoding="utf-8"))["root"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _read(self, name: str) -> Root | None:
        try:
            stated = json.loads(self._path(name).read_text(encoding="utf-8"))
            checksum = stated.pop("sha256")
            root = Root(**stated)
            return root if checksum == fingerprint(stated) and root.id == name else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


_LIBRARIES = ("numpy", "scipy", "polars", "numba", "optuna")


def versions(libraries: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the versions of this package, of Python, and of the libraries that are installed."""
    numbers = {"cranfield": __version__, "Python": platform.python_version()}
    return numbers | {name: known for name in libraries if (known := _installed(name)) is not None}


# Cached: every artifact records the versions, and looking them up takes longer than making a small artifact.
@cache
def _installed(library: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


@cache
def machine() -> str:
    """Return the processor, its threads, the memory and the operating system, as far as they are known."""
    known = [_from_table("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()]
    known.append(f"{os.cpu_count() or 1} threads")
    with suppress(AttributeError, OSError, ValueError):
        memory = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
        known.append(f"{memory / 2**30:.0f} GiB of memory")
    return ", ".join([*known, f"{platform.system()} {platform.release()}"])


def _from_table(path: str, key: str) -> str | None:
    """Return a value from one of the kernel's tables; None if the table does not exist."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), None)

"""Roots: records of which artifacts in a store an experiment uses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cranfield._files import write_text


@dataclass(frozen=True)
class Root:
    """The artifacts that an experiment uses.

    Parameters
    ----------
    title
        What to call the experiment.
    text
        The text of its file; experiments with the same text are the same experiment.
    artifacts
        The key of each artifact by name.
    finished
        Whether all of its artifacts are listed and made.
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

    def finished_with(self, artifacts: Mapping[str, str]) -> Root:
        """Return the root as that of a finished experiment that uses these artifacts."""
        return replace(self, artifacts=dict(artifacts), finished=True)


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
            text = json.dumps({"sha256": _checksum(stated), **stated}, ensure_ascii=False)
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
            return root if checksum == _checksum(stated) and root.id == name else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def _checksum(stated: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

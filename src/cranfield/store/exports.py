"""Exports: the artifacts of the current experiment as files with readable names and ids, next to the store.

A table (``.cranfield/exports.json``) says which files are ours: for each artifact its key, and for each file the
checksums that it had when we wrote it. A file that is missing or has changed is written again; the changed one is kept
next to it, since somebody may have edited it. A file that is not in the table belongs to somebody else: it is never
replaced or removed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from cranfield._errors import CranfieldWarning
from cranfield._files import TEMPORARY, whole_file, write_text
from cranfield._record import file_checksum
from cranfield.store.records import Artifact
from cranfield.store.store import HOME, TEMPORARIES, Store, remove_ours

Write = Callable[[Path], Iterable[Path]]
"""Writes files into a folder, with the same layout as in the folder of the experiment, and returns their paths."""


class Exports:
    """The readable files in the folder of a store."""

    def __init__(self, store: Store) -> None:
        self._store, self._root = store, store.path
        self._path = store.path / HOME / "exports.json"
        # Files are written here first and moved when all are complete; nothing else uses a folder of this name.
        self._scratch = store.path / HOME / TEMPORARIES / f"{TEMPORARY}exports"
        self._artifacts, self._files = self._read()
        self._wanted: set[str] = set()

    def _read(self) -> tuple[dict[str, Any], dict[str, list[str]]]:
        try:
            stated = json.loads(self._path.read_text(encoding="utf-8"))
            files = {file: list(map(str, checksums)) for file, checksums in stated["files"].items()}
            artifacts = {}
            for name, entry in stated["artifacts"].items():
                artifacts[name] = {"key": entry["key"], "files": [file for file in entry["files"] if file in files]}
            return artifacts, files
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}, {}

    def _save(self) -> None:
        stated = {"artifacts": dict(sorted(self._artifacts.items())), "files": dict(sorted(self._files.items()))}
        text = json.dumps(stated, ensure_ascii=False) + "\n"
        with suppress(OSError):
            if self._path.read_bytes() == text.encode():
                return
        write_text(self._path, text)

    def files(self, name: str) -> dict[str, str]:
        """Return the files of an artifact, by their path in the folder, with the checksum each should have."""
        return {file: self._files[file][-1] for file in self._artifacts.get(name, {"files": ()})["files"]}

    def whole(self, artifact: Artifact) -> bool:
        """Whether this version of an artifact is exported, and every file is unchanged."""
        return self._is_of(artifact) and not self.damaged(artifact)

    def damaged(self, artifact: Artifact) -> bool:
        """Whether this version of an artifact is exported, but some file is missing or changed."""
        files = self.files(artifact.name) if self._is_of(artifact) else {}
        return any(_checksum(self._root / file) != checksum for file, checksum in files.items())

    def _is_of(self, artifact: Artifact) -> bool:
        return bool(self._artifacts.get(artifact.name, {"key": None})["key"] == artifact.key)

    def publish(self, artifacts: Mapping[str, tuple[Artifact, Write]]) -> None:
        """Write the files of artifacts that are not exported yet, or whose files are missing or changed."""
        self._wanted |= set(artifacts)
        missing = {name: export for name, export in artifacts.items() if not self.whole(export[0])}
        if not missing:
            return
        with self._store.writing():
            self._clear()
            try:
                for name, (artifact, write) in missing.items():
                    home = self._scratch / name
                    home.mkdir(parents=True, exist_ok=True)
                    self._place(artifact, {path.relative_to(home).as_posix(): path for path in write(home)})
                    self._store.log(artifact=name, did="exported")
            finally:
                self._clear()

    def _place(self, artifact: Artifact, written: Mapping[str, Path]) -> None:
        """Move files, given by their final paths, unless foreign files are there; the table is saved first."""
        checksums = {file: file_checksum(path) for file, path in written.items()}
        there = {file: _checksum(self._root / file) for file in written}
        others = [file for file, bytes_there in there.items() if bytes_there and file not in self._files]
        strangers = [file for file in others if there[file] != checksums[file]]
        for file in strangers:
            warnings.warn(
                f"{self._root / file} is not a file of this experiment, so it stays as it is; move it away and run "
                f"again to write {artifact.name} there",
                CranfieldWarning,
                stacklevel=2,
            )
        ours = {file: checksum for file, checksum in checksums.items() if file not in strangers}
        edited = [file for file in ours if there[file] not in (None, checksums[file], *self._files.get(file, ()))]
        for file, checksum in ours.items():
            self._files[file] = [*(earlier for earlier in self._files.get(file, ()) if earlier != checksum), checksum]
        self._artifacts[artifact.name] = {"key": artifact.key, "files": list(ours)}
        self._save()
        for file in edited:
            _keep_edited(self._root / file)
        for file, checksum in ours.items():
            if there[file] != checksum:
                _move(written[file], self._root / file)

    def _clear(self) -> None:
        if not self._scratch.is_symlink():
            shutil.rmtree(self._scratch, ignore_errors=True)

    def withdraw(self) -> None:
        """Remove the files of artifacts that were not published, unless somebody has changed them."""
        kept = {file for name in self._wanted for file in self._artifacts.get(name, {"files": ()})["files"]}
        with self._store.writing():
            self._clear()
            for file in sorted(set(self._files) - kept, reverse=True):
                remove_ours(self._root, file, self._files[file])
            self._artifacts = {name: artifact for name, artifact in self._artifacts.items() if name in self._wanted}
            self._files = {file: self._files[file][-1:] for file in self._files if file in kept}
            self._save()


def _keep_edited(path: Path) -> None:
    """Give a file that somebody has changed another name, under which nothing will ever replace it."""
    kept = path.with_name(f"{path.stem}.edited{path.suffix}")
    for number in count(2):
        if not os.path.lexists(kept):
            break
        kept = path.with_name(f"{path.stem}.edited{number}{path.suffix}")
    path.rename(kept)
    warnings.warn(
        f"{path} was changed after cranfield wrote it, and is written again; your version is kept as {kept.name}",
        CranfieldWarning,
        stacklevel=2,
    )


def _move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # A folder of the experiment may be a link to another file system, where renaming fails.
        with whole_file(target) as temporary:
            shutil.copyfile(path, temporary)


def _checksum(path: Path) -> str | None:
    """Return the checksum of a file; None if it does not exist."""
    if not path.exists() and not path.is_symlink():
        return None
    try:
        return file_checksum(path)
    except OSError:
        return "unreadable"

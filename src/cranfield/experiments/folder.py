"""The folder of an experiment: artifacts that are kept, each under a hash of what made it.

An artifact is one or more files and a record of them: the hash of what they were made of, and the checksum of their
bytes. The record is written last. A file that is missing, damaged, half written or made of something else has
therefore no valid record, and is made again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from cranfield._checksums import file_checksum
from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield._files import UnwrittenError, sweep, temporaries_in, write_text
from cranfield._version import __version__
from cranfield.experiments.versions import versions

FORMAT = 1
"""Raise it when the files of an experiment change their columns or names, so that old folders are not mixed in."""

HOME, LOG = ".cranfield", "log.jsonl"
TEMPORARIES = "temporary"
"""The folder in `HOME` of files that are being written: all that is swept after a process was killed."""

_UNFINISHED = re.compile(r"[0-9a-f]{64}\.json")

State = Literal["kept", "new", "changed", "damaged"]
Made = tuple[Iterable[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Artifact:
    """Files that were made together.

    Parameters
    ----------
    name
        Where they belong, such as ``runs/movielens/knn``.
    files
        The checksum of each file, by its path in the folder.
    facts
        What else is known of them, ready for JSON.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash of the bytes and of the facts: what was made of this depends on it."""
        return fingerprint([dict(self.files), dict(self.facts)])


class Folder:
    """The artifacts in a folder; `open_folder` gives one that no other process uses."""

    makes = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.needed: list[str] = []

    def artifact(self, name: str, made_of: Mapping[str, Any], make: Callable[[], Made]) -> Artifact:
        """Return an artifact: the one that is there if it was made of the same, else a new one.

        Parameters
        ----------
        name
            Its name.
        made_of
            All that its bytes depend on, ready for JSON.
        make
            Writes the files, and returns them with facts.
        """
        return self.kept(name, made_of) or self.make(name, made_of, make)

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact | None:
        """Return an artifact that is there, whole, and made of the same; else None."""
        state, found = self.state(name, made_of)
        if state != "kept":
            return None
        self.log(artifact=name, did="kept")
        return found

    def make(
        self, name: str, made_of: Mapping[str, Any], make: Callable[[], Made], *, seconds: float = 0.0
    ) -> Artifact:
        """Make an artifact anew; ``seconds`` were spent on it before."""
        key, start = _key(made_of), time.monotonic()
        state, before = self._look(name, key)
        made = self._made(name, key, made_of, make, before)
        self.log(artifact=name, did="made", why=state, seconds=round(seconds + time.monotonic() - start, 3))
        return made

    def state(self, name: str, made_of: Mapping[str, Any]) -> tuple[State, Artifact]:
        """Return what would become of an artifact, and the one that is there or an empty one."""
        self.needed.append(name)
        state, found = self._look(name, _key(made_of))
        return state, found if state == "kept" and found is not None else Artifact(name)

    def _look(self, name: str, key: str) -> tuple[State, Artifact | None]:
        record = self._record(name)
        if record is None:
            return ("damaged" if self._record_path(name).exists() else "new"), None
        found = Artifact(name, record["files"], record["facts"])
        if record["key"] != key:
            return "changed", found
        return ("kept" if self.whole(found) else "damaged"), found

    def whole(self, artifact: Artifact) -> bool:
        """Whether every file of an artifact is there, byte for byte as it was made."""
        return all(self._whole(file, checksum) for file, checksum in artifact.files.items())

    def _whole(self, file: str, checksum: str) -> bool:
        try:
            return file_checksum(self.path / file) == checksum
        except OSError:
            return False

    def _made(
        self, name: str, key: str, made_of: Mapping[str, Any], make: Callable[[], Made], before: Artifact | None
    ) -> Artifact:
        with self.writing():
            self._record_path(name).unlink(missing_ok=True)
            paths, facts = make()
            files = {path.relative_to(self.path).as_posix(): file_checksum(path) for path in paths}
            self._remove({file: made for file, made in (before.files if before else {}).items() if file not in files})
            # What JSON makes of the facts now is what the next run reads.
            told = {"key": key, "made_of": made_of, "versions": versions(), "files": files, "facts": facts}
            body = json.loads(json.dumps(told))
            record = {"sha256": fingerprint(body), **body}
            write_text(self._record_path(name), json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        return Artifact(name, body["files"], body["facts"])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say in one line what kept a file from being written."""
        try:
            yield
        except OSError as error:
            raise self._unwritten(error.strerror or str(error)) from error
        except UnwrittenError as error:
            raise self._unwritten(error.why) from error

    def _unwritten(self, why: str) -> CranfieldError:
        return CranfieldError(
            f"{self.path} cannot be written ({why}); make room or choose another folder with --out, and run again: "
            "what is finished is kept"
        )

    def records(self) -> dict[str, dict[str, Any]]:
        """Return every valid record by the name of its artifact."""
        home = self.path / HOME / "records"
        names = [path.relative_to(home).as_posix().removesuffix(".json") for path in sorted(home.rglob("*.json"))]
        return {name: record for name in names if (record := self._record(name)) is not None}

    def versions(self) -> dict[str, str]:
        """Return the versions that made what was asked for so far; all of them, where some changed in between."""
        records = [record for name in self.needed if (record := self._record(name)) is not None]
        found: dict[str, set[str]] = {}
        for library, version in (pair for record in records for pair in record["versions"].items()):
            found.setdefault(library, set()).add(version)
        return {library: ", ".join(sorted(several)) for library, several in found.items()}

    def _record_path(self, name: str) -> Path:
        return self.path / HOME / "records" / f"{name}.json"

    def _record(self, name: str) -> dict[str, Any] | None:
        """Return a record that is whole and of this version, or None."""
        try:
            record: dict[str, Any] = json.loads(self._record_path(name).read_text(encoding="utf-8"))
            body = {key: record[key] for key in ("key", "made_of", "versions", "files", "facts")}
            # The key is a hash of the version too, so that every record says by itself what made it.
            ours = record["sha256"] == fingerprint(body) and record["key"] == _key(record["made_of"])
            return body if ours else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def unfinished(self, made_of: Mapping[str, Any]) -> Path:
        """Return where long work on an artifact may keep what it has done so far, for a run after this one.

        It is there until an experiment is finished, and nobody reads it then.
        """
        path = self.path / HOME / "unfinished" / f"{_key(made_of)}.json"
        with suppress(OSError):
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()
        return path

    def prune(self) -> None:
        """Remove the artifacts that nobody asked for: of systems, data or folds that are no longer in the file."""
        with self.writing():
            kept = {file for name in self.needed for file in (self._record(name) or {"files": ()})["files"]}
            for name, record in self.records().items():
                if name in self.needed:
                    continue
                self._remove({file: made for file, made in record["files"].items() if file not in kept})
                self._record_path(name).unlink(missing_ok=True)
            self._forget_unfinished()

    def _remove(self, files: Mapping[str, str]) -> None:
        """Remove files that are as they were made, and the folders that held nothing else.

        A file that somebody has changed since is no longer ours, nor is one elsewhere, whatever a record says.
        """
        for file, checksum in sorted(files.items(), reverse=True):
            path = self.path / file
            if self.path.resolve() not in path.resolve().parents or not self._whole(file, checksum):
                continue
            path.unlink(missing_ok=True)
            with suppress(OSError):
                for parent in path.relative_to(self.path).parents[:-1]:
                    (self.path / parent).rmdir()

    def _forget_unfinished(self) -> None:
        home = self.path / HOME / "unfinished"
        if home.is_symlink() or not home.is_dir():
            return
        for path in home.iterdir():
            if _UNFINISHED.fullmatch(path.name) and not path.is_dir():
                path.unlink(missing_ok=True)
        with suppress(OSError):
            home.rmdir()

    def log(self, **entry: Any) -> None:
        """Add a line to the log, which holds all that differs from one run to the next."""
        # A log that cannot be written must not hide the result, or the error, of the run.
        with suppress(OSError), (self.path / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), **entry}) + "\n")

    def logged(self) -> list[dict[str, Any]]:
        """Return the lines of the log; one that was cut off is left out."""
        entries = []
        with suppress(OSError):
            for line in (self.path / LOG).read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    entries.append(json.loads(line))
        return entries


def fingerprint(value: Any) -> str:
    """Return a hash of anything that JSON can hold.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _key(made_of: Mapping[str, Any]) -> str:
    return fingerprint({"cranfield": __version__, "format": FORMAT, "made_of": made_of})


@contextmanager
def open_folder(path: str | Path) -> Iterator[Folder]:
    """Make or open the folder of an experiment, and hold it: nobody else can until this process is done.

    A folder of something else, of another version, in use, or that cannot be written is refused. What is written into
    it lies in a folder of its own until it is whole; what a killed process left there is removed, and nothing else is.
    """
    path = Path(path)
    check_folder(path)
    folder = Folder(path)
    with folder.writing():
        (path / HOME / TEMPORARIES).mkdir(parents=True, exist_ok=True)
        handle = (path / HOME / "lock").open("a+b")
    with handle:
        with folder.writing():
            held = _held(handle)
        if not held:
            raise CranfieldError(
                f"{path} is in use by another run{_holder(path)}; wait for it, or choose another folder with --out"
            )
        with folder.writing():
            (path / HOME / "process").write_text(str(os.getpid()), encoding="utf-8")
            sweep(path / HOME / TEMPORARIES)
        with temporaries_in(path / HOME / TEMPORARIES, path):
            if _made_by(path) != (__version__, FORMAT):
                with folder.writing():
                    _rebuild(folder)
            yield folder


def check_folder(path: Path) -> None:
    """Refuse a folder that is not of an experiment of this version; a new or empty one will do."""
    if path.exists() and not path.is_dir():
        raise CranfieldError(f"{path} is not a folder; choose another with --out")
    try:
        there = list(path.iterdir()) if path.exists() else []
    except OSError as error:
        raise CranfieldError(f"{path} cannot be read ({error.strerror}); choose another folder with --out") from error
    if there and not (path / HOME).is_dir():
        raise CranfieldError(f"{path} holds other files ({there[0].name}); choose an empty or new folder with --out")
    made_by = _made_by(path)
    # The records say by themselves whether they are of this version: they count for more than one small file.
    if made_by in (None, (__version__, FORMAT)) or Folder(path).records():
        return
    raise CranfieldError(
        f"{path} was made by cranfield {made_by[0]} and this is {__version__}; choose another folder with --out, or "
        "remove it to make it anew"
    )


def _made_by(path: Path) -> tuple[str, Any] | None:
    """Return the version and format that ``folder.json`` names, or None where it is missing or damaged."""
    try:
        stated = json.loads((path / HOME / "folder.json").read_text(encoding="utf-8"))
        return str(stated["cranfield"]), stated["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _rebuild(folder: Folder) -> None:
    """Write ``folder.json``; where work is there already, say what of it can be verified and stays."""
    home = folder.path / HOME
    there = sum(1 for _ in (home / "records").rglob("*.json"))
    if there:
        records = folder.records().items()
        whole = sum(folder.whole(Artifact(name, record["files"], record["facts"])) for name, record in records)
        folder.log(did="rebuilt", artifacts=there, whole=whole)
        warnings.warn(
            f"{home / 'folder.json'} was missing or damaged and is written anew; {whole} of {there} artifacts are "
            "whole and made by this version, so they are kept, and the others are made anew",
            CranfieldWarning,
            stacklevel=4,
        )
    write_text(home / "folder.json", json.dumps({"cranfield": __version__, "format": FORMAT}))


def _held(handle: IO[bytes]) -> bool:
    """Take the lock, which the system releases when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(0)
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _holder(path: Path) -> str:
    try:
        return f" (process {int((path / HOME / 'process').read_text(encoding='utf-8'))})"
    except (OSError, ValueError):
        return ""

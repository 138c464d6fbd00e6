"""The store of an experiment's folder: each artifact lies at the hash of what it is made of.

An artifact is one or more files in ``.cranfield/store/<aa>/<key>/``, where the key is a hash of all that the files
depend on, and a record of them: what they were made of, and the checksum of their bytes. The record is written last.
A file that is missing, damaged or half written has therefore no valid record, and is made again. Since the place says
what an artifact is made of, experiments lie side by side, and going back to an earlier one finds what it made.

A root (``.cranfield/roots/<id>.json``) says in words which artifacts an experiment uses; `Store.clean` frees those
that the current one does not, and folders that a stopped run left without a record. Nothing else is ever removed
from a store.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

from cranfield._checksums import file_checksum
from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield._files import UnwrittenError, sweep, temporaries_in, write_text
from cranfield._version import __version__
from cranfield.experiments.machine import machine
from cranfield.experiments.roots import Root, Roots
from cranfield.experiments.versions import versions

FORMAT = 2
"""Raise it when the files of an experiment change their columns or names, so that old folders are not mixed in."""

HOME, LOG, RECORD = ".cranfield", "log.jsonl", "record.json"
TEMPORARIES = "temporary"
"""The folder in `HOME` of files that are being written: all that is swept after a process was killed."""

_KEY = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.(json|npz)")

State = Literal["kept", "new", "changed", "damaged"]
Made = tuple[Iterable[Path], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Artifact:
    """Files that were made together.

    Parameters
    ----------
    name
        What the experiment calls them, such as ``runs/movielens/knn``.
    home
        The folder that they lie in; None for an artifact that is yet to be made.
    files
        The checksum of each file, by its path in ``home``.
    facts
        What else is known of them, ready for JSON.
    """

    name: str
    home: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The hash of what it is made of; empty if it is yet to be made."""
        return "" if self.home is None else self.home.name

    @cached_property
    def digest(self) -> str:
        """A hash of the bytes and of the facts: what was made of this depends on it."""
        return fingerprint([dict(self.files), dict(self.facts)])

    def path(self, file: str | None = None) -> Path:
        """Return where a file lies; the name may be left out when there is only one."""
        assert self.home is not None
        return self.home / (next(iter(self.files)) if file is None else file)


class Store:
    """The artifacts of a folder; `open_store` gives one that no other process uses."""

    makes = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.roots = Roots(path / HOME)
        self.root = Root()
        self._before = (self.roots.current() or self.root).artifacts
        self.needed: dict[str, str] = {}

    # what is there

    def state(self, name: str, made_of: Mapping[str, Any]) -> tuple[State, Artifact]:
        """Return what would become of an artifact, and the one that is there or an empty one."""
        key = _key(name, made_of)
        self.needed[name] = key
        state = self._look(name, key)
        record = self.find(key) if state == "kept" else None
        return state, Artifact(name) if record is None else record.called(name)

    def _look(self, name: str, key: str) -> State:
        record = self.find(key)
        if record is None:
            if (self.place(key) / RECORD).exists():
                return "damaged"
            return "changed" if name in self._before else "new"
        return "kept" if self.whole(record.called(name)) else "damaged"

    def before(self) -> dict[str, Record]:
        """Return the records of what the experiment that was run before uses, by name."""
        records = ((name, self.find(key)) for name, key in self._before.items())
        return {name: record for name, record in records if record is not None}

    def was_made(self, name: str, made_of: Mapping[str, Any]) -> bool:
        """Whether the experiment that was run before had an artifact of this name that was made of these, and more."""
        record = self.find(self._before.get(name, ""))
        return record is not None and all(record.made_of.get(key) == value for key, value in made_of.items())

    def place(self, key: str) -> Path:
        """Return the folder of the artifact with a key."""
        return self.path / HOME / "store" / key[:2] / key

    def find(self, key: str) -> Record | None:
        """Return the record of the artifact with a key, if it is valid and of this version; else None."""
        return Record.read(self.place(key))

    def records(self) -> dict[str, Record]:
        """Return every valid record by key."""
        places = sorted((self.path / HOME / "store").glob("[0-9a-f][0-9a-f]/*"))
        return {place.name: record for place in places if (record := Record.read(place)) is not None}

    def half_made(self) -> dict[str, int]:
        """Return the bytes in every folder of an artifact that has no record, by key: what a stopped run left there.

        The folder that a run is writing at the moment has none either; ask `in_use` first.
        """
        places = sorted((self.path / HOME / "store").glob("[0-9a-f][0-9a-f]/*"))
        return {place.name: _bytes_in(place) for place in places if self._is_half_made(place)}

    def _is_half_made(self, place: Path) -> bool:
        is_ours = bool(_KEY.fullmatch(place.name)) and place == self.place(place.name)
        return is_ours and place.is_dir() and not place.is_symlink() and not os.path.lexists(place / RECORD)

    def whole(self, artifact: Artifact) -> bool:
        """Whether every file of an artifact is there, byte for byte as it was made."""
        return all(_is_whole(artifact.path(file), checksum) for file, checksum in artifact.files.items())

    # what is made

    def artifact(self, name: str, made_of: Mapping[str, Any], make: Callable[[Path], Made]) -> Artifact:
        """Return an artifact: the one that is there if it was made of the same, else a new one.

        Parameters
        ----------
        name
            Its name, which begins with its stage.
        made_of
            All that its bytes depend on, ready for JSON.
        make
            Writes the files into a folder, and returns them with facts.
        """
        return self.kept(name, made_of) or self.make(name, made_of, make)

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact | None:
        """Return an artifact that is there, whole, and made of the same; else None."""
        state, artifact = self.state(name, made_of)
        if state != "kept":
            return None
        self.root = self.root.with_artifact(name, artifact.key)
        self.log(artifact=name, did="kept")
        return artifact

    def make(
        self, name: str, made_of: Mapping[str, Any], make: Callable[[Path], Made], *, seconds: float = 0.0
    ) -> Artifact:
        """Make an artifact anew; ``seconds`` were spent on it before."""
        key, start = _key(name, made_of), time.monotonic()
        state, place = self._look(name, key), self.place(key)
        self.needed[name] = key
        with self.writing():
            (place / RECORD).unlink(missing_ok=True)
            place.mkdir(parents=True, exist_ok=True)
            paths, facts = make(place)
            files = {path.relative_to(place).as_posix(): file_checksum(path) for path in paths}
            record = Record.write(place, name, made_of, files, facts)
            self.root = self.root.with_artifact(name, key)
            self.roots.save(self.root)
        self.log(artifact=name, did="made", why=state, seconds=round(seconds + time.monotonic() - start, 3))
        return record.called(name)

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
            f"{self.path} cannot be written ({why}); free some space or choose another folder with --out, and run "
            "again: what is finished is kept"
        )

    def versions(self) -> dict[str, str]:
        """Return the versions that made what was asked for so far; all of them, where some changed in between."""
        records = [record for key in self.needed.values() if (record := self.find(key)) is not None]
        several: dict[str, set[str]] = {}
        for library, version in (pair for record in records for pair in record.versions.items()):
            several.setdefault(library, set()).add(version)
        return {library: ", ".join(sorted(all_of_it)) for library, all_of_it in several.items()}

    def unfinished(self, name: str, made_of: Mapping[str, Any]) -> Path:
        """Return where long work on an artifact may keep what it has done so far, for a run after this one.

        It is there until an experiment is finished, and nobody reads it then.
        """
        path = self._unfinished(name, made_of, "json")
        with suppress(OSError):
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()
        return path

    def checkpoint(self, name: str, made_of: Mapping[str, Any]) -> Path:
        """Return where a training may keep its checkpoint; like what is `unfinished`, but arrays."""
        return self._unfinished(name, made_of, "npz")

    def _unfinished(self, name: str, made_of: Mapping[str, Any], ending: str) -> Path:
        return self.path / HOME / "unfinished" / f"{_key(name, made_of)}.{ending}"

    # whose it is

    def begin(self, title: str, text: str) -> None:
        """Say which experiment is run from now on: what is asked for belongs to its root."""
        with self.writing():
            self.root = self.roots.begin(title, text)
        self.log(did="started", machine=machine())

    def finish(self) -> None:
        """Say that the experiment is finished, and uses what was asked for and nothing else."""
        with self.writing():
            self.root = self.root.finished_with(self.needed)
            self.roots.save(self.root)
            self._forget_unfinished()
        self.log(did="finished")

    def _forget_unfinished(self) -> None:
        home = self.path / HOME / "unfinished"
        if home.is_symlink() or not home.is_dir():
            return
        for path in home.iterdir():
            if _UNFINISHED.fullmatch(path.name) and not path.is_dir():
                path.unlink(missing_ok=True)
        with suppress(OSError):
            home.rmdir()

    def reachable(self, roots: Iterable[Root]) -> set[str]:
        """Return the keys of the artifacts that some roots use."""
        return {key for root in roots for key in root.artifacts.values()}

    def free(self, key: str) -> None:
        """Remove an artifact: the files that its record names and that are as they were made, and the record."""
        record, place = self.find(key), self.place(key)
        if record is None:
            return
        with self.writing():
            # Without its record it is an artifact no longer, wherever this is stopped.
            (place / RECORD).unlink()
            for file, checksum in sorted(record.files.items(), reverse=True):
                remove_ours(place, file, [checksum])
            if any(place.iterdir()):
                # What somebody has changed stays, and is not taken for half of an artifact.
                write_text(place / RECORD, json.dumps({"freed": record.name}) + "\n")
            else:
                _remove_place(place)

    def free_half_made(self, key: str) -> None:
        """Remove the folder of an artifact that has no record; `open_store` must hold the store."""
        place = self.place(key)
        if self._is_half_made(place):
            with self.writing():
                shutil.rmtree(place)
                _remove_place(place)

    # what was done

    def log(self, **entry: Any) -> None:
        """Add a line to the log, which holds all that differs from one run to the next."""
        # A log that cannot be written must not hide the result, or the error, of the run.
        with suppress(OSError), (self.path / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), **entry}) + "\n")

    def logged(self) -> list[dict[str, Any]]:
        """Return the lines of the log; one that was cut off is left out."""
        entries = []
        with suppress(OSError):
            for line in (self.path / LOG).read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):
                    entries.append(json.loads(line))
        return entries

    def took(self) -> dict[str, float]:
        """Return the seconds that each artifact took when it was last made, by name."""
        return {entry["artifact"]: entry["seconds"] for entry in self.logged() if entry.get("did") == "made"}


@dataclass(frozen=True)
class Record:
    """What is known of an artifact: what it was made of and with, and the checksums of its files.

    Parameters
    ----------
    home
        Its folder.
    name
        What it was called when it was made; another experiment may call it otherwise.
    made_of, versions, files, facts
        See `Store.artifact`, `versions` and `Artifact`.
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
        """Write the record of files that are written; what JSON makes of it now is what the next run reads."""
        stated = {"name": name, "made_of": made_of, "versions": versions(), "files": files, "facts": facts}
        body = json.loads(json.dumps(stated))
        text = json.dumps({"sha256": fingerprint(body), **body}, indent=1, ensure_ascii=False)
        write_text(home / RECORD, text + "\n")
        return cls(home, **body)

    @classmethod
    def read(cls, home: Path) -> Record | None:
        """Return the record in a folder, or None unless it is valid, of this version, and of what the place says."""
        try:
            stated: dict[str, Any] = json.loads((home / RECORD).read_text(encoding="utf-8"))
            checksum = stated.pop("sha256")
            record = cls(home, **stated)
            ours = checksum == fingerprint(stated) and home.name == _key(record.name, record.made_of)
            return record if ours else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    @property
    def size(self) -> int:
        """The bytes of its files that are there."""
        size = 0
        for file in self.files:
            with suppress(OSError):
                size += (self.home / file).stat().st_size
        return size

    def called(self, name: str) -> Artifact:
        """Return the artifact, under the name that an experiment gives it."""
        return Artifact(name, self.home, self.files, self.facts)


def remove_ours(home: Path, file: str, checksums: Iterable[str]) -> bool:
    """Remove a file that is as we made it, and the folders that held nothing else; return whether it is gone.

    A file that somebody has changed since does not count as ours. Neither does one elsewhere, whatever a record says.
    """
    path = home / file
    if home.resolve() not in path.resolve().parents:
        return False
    if not any(_is_whole(path, checksum) for checksum in checksums):
        return False
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for parent in path.relative_to(home).parents[:-1]:
            (home / parent).rmdir()
    return True


def _remove_place(place: Path) -> None:
    """Remove the folder of an artifact if it is empty, and the one that it lies in if that is."""
    with suppress(OSError):
        if place.exists():
            place.rmdir()
        place.parent.rmdir()


def _bytes_in(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            size += 0 if path.is_dir() else path.lstat().st_size
    return size


def _is_whole(path: Path, checksum: str) -> bool:
    try:
        return file_checksum(path) == checksum
    except OSError:
        return False


def fingerprint(value: Any) -> str:
    """Return a hash of anything that JSON can hold.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _key(name: str, made_of: Mapping[str, Any]) -> str:
    stage = name.split("/", 1)[0]
    return fingerprint({"cranfield": __version__, "format": FORMAT, "stage": stage, "made_of": made_of})


@contextmanager
def open_store(path: str | Path) -> Iterator[Store]:
    """Make or open the store of a folder, and hold it: nobody else can until this process is done.

    A folder of something else, of another version, in use, or that cannot be written is refused. What is written into
    it lies in a folder of its own until it is whole; what a killed process left there is removed, and nothing else is.
    """
    path = Path(path)
    check_folder(path)
    store = Store(path)
    with store.writing():
        (path / HOME / TEMPORARIES).mkdir(parents=True, exist_ok=True)
        handle = (path / HOME / "lock").open("a+b")
    with handle:
        with store.writing():
            held = _held(handle)
        if not held:
            raise CranfieldError(
                f"{path} is in use by another run{_holder(path)}; wait for it, or choose another folder with --out"
            )
        with store.writing():
            (path / HOME / "process").write_text(str(os.getpid()), encoding="utf-8")
            sweep(path / HOME / TEMPORARIES)
        with temporaries_in(path / HOME / TEMPORARIES, path):
            if _made_by(path) != (__version__, FORMAT):
                with store.writing():
                    _rebuild(store)
            yield store


def in_use(path: Path) -> bool:
    """Whether a process holds the store of a folder at the moment."""
    try:
        with (path / HOME / "lock").open("rb+") as handle:
            return not _held(handle)
    except OSError:
        return False


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
    if made_by in (None, (__version__, FORMAT)) or Store(path).records():
        return
    raise CranfieldError(
        f"{path} was made by cranfield {made_by[0]} and this is {__version__}; choose another folder with --out, or "
        "remove it to start again"
    )


def _made_by(path: Path) -> tuple[str, Any] | None:
    """Return the version and format that ``folder.json`` names, or None where it is missing or damaged."""
    try:
        stated = json.loads((path / HOME / "folder.json").read_text(encoding="utf-8"))
        return str(stated["cranfield"]), stated["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _rebuild(store: Store) -> None:
    """Write ``folder.json``; where work is there already, say what of it can be verified and stays."""
    home = store.path / HOME
    there = sum(1 for _ in (home / "store").glob(f"*/*/{RECORD}"))
    if there:
        whole = sum(store.whole(record.called(record.name)) for record in store.records().values())
        store.log(did="rebuilt", artifacts=there, whole=whole)
        warnings.warn(
            f"{home / 'folder.json'} was missing or damaged and is written again; {whole} of {there} artifacts are "
            "whole and made by this version, so they are kept, and the others are made again",
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

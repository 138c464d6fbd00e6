"""The store of an experiment's folder: each artifact is stored under a hash of its inputs.

An artifact is one or more files in ``.cranfield/store/<aa>/<key>/``, where the key is a hash of everything that the
files depend on, and a record of them: their inputs, and the checksum of their bytes. The record is written last, so an
artifact that was half written has no valid record and is made again, like one with missing or damaged files. The key
depends only on the inputs, so several experiments can share a store, and going back to an earlier one finds its
artifacts.

A root (``.cranfield/roots/<id>.json``) lists the artifacts that an experiment uses. `cranfield.experiments.cleaning`
frees those that the current one does not use, and folders that a stopped run left without a record. Nothing else is
ever removed from a store.
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

from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield._files import UnwrittenError, sweep, temporaries_in, write_text
from cranfield._record import file_checksum
from cranfield._version import __version__
from cranfield.store.environment import machine, versions
from cranfield.store.roots import Root, Roots

FORMAT = 2
"""Version of an experiment's files. Raise it when their columns or names change, so that old ones are not reused."""

HOME, LOG, RECORD = ".cranfield", "log.jsonl", "record.json"
TEMPORARIES = "temporary"
"""The folder in `HOME` for files that are being written. Only this folder is cleaned up after a process was killed."""

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
        The folder that contains them; None for an artifact that has not been made yet.
    files
        The checksum of each file, by its path in ``home``.
    facts
        Further information about them, ready for JSON.
    """

    name: str
    home: Path | None = None
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


class Store:
    """The artifacts of a folder; `open_store` returns a store that no other process is using."""

    makes = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.roots = Roots(path / HOME)
        self.root = Root()
        self._before = (self.roots.current() or self.root).artifacts
        self.needed: dict[str, str] = {}

    # lookup

    def state(self, name: str, made_of: Mapping[str, Any]) -> tuple[State, Artifact]:
        """Return the state of an artifact, and the artifact itself if it can be kept, otherwise an empty one."""
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
        """Return the records of the artifacts of the previously run experiment, by name."""
        records = ((name, self.find(key)) for name, key in self._before.items())
        return {name: record for name, record in records if record is not None}

    def was_made(self, name: str, made_of: Mapping[str, Any]) -> bool:
        """Whether the previously run experiment had an artifact of this name whose inputs include these."""
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
        """Return the size of every artifact folder without a record, by key: what stopped runs left there.

        A folder that a run is writing at the moment has no record either, so check `in_use` first.
        """
        places = sorted((self.path / HOME / "store").glob("[0-9a-f][0-9a-f]/*"))
        return {place.name: _bytes_in(place) for place in places if self._is_half_made(place)}

    def _is_half_made(self, place: Path) -> bool:
        is_ours = bool(_KEY.fullmatch(place.name)) and place == self.place(place.name)
        return is_ours and place.is_dir() and not place.is_symlink() and not os.path.lexists(place / RECORD)

    def whole(self, artifact: Artifact) -> bool:
        """Whether every file of an artifact exists, byte for byte as it was made."""
        return all(_is_whole(artifact.path(file), checksum) for file, checksum in artifact.files.items())

    # making artifacts

    def artifact(self, name: str, made_of: Mapping[str, Any], make: Callable[[Path], Made]) -> Artifact:
        """Return an artifact: the existing one if it has the same inputs, otherwise a new one.

        Parameters
        ----------
        name
            Its name, which begins with its stage.
        made_of
            Everything that its bytes depend on, ready for JSON.
        make
            Function that writes the files into a folder, and returns them with facts.
        """
        return self.kept(name, made_of) or self.make(name, made_of, make)

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact | None:
        """Return an existing artifact if it is undamaged and has the same inputs; else None."""
        state, artifact = self.state(name, made_of)
        if state != "kept":
            return None
        self.root = self.root.with_artifact(name, artifact.key)
        self.log(artifact=name, did="kept")
        return artifact

    def make(
        self, name: str, made_of: Mapping[str, Any], make: Callable[[Path], Made], *, seconds: float = 0.0
    ) -> Artifact:
        """Make an artifact; ``seconds`` is the time already spent on it."""
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
        """Turn errors of writing into a one-line message."""
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
        """Return the library versions that made the artifacts used so far; several per library if they differ."""
        records = [record for key in self.needed.values() if (record := self.find(key)) is not None]
        several: dict[str, set[str]] = {}
        for library, version in (pair for record in records for pair in record.versions.items()):
            several.setdefault(library, set()).add(version)
        return {library: ", ".join(sorted(all_of_it)) for library, all_of_it in several.items()}

    def unfinished(self, name: str, made_of: Mapping[str, Any]) -> Path:
        """Return the path where long work on an artifact can save its progress for a later run.

        The file is removed when an experiment is finished.
        """
        path = self._unfinished(name, made_of, "json")
        with suppress(OSError):
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()
        return path

    def checkpoint(self, name: str, made_of: Mapping[str, Any]) -> Path:
        """Return the path for the checkpoint of a training; like `unfinished`, but for arrays."""
        return self._unfinished(name, made_of, "npz")

    def _unfinished(self, name: str, made_of: Mapping[str, Any], ending: str) -> Path:
        return self.path / HOME / "unfinished" / f"{_key(name, made_of)}.{ending}"

    # which experiment uses what

    def begin(self, title: str, text: str) -> None:
        """Start an experiment: artifacts used from now on belong to its root."""
        with self.writing():
            self.root = self.roots.begin(title, text)
        self.log(did="started", machine=machine())

    def finish(self) -> None:
        """Mark the experiment as finished; it uses exactly the artifacts asked for since it began."""
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
        """Return the keys of all artifacts that these roots use."""
        return {key for root in roots for key in root.artifacts.values()}

    def free(self, key: str) -> None:
        """Remove an artifact: its record, and the files named in it that are unchanged."""
        record, place = self.find(key), self.place(key)
        if record is None:
            return
        with self.writing():
            # The record goes first: if this is interrupted, what is left is not taken for an artifact.
            (place / RECORD).unlink()
            for file, checksum in sorted(record.files.items(), reverse=True):
                remove_ours(place, file, [checksum])
            if any(place.iterdir()):
                # Files that somebody has changed stay. The record keeps the folder from counting as half made.
                write_text(place / RECORD, json.dumps({"freed": record.name}) + "\n")
            else:
                _remove_place(place)

    def free_half_made(self, key: str) -> None:
        """Remove the folder of an artifact without a record; the store must be held by `open_store`."""
        place = self.place(key)
        if self._is_half_made(place):
            with self.writing():
                shutil.rmtree(place)
                _remove_place(place)

    # log

    def log(self, **entry: Any) -> None:
        """Add a line to the log, which holds everything that differs between runs."""
        # Failing to write the log must not hide the result or the error of the run.
        with suppress(OSError), (self.path / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), **entry}) + "\n")

    def logged(self) -> list[dict[str, Any]]:
        """Return the entries of the log; truncated lines are skipped."""
        entries = []
        with suppress(OSError):
            for line in (self.path / LOG).read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):
                    entries.append(json.loads(line))
        return entries

    def took(self) -> dict[str, float]:
        """Return the seconds each artifact took when it was last made, by name."""
        return {entry["artifact"]: entry["seconds"] for entry in self.logged() if entry.get("did") == "made"}


@dataclass(frozen=True)
class Record:
    """The record of an artifact: its inputs, the library versions that made it, and the checksums of its files.

    Parameters
    ----------
    home
        Its folder.
    name
        Its name when it was made; other experiments may use another name.
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
            ours = checksum == fingerprint(stated) and home.name == _key(record.name, record.made_of)
            return record if ours else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    @property
    def size(self) -> int:
        """The total size in bytes of its files that exist."""
        size = 0
        for file in self.files:
            with suppress(OSError):
                size += (self.home / file).stat().st_size
        return size

    def called(self, name: str) -> Artifact:
        """Return the artifact under the name that an experiment uses."""
        return Artifact(name, self.home, self.files, self.facts)


def remove_ours(home: Path, file: str, checksums: Iterable[str]) -> bool:
    """Remove a file that is unchanged since we made it, and folders that become empty; return whether it was removed.

    A file that somebody has changed is not ours. Neither is one outside ``home``, even if a record names it.
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
    """Remove the folder of an artifact if it is empty, and its parent folder if that is empty too."""
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
    """Return a hash of any value that JSON can represent.

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
    """Create or open the store of a folder and lock it until the context ends.

    A folder that holds other files, was made by another version, is in use, or cannot be written is rejected. Files are
    written into a temporary folder until they are complete; leftovers of a killed process in that folder are removed,
    and nothing else.
    """
    path = Path(path)
    check_folder(path)
    store = Store(path)
    for file in (path / LOG, path / HOME / "lock", path / HOME / "process"):
        if file.is_symlink():
            raise CranfieldError(f"{file} is a symbolic link, and a run would write through it; remove the link")
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
    """Reject a folder that is neither new, nor empty, nor that of an experiment of this version."""
    if path.exists() and not path.is_dir():
        raise CranfieldError(f"{path} is not a folder; choose another with --out")
    try:
        there = list(path.iterdir()) if path.exists() else []
    except OSError as error:
        raise CranfieldError(f"{path} cannot be read ({error.strerror}); choose another folder with --out") from error
    if there and not (path / HOME).is_dir():
        raise CranfieldError(f"{path} holds other files ({there[0].name}); choose an empty or new folder with --out")
    made_by = _made_by(path)
    # Each record shows whether it is of this version, so valid records outweigh what ``folder.json`` says.
    if made_by in (None, (__version__, FORMAT)) or Store(path).records():
        return
    raise CranfieldError(
        f"{path} was made by cranfield {made_by[0]} and this is {__version__}; choose another folder with --out, or "
        "remove it to start again"
    )


def _made_by(path: Path) -> tuple[str, Any] | None:
    """Return the version and format in ``folder.json``; None if it is missing or damaged."""
    try:
        stated = json.loads((path / HOME / "folder.json").read_text(encoding="utf-8"))
        return str(stated["cranfield"]), stated["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _rebuild(store: Store) -> None:
    """Write ``folder.json``; if there are artifacts already, warn how many of them are valid and kept."""
    home = store.path / HOME
    there = sum(1 for _ in (home / "store").glob(f"*/*/{RECORD}"))
    if there:
        whole = sum(store.whole(record.called(record.name)) for record in store.records().values())
        store.log(did="rebuilt", artifacts=there, whole=whole)
        warnings.warn(
            f"{home / 'folder.json'} was missing or damaged and is written again; {whole} of {there} artifacts are "
            "complete and made by this version, so they are kept; the others are made again",
            CranfieldWarning,
            stacklevel=4,
        )
    write_text(home / "folder.json", json.dumps({"cranfield": __version__, "format": FORMAT}))


def _held(handle: IO[bytes]) -> bool:
    """Try to take the lock, which the operating system releases whenever and however the process ends."""
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

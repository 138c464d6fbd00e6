"""The store of an experiment's folder: each artifact is stored under a hash of its inputs.

An artifact is one or more files in ``.cranfield/store/<aa>/<key>/``, where the key is a hash of everything that the
files depend on, and a record of them: their inputs, and the checksum of their bytes. The record is written last, so an
artifact that was half written has no valid record and is made again, like one with missing or damaged files. The key
depends only on the inputs, so several experiments can share a store, and going back to an earlier one finds its
artifacts.

A root (``.cranfield/roots/<id>.json``) lists the artifacts that an experiment uses. `cranfield.experiments.clean`
frees those that the current one does not use, and folders that a stopped run left without a record. Nothing else is
ever removed from a store.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cranfield._errors import CranfieldError, CranfieldWarning
from cranfield._files import UnwrittenError, sweep, temporaries_in, try_lock, write_text
from cranfield._record import file_checksum
from cranfield._version import __version__
from cranfield.store.records import FORMAT, RECORD, Artifact, Record, Root, Roots, key_of, machine, size_of

HOME, LOG = ".cranfield", "log.jsonl"
TEMPORARIES = "temporary"
"""The folder in `HOME` for files that are being written. Only this folder is cleaned up after a process was killed."""

_KEY = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.(json|npz)")

State = Literal["kept", "new", "changed", "damaged"]
Made = tuple[Iterable[Path], Mapping[str, Any]]


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
        key = key_of(name, made_of)
        self.needed[name], record = key, self.find(key)
        if record is not None and self.whole(record.called(name)):
            return "kept", record.called(name)
        damaged = record is not None or (self.place(key) / RECORD).exists()
        return "damaged" if damaged else "changed" if name in self._before else "new", Artifact(name)

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
        return {place.name: record for place in self._places() if (record := Record.read(place)) is not None}

    def _places(self) -> list[Path]:
        return sorted((self.path / HOME / "store").glob("[0-9a-f][0-9a-f]/*"))

    def half_made(self) -> dict[str, int]:
        """Return the size of every artifact folder without a record, by key: what stopped runs left there.

        A folder that a run is writing at the moment has no record either, so check `in_use` first.
        """
        return {
            place.name: size_of(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
            for place in self._places()
            if self._is_half_made(place)
        }

    def _is_half_made(self, place: Path) -> bool:
        is_ours = _KEY.fullmatch(place.name) is not None and place == self.place(place.name)
        return is_ours and place.is_dir() and not place.is_symlink() and not os.path.lexists(place / RECORD)

    def whole(self, artifact: Artifact) -> bool:
        """Whether every file of an artifact exists, byte for byte as it was made."""
        return all(_is_whole(artifact.path(file), checksum) for file, checksum in artifact.files.items())

    # making artifacts

    def artifact(self, name: str, made_of: Mapping[str, Any], make: Callable[[Path], Made]) -> Artifact:
        """Return an artifact: the existing one if it has the same inputs, otherwise a new one.

        Its ``name`` begins with its stage, ``made_of`` is everything that its bytes depend on, ready for JSON, and
        ``make`` writes its files into a folder and returns them with facts.
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
        key, start = key_of(name, made_of), time.monotonic()
        (state, _), place = self.state(name, made_of), self.place(key)
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
        except (OSError, UnwrittenError) as error:
            why = error.why if isinstance(error, UnwrittenError) else error.strerror or str(error)
            raise CranfieldError(
                f"{self.path} cannot be written ({why}); free some space or choose another folder with out=..., and "
                "run again: what is finished is kept"
            ) from error

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
        path = self.checkpoint(name, made_of).with_suffix(".json")
        with suppress(OSError):
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()
        return path

    def checkpoint(self, name: str, made_of: Mapping[str, Any]) -> Path:
        """Return the path for the checkpoint of a training; like `unfinished`, but for arrays."""
        return self.path / HOME / "unfinished" / f"{key_of(name, made_of)}.npz"

    # which experiment uses what

    def begin(self, title: str, text: str) -> None:
        """Start an experiment: artifacts used from now on belong to its root."""
        with self.writing():
            self.root = self.roots.begin(title, text)
        self.log(did="started", machine=machine())

    def finish(self) -> None:
        """Mark the experiment as finished; it uses exactly the artifacts asked for since it began."""
        with self.writing():
            self.root = replace(self.root, artifacts=dict(self.needed), finished=True)
            self.roots.save(self.root)
            home = self.path / HOME / "unfinished"
            if home.is_dir() and not home.is_symlink():
                for path in home.iterdir():
                    if _UNFINISHED.fullmatch(path.name) and not path.is_dir():
                        path.unlink(missing_ok=True)
                _remove_empty(home)
        self.log(did="finished")

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
                _remove_empty(place, place.parent)

    def free_half_made(self, key: str) -> None:
        """Remove the folder of an artifact without a record; the store must be held by `open_store`."""
        place = self.place(key)
        if self._is_half_made(place):
            with self.writing():
                shutil.rmtree(place)
                _remove_empty(place.parent)

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


def remove_ours(home: Path, file: str, checksums: Iterable[str]) -> bool:
    """Remove a file that is unchanged since we made it, and folders that become empty; return whether it was removed.

    A file that somebody has changed is not ours. Neither is one outside ``home``, even if a record names it.
    """
    path = home / file
    if home.resolve() not in path.resolve().parents or not any(_is_whole(path, checksum) for checksum in checksums):
        return False
    path.unlink(missing_ok=True)
    _remove_empty(*(home / parent for parent in path.relative_to(home).parents[:-1]))
    return True


def _remove_empty(*folders: Path) -> None:
    """Remove folders that are empty, in this order."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _is_whole(path: Path, checksum: str) -> bool:
    try:
        return file_checksum(path) == checksum
    except OSError:
        return False


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
            held = try_lock(handle)
        if not held:
            holder = ""
            with suppress(OSError, ValueError):
                holder = f" (process {int((path / HOME / 'process').read_text(encoding='utf-8'))})"
            raise CranfieldError(
                f"{path} is in use by another run{holder}; wait for it, or choose another folder with out=..."
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
            return not try_lock(handle)
    except OSError:
        return False


def check_folder(path: Path) -> None:
    """Reject a folder that is neither new, nor empty, nor that of an experiment of this version."""
    if path.exists() and not path.is_dir():
        raise CranfieldError(f"{path} is not a folder; choose another with out=...")
    try:
        there = list(path.iterdir()) if path.exists() else []
    except OSError as error:
        raise CranfieldError(f"{path} cannot be read ({error.strerror}); choose another folder with out=...") from error
    if there and not (path / HOME).is_dir():
        raise CranfieldError(f"{path} holds other files ({there[0].name}); choose an empty or new folder with out=...")
    made_by = _made_by(path)
    # Each record shows whether it is of this version, so valid records outweigh what ``folder.json`` says.
    if made_by in (None, (__version__, FORMAT)) or Store(path).records():
        return
    raise CranfieldError(
        f"{path} was made by cranfield {made_by[0]} and this is {__version__}; choose another folder with out=..., or "
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

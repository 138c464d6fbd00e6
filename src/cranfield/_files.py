"""Files: which one a name means, and how one is written atomically, under a temporary name that is then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from cranfield._errors import CranfieldError


class UnwrittenError(CranfieldError):
    """A file that could not be written; ``why`` is the reason."""

    def __init__(self, path: Path, error: BaseException) -> None:
        self.why = getattr(error, "strerror", None) or str(error)
        super().__init__(
            f"{path} cannot be written ({self.why}); choose another folder with out=..., or free some space"
        )


def cache_root() -> Path:
    """Return the cache folder, for everything kept between runs: see `cranfield.datasets.cache_folder`."""
    if own := os.environ.get("CRANFIELD_CACHE"):
        return Path(own).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "cranfield"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "cranfield" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cranfield"
    return Path.home() / ".cache" / "cranfield"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path, which becomes ``path`` on success and is removed on an error.

    A reader therefore sees the old file or the new one, never half of one, even if the process dies. The temporary
    file is in the folder that `temporaries_in` names, or else next to ``path``; temporary files that killed processes
    left there are removed. The record of the old file (`cranfield._record`) does not apply to the new one and is
    removed.
    """
    path = Path(path)
    if _is_device(path):
        with _sent_to(path) as temporary:
            yield temporary
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = _place(path)
        _remove_halves(folder)
        # The extension stays last, because some writers choose their format by it.
        handle, name = tempfile.mkstemp(dir=folder, prefix=f"{_half_of(os.getpid())}-", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise UnwrittenError(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        remove_record(path)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # Polars raises its own errors when the system does not let it write.
        polars = type(error).__module__.startswith("polars")
        if isinstance(error, OSError) or (polars and any(word in str(error) for word in _UNWRITTEN)):
            raise UnwrittenError(path, error) from error
        raise


# Parts of Polars' messages about a file that it could not write, or a stream that was cut short.
_UNWRITTEN = ("os error", "transport error")


@contextmanager
def temporaries_in(folder: Path, root: Path) -> Iterator[None]:
    """Put the temporary files of everything written below ``root`` into ``folder``, which can then be swept."""
    key = root.absolute()
    _TEMPORARIES[key] = folder.absolute()
    try:
        yield
    finally:
        del _TEMPORARIES[key]


def sweep(folder: Path) -> None:
    """Remove the temporary files that a killed process left in a folder of `temporaries_in`, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name.startswith(TEMPORARY) and not path.is_dir():
            path.unlink(missing_ok=True)


TEMPORARY = ".cranfield-half-"
"""Prefix of the names of temporary files."""

_TEMPORARIES: dict[Path, Path] = {}
_SWEPT: set[Path] = set()


def _half_of(process: int | str) -> str:
    """Return the prefix of a process's temporary files, with the machine: others may have a process of the same id."""
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    return f"{TEMPORARY}{machine}-{process}"


def _remove_halves(folder: Path) -> None:
    """Remove temporary files in a folder from processes of this machine that have ended; check each folder once."""
    if folder.absolute() in _SWEPT or os.name != "posix":  # elsewhere os.kill ends the process
        return
    _SWEPT.add(folder.absolute())
    for path in folder.glob(f"{_half_of('*')}-*"):
        process = path.name.removeprefix(TEMPORARY).split("-")[1]
        if process.isdigit() and not _is_running(int(process)):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # the process of another user, or not a process id
        pass
    return True


def _place(path: Path) -> Path:
    """Return the folder for the temporary file of ``path``: on the same file system, so that it can be renamed."""
    above = path.absolute().parents
    for root, folder in list(_TEMPORARIES.items()):
        if root in above and folder.stat().st_dev == path.parent.stat().st_dev:
            return folder
    return path.parent


RECORDS = ".cranfield-records"
"""Folder with the records of `cranfield._record`, next to the files that cranfield wrote."""


def record_path(path: Path) -> Path:
    """Return the path of the record of a file."""
    name = os.fsencode(path.name)
    # File systems allow names of at most 255 bytes, of which the extension .json takes five.
    stem = path.name if len(name) <= 250 else hashlib.sha256(name).hexdigest()
    return path.parent / RECORDS / f"{stem}.json"


def remove_record(path: Path) -> None:
    """Remove the record of a file, if there is one."""
    with suppress(FileNotFoundError, NotADirectoryError):
        record_path(path).unlink()


def meant(name: str | Path, base: Path = Path()) -> Path:
    """Return the file that a name refers to: that file or, if it does not exist, with ``~`` as the home folder.

    A name that is not absolute starts from ``base``.
    """
    path = base / name
    if os.path.lexists(path):
        return path
    try:
        return base / Path(name).expanduser()
    except RuntimeError:  # no such user
        return path


def _is_device(path: Path) -> bool:
    """Whether a path is a device, a pipe or the like, which is written to and never replaced."""
    return path.exists() and not path.is_dir() and (not path.is_file() or path.parent == Path("/dev"))


@contextmanager
def _sent_to(device: Path) -> Iterator[Path]:
    """Yield a temporary path whose content is then written to a device."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / device.name
        yield temporary
        try:
            with temporary.open("rb") as content, device.open("wb") as file:
                shutil.copyfileobj(content, file)
        except OSError as error:
            raise UnwrittenError(device, error) from error


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file atomically; return its path."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def try_lock(handle: IO[bytes]) -> bool:
    """Try to lock a file; the operating system releases the lock whenever and however the process ends."""
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

"""Files written whole: under a temporary name first, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cranfield._errors import CranfieldError


class UnwrittenError(CranfieldError):
    """A file that could not be written, and ``why``."""

    def __init__(self, path: Path, error: BaseException) -> None:
        self.why = getattr(error, "strerror", None) or str(error)
        super().__init__(f"{path} cannot be written ({self.why}); choose another folder with --out or free some room")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on leaving without error it becomes ``path``, else it is removed.

    A reader therefore sees the old file or the new one, never half of one, whenever the process dies.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> (folder / "a.txt").read_text()
    'all of it'
    """
    path = Path(path)
    if _is_device(path):
        with _sent_to(path) as temporary:
            yield temporary
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The ending stays last: some writers choose their format by it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise UnwrittenError(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # Polars has errors of its own for what the system did not let it write.
        if isinstance(error, OSError) or (type(error).__module__.startswith("polars") and "os error" in str(error)):
            raise UnwrittenError(path, error) from error
        raise


def _is_device(path: Path) -> bool:
    """Tell whether a path is a device, a pipe or the like, which is written to and never replaced."""
    return path.exists() and not path.is_dir() and (not path.is_file() or path.parent == Path("/dev"))


@contextmanager
def _sent_to(device: Path) -> Iterator[Path]:
    """Give a temporary path, whose content goes to a device."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / device.name
        yield temporary
        try:
            with temporary.open("rb") as content, device.open("wb") as file:
                shutil.copyfileobj(content, file)
        except OSError as error:
            raise UnwrittenError(device, error) from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

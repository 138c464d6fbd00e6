"""Safe unpacking of archives: nothing outside the folder, no links, and no more bytes than allowed."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cranfield._errors import InputError

_BLOCK = 1 << 18
_MOST_MEMBERS = 200_000
_DEEPEST = 3
_COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_ZIP = b"PK\x03\x04"
# Zstandard and zlib, which Polars would decompress by itself, without a limit.
_UNLIMITED = (b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x9c", b"x\xda")
SUFFIXES = (".gz", ".bz2", ".xz")
"""The file name extensions of single compressed files."""
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
    *(ValueError, struct.error),  # zipfile does not catch these
)


class _Allowance:
    """The bytes that may still be unpacked; the size that an archive claims to have is not trusted."""

    def __init__(self, limit: int, source: Path) -> None:
        self._limit, self._left, self._source = limit, limit, source

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            problem = f"the archive unpacks to more than the {self._limit:,} bytes that were expected"
            remedy = "do not trust it, or raise the limit with cranfield.settings.unpack_limit (--unpack-limit)"
            raise InputError(problem, source=self._source, remedy=remedy)


class _Counted(io.RawIOBase):
    """A decompressed stream that spends the allowance as it is read, so that skipping a member counts too."""

    def __init__(self, stream: IO[bytes], allowance: _Allowance) -> None:
        self._stream, self._allowance = stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._allowance.spend(len(block))
        buffer[: len(block)] = block
        return len(block)


def is_archive(path: Path) -> bool:
    """Whether a file is a zip, a tar or compressed, judged by its content."""
    return _opener(path) is not None or _is_zip(path) or tarfile.is_tarfile(path)


def check_plain(path: Path) -> None:
    """Refuse a file that is empty, or compressed in a way that other libraries would unpack without a limit."""
    head = _head(path)
    if not head:
        raise InputError("the file is empty", source=path, remedy="download it again")
    if head.startswith(_UNLIMITED):
        problem = "the file is compressed with Zstandard or zlib, which is not known here"
        raise InputError(problem, source=path, remedy="unpack it with another program first")


def unpack(source: Path, folder: Path, *, wanted: Iterable[str], limit: int) -> None:
    """Unpack the members of an archive whose names match ``wanted`` into ``folder``.

    The archive may be a zip, a tar (compressed or not) or a single compressed file. A wanted member that is itself an
    archive is unpacked in turn. An archive with a path outside of itself, a link or a device is refused as a whole.
    ``wanted`` are patterns of file names, without folders, and ``limit`` is the most bytes to unpack in total.
    """
    _unpack(source, folder, tuple(wanted), _Allowance(limit, source), depth=1)


def _unpack(source: Path, folder: Path, wanted: tuple[str, ...], allowance: _Allowance, depth: int) -> None:
    try:
        if _is_zip(source):
            _unzip(source, folder, wanted, allowance)
        else:
            _untar_or_expand(source, folder, wanted, allowance)
    except _BROKEN as error:
        raise _damaged(source, error) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise InputError("the archive holds the same path twice", source=source, remedy="do not trust it") from error
    except OSError as error:
        # bz2 raises this for bad data, and zipfile for a bad offset; a full disk is a different error.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise _damaged(source, error) from error
    except (NotImplementedError, RuntimeError) as error:
        problem = f"the archive cannot be unpacked ({error})"
        remedy = "unpack it with another program and give the folder with --from"
        raise InputError(problem, source=source, remedy=remedy) from error
    if depth < _DEEPEST:
        for inner in [path for path in folder.rglob("*") if path.is_file() and is_archive(path)]:
            place = inner.with_name(inner.name + ".unpacked")
            place.mkdir()
            _unpack(inner, place, wanted, allowance, depth + 1)
            inner.unlink()


def _damaged(source: Path, error: BaseException) -> InputError:
    return InputError(f"the archive is damaged ({str(error)[:100]})", source=source, remedy="download it again")


def _unzip(source: Path, folder: Path, wanted: tuple[str, ...], allowance: _Allowance) -> None:
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
        _few_enough(len(members), source)
        for member in members:
            path = _safe(member.filename, source)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                _refuse(member.filename, source, "is a link or a device")
            if path is not None and not member.is_dir() and _matches(path, wanted):
                with archive.open(member) as stream:
                    _write(stream, folder / path, allowance)


def _untar_or_expand(source: Path, folder: Path, wanted: tuple[str, ...], allowance: _Allowance) -> None:
    opener = _opener(source) or open
    with opener(source, "rb") as stream:
        is_tar = _begins_as_tar(stream)
    with opener(source, "rb") as stream:
        counted = io.BufferedReader(_Counted(stream, allowance), _BLOCK)
        if is_tar:
            _untar(counted, source, folder, wanted, allowance)
        else:
            name = source.name
            for suffix in SUFFIXES:
                name = name.removesuffix(suffix)
            _write(counted, folder / name, allowance=None)


def _untar(stream: IO[bytes], source: Path, folder: Path, wanted: tuple[str, ...], allowance: _Allowance) -> None:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive, start=1):
            _few_enough(number, source)
            path = _safe(member.name, source)
            if not (member.isfile() or member.isdir()):
                _refuse(member.name, source, "is a link or a device")
            if path is not None and member.isfile() and _matches(path, wanted):
                content = archive.extractfile(member)
                if content is not None:
                    # The stream below has counted the bytes that were read; a sparse member unpacks to more than that.
                    _write(content, folder / path, allowance if member.issparse() else None)
            archive.members.clear()  # type: ignore[attr-defined]


def _write(stream: IO[bytes], path: Path, allowance: _Allowance | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        while block := stream.read(_BLOCK):
            if allowance is not None:
                allowance.spend(len(block))
            file.write(block)


def _safe(name: str, source: Path) -> PurePosixPath | None:
    """Return a member's path if it stays inside the folder (None for the folder itself), else refuse the archive."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or "\x00" in name:
        _refuse(name, source, "would be written outside of the folder")
    return path if path.parts else None


def _refuse(name: str, source: Path, problem: str) -> None:
    raise InputError(f"the archive is refused: its member {name!r} {problem}", source=source, remedy="do not trust it")


def _few_enough(count: int, source: Path) -> None:
    if count > _MOST_MEMBERS:
        problem = f"the archive holds more than {_MOST_MEMBERS:,} files"
        raise InputError(problem, source=source, remedy="do not trust it")


def _matches(path: PurePosixPath, wanted: tuple[str, ...]) -> bool:
    names = {path.name, *(path.name.removesuffix(suffix) for suffix in SUFFIXES)}
    return any(fnmatch(name, pattern) for name in names for pattern in wanted)


def _begins_as_tar(stream: IO[bytes]) -> bool:
    try:
        tarfile.TarInfo.frombuf(stream.read(512), "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _opener(path: Path) -> Any:
    return next((opener for magic, opener in _COMPRESSED.items() if _head(path).startswith(magic)), None)


def _is_zip(path: Path) -> bool:
    # A truncated zip has lost the list of its members, so zipfile does not recognize it.
    return _head(path).startswith(_ZIP) or zipfile.is_zipfile(path)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(6)

"""Downloads that are complete or not there at all, and unpacking that stays in its folder, its limit and its files."""

from __future__ import annotations

import bz2
import errno
import gzip
import http.client
import io
import json
import lzma
import re
import stat
import struct
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cranfield._errors import DownloadError, InputError
from cranfield._record import file_checksum
from cranfield._terminal import progress
from cranfield._version import __version__

_TIMEOUT = 30.0
_ATTEMPTS = 5
_PAUSE = 1.0
_MIB = 1 << 20
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


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https addresses only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urllib.parse.urlsplit(newurl).scheme.lower() not in ("http", "https"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}, which is not an http or https address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _web_opener() -> urllib.request.OpenerDirector:
    """Return an opener of http and https addresses only: urllib's own also opens files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _WebOnly,
    ):
        opener.add_handler(handler())
    return opener


class _BrokenError(Exception):
    """The connection ended before the file did; the bytes received so far are kept."""


def download(address: str, target: Path, *, checksum: str | None = None, limit: int, what: str) -> None:
    """Download ``address`` to ``target``, continuing where an earlier attempt stopped.

    A download is written to ``target`` + ``.part``, which is renamed when it is complete. It is resumed with an HTTP
    range request only if the server says that the file has not changed since (``If-Range``); a server that cannot do
    that sends the whole file again. A ``checksum`` is ``"md5:..."`` or ``"sha256:..."``, ``limit`` the most bytes
    accepted, and ``what`` the name in the progress bar.
    """
    if not address.startswith(("http://", "https://")):
        raise DownloadError(f"{address} is not an http or https address")
    part = target.with_name(target.name + ".part")
    for attempt in range(_ATTEMPTS):
        before = _size(part)
        try:
            _continue(address, part, limit, what)
            break
        except _BrokenError as error:
            if attempt + 1 == _ATTEMPTS:
                raise DownloadError(f"the connection to {address} broke {_ATTEMPTS} times ({error})") from error
            # If the server sends something each time, no long pause is needed.
            time.sleep(_PAUSE if _size(part) > before else _PAUSE * 2**attempt)
    if checksum is not None:
        algorithm, _, wanted = checksum.partition(":")
        actual = file_checksum(part, algorithm)
        if actual != wanted.lower():
            _forget(part)
            raise DownloadError(f"{address} has the {algorithm} checksum {actual} instead of {wanted}")
    part.replace(target)
    _forget(part)


def _continue(address: str, part: Path, limit: int, what: str) -> None:
    """Request the missing rest of ``part`` and append it, or start again if that is not possible."""
    have, validator = _left_by_earlier(address, part)
    headers = {"User-Agent": f"cranfield/{__version__}", "Accept-Encoding": "identity"}
    if validator is not None:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with _web_opener().open(urllib.request.Request(address, headers=headers), timeout=_TIMEOUT) as answer:
            if answer.status == http.client.PARTIAL_CONTENT:
                start, total = _range(answer.headers.get("Content-Range"))
                if start != have:
                    _forget(part)
                    raise _BrokenError("the server sent a different range from the one requested")
            else:
                have, total = 0, _number(answer.headers.get("Content-Length"))
                _remember(address, part, answer)
            _append(answer, part, have, total, limit, what)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            _forget(part)
            raise _BrokenError("the file on the server has changed") from error
        if error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS:
            raise _BrokenError(f"HTTP {error.code} {error.reason}") from error
        raise DownloadError(f"{address} answers HTTP {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, (TimeoutError, ConnectionResetError)):
            raise _BrokenError(error.reason) from error
        raise DownloadError(f"{address} cannot be reached ({error.reason})") from error
    except (http.client.InvalidURL, ValueError) as error:
        raise DownloadError(f"{address} is not an address ({error})") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


def _append(answer: Any, part: Path, have: int, total: int | None, limit: int, what: str) -> None:
    if (total or 0) > limit:
        raise DownloadError(f"it has {total:,} bytes, more than the {limit:,} that were expected")
    with (
        part.open("ab" if have else "wb") as file,
        progress(f"Downloading {what}", total=None if total is None else round(total / _MIB, 1), unit="MiB") as bar,
    ):
        bar.advance(round(have / _MIB, 1))
        # `read1` returns what has arrived, not a whole block: a broken connection loses nothing, and the bar moves.
        while block := answer.read1(_BLOCK):
            have += len(block)
            if have > limit:
                break
            file.write(block)
            bar.advance(len(block) / _MIB)
    if have > limit:
        _forget(part)
        raise DownloadError(f"it has more than the {limit:,} bytes that were expected")
    if total is not None and have < total:
        raise _BrokenError(f"{have:,} of {total:,} bytes were received")


def _left_by_earlier(address: str, part: Path) -> tuple[int, str | None]:
    """Return how many bytes an earlier attempt left, and the validator of their version on the server."""
    try:
        left = json.loads(_note(part).read_text(encoding="utf-8"))
        if left["address"] == address and left["validator"] and _size(part):
            return _size(part), str(left["validator"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return 0, None


def _remember(address: str, part: Path, answer: Any) -> None:
    # A weak ETag does not promise the same bytes, so it cannot be used to continue (RFC 9110, 13.1.5).
    etag = answer.headers.get("ETag")
    validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    part.unlink(missing_ok=True)
    _note(part).write_text(json.dumps({"address": address, "validator": validator}), encoding="utf-8")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _range(text: str | None) -> tuple[int | None, int | None]:
    """Return where a partial response starts and how long the whole file is: ``bytes 100-199/200``."""
    form = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", text or "")
    if form is None:
        return None, None
    # The request was for the rest of the file, so the file ends where the response does.
    return int(form[1]), _number(form[3]) or int(form[2]) + 1


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


class _Allowance:
    """The bytes that may still be unpacked; the size that an archive claims to have is not trusted."""

    def __init__(self, limit: int, source: Path) -> None:
        self._limit, self._left, self._source = limit, limit, source

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            problem = f"the archive unpacks to more than the {self._limit:,} bytes that were expected"
            remedy = "do not trust it, or raise the limit with cranfield.settings.unpack_limit"
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
        remedy = "unpack it with another program and give the folder with from_path=..."
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

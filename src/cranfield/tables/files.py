"""Files of any kind: opened, unpacked as their first bytes tell, and written as their names say."""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from cranfield import _checks as check
from cranfield._errors import InputError, MissingExtraError, SettingError, suggestion
from cranfield._files import meant, whole_file
from cranfield._polars import write_csv, write_parquet
from cranfield._settings import settings

FORMATS = ("parquet", "csv", "tsv")
"""The formats in which tables are written; each is also a file name extension."""

_PARQUET = b"PAR1"
_GZIP, _ZSTD, _ZIP, _BZIP2, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00"
# The errors of the libraries on damaged bytes; zipfile also raises ValueError and struct.error.
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error)
_PIECE = 1 << 10
_NOT_DATA = {".md", ".html", ".pdf", ".ds_store"}
# By default a compressed file may unpack to this many times its size, and to this many bytes in any case. Files of
# ratings and runs are seldom compressed to less than a twentieth.
_USUAL, _ALWAYS = 100, 1 << 26


def file_and_member(path: Path) -> tuple[Path, str | None]:
    """Return the file that a path names and, for ``archive.zip/file.csv``, the member of the archive."""
    path = meant(path)
    if path.is_dir():
        files = ", ".join(sorted(entry.name for entry in path.iterdir() if entry.is_file())[:5]) or "no file"
        raise InputError("this is a folder", source=str(path), remedy=f"name a file in it; it holds {files}")
    if path.exists():
        return path, None
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        raise InputError("there is no such file", source=str(path), remedy="check the name and the folder")
    return archive, path.relative_to(archive).as_posix()


def is_parquet(source: Path | bytes) -> bool:
    """Whether a file, or the content of one, is Parquet; for a pipe this is only known once it is read."""
    if isinstance(source, Path):
        return source.is_file() and is_parquet(contents(source, len(_PARQUET)))
    return source.startswith(_PARQUET)


def contents(path: Path, size: int = -1) -> bytes:
    """Return the first ``size`` bytes of a file, or all of them."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise InputError("there is no such file", source=str(path), remedy="check the name and the folder") from None
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror})"
        raise InputError(problem, source=str(path), remedy="check its permissions") from error


def unpacked(data: bytes, label: str, member: str | None = None, limit: int | None = None) -> tuple[bytes, str]:
    """Return the content of compressed ``data``, and its name; plain data are returned unchanged.

    Data that unpack to more than ``limit`` are refused. ``member`` is the file of a zip archive to take; by default the
    only one, or the one with "rating" in its name. ``label`` is the file's name, for messages.
    """
    limit = unpack_limit(len(data)) if limit is None else limit
    if data.startswith(_ZIP):
        data, label = _from_zip(data, label, member, limit)
        return unpacked(data, label, None, limit) if not data.startswith(_ZIP) else (data, label)
    for magic, kind in ((_GZIP, "gzip"), (_BZIP2, "bzip2"), (_XZ, "xz"), (_ZSTD, "Zstandard")):
        if data.startswith(magic):
            try:
                plain = _from_zstd(data, limit) if magic == _ZSTD else _of_streams(data, limit, *_STREAMS[magic])
            except MissingExtraError as error:
                raise MissingExtraError(
                    f"{label}: {kind}-compressed text", library=error.library, extra=error.extra
                ) from error
            except _DAMAGE as error:
                raise _damaged(kind, label, error) from error
            check_size(len(plain), limit, label)
            return plain, label
    return data, label


def unpack_limit(size: int) -> int:
    """Return the most bytes that a compressed file of some size may unpack to."""
    if settings.unpack_limit is None:
        return max(_USUAL * size, _ALWAYS)
    return check.whole("unpack_limit", settings.unpack_limit, at_least=1)


def check_size(size: int, limit: int, label: str) -> None:
    """Refuse a file whose content is too large."""
    if size > limit:
        problem = f"the file unpacks to more than {limit:,} bytes"
        remedy = "if you trust it, raise the limit with cranfield.settings.unpack_limit"
        raise InputError(problem, source=label, remedy=remedy)


# How a stream is unpacked, and what of the rest is another stream.
_STREAMS: Mapping[bytes, tuple[Callable[[], Any], Callable[[bytes], bytes]]] = {
    _GZIP: (lambda: zlib.decompressobj(wbits=31), lambda rest: rest.lstrip(b"\0")),  # with header and checksum
    _BZIP2: (bz2.BZ2Decompressor, lambda rest: rest if rest.startswith(_BZIP2) else b""),
    _XZ: (lzma.LZMADecompressor, lambda rest: rest if rest.startswith(_XZ) else b""),
}


def _from_zip(data: bytes, label: str, member: str | None, limit: int) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            chosen = member or _chosen(archive.namelist(), label)
            if chosen not in archive.namelist():
                problem = f"there is no {chosen} in the archive"
                remedy = f"it holds {_listed(archive.namelist())}"
                raise InputError(problem, source=label, remedy=remedy)
            label = f"{label}/{chosen}"
            with archive.open(chosen) as inside:
                plain = inside.read(limit + 1)
                check_size(len(plain), limit, label)
                return plain, label
    except _DAMAGE as error:
        raise _damaged("zip", label, error) from error
    except RuntimeError as error:  # a password, or an unknown compression
        problem = f"the zip data cannot be unpacked ({error})"
        raise InputError(problem, source=label, remedy="unpack it with another program first") from error


def _chosen(names: list[str], label: str) -> str:
    if "[Content_Types].xml" in names:
        raise InputError("the file is an Excel workbook", source=label, remedy="save the sheet as CSV, and give that")
    files = [
        name
        for name in names
        if not name.endswith("/") and "__MACOSX" not in name and PurePosixPath(name).suffix.lower() not in _NOT_DATA
    ]
    spoken = [name for name in files if "rating" in PurePosixPath(name).name.lower()]
    for candidates in (files, spoken):
        if len(candidates) == 1:
            return candidates[0]
    if not files:
        raise InputError("the archive holds no file of ratings", source=label, remedy="check that it is the right one")
    problem = "the archive holds several files"
    remedy = f"name one of them, as in {label}/{files[0]}; it holds {_listed(files)}"
    raise InputError(problem, source=label, remedy=remedy)


def _of_streams(data: bytes, limit: int, decompressor: Callable[[], Any], following: Callable[[bytes], bytes]) -> bytes:
    """Unpack consecutive streams, to at most one byte more than the limit."""
    parts: list[bytes] = []
    left = limit + 1
    while data and left:
        stream = decompressor()
        parts.append(stream.decompress(data, left))
        left -= len(parts[-1])
        if left and not stream.eof:
            raise EOFError("it ends too early")
        data = following(stream.unused_data)
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _from_zstd(data: bytes, limit: int) -> bytes:
    try:
        from compression import zstd  # Python 3.14 and newer
    except ImportError:
        return _from_zstandard(data, limit)
    try:
        return _of_streams(data, limit, zstd.ZstdDecompressor, bytes)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error


def _from_zstandard(data: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("Zstandard", library="zstandard", extra="zstd") from error
    parts: list[bytes] = []
    left = limit + 1
    while data and left > 0:
        frame = zstandard.ZstdDecompressor().decompressobj()
        view = memoryview(data)
        # Decompress in small pieces, because there is no other way to limit the output: 4 bytes may become 128 KiB.
        for start in range(0, len(data), _PIECE):
            try:
                parts.append(frame.decompress(view[start : start + _PIECE]))
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error
            left -= len(parts[-1])
            if frame.eof or left <= 0:
                break
        if left > 0 and not frame.eof:
            raise EOFError("it ends too early")
        data = frame.unused_data + data[start + _PIECE :] if frame.eof else b""
    return b"".join(parts)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _damaged(kind: str, label: str, error: BaseException) -> InputError:
    problem = f"the {kind} data cannot be unpacked ({str(error)[:100]})"
    return InputError(problem, source=label, remedy="the file is cut short or damaged: fetch or write it again")


def check_format(path: str | Path) -> str:
    """Return the format that a file's extension names, or say which ones there are."""
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise SettingError(
            f"{path} does not end in a known format; name it .parquet, .csv or .tsv{suggestion(ending, FORMATS)}"
        )
    return ending


def write_table(table: pl.DataFrame, path: str | Path) -> Path:
    """Write any table, in the format that the extension names."""
    path, form = Path(path), check_format(path)
    with whole_file(path) as temporary:
        if form == "parquet":
            write_parquet(table, temporary)
        else:
            write_csv(_printable(table, path), temporary, separator="," if form == "csv" else "\t")
    return path


def _printable(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return the table with bytes as text, or say that a column cannot be printed."""
    for name, kind in table.schema.items():
        if kind in (pl.Binary, pl.Duration):
            try:
                table = table.with_columns(pl.col(name).cast(pl.String))
            except pl.exceptions.PolarsError as error:
                raise SettingError(
                    f"{path} cannot hold the column {name!r} ({kind}) as text; name the file .parquet"
                ) from error
    return table
